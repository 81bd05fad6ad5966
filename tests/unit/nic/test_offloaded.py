"""An application and its NIC, real processes: what works, what is refused, and what each does when the other dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from endpoints.io.commands import Abort, Crashed, Go, RankResult, Ready, Regroup, RunOperation, Settle
from endpoints.nic.device import OPERATIONS, OUTSTANDING
from endpoints.nic.entries import DEPTH, Status
from endpoints.nic.port import GONE, NicGone
from endpoints.nic.queue import QueueFull
from endpoints.nic.verbs import NOTHING, CollectiveFailed, Handle, Nic, Region
from tests.unit.nic.pretended import (
    AWAITS_FILE,
    BOUND_S,
    COMM,
    CRASH,
    ENDLESS,
    GOOD,
    KILLED,
    SILENT_PEER,
    PretendedHost,
    ended,
    hosts,
)

__all__ = ["hosts"]

Hosts = Callable[..., PretendedHost]
SIZE = 1000
"""Of a block: four chunks."""


# -- what applications do ---------------------------------------------------------------------------------------------


def post(nic: Nic, *kinds: int) -> list[Handle]:
    """An Allgather of each kind."""
    registered = [regions(nic, kind) for kind in kinds]
    return [nic.allgather_async(*each) for each in registered]


def regions(nic: Nic, kind: int) -> tuple[Region, Region]:
    data, buffer = nic.allocate(SIZE), nic.allocate(2 * SIZE)
    data[:] = kind
    return nic.register(data), nic.register(buffer)


def outcome(handle: Handle) -> tuple[Status, str]:
    """How it ended."""
    with suppress(CollectiveFailed):
        handle.wait(BOUND_S)
    assert handle.poll()
    assert handle.completion is not None
    return handle.completion.status, handle.completion.reason


def outcomes(nic: Nic, *kinds: int) -> list[tuple[Status, str]]:
    """Post some and wait for all."""
    return [outcome(handle) for handle in post(nic, *kinds)]


def gather(nic: Nic, number: int) -> list[bool]:
    """Several outstanding, from one region to parts of another; whether each was received in its place."""
    data, buffer = nic.allocate(number * SIZE), nic.allocate(number * 2 * SIZE)
    data[:] = np.repeat(np.arange(10, 10 + number, dtype=np.uint8), SIZE)
    given, into = nic.register(data), nic.register(buffer)
    handles = [
        nic.allgather_async(given[n * SIZE : (n + 1) * SIZE], into[2 * n * SIZE : 2 * (n + 1) * SIZE])
        for n in range(number)
    ]
    for handle in handles:
        handle.wait(BOUND_S)
    return [bool((buffer[2 * n * SIZE : 2 * (n + 1) * SIZE] == 10 + n).all()) for n in range(number)]


def test_what_is_received_is_in_the_applications_own_memory(hosts: Hosts) -> None:
    assert hosts().call(gather, 3) == [True] * 3


@pytest.mark.parametrize("workers", [2, 3, 6])
def test_workers_receive_a_stripe_of_each_block_in_its_place(hosts: Hosts, workers: int) -> None:
    assert hosts(workers).call(gather, 3) == [True] * 3


def too_many(nic: Nic) -> str:
    given, into = regions(nic, ENDLESS)
    for _ in range(DEPTH):
        nic.allgather_async(given, into)
    try:
        nic.allgather_async(given, into)
    except QueueFull as full:
        return str(full)
    return ""


def test_more_than_the_queue_holds_is_refused_at_once(hosts: Hosts) -> None:
    assert hosts().call(too_many).startswith(f"{DEPTH} work requests are outstanding")


def mapped(pid: int) -> int:
    return sum("treecast-nic" in line for line in Path(f"/proc/{pid}/maps").read_text().splitlines())


def register_and_drop(nic: Nic, pid: int) -> list[int]:
    """How much the NIC maps before and after, and how many descriptors this process has more."""
    descriptors = len([*Path("/proc/self/fd").iterdir()])
    region, *_ = regions(nic, GOOD)
    held = mapped(pid)
    nic.deregister(region)
    nic.register(nic.allocate(1))  # an answer, so that what was said before has been done
    return [held, mapped(pid), len([*Path("/proc/self/fd").iterdir()]) - descriptors]


def test_memory_is_let_go_of_on_both_sides(hosts: Hosts) -> None:
    host = hosts()
    [worker] = host.process.engines
    assert host.call(register_and_drop, worker.pid) == [2, 2, 0]


def wrong(nic: Nic) -> list[Any]:
    """What is refused at once, as its words, or in the completion, as its status."""
    found: list[Any] = []
    for array in (np.zeros(8, np.uint8), nic.allocate(16)[::2]):
        with pytest.raises(ValueError, match="register") as refused:
            nic.register(array)
        found.append(str(refused.value))
    with pytest.raises(ValueError, match="not 2 equal blocks"):
        nic.allgather_async(NOTHING, Region(1, 0, 3))
    with pytest.raises(ValueError, match="unknown algorithm"):
        nic.post("none", NOTHING, NOTHING)
    good, into = regions(nic, GOOD)
    with pytest.raises(ValueError, match="blocks of 1000 bytes are given, and of 500 received"):
        nic.allgather_async(good, into[:SIZE])
    for given, buffer in ((Region(99, 0, SIZE), into), (good, Region(into.key, SIZE, 2 * SIZE))):
        found += [outcome(handle)[0] for handle in (nic.allgather_async(given, buffer), *post(nic, GOOD))]
        nic.regroup(Regroup(COMM, 0, 1))
    return [*found, *outcomes(nic, GOOD)]


def test_what_is_wrong_is_said_and_what_follows_flushed_until_the_ranks_are_grouped_anew(hosts: Hosts) -> None:
    assert hosts().call(wrong) == [
        "register: only what `allocate` gave, or a numpy.memmap of a file, can be shared",
        "register: the array is not contiguous",
        Status.LOCAL_PROTECTION_ERROR,
        Status.FLUSHED_ERROR,
        Status.LOCAL_PROTECTION_ERROR,
        Status.FLUSHED_ERROR,
        (Status.SUCCESS, ""),
    ]


def fail(nic: Nic) -> list[Any]:
    handles = post(nic, GOOD, SILENT_PEER)
    ends = [*map(outcome, handles), *outcomes(nic, GOOD)]
    assert handles[1].completion is not None
    return [*ends, handles[1].completion.suspect, nic.result(handles[0]).failure, nic.result(handles[1]).failure]


def test_a_collective_that_fails_says_why_and_on_whose_account(hosts: Hosts) -> None:
    assert hosts().call(fail) == [
        (Status.SUCCESS, ""),
        (Status.RETRY_EXCEEDED_ERROR, "rank 1 does not answer"),
        (Status.FLUSHED_ERROR, "work request 2 failed: rank 1 does not answer"),
        1,
        None,
        ("rank 1 does not answer", 1),
    ]


def give_up(nic: Nic) -> list[tuple[Status, str]]:
    handles = post(nic, *[ENDLESS] * OUTSTANDING, GOOD)
    with pytest.raises(TimeoutError, match=r"work request 1 has not ended in 0.05 s"):
        handles[0].wait(0.05)
    nic.give_up("enough", 1)
    return [outcome(handle) for handle in handles]


def test_what_is_given_up_ends(hosts: Hosts) -> None:
    given_up = [(Status.RETRY_EXCEEDED_ERROR, "enough")] * OUTSTANDING
    assert hosts().call(give_up) == [*given_up, (Status.FLUSHED_ERROR, "enough")]


def numbers(nic: Nic) -> list[int]:
    """The number of the operation of each Allgather: two, and two after the ranks have been grouped anew."""
    found = []
    for epoch in (0, 1):
        nic.regroup(Regroup(replace(COMM, epoch=epoch), 0, first_op=5))
        for handle in post(nic, GOOD, GOOD):
            handle.wait(BOUND_S)
            [(_, op), *_] = nic.result(handle).phases
            found.append(op)
    return found


def test_operations_have_numbers_in_the_order_of_posting_and_others_in_the_next_epoch(hosts: Hosts) -> None:
    assert hosts().call(numbers) == [5, 6, 5 + OPERATIONS, 6 + OPERATIONS]


def in_any_order(nic: Nic, file: Path) -> list[bool]:
    """Whether those in front have ended, once those behind them have."""
    slow, *quick = post(nic, AWAITS_FILE, *[GOOD] * 2 * OUTSTANDING)
    for handle in quick:
        handle.wait(BOUND_S)
    ended = [slow.poll()]
    file.touch()
    slow.wait(BOUND_S)
    return [*ended, slow.poll()]


def test_a_short_one_is_not_held_up_by_a_long_one(hosts: Hosts) -> None:
    host = hosts()
    assert host.call(in_any_order, host.file) == [False, True]


def striped(nic: Nic, kinds: tuple[int, ...]) -> Any:
    """One Allgather whose parts are each of another kind."""
    data, buffer = nic.allocate(SIZE), nic.allocate(2 * SIZE)
    data.reshape(len(kinds), -1)[:] = np.array(kinds, np.uint8)[:, None]
    data[512:] = kinds[1]
    before = time.monotonic()
    handle = nic.allgather_async(nic.register(data), nic.register(buffer))
    return outcome(handle), time.monotonic() - before < BOUND_S


def test_a_part_that_fails_ends_the_parts_of_the_other_workers(hosts: Hosts) -> None:
    assert hosts(2).call(striped, (ENDLESS, SILENT_PEER)) == (
        (Status.RETRY_EXCEEDED_ERROR, "rank 1 does not answer"),
        True,
    )


# -- whoever runs collectives -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_it_answers_like_a_host_without_a_nic(hosts: Hosts, tmp_path: Path, workers: int) -> None:
    host = hosts(workers)
    data, buffer = tmp_path / "data", tmp_path / "buffer"
    for value in (77, 78):
        data.write_bytes(bytes([value]) * SIZE)
        buffer.write_bytes(bytes(2 * SIZE))
        host.tell(RunOperation("mcast_allgather", data, buffer))
        assert host.answer() == Ready()
        host.tell(Go(time.monotonic_ns()))
        result = host.answer()
        assert isinstance(result, RankResult)
        assert (result.rank, result.failure, result.counters) == (0, None, {"chunks_sent": workers})
        assert result.cpu_seconds == 0.25 * workers
        assert result.application_cpu_seconds is not None
        assert set(buffer.read_bytes()) == {value}
        host.tell(Settle())
        assert host.answer() == result
    host.tell(Regroup(COMM, 0, first_op=9))
    assert host.answer() == Ready()
    host.tell(RunOperation("mcast_allgather", data, buffer))
    assert host.answer() == Ready()
    host.tell(Abort("enough", 1))
    assert host.answer().failure == ("enough", 1)
    assert [each.is_alive() for each in host.process.processes] == [True] * (1 + workers)


def test_it_gives_up_what_is_under_way_when_told(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts(2)
    data, buffer = tmp_path / "data", tmp_path / "buffer"
    data.write_bytes(bytes([ENDLESS]) * SIZE)
    buffer.write_bytes(bytes(2 * SIZE))
    host.tell(RunOperation("mcast_allgather", data, buffer))
    assert host.answer() == Ready()
    host.tell(Go(time.monotonic_ns()))
    host.tell(Abort("enough", 1))
    assert host.answer().failure == ("enough", 1)


# -- deaths -----------------------------------------------------------------------------------------------------------


def lose(nic: Nic, *kinds: int) -> tuple[list[tuple[Status, str]], str]:
    ends = outcomes(nic, *kinds)
    with pytest.raises(NicGone) as gone:
        nic.register(nic.allocate(1))
    return ends, str(gone.value)


def test_a_nic_that_dies_completes_everything_with_an_error_and_ends_its_application(hosts: Hosts) -> None:
    host = hosts()
    assert host.call(outcomes, GOOD) == [(Status.SUCCESS, "")]
    ends, words = host.call(lose, ENDLESS, KILLED, GOOD)
    assert ends == [(Status.FATAL_ERROR, GONE)] * 3
    assert words == GONE
    assert ended(host.process) == [1, -signal.SIGKILL]


def test_the_end_of_one_worker_is_that_of_the_nic(hosts: Hosts) -> None:
    host = hosts(2)
    assert host.call(striped, (ENDLESS, KILLED)) == ((Status.FATAL_ERROR, GONE), True)
    assert ended(host.process) == [1, 0, -signal.SIGKILL]


def ask_the_dead(nic: Nic, pid: int) -> bool:
    """Whether a NIC that is killed after a collective is told from one that has nothing to say of it."""
    [handle] = post(nic, GOOD)
    handle.wait(BOUND_S)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(NicGone):
        nic.result(handle)
    return True


def test_a_nic_that_dies_before_it_says_what_it_did_is_gone(hosts: Hosts) -> None:
    host = hosts()
    assert host.call(ask_the_dead, host.process.engines[0].pid)


def test_an_idle_application_notices_that_its_nic_has_died(hosts: Hosts) -> None:
    host = hosts()
    host.process.engines[0].kill()
    assert ended(host.process) == [1, -signal.SIGKILL]


def test_a_nic_that_crashes_has_its_last_words_heard(hosts: Hosts) -> None:
    host = hosts()
    ends, _ = host.call(lose, CRASH)
    assert ends == [(Status.FATAL_ERROR, "its NIC has crashed: RuntimeError: the engine stalls")]
    crashed = host.answer()
    assert isinstance(crashed, Crashed)
    assert "the engine stalls" in crashed.trace
    assert ended(host.process) == [1, 1]


def die(nic: Nic, *kinds: int) -> None:
    post(nic, *kinds)
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_nic_of_an_application_that_dies_finishes_what_is_under_way_and_ends(hosts: Hosts) -> None:
    host = hosts(2)
    host.tell(_call(die, AWAITS_FILE, GOOD))
    host.process.process.join(BOUND_S)
    assert [each.is_alive() for each in host.process.engines] == [True, True]
    host.file.touch()
    assert ended(host.process) == [-signal.SIGKILL, 0, 0]


def test_the_nic_of_an_application_that_stops_goes_on_and_is_found_again(hosts: Hosts) -> None:
    host = hosts()
    host.tell(_call(outcomes, AWAITS_FILE))
    assert host.process.process.pid is not None
    os.kill(host.process.process.pid, signal.SIGSTOP)
    host.file.touch()
    assert not host.process.pipe.poll(0.05)
    assert host.process.engines[0].is_alive()
    os.kill(host.process.process.pid, signal.SIGCONT)
    assert host.answer().value == [(Status.SUCCESS, "")]


def test_an_application_that_ends_takes_its_nic_with_it(hosts: Hosts) -> None:
    host = hosts(3)
    host.end()
    assert ended(host.process)[0] == 0


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    from endpoints.io.commands import Call

    return Call(function, arguments)
