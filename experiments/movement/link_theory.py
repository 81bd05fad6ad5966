"""What every directed link should carry, byte by byte: the yardstick of the ports' counters.

Multicast follows the trees, point-to-point transfers follow the unicast routes, both as the controller installs them.
Counted are the frames that carry the payload, headers included, as an interface counts them. Not counted is what
depends on timing: acknowledgements (62 bytes for several frames), barrier, handshake, and repairs of losses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from controller.live import Live
from controller.routes import Routes, route, unicast_routes
from controller.trees import Tree
from endpoints.collectives.registry import Collective
from endpoints.core.config import ProtocolConfig
from endpoints.core.layout import write_wire_bytes
from endpoints.core.packets import packets_of
from endpoints.core.schedule import Transfer, segments
from experiments.theory import Share, tree_crossings
from topo.fabric import Fabric, link_key


@dataclass(frozen=True, slots=True)
class Load:
    """What a directed link carries: ``bytes`` of whole frames without their checksum, in ``packets`` frames."""

    bytes: int = 0
    packets: int = 0

    def __add__(self, other: Load) -> Load:
        return Load(self.bytes + other.bytes, self.packets + other.packets)

    def __mul__(self, times: int) -> Load:
        return Load(self.bytes * times, self.packets * times)


Paths = Callable[[int, int], Sequence[str]]
"""(source rank, destination rank) -> keys of the directed links from the one's host to the other's."""


def routed_paths(fabric: Fabric, routes: Routes, hosts: Sequence[str]) -> Paths:
    """The ways that ``routes`` give the ranks on ``hosts`` (the host of each rank); remembered."""

    @cache
    def path(source: int, destination: int) -> tuple[str, ...]:
        return tuple(link_key(*link) for link in route(fabric, routes, hosts[source], hosts[destination]))

    return path


@cache
def transfer_load(size: int, mtu: int, write_packets: int) -> Load:
    """``size`` bytes in RDMA WRITEs with immediate of up to ``write_packets`` packets, as ``core.transfers`` cuts."""
    pieces = [length for _, length in segments(size, write_packets * mtu)]
    packets = sum(packets_of(length, mtu) for length in pieces)
    return Load(sum(write_wire_bytes(length, mtu) for length in pieces), packets)


def within_blocks(transfers: Iterable[Transfer], size: int) -> Iterator[Transfer]:
    """The same, cut where blocks of ``size`` bytes end."""
    for transfer in transfers:
        offset = transfer.offset
        while offset < transfer.stop:
            stop = min(transfer.stop, (offset // size + 1) * size)
            yield replace(transfer, offset=offset, size=stop - offset)
            offset = stop


def unicast_loads(transfers: Iterable[Transfer], paths: Paths, mtu: int, write_packets: int) -> dict[str, Load]:
    """By link, for the WRITEs of all transfers."""
    total: dict[str, Load] = defaultdict(Load)
    for transfer in transfers:
        load = transfer_load(transfer.size, mtu, write_packets)
        for link in paths(transfer.src, transfer.dst):
            total[link] += load
    return dict(sorted(total.items()))


def multicast_loads(trees: Iterable[tuple[Mapping[str, int], Share]]) -> dict[str, Load]:
    """By link: for each tree its crossings (:func:`experiments.theory.tree_crossings`) and each root's share on it."""
    total: dict[str, Load] = defaultdict(Load)
    for crossings, share in trees:
        load = Load(share.wire_bytes, share.chunks)
        for link, blocks in crossings.items():
            total[link] += load * blocks
    return dict(sorted(total.items()))


class LinkTheory:
    """The loads of algorithms on one fabric; ``hosts`` has the host of each rank, ``trees`` the multicast trees.

    ``config`` says how much an RDMA WRITE may carry.
    """

    def __init__(
        self,
        fabric: Fabric,
        trees: Sequence[Tree],
        hosts: Sequence[str],
        mtu: int,
        config: ProtocolConfig = ProtocolConfig(),  # noqa: B008 - frozen
    ) -> None:
        self.trees = trees
        self.hosts = hosts
        self._mtu = mtu
        self._write_packets = config.write_packets
        self.paths = routed_paths(fabric, unicast_routes(Live(fabric)), hosts)

    def loads(self, algorithm: Collective, size: int, *, apart: bool = False) -> dict[str, Load]:
        """By link, for ``size`` bytes per rank (Broadcast: in all); empty for an algorithm that does not tell.

        Where blocks lie ``apart`` in memory, no WRITE has bytes of two of them.
        """
        if algorithm.transfers is not None:
            transfers = algorithm.transfers(len(self.hosts), size)
            if apart:
                transfers = within_blocks(transfers, size)
            return unicast_loads(transfers, self.paths, self._mtu, self._write_packets)
        return multicast_loads(self._multicast(algorithm, size)) if algorithm.multicast else {}

    def _multicast(self, algorithm: Collective, size: int) -> list[tuple[dict[str, int], Share]]:
        roots = [host for rank, host in enumerate(self.hosts) if algorithm.contributes(rank)]
        shares = Share.dealt(size, self._mtu, len(self.trees))
        return [
            (tree_crossings(tree.edges, set(self.hosts), roots), share)
            for tree, share in zip(self.trees, shares, strict=True)
        ]


def block_crossings(transfers: Iterable[Transfer], paths: Paths) -> int:
    """Bytes of payload times links crossed; in blocks of N where the transfers are those for N = 1."""
    return sum(transfer.size * len(paths(transfer.src, transfer.dst)) for transfer in transfers)


def expected_crossings(transfers: Iterable[Transfer], paths: Paths, ranks: int) -> float:
    """The mean of :func:`block_crossings` over all orders of the ranks on their hosts.

    Any two ranks are then on any two hosts with the same probability, so every transfer has the mean distance to go.
    """
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    mean = sum(len(paths(a, b)) for a, b in pairs) / max(1, len(pairs))
    return mean * sum(transfer.size for transfer in transfers)
