"""The books of one operation: every frame that was sent has been received, or was lost for a cause that is known.

Two accounts. On each link, what one end's interface sent is what the other end's received or dropped. And over all, the
multicast chunks and WRITEs that endpoints miss are covered by drops at places that count them: shaping queues, the
switches' receive sockets, interfaces, hosts' receive queues (``packets.lost`` has what faults took away already taken
off). One frame that a switch drops may be missed by many hosts, so that any such drop covers what is missing. A link
that was down is a cause, too, and one that cannot always be counted: what waits in the queue of an interface that goes
down is gone without a trace, and so is what a switch would have sent. So is what an
ovs-vswitchd held that was killed. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from experiments.results import Packets
from topo.counters import Counters
from topo.fabric import Fabric, interface, link_key


def ends_of_dead_links(fabric: Fabric, down: Collection[str]) -> frozenset[str]:
    """The interfaces at both ends of every link that has one in ``down``."""
    pairs = [{interface(node, port) for node, port, _ in link.ends} for link in fabric.links]
    return frozenset(name for pair in pairs if not pair.isdisjoint(down) for name in pair)


def link_gaps(fabric: Fabric, counted: Mapping[str, Counters], dead: Collection[str] = ()) -> Iterator[str]:
    """A line for each directed link whose ends disagree; ``counted`` is by interface, read while nothing moved.

    ``dead`` are the ends of links that were down, on which frames may have been on their way.
    """
    for node, port, peer in fabric.directed_links:
        if interface(node, port) in dead:
            continue
        sender = counted.get(interface(node, port))
        receiver = counted.get(interface(peer, fabric.port_to[peer][node]))
        if sender is None or receiver is None:
            continue
        gap = sender.tx_packets - receiver.rx_packets - receiver.rx_dropped
        if gap:
            what = f"{gap} frames vanished" if gap > 0 else f"{-gap} frames came from nowhere"
            yield f"{what} on link {link_key(node, peer)}: {sender.tx_packets} sent, {receiver.rx_packets} received"


def unexplained(
    packets: Packets, drops: Mapping[str, int], dead: Collection[str] = (), *, replaced: bool = False
) -> Iterator[str]:
    """A line if endpoints miss packets, nobody (``drops`` by place) has dropped any, and no link was down.

    ``replaced`` if another ovs-vswitchd took over meanwhile.
    """
    if packets.lost and not sum(drops.values()) and not dead and not replaced:
        yield f"{packets.lost} packets are missing at hosts: no queue, socket, interface or fault accounts for them"
