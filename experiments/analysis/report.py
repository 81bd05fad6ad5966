"""What captures say, as one value with a schema: ``treecast analyze --json`` prints it, the table shows it.

Times are integer nanoseconds since 1970 by the capturing machine's clock; rates are bits per second on the wire,
headers included. Hosts go by name. PSNs are (first, last) pairs, both included, as ``--impair`` takes them: the PSN of
a multicast chunk is its number in the receive buffer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from experiments.analysis.context import host_name
from experiments.analysis.losses import Loss, Place, losses
from experiments.analysis.packets import I64
from experiments.analysis.pairs import Traffic, traffic
from experiments.analysis.reads import Arrivals, Fates, Recovery, recoveries
from experiments.analysis.streams import Key, Passage, bin_width, expected, passages, rates
from experiments.analysis.trace import Trace

Psns = list[tuple[int, int]]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CaptureEntry(_Value):
    """A captured interface; ``host`` is the host whose own link it is. ``roce`` of its ``packets`` are RoCEv2."""

    name: str
    file: str
    interface: str | None
    host: str | None
    packets: int
    roce: int
    dropped: int
    first_ns: int | None
    last_ns: int | None


class Series(_Value):
    """Bits per second in consecutive bins from ``begin_ns`` on."""

    begin_ns: int
    bin_ns: int
    bps: list[int]


class StreamEntry(_Value):
    """What ``root`` (of ``rank``) multicast over ``tree`` in one operation, as it passed a capture.

    ``frames`` include ``duplicates``; ``reordered`` came after a later chunk (RFC 4737); ``gaps`` are runs of expected
    PSNs that did not come, ``missing`` these; ``silence_ns`` is the longest time between two frames.
    """

    capture: str
    op: int
    root: str
    rank: int
    tree: int
    frames: int
    duplicates: int
    reordered: int
    gaps: int
    missing: Psns
    first_ns: int
    last_ns: int
    silence_ns: int
    bytes: int
    rate: Series


class LossEntry(_Value):
    """Chunks that one capture (``after``) saw and the next on their way (``before``) did not.

    ``place`` is ``sender``: lost inside the root, before its link; ``fabric``: on the way; ``receiver``: inside the
    receiver, behind its link, which shows in that it had to READ them.
    """

    op: int
    root: str
    rank: int
    tree: int
    place: Literal["sender", "fabric", "receiver"]
    after: str | None
    before: str
    count: int
    psns: Psns


class RecoveryEntry(_Value):
    """What ``requester`` fetched from ``supplier`` by RDMA READ.

    ``psns`` were answered and ``unanswered`` not; ``absent``, ``dropped`` and ``late`` divide the former by what the
    requester's own link shows of their multicast: none, before the request, after it. None is what cannot be told.
    """

    op: int
    requester: str
    supplier: str
    requests: int
    repeated: int
    refused: int
    answers: int
    duplicates: int
    bytes: int
    first_ns: int
    last_ns: int | None
    psns: Psns | None
    unanswered: Psns | None
    absent: Psns | None
    dropped: Psns | None
    late: Psns | None


class PairEntry(_Value):
    """Packets of the reliable connection from ``src`` to ``dst`` as seen at ``capture``, by kind.

    ``repeated`` and ``repeated_answers`` had a PSN that was sent before.
    """

    src: str
    dst: str
    capture: str
    first_ns: int
    last_ns: int
    bytes: int
    frames: dict[str, int]
    payload: dict[str, int]
    naks: int
    repeated: int
    repeated_answers: int


class Analysis(_Value):
    """Everything that a set of captures says. ``summary`` is the file that told sizes and ranks, if there is one."""

    version: Literal[1] = 1
    summary: str | None
    warnings: list[str]
    captures: list[CaptureEntry]
    streams: list[StreamEntry]
    losses: list[LossEntry]
    recoveries: list[RecoveryEntry]
    pairs: list[PairEntry]

    def to_json(self) -> str:
        """The value as text."""
        return self.model_dump_json(indent=2) + "\n"


def analyze(trace: Trace, summary: str | None = None) -> Analysis:
    """Read everything off the captures."""
    chunks = expected(trace)
    passed = passages(trace, chunks)
    recovered = recoveries(trace)
    spans, arrivals = _spans(passed), Arrivals(trace)
    return Analysis(
        summary=summary,
        warnings=list(trace.warnings),
        captures=[
            CaptureEntry(
                name=point.name,
                file=str(point.file),
                interface=point.interface.name,
                host=None if point.host is None else host_name(point.host),
                packets=point.packets,
                roce=point.roce,
                dropped=point.interface.dropped,
                first_ns=point.first_ns if point.packets else None,
                last_ns=point.last_ns if point.packets else None,
            )
            for point in trace.points
        ],
        streams=[_stream(trace, passage, *spans[passage.key.op]) for passage in passed],
        losses=[_loss(trace, loss) for loss in losses(trace, chunks, passed, recovered)],
        recoveries=[_recovery(recovery, arrivals.fates(recovery)) for recovery in recovered],
        pairs=[_pair(trace, pair) for pair in traffic(trace)],
    )


def ranges(numbers: I64) -> Psns:
    """Ascending numbers as runs of (first, last)."""
    if not len(numbers):
        return []
    breaks = np.flatnonzero(np.diff(numbers) != 1)
    firsts, lasts = numbers[[0, *(breaks + 1)]], numbers[[*breaks, -1]]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def write_ranges(psns: Psns) -> str:
    """Runs as people write them: ``17,40-60``."""
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in psns)


def _spans(passed: Sequence[Passage]) -> dict[int, tuple[int, int]]:
    """First and last time of the multicast of each operation, at any point."""
    spans: dict[int, tuple[int, int]] = {}
    for passage in passed:
        begin, end = int(passage.frames["time_ns"][0]), passage.last_ns
        first, last = spans.get(passage.key.op, (begin, end))
        spans[passage.key.op] = min(first, begin), max(last, end)
    return spans


def _root(trace: Trace, key: Key) -> dict[str, object]:
    rank = key.root if trace.context is None else trace.context.hosts.index(key.root)
    return {"op": key.op, "root": host_name(key.root), "rank": rank, "tree": key.tree}


def _stream(trace: Trace, passage: Passage, begin: int, end: int) -> StreamEntry:
    width, missing = bin_width(end - begin), ranges(passage.missing)
    return StreamEntry.model_validate(
        {
            **_root(trace, passage.key),
            "capture": trace.points[passage.point].name,
            "frames": len(passage.frames) + passage.duplicates,
            "duplicates": passage.duplicates,
            "reordered": passage.reordered,
            "gaps": len(missing),
            "missing": missing,
            "first_ns": int(passage.frames["time_ns"][0]),
            "last_ns": passage.last_ns,
            "silence_ns": passage.silence_ns,
            "bytes": passage.size,
            "rate": {
                "begin_ns": begin,
                "bin_ns": width,
                "bps": rates(passage.frames, begin, end, width).tolist(),
            },
        }
    )


def _loss(trace: Trace, loss: Loss) -> LossEntry:
    return LossEntry.model_validate(
        {
            **_root(trace, loss.key),
            "place": Place(loss.place).value,
            "after": None if loss.after is None else trace.points[loss.after].name,
            "before": trace.points[loss.before].name,
            "count": len(loss.chunks),
            "psns": ranges(loss.chunks),
        }
    )


def _recovery(recovery: Recovery, found: Fates | None) -> RecoveryEntry:
    answered = recovery.answered
    return RecoveryEntry(
        op=recovery.op,
        requester=host_name(recovery.requester),
        supplier=host_name(recovery.supplier),
        requests=recovery.requests,
        repeated=recovery.repeated,
        refused=recovery.refused,
        answers=len(recovery.answers),
        duplicates=recovery.duplicates,
        bytes=int(recovery.answers["payload"].sum()),
        first_ns=recovery.first_ns,
        last_ns=int(recovery.answers["time_ns"][-1]) if len(recovery.answers) else None,
        psns=None if answered is None else ranges(answered),
        unanswered=(
            None if answered is None or recovery.asked is None else ranges(np.setdiff1d(recovery.asked, answered))
        ),
        absent=None if found is None else ranges(found.absent),
        dropped=None if found is None else ranges(found.dropped),
        late=None if found is None else ranges(found.late),
    )


def _pair(trace: Trace, pair: Traffic) -> PairEntry:
    return PairEntry(
        src=host_name(pair.src),
        dst=host_name(pair.dst),
        capture=trace.points[pair.point].name,
        first_ns=pair.first_ns,
        last_ns=pair.last_ns,
        bytes=pair.size,
        frames=pair.frames,
        payload=pair.payload,
        naks=pair.naks,
        repeated=pair.repeated,
        repeated_answers=pair.repeated_answers,
    )
