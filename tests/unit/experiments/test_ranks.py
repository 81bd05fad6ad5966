"""The endpoints of a run as seen by whoever runs it: who answers, who has ended, and who takes part in what is next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from endpoints.collectives.registry import collective
from endpoints.io.commands import Abort, Command, Go, RankResult, Ready, Regroup, RunOperation, Settle
from experiments import ranks
from experiments.buffers import Buffers
from experiments.communicators import communicator
from experiments.data import Data
from experiments.errors import Cancelled, Refused
from experiments.muster import ending
from experiments.patience import Patience
from experiments.ranks import Ranks
from experiments.scenario import Scenario

SCENARIO = Scenario.of({"topology": "single,hosts=3", "peer_timeout_ns": 0})
COMM = communicator(SCENARIO.fabric, mtu=4096, rate_bps=SCENARIO.link_rate_bps)
ALLGATHER = collective("mcast_allgather")
SIGKILL = -9


def result(rank: int, failure: tuple[str, int | None] | None = None) -> RankResult:
    return RankResult(rank, [], failure, {}, 0, 0.0)


Script = Callable[["FakeHost", Command], object]
"""What an endpoint answers to a command, None for nothing."""


def well(host: FakeHost, command: Command) -> object:
    """An endpoint that does what it is told."""
    match command:
        case RunOperation() | Regroup():
            return Ready()
        case Go():
            return result(host.rank)
        case Abort(reason=reason, suspect=suspect):
            return result(host.rank, (reason, suspect))
    return None


def accusing(suspect: int) -> Script:
    """One that gives up, and accuses another rank."""

    def script(host: FakeHost, command: Command) -> object:
        return result(host.rank, ("does not answer", suspect)) if isinstance(command, Go) else well(host, command)

    return script


def deaf_to(*kinds: type) -> Script:
    """One that does not answer to some commands."""
    return lambda host, command: None if isinstance(command, kinds) else well(host, command)


def dying_at(kind: type) -> Script:
    """One that is killed when it is told something."""

    def script(host: FakeHost, command: Command) -> object:
        if isinstance(command, kind):
            host.die(SIGKILL)
            return None
        return well(host, command)

    return script


@dataclass
class FakeHost:
    """An endpoint's process that acts by a script; its own process, too."""

    rank: int
    script: Script = well
    told: list[Command] = field(default_factory=list)
    exitcode: int | None = None

    def __post_init__(self) -> None:
        self.pipe, self.far = Pipe()
        self.controls: tuple[Connection, ...] = (self.pipe,)
        self.process = self
        self.processes = self.engines = (self,)
        self.offloaded = False
        self.pid = 1

    def send(self, command: Command) -> None:
        if self.exitcode is not None:
            raise BrokenPipeError
        self.told.append(command)
        answer = self.script(self, command)
        if answer is not None:
            self.far.send(answer)

    def die(self, code: int) -> None:
        self.exitcode = code
        self.far.close()

    def kill(self) -> None:
        self.die(SIGKILL)

    def is_alive(self) -> bool:
        return self.exitcode is None

    def join(self, _timeout: float | None = None) -> None:
        """There is nothing to wait for."""


Make = Callable[..., tuple[Ranks, list[FakeHost]]]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Ranks whose endpoints act by scripts, and whose patience is nothing."""

    def build(*scripts: Script) -> tuple[Ranks, list[FakeHost]]:
        hosts = [FakeHost(rank, script) for rank, script in enumerate(scripts)]
        monkeypatch.setattr(ranks, "fork_hosts", lambda _count: hosts)
        for name in ("STRAGGLER_S", "AFTER_FAILURE_S", "ANSWER_S"):
            monkeypatch.setattr(ranks, name, 0.0)
        monkeypatch.setattr(ranks.Patience, "of", lambda _scenario: Patience(outage=0, peer=0, operation=0))
        return Ranks(SCENARIO, COMM, tmp_path, Buffers(tmp_path / "buffers")), hosts

    return build


def run(it: Ranks, report: Callable[..., Any] = lambda *_: None) -> list[RankResult]:
    it.assemble()
    return it.run(ALLGATHER, Data(100, 1), report, lambda _start: None)


def said(results: list[RankResult]) -> list[tuple[str, int | None] | None]:
    return [found.failure for found in results]


def test_where_all_is_well_nobody_is_told_anything_else(make: Make) -> None:
    it, hosts = make(well, well, well)
    for _ in range(2):
        assert said(run(it)) == [None] * 3
    assert [type(command) for command in hosts[2].told] == [RunOperation, Go] * 2


def counting(host: FakeHost, command: Command) -> object:
    """One to which packets come after the end."""
    late = isinstance(command, Settle)
    return RankResult(host.rank, [], None, {"late": 1}, 0, 0.0) if late else well(host, command)


def test_packets_that_come_after_the_end_are_counted_when_everything_has_settled(make: Make) -> None:
    it, _ = make(counting, counting, dying_at(Settle))
    settled = it.settled(run(it))
    assert [found.counters for found in settled] == [{"late": 1}, {"late": 1}, {}]
    assert it.gone == {"h3": "its endpoint was killed by SIGKILL"}


def test_where_somebody_failed_nobody_is_asked_what_came_afterwards(make: Make) -> None:
    it, hosts = make(accusing(1), counting, counting)
    results = run(it)
    assert it.settled(results) is results
    assert not any(isinstance(command, Settle) for host in hosts for command in host.told)


def test_who_is_killed_is_missing_and_the_next_operation_is_of_the_others_in_new_ranks(make: Make) -> None:
    it, hosts = make(well, dying_at(Go), accusing(1))
    how = "its endpoint was killed by SIGKILL"
    results = run(it)
    assert said(results) == [None, (how, 1), ("does not answer", 1)]
    assert [found.gone for found in results] == [None, how, None]
    hosts[2].script = well
    assert [found.rank for found in run(it)] == [0, 2], "the test's endpoints know nothing of new ranks"
    assert it.names == ["h1", "h3"]
    regrouped = hosts[2].told[2]
    assert isinstance(regrouped, Regroup)
    assert (regrouped.rank, regrouped.first_op, [peer.name for peer in regrouped.comm.peers]) == (1, 2, ["h1", "h3"])


def test_who_has_not_noticed_is_told_who_is_missing(make: Make) -> None:
    it, hosts = make(deaf_to(Go), dying_at(Go), deaf_to(Go))
    how = "its endpoint was killed by SIGKILL"
    assert said(run(it)) == [(how, 1)] * 3
    assert hosts[0].told[-1] == hosts[2].told[-1] == Abort(how, 1)


def test_who_neither_ends_nor_answers_is_ended_and_missing(make: Make) -> None:
    it, hosts = make(accusing(2), well, deaf_to(Go, Abort))
    results = run(it)
    assert said(results) == [("does not answer", 2), None, ("its endpoint did not answer, and was ended", 2)]
    assert hosts[2].exitcode == SIGKILL
    hosts[0].script = well
    assert said(run(it)) == [None, None]


def test_who_is_silent_when_all_others_are_done_is_not_waited_for_for_ever(make: Make) -> None:
    it, hosts = make(well, well, deaf_to(Go, Abort))
    assert said(run(it)) == [None, None, ("its endpoint did not answer, and was ended", 2)]
    assert hosts[2].exitcode == SIGKILL


def test_who_is_not_ready_is_missing_and_nobody_begins(make: Make) -> None:
    it, hosts = make(well, deaf_to(RunOperation), well)
    how = "its endpoint did not answer, and was ended"
    assert said(run(it)) == [(how, 1)] * 3
    assert not any(isinstance(command, Go) for host in hosts for command in host.told)


def test_who_dies_between_operations_is_left_out_of_the_next(make: Make) -> None:
    it, hosts = make(well, well, well)
    run(it)
    hosts[0].die(3)
    assert len(run(it)) == 2
    assert it.gone == {"h1": "its endpoint ended unasked with status 3"}


def test_after_a_failure_in_which_nobody_ended_all_take_part_with_new_queue_pairs(make: Make) -> None:
    it, hosts = make(accusing(1), well, well)
    run(it)
    hosts[0].script = well
    assert said(run(it)) == [None] * 3
    assert (it.names, it.comm.epoch) == (["h1", "h2", "h3"], 1)


def test_who_dies_while_the_others_regroup_is_left_out_as_well(make: Make) -> None:
    it, hosts = make(dying_at(Go), dying_at(Regroup), well)
    run(it)
    assert len(run(it)) == 1
    assert (it.names, it.comm.epoch) == (["h3"], 2)
    hosts[2].die(0)
    with pytest.raises(Refused, match=r"^no endpoint is left: h3: its endpoint ended unasked with status 0$"):
        it.assemble()


def test_an_operation_that_is_no_longer_wanted_ends_at_once_and_says_so(make: Make) -> None:
    def stop(*_: object) -> None:
        raise Cancelled("stopped by hand")

    it, _ = make(deaf_to(Go), deaf_to(Go), deaf_to(Go))
    assert said(run(it, stop)) == [("stopped by hand", None)] * 3
    assert it.cancelled == "stopped by hand"
    assert not it.gone


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (-9, "its endpoint was killed by SIGKILL"),
        (-200, "its endpoint ended unasked with status -200"),
        (0, "its endpoint ended unasked with status 0"),
        (None, "its endpoint ended unasked with status None"),
    ],
)
def test_the_end_of_a_process_is_told_by_its_exit_code(code: int | None, words: str) -> None:
    assert ending(code) == words
