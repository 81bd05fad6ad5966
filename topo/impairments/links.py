"""Impairments on the links of a running fabric: the one thing that consoles, timelines and books need to know.

Lives in the network namespace of the switches; reaches a host's interface through the host's process. All that it
makes (classes, queues, filters, ifbs) is in those namespaces and ends with them, whatever becomes of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from topo.fabric import Fabric
from topo.impairments.model import Impairment, Mechanism, Observed
from topo.shaping import LinkSpec


class LinkImpairments:
    """See the module. ``host_pid`` gives the process whose namespace is the host's; ``features`` are the kernel's.

    Use as::

        links = LinkImpairments(fabric, spec, features_of(platform.features.items()), net.host_pid, seed)
        links.check("e00", "a00", parse("loss", ["2%"]))    # ImpairmentError if it cannot be done here
        links.add("f1", "e00", "a00", parse("loss", ["2%"]))
        links.observe()["f1"].struck
        links.clear("f1").struck
    """

    def __init__(
        self,
        fabric: Fabric,
        spec: LinkSpec,
        features: Collection[str],
        host_pid: Callable[[str], int],
        seed: int = 0,
    ) -> None: ...

    def check(self, sender: str, receiver: str, impairment: Impairment, mechanism: Mechanism | None = None) -> None:
        """Whether it could be added now, without doing anything: ImpairmentError or FabricError if not."""
        raise NotImplementedError

    def add(
        self, name: str, sender: str, receiver: str, impairment: Impairment, mechanism: Mechanism | None = None
    ) -> Observed:
        """Impair what ``sender`` sends to its neighbour ``receiver``, from the moment this returns.

        ``name`` is the caller's, unique in the fabric. Returns what will be observed, with nothing struck yet. Raises
        ImpairmentError, FabricError (no such link), or topo.tc.BatchError (the kernel refuses), and has then changed
        nothing.
        """
        raise NotImplementedError

    def observe(self) -> dict[str, Observed]:
        """What every impairment that stands has done so far, by name."""
        raise NotImplementedError

    def clear(self, name: str) -> Observed:
        """Take one away; what it has done altogether. Frames that it holds back come out first, within its time."""
        raise NotImplementedError

    def clear_all(self) -> dict[str, Observed]:
        """Take all away."""
        raise NotImplementedError

    def injected(self) -> Mapping[str, int]:
        """Frames dropped on purpose by sending interface, ever, those of impairments that are gone included."""
        raise NotImplementedError
