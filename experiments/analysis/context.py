"""What a run's summary.json tells about its captures: who is which rank, and where each chunk belongs.

Without one, hosts are ranks in the order of their numbers, and what needs the size of a block cannot be told: the
chunks that a READ asked for, and chunks lost everywhere at either end of a block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from endpoints.collectives.registry import Collective, collectives
from endpoints.core.blocks import BlockLayout
from experiments.analysis.frames import Bool, Frames
from experiments.analysis.packets import I64
from experiments.results import SUMMARY, Run, Summary
from experiments.scenario import Scenario

DEFAULT_OP_BITS = 8


def host_name(host: int) -> str:
    """The name of host number ``host``, counted from 0 (``topo.addressing``)."""
    return f"h{host + 1}"


@dataclass(frozen=True, slots=True)
class Blocks:
    """The receive buffer of one multicast operation: the hosts whose blocks it holds, in order, and their layout."""

    roots: tuple[int, ...]
    layout: BlockLayout
    trees: int

    def expected(self, root: int, tree: int) -> I64:
        """The chunks that ``root`` sends over ``tree``: the trees take turns (``core.fast_path``)."""
        first = self.roots.index(root) * self.layout.chunks_per_block
        return np.arange(first + tree, first + self.layout.chunks_per_block, self.trees)

    def fits(self, chunk: I64, root: I64) -> Bool:
        """Which chunks are ones that their senders could have sent."""
        block = chunk // max(1, self.layout.chunks_per_block)
        inside = block < len(self.roots)
        owner = np.array([*self.roots, -1])[np.where(inside, block, len(self.roots))]
        fit: Bool = inside & (owner == root)
        return fit

    def chunks_at(self, va: I64) -> I64:
        """The chunks that begin at the bytes ``va`` of the buffer."""
        block, offset = np.divmod(va, max(1, self.layout.block_bytes))
        chunks: I64 = block * self.layout.chunks_per_block + offset // self.layout.mtu
        return chunks

    def root_and_tree(self, chunk: int) -> tuple[int, int]:
        """Who sent a chunk over which tree."""
        block, index = divmod(chunk, self.layout.chunks_per_block)
        return self.roots[block], index % self.trees


@dataclass(frozen=True)
class Context:
    """The scenario of the run that was captured, and its operations, where they are told: not all took part in each."""

    scenario: Scenario
    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, summary: Summary) -> Context:
        """What a summary tells."""
        return cls(summary.scenario, tuple(summary.runs))

    @classmethod
    def beside(cls, capture: Path) -> tuple[Path, Context] | None:
        """The summary of the result folder that a capture lies in, and where it is; None if there is none.

        :class:`UserError` if it cannot be read as one.
        """
        folder = capture.resolve().parent
        for path in (folder / SUMMARY, folder.parent / SUMMARY):
            if path.is_file():
                return path, cls.of(Summary.read(path))
        return None

    @cached_property
    def hosts(self) -> tuple[int, ...]:
        """The host number of each rank."""
        return tuple(host.index for host in self.scenario.by_rank)

    def blocks(self, op: int) -> Blocks | None:
        """The buffer of operation ``op``, None if it is no multicast."""
        algorithm, size, hosts = self._operation(op)
        if algorithm is None or not algorithm.multicast:
            return None
        roots = tuple(host for rank, host in enumerate(hosts) if algorithm.contributes(rank))
        return Blocks(roots, BlockLayout(len(roots), size, self.scenario.mtu), self.scenario.trees)

    def _operation(self, op: int) -> tuple[Collective | None, int, tuple[int, ...]]:
        """The algorithm of operation ``op``, the bytes of a block, the host number of each rank that took part.

        Operations count from 1, those that warm up and are not told of first. They take the endpoints' algorithms in
        turn, unless the run tells otherwise; external programs have no part in that.
        """
        own = [entry for entry in self.scenario.collectives if isinstance(entry, Collective)]
        told = [run for run in self.runs if run.algorithm in collectives()]
        index = op - 1 - self.scenario.warmup * len(own)
        if 0 <= index < len(told):
            run = told[index]
            names = {host.name: host.index for host in self.scenario.fabric.hosts}
            hosts = tuple(names[name] for name in run.hosts)
            return collectives()[run.algorithm], run.bytes_per_rank, hosts or self.hosts
        return (own[(op - 1) % len(own)] if own else None), self.scenario.size_bytes, self.hosts

    def misplaced(self, chunks: Frames) -> Bool:
        """Which multicast chunks do not fit the run."""
        wrong = np.zeros(len(chunks), np.bool_)
        for op in np.unique(chunks["op"]).tolist():
            its = chunks["op"] == op
            blocks = self.blocks(op)
            wrong[its] = (
                True
                if blocks is None
                else ~blocks.fits(chunks["chunk"][its].astype(np.int64), chunks["src"][its].astype(np.int64))
            )
        return wrong
