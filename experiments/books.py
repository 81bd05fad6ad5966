"""The books of one operation: every frame that was sent has been received, or was lost for a cause that is known.

Two accounts. On each link, what one end's interface sent is what the other end's received or dropped. And over all, the
multicast chunks and WRITEs that endpoints miss are covered by drops at places that count them: shaping queues, the
switches' receive sockets, interfaces, hosts' receive queues (``packets.lost`` has what faults took away already taken
off). One frame that a switch drops may be missed by many hosts, so that any such drop covers what is missing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from experiments.results import Packets
from topo.counters import Counters
from topo.fabric import Fabric, interface, link_key


def link_gaps(fabric: Fabric, counted: Mapping[str, Counters]) -> Iterator[str]:
    """A line for each directed link whose ends disagree; ``counted`` is by interface, read while nothing moved."""
    for node, port, peer in fabric.directed_links:
        sender = counted.get(interface(node, port))
        receiver = counted.get(interface(peer, fabric.port_to[peer][node]))
        if sender is None or receiver is None:
            continue
        gap = sender.tx_packets - receiver.rx_packets - receiver.rx_dropped
        if gap:
            what = f"{gap} frames vanished" if gap > 0 else f"{-gap} frames came from nowhere"
            yield f"{what} on link {link_key(node, peer)}: {sender.tx_packets} sent, {receiver.rx_packets} received"


def unexplained(packets: Packets, drops: Mapping[str, int]) -> Iterator[str]:
    """A line if endpoints miss packets and nobody (``drops`` by place) has dropped any."""
    if packets.lost and not sum(drops.values()):
        yield f"{packets.lost} packets are missing at hosts: no queue, socket, interface or fault accounts for them"
