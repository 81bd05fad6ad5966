"""What was recovered: RDMA READs, who asked whom for which chunks, and what was answered.

A host's capture shows what is on its link. Injected losses on receive strike behind it, in the endpoint, those on
send before it: a chunk that a host READs although its multicast had been on its link was lost inside the host.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from endpoints.core.packets import NAK_REMOTE_ACCESS, Opcode
from endpoints.core.serial import PSN_MASK
from experiments.analysis.frames import UD, Bool, Frames
from experiments.analysis.packets import I64
from experiments.analysis.points import Point
from experiments.analysis.trace import Trace, groups

_FIRST, _LAST = int(Opcode.RC_READ_RESPONSE_FIRST), int(Opcode.RC_READ_RESPONSE_ONLY)


@dataclass(frozen=True, slots=True)
class Recovery:
    """What ``requester`` fetched from ``supplier`` in one operation.

    ``requests`` were sent, of which ``repeated`` asked for nothing new; ``refused`` counts NAKs. ``asked`` are the
    chunks, None where they cannot be told. ``answers`` are the frames of data, first copies in the order of time, with
    their chunks, if known, and ``asked_ns`` when each was asked for; ``duplicates`` counts further copies.
    """

    op: int
    requester: int
    supplier: int
    first_ns: int
    requests: int
    repeated: int
    refused: int
    duplicates: int
    asked: I64 | None
    answers: Frames
    asked_ns: I64

    @property
    def answered(self) -> I64 | None:
        """The chunks that came, ascending."""
        return None if self.asked is None else np.unique(self.answers["chunk"].astype(np.int64))


@dataclass(frozen=True, slots=True)
class Fates:
    """The chunks of a recovery by their multicast on the requester's own link.

    ``absent`` never came; ``dropped`` had come before they were asked for, so they were lost, or held back, inside the
    host; ``late`` came afterwards.
    """

    absent: I64
    dropped: I64
    late: I64


class Arrivals:
    """When each multicast chunk first came by each host's own link."""

    def __init__(self, trace: Trace) -> None:
        self._hosts = {point.host for point in trace.points}
        self._first: dict[tuple[int, int], Frames] = {}
        for (at, op), its in groups(trace.chunks, "point", "op"):
            host = trace.points[at].host
            if host is not None:
                self._first.setdefault((host, op), its[np.unique(its["chunk"], return_index=True)[1]])

    def fates(self, recovery: Recovery) -> Fates | None:
        """What had become of what was recovered; None where the requester's link or the chunks are not known."""
        if recovery.requester not in self._hosts or recovery.asked is None:
            return None
        recovered: I64 = recovery.answers["chunk"].astype(np.int64)
        first = self._first.get((recovery.requester, recovery.op), recovery.answers[:0])
        came = np.isin(recovered, first["chunk"])
        at = np.searchsorted(first["chunk"], recovered[came])
        before = came.copy()
        before[came] = first["time_ns"][at] <= recovery.asked_ns[came]
        return Fates(np.sort(recovered[~came]), np.sort(recovered[before]), np.sort(recovered[came & ~before]))


def vantage(frames: Frames, points: Sequence[Point], *hosts: int) -> int:
    """The point to believe where frames between hosts were captured at several: the first host's link if possible."""
    seen, counts = np.unique(frames["point"], return_counts=True)

    def worth(at: int) -> tuple[int, int]:
        host = points[int(seen[at])].host
        return -(hosts.index(host) if host in hosts else len(hosts)), int(counts[at])

    return int(seen[max(range(len(seen)), key=worth)])


def recoveries(trace: Trace) -> list[Recovery]:
    """All READs of the captures, by operation, requester and supplier."""
    frames = trace.frames
    opcode = frames["opcode"]
    asking = opcode == Opcode.RC_READ_REQUEST
    refusing = (opcode == Opcode.RC_ACKNOWLEDGE) & (frames["syndrome"] == NAK_REMOTE_ACCESS)
    answering = (opcode >= _FIRST) & (opcode <= _LAST)
    concerned = frames[(asking | refusing | answering) & (frames["src"] >= 0) & (frames["dst"] >= 0)].copy()
    back = concerned["opcode"] != Opcode.RC_READ_REQUEST  # from here on src asks and dst answers
    concerned["src"][back], concerned["dst"][back] = concerned["dst"][back].copy(), concerned["src"][back].copy()
    mtu = _mtu(trace)
    found: list[Recovery] = []
    for (requester, supplier), its in groups(concerned, "src", "dst"):
        at = vantage(its, trace.points, requester, supplier)
        found += _between(trace, requester, supplier, its[its["point"] == at], mtu)
    return sorted(found, key=lambda recovery: (recovery.op, recovery.requester, recovery.supplier))


def _mtu(trace: Trace) -> int:
    """The path MTU: as the summary says, or else the most that a multicast chunk or an answer carried."""
    if trace.context is not None:
        return trace.context.scenario.mtu
    opcode = trace.frames["opcode"]
    carriers = (opcode == UD) | ((opcode >= _FIRST) & (opcode <= _LAST))
    return int(trace.frames["payload"][carriers].max(initial=1))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Every packet that one pair's READs asked for, once, ascending by PSN: ``request`` is the first to ask for it."""

    psn: I64
    va: I64
    request: I64

    @classmethod
    def of(cls, requests: Frames, mtu: int) -> _Asked:
        """Each packet of a READ has a PSN of its own, counted from the request's (IBTA vol. 1, 9.7.5.1.5)."""
        packets = np.maximum(1, -(-requests["bytes"].astype(np.int64) // mtu))
        request = np.repeat(np.arange(len(requests)), packets)
        index = np.arange(len(request)) - np.repeat(np.cumsum(packets) - packets, packets)
        psn, first = np.unique((requests["psn"][request] + index) & PSN_MASK, return_index=True)
        request = request[first]
        return cls(psn, requests["va"][request].astype(np.int64) + index[first] * mtu, request)

    def match(self, psn: I64) -> tuple[I64, Bool]:
        """Which packet each PSN is of, and whether it is one at all."""
        if not len(self.psn):
            return np.zeros(len(psn), np.int64), np.zeros(len(psn), np.bool_)
        at = np.minimum(np.searchsorted(self.psn, psn), len(self.psn) - 1)
        return at, self.psn[at] == psn


def _between(trace: Trace, requester: int, supplier: int, frames: Frames, mtu: int) -> Iterator[Recovery]:
    """The READs of one pair as one point saw them, by operation; answers find theirs by the PSN."""
    asks = frames["opcode"] == Opcode.RC_READ_REQUEST
    requests, replies = frames[asks], frames[~asks].copy()
    asked = _Asked.of(requests, mtu)
    packet, known = asked.match(replies["psn"].astype(np.int64))
    replies, packet = replies[known], packet[known]
    data = replies["opcode"] != Opcode.RC_ACKNOWLEDGE
    op, fresh = requests["op"], np.isin(np.arange(len(requests)), asked.request)
    for one in np.unique(op).tolist():
        blocks = None if trace.context is None else trace.context.blocks(one)
        mine = op[asked.request[packet]] == one
        copies = np.flatnonzero(mine & data)
        kept = copies[np.sort(np.unique(packet[copies], return_index=True)[1])]
        answers = replies[kept]
        if blocks is not None:
            answers["chunk"] = blocks.chunks_at(asked.va[packet[kept]])
        yield Recovery(
            op=one,
            requester=requester,
            supplier=supplier,
            first_ns=int(requests["time_ns"][op == one][0]),
            requests=int(np.count_nonzero(op == one)),
            repeated=int(np.count_nonzero((op == one) & ~fresh)),
            refused=int(np.count_nonzero(mine & ~data)),
            duplicates=len(copies) - len(kept),
            asked=None if blocks is None else np.unique(blocks.chunks_at(asked.va[op[asked.request] == one])),
            answers=answers,
            asked_ns=requests["time_ns"][asked.request[packet[kept]]],
        )
