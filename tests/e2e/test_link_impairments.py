"""Impairments of links in the kernel, on a virtual cable whose near end is shaped like any link's."""

from __future__ import annotations

import math
import select
import socket
import subprocess
import time
from collections.abc import Callable

import pytest

from tests.e2e.veth_pair import command, in_sandbox, needs_root
from tests.unit.topo.roce_frames import roce_frame
from topo import tc
from topo.fabric import Fabric, Link, Switch
from topo.impairments.links import LinkImpairments
from topo.impairments.model import ImpairmentError
from topo.impairments.port import features_of
from topo.impairments.registry import parse
from topo.probe import probe
from topo.shaping import LinkSpec, differences, tc_lines

pytestmark = [pytest.mark.root, pytest.mark.e2e, pytest.mark.stock, needs_root]

NEAR, FAR = "a-eth1", "b-eth1"
SPEC = LinkSpec(1_000_000_000, queue_packets=50_000, mtu=4160)
FABRIC = Fabric("wire", {}, (), (Switch("a", 1, 0, "edge"), Switch("b", 2, 0, "edge")), (Link("a", 1, "b", 1),))
LAST = 0xFFFFFF
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
PATIENCE_S = 20.0


class Wire:
    """Sends frames at one end and receives them at the other."""

    def __init__(self) -> None:
        command(f"ip link add {NEAR} mtu 4160 type veth peer name {FAR} mtu 4160")
        for name in (NEAR, FAR):
            command(f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")
            command(f"ip link set {name} up")
        tc.batch("tc", tc_lines(NEAR, SPEC))
        self.features = features_of(probe().features.items())
        self.links = LinkImpairments(FABRIC, SPEC, self.features, lambda _: None, seed=7)
        self._out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._out.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 27)
        self._out.bind((NEAR, 0))
        self._in = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
        self._in.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 27)
        self._in.bind((FAR, 0))
        self._in.settimeout(PATIENCE_S)

    def add(self, name: str, words: str) -> None:
        kind, *rest = words.split()
        self.links.add(name, "a", "b", parse(kind, rest))

    def struck(self, name: str) -> int:
        return self.links.observe()[name].struck

    def send(self, psns: range, size: int = 100) -> None:
        for psn in psns:
            self._out.send(roce_frame(psn, imm=psn, size=size))

    def receive(self, enough: Callable[[list[int]], bool]) -> list[int]:
        """PSNs in order of arrival."""
        found: list[int] = []
        while not enough(found):
            found.append(int.from_bytes(self._in.recv(8192)[51:54], "big"))
        return found

    @property
    def silent(self) -> bool:
        """Nothing waits to be received."""
        return not select.select([self._in], [], [], 0)[0]

    def arrived(self, psns: range) -> list[int]:
        """What arrives of a stream of chunks through impairments that spare an ACK without a PSN of the stream."""
        self.send(psns)
        self._out.send(roce_frame(LAST, opcode=0x11))
        return self.receive(lambda found: found[-1:] == [LAST])[:-1]

    def problems(self) -> list[str]:
        """What is not as it was built."""
        ifbs = [name for _, name in socket.if_nameindex() if "+" in name]
        return [*ifbs, *differences(NEAR, SPEC, tc.qdiscs().get(NEAR, []), tc.classes(NEAR))]


def on_wire(body: Callable[[Wire], None]) -> None:
    in_sandbox(lambda: body(Wire()))


def test_one_in_sixteen_of_40000_is_lost_as_the_counter_says_and_a_seed_repeats_it():
    frames, share = 40_000, 1 / 16

    def body(wire: Wire) -> None:
        wire.add("f", "loss 1/16")
        wire.send(range(frames))
        lost = wire.links.observe()["f"]
        came = wire.receive(lambda found: len(found) == frames - lost.struck)
        assert lost.seeded
        assert abs(lost.struck - frames * share) < 3 * math.sqrt(frames * share * (1 - share))
        assert wire.silent
        told = wire.links.clear("f")
        assert told.struck == len(set(range(frames)) - set(came)) == lost.struck
        assert told.packets == frames
        assert wire.links.injected() == {NEAR: lost.struck}

        wire.add("f", "loss 1/16")
        wire.send(range(frames))
        again = wire.receive(lambda found: len(found) == len(came))
        assert again == came

    on_wire(body)


def test_exact_packets_are_lost_and_no_others():
    def body(wire: Wire) -> None:
        wire.add("psn", "exact psn 17,40-60")
        wire.add("every", "exact every 100")
        came = wire.arrived(range(1000))
        lost = {17, *range(40, 61), *range(99, 1000, 100)}
        assert came == [psn for psn in range(1000) if psn not in lost]
        assert (wire.struck("psn"), wire.struck("every")) == (22, 10)

    on_wire(body)


def test_each_is_cleared_alone_and_nothing_is_left():
    def body(wire: Wire) -> None:
        assert wire.problems() == []
        wire.add("one", "exact psn 3")
        wire.add("two", "exact psn 5")
        wire.add("held", "reorder 10% by 5ms")
        wire.send(range(10))
        assert sorted(wire.receive(lambda found: len(found) == 8)) == [0, 1, 2, 4, 6, 7, 8, 9]
        assert wire.links.clear("one").struck == 1
        wire.send(range(10))
        assert sorted(wire.receive(lambda found: len(found) == 9)) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        wire.links.clear("held")
        assert wire.arrived(range(10)) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
        assert wire.links.clear_all()["two"].struck == 3
        assert wire.arrived(range(10)) == list(range(10))
        assert wire.problems() == []

    on_wire(body)


def test_at_many_places_it_stands_at_each_or_at_none():
    both = {"there": ("a", "b"), "back": ("b", "a")}

    def body(wire: Wire) -> None:
        with pytest.raises(tc.BatchError):  # the far end is not shaped
            wire.links.add_all(both, parse("loss", ["50%"]))
        assert wire.links.observe() == {}
        assert wire.problems() == []
        tc.batch("tc", tc_lines(FAR, SPEC))
        assert set(wire.links.add_all(both, parse("exact", ["psn", "3"]))) == set(both)
        assert wire.arrived(range(10)) == [0, 1, 2, 4, 5, 6, 7, 8, 9]
        told = wire.links.clear_all(both)
        assert {name: (seen.struck, seen.packets) for name, seen in told.items()} == {"there": (1, 11), "back": (0, 0)}
        assert wire.problems() == []

    on_wire(body)


def test_reorder_loses_nothing_and_lets_later_frames_overtake():
    def body(wire: Wire) -> None:
        wire.add("f", "reorder 2% by 5ms")
        wire.send(range(5000), size=4000)
        came = wire.receive(lambda found: len(found) == 5000)
        seen = wire.links.clear("f")
        assert sorted(came) == list(range(5000))
        late = sum(psn < max(came[:place], default=-1) for place, psn in enumerate(came))
        assert 60 < seen.struck < 140
        assert late == pytest.approx(seen.struck, abs=5)  # the last ones have nobody behind them
        assert seen.lost == 0
        assert wire.problems() == []

    on_wire(body)


def test_a_frame_is_held_for_the_time_that_was_asked_for():
    def body(wire: Wire) -> None:
        wire.add("f", "delay 2ms share 99%")
        sent = time.monotonic()
        wire.send(range(20))
        wire.receive(lambda found: len(found) == 20)
        assert wire.links.clear("f").struck >= 15  # of 19.8
        assert time.monotonic() - sent >= 0.00199

    on_wire(body)


def test_the_rate_is_that_of_the_link_with_losses_on_it_and_another_while_that_is_asked_for():
    def took(wire: Wire, frames: int) -> float:
        begun = time.monotonic()
        wire.send(range(frames), size=4174)
        wire.receive(lambda found: len(found) == frames)
        return frames * 4174 * 8 / (time.monotonic() - begun)

    def body(wire: Wire) -> None:
        wire.add("slow", "rate 20")
        wire.add("loss", "exact psn 100000")
        wire.add("late", "reorder 1% by 1ms")
        assert took(wire, 600) < 21.5e6  # with the burst that a link may send at once
        wire.links.clear("slow")
        assert took(wire, 600) > 40e6
        wire.links.clear_all()
        assert wire.problems() == []

    on_wire(body)


def test_blackhole_queue_and_down():
    def body(wire: Wire) -> None:
        wire.add("hole", "blackhole")
        wire.send(range(10))
        assert wire.links.clear("hole").struck == 10
        wire.add("queue", "queue 5")
        assert any("queue limit is 5" in problem for problem in wire.problems())
        wire.add("down", "down")
        assert "DOWN" in command(f"ip -o link show {NEAR}")
        wire.links.clear_all()
        assert wire.problems() == []
        assert wire.arrived(range(10)) == list(range(10))

    on_wire(body)


def test_what_this_kernel_cannot_do_is_refused_and_otherwise_done():
    def body(wire: Wire) -> None:
        if "netem" not in wire.features:
            for words in ("duplicate 10%", "corrupt 10%", "gemodel 1% 25%", "delay 5ms"):
                with pytest.raises(ImpairmentError, match="netem"):
                    wire.add("f", words)
            assert wire.problems() == []
            return
        wire.add("f", "duplicate 10%")
        wire.send(range(1000))
        seen = wire.receive(lambda found: len(found) >= 1000 and len(found) == 1000 + wire.struck("f"))
        assert set(seen) == set(range(1000))
        assert 50 < wire.links.clear("f").struck < 150
        wire.add("f", "delay 5ms")
        assert wire.arrived(range(100)) == list(range(100))
        assert wire.links.clear("f").struck == 101
        wire.add("f", "gemodel 1% 25%")
        wire.send(range(5000))
        lost = wire.struck("f")
        assert 50 < lost < 500
        assert wire.problems() != []
        wire.links.clear_all()
        assert wire.problems() == []

    on_wire(body)


def test_a_kernel_that_refuses_leaves_nothing_behind():
    def body(wire: Wire) -> None:
        subprocess.run(["ip", "link", "add", "name", f"{NEAR}+0", "type", "ifb"], check=True)
        with pytest.raises(tc.BatchError):
            wire.add("f", "reorder 1%")
        assert wire.problems() == []
        assert wire.links.observe() == {}

    on_wire(body)
