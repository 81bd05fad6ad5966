"""What links should carry where NICs run the collectives: every worker its stripe, over its trees, round by round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from controller.trees import Tree
from endpoints.collectives.registry import Collective
from endpoints.core.communicator import Communicator
from endpoints.core.config import ProtocolConfig
from endpoints.nic import budget
from endpoints.nic.jobs import round_bytes
from endpoints.nic.stripes import stripes
from experiments.movement.link_theory import LinkTheory, Load
from topo.fabric import Fabric


class OffloadedTheory:
    """As ``LinkTheory``, for NICs of ``workers`` workers; ``nic`` is what each of them has."""

    def __init__(
        self,
        fabric: Fabric,
        trees: Sequence[Tree],
        comm: Communicator,
        config: ProtocolConfig,
        workers: int,
        nic: budget.Nic,
    ) -> None:
        hosts = [peer.name for peer in comm.peers]
        self._nic = nic
        self._comms = [comm.share(worker, workers) for worker in range(workers)]
        self._theories = [
            LinkTheory(fabric, trees[worker::workers], hosts, comm.mtu, config) for worker in range(workers)
        ]

    def loads(self, algorithm: Collective, size: int) -> dict[str, Load]:
        """By link, for ``size`` bytes per rank (Broadcast: in all)."""
        total: dict[str, Load] = defaultdict(Load)
        parts = list(self._parts(algorithm, size))
        for worker, bytes_ in parts:
            for link, load in self._theories[worker].loads(algorithm, bytes_, apart=len(parts) > 1).items():
                total[link] += load
        return dict(sorted(total.items()))

    def _parts(self, algorithm: Collective, size: int) -> Iterator[tuple[int, int]]:
        """(worker, bytes of each block) of every round of every worker."""
        workers = len(self._comms)
        for worker, (start, stop) in enumerate(stripes(size, self._comms[0].mtu, workers)):
            if stop > start or worker == 0:
                step = round_bytes(algorithm, stop - start, self._comms[worker], self._nic)
                for at in range(start, max(stop, start + 1), step):
                    yield worker, min(step, stop - at)
