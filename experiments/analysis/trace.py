"""All captures of a run as one table of frames in the order of time: read, joined and numbered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from experiments.analysis.context import DEFAULT_OP_BITS, Context
from experiments.analysis.files import opened
from experiments.analysis.frames import FRAME, UD, Frames, decode
from experiments.analysis.packets import DamagedCapture, Reader
from experiments.analysis.points import Point, name_points, place_hosts
from experiments.errors import UserError

NUMBERED = np.dtype([*FRAME.descr, ("op", "i8"), ("chunk", "u4")])
"""A frame with its operation, counted without wrapping, and its chunk, where it has them."""


@dataclass(slots=True)
class Trace:
    """``frames`` are :data:`NUMBERED`, in the order of time; their ``point`` counts ``points``.

    ``chunks`` are those of them that are multicast chunks of known hosts over known trees, and fit the run.
    """

    points: list[Point]
    frames: Frames
    chunks: Frames
    context: Context | None = None
    warnings: list[str] = field(default_factory=list)


def read_trace(paths: Sequence[Path], context: Context | None = None) -> Trace:
    """Read all captures; :class:`UserError` for what is none, warnings for what is cut short or left out."""
    points: list[Point] = []
    parts: list[Frames] = []
    warnings: list[str] = []
    for path in paths:
        try:
            with opened(path) as reader:
                parts += _read(reader, path, points)
        except DamagedCapture as problem:
            raise UserError(f"capture {str(path)!r}: {problem}") from None
        warnings += [f"capture {str(path)!r} {text}" for text in reader.warnings]
    found = np.concatenate(parts) if parts else np.zeros(0, FRAME)
    found = found[np.argsort(found["time_ns"], kind="stable")]
    frames = number(found, context.scenario.op_bits if context else DEFAULT_OP_BITS)
    name_points(points)
    place_hosts(points, frames)
    warnings += [remark for point in points for remark in point.remarks()]
    chunks = _chunks(frames, context, warnings)
    return Trace(points, frames, chunks, context, warnings)


def _read(reader: Reader, path: Path, points: list[Point]) -> Iterator[Frames]:
    """The frames of one file, batch by batch; its interfaces become further ``points``."""
    first = len(points)

    def note_interfaces() -> None:
        points.extend(Point(path.stem, one, path) for one in reader.interfaces[len(points) - first :])

    for packets in reader:
        note_interfaces()
        decoded = decode(packets)
        for index in np.unique(packets.interface).tolist():
            points[first + index].count(packets, packets.interface == index, decoded)
        ethernet = np.array([point.ethernet for point in points[first:]])
        frames = decoded.frames[ethernet[decoded.frames["point"]]]
        frames["point"] += first
        yield frames
    note_interfaces()
    for point in points[first:]:
        point.cut = reader.cut


def number(frames: Frames, op_bits: int) -> Frames:
    """Add operations and chunks to frames in the order of time.

    On the wire an operation's number is cut to ``op_bits`` bits in the immediate of a chunk, and whole as the remote
    key of a READ, which tells how often it had wrapped before the capture began.
    """
    numbered = np.zeros(len(frames), NUMBERED)
    for name in FRAME.names or ():
        numbered[name] = frames[name]
    chunk_bits = 32 - op_bits
    word = frames["word"].astype(np.int64)
    multicast = frames["opcode"] == UD
    remote = ~multicast & (word > 0)
    short = np.where(multicast, word >> chunk_bits, word & ((1 << op_bits) - 1))
    has = np.flatnonzero(multicast | remote)
    ops = np.unwrap(short[has], period=1 << op_bits)
    if remote.any():
        ops += int(np.median((word[has] - ops)[remote[has]]))
    numbered["op"][has] = ops
    numbered["chunk"][multicast] = word[multicast] & ((1 << chunk_bits) - 1)
    return numbered


def _chunks(frames: Frames, context: Context | None, warnings: list[str]) -> Frames:
    strangers = int(np.count_nonzero(frames["src"] < 0))
    if strangers:
        warnings.append(f"{strangers} RoCEv2 frames come from no host of ours: they are left out")
    chunks: Frames = frames[(frames["opcode"] == UD) & (frames["src"] >= 0) & (frames["tree"] >= 0)]
    if context is None:
        return chunks
    wrong = context.misplaced(chunks)
    if wrong.any():
        count = int(np.count_nonzero(wrong))
        warnings.append(f"{count} multicast chunks do not fit the run that summary.json tells of: they are left out")
    fitting: Frames = chunks[~wrong]
    return fitting


def groups(frames: Frames, *names: str) -> Iterator[tuple[tuple[int, ...], Frames]]:
    """Frames with equal values in the fields ``names``, by these values in order; each group keeps its order."""
    if not len(frames):
        return
    frames = frames[np.lexsort([frames[name] for name in reversed(names)])]
    change = np.zeros(len(frames) - 1, np.bool_)
    for name in names:
        change |= frames[name][1:] != frames[name][:-1]
    borders = [0, *(np.flatnonzero(change) + 1).tolist(), len(frames)]
    for start, stop in pairwise(borders):
        yield tuple(int(frames[name][start]) for name in names), frames[start:stop]
