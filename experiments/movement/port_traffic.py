"""What moved over every link between two readings of all ports, and where those who count disagree.

A frame on a link is counted up to four times: by the kernel where it is sent and where it is received, and by Open
vSwitch, which OpenFlow asks, at each end that is a switch. All must agree, in bytes and in packets. What may differ
without anybody being wrong is a frame on its way while the counters are read one after the other; a reading therefore
says whether the fabric was quiet. A frame that waits in a shaped queue has not been sent by anybody's count. Whatever
else differs, a frame that a receiving interface dropped or a port that is counted for another, is worth a look.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from experiments.results import PortMismatch
from topo.counters import Counters
from topo.fabric import Fabric, interface, link_key

QUANTITIES: tuple[Literal["bytes", "packets"], ...] = ("bytes", "packets")


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters at one time: ``kernel`` by interface, ``openflow`` by (switch, port), as far as switches answered.

    ``quiet``: no counter moved while they were read.
    """

    kernel: Mapping[str, Counters]
    openflow: Mapping[tuple[str, int], Counters]
    quiet: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """By directed link, as the kernel counts at the sending interface; and what others count differently.

    ``interfaces`` has all that the kernel counted at each interface, by its name; ``quiet``: nothing moved meanwhile.
    """

    link_bytes: dict[str, int]
    link_packets: dict[str, int]
    mismatches: list[PortMismatch]
    interfaces: dict[str, Counters]
    quiet: bool


def moved(fabric: Fabric, before: Reading, after: Reading) -> Moved:
    """What moved from one reading to the other."""
    counted = {(node, port): list(_counted(fabric, node, port, before, after)) for node, port in _ends(fabric)}
    size: dict[str, int] = {}
    packets: dict[str, int] = {}
    mismatches: list[PortMismatch] = []
    for node, port, peer in fabric.directed_links:
        link = link_key(node, peer)
        sent, received = counted[node, port], counted[peer, fabric.port_to[peer][node]]
        for table, quantity in zip((size, packets), QUANTITIES, strict=True):
            values = {
                **{f"{who} tx {node}": _value(delta, f"tx_{quantity}") for who, delta in sent},
                **{f"{who} rx {peer}": _value(delta, f"rx_{quantity}") for who, delta in received},
            }
            table[link] = values[f"kernel tx {node}"] or 0
            if len(set(values.values())) > 1:
                quiet = before.quiet and after.quiet
                mismatches.append(PortMismatch(link=link, quantity=quantity, counted=values, quiet=quiet))
    interfaces = {name: now - before.kernel[name] for name, now in after.kernel.items() if name in before.kernel}
    return Moved(size, packets, mismatches, interfaces, before.quiet and after.quiet)


def _ends(fabric: Fabric) -> Iterator[tuple[str, int]]:
    for node, port, _ in fabric.directed_links:
        yield node, port


def _counted(
    fabric: Fabric, node: str, port: int, before: Reading, after: Reading
) -> Iterator[tuple[str, Counters | None]]:
    """What each of those who count has seen at one port; None where one of the readings lacks it."""
    name = interface(node, port)
    yield "kernel", _difference(before.kernel.get(name), after.kernel.get(name))
    if node in fabric.switch:
        yield "openflow", _difference(before.openflow.get((node, port)), after.openflow.get((node, port)))


def _difference(before: Counters | None, after: Counters | None) -> Counters | None:
    return None if before is None or after is None else after - before


def _value(delta: Counters | None, name: str) -> int | None:
    return None if delta is None else int(getattr(delta, name))
