"""An analysis as tables for a terminal; nothing in them is cut short, times count from the first packet of all."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.table import Table

from experiments.analysis.report import Analysis, LossEntry, Psns, write_ranges

SHOWN = 8
"""Runs of PSNs that a row shows; the JSON has all."""
_MS = 1e6


def tables(analysis: Analysis) -> Iterator[Table]:
    """The tables that have rows, in the order in which they answer questions."""
    begin = min((entry.first_ns for entry in analysis.captures if entry.first_ns is not None), default=0)
    for table in (
        _captures(analysis, begin),
        _streams(analysis, begin),
        _losses(analysis),
        _recoveries(analysis, begin),
        _pairs(analysis),
    ):
        if table.row_count:
            yield table


def psns(runs: Psns | None) -> str:
    """Some runs of PSNs, and how many more there are; ``-`` for what cannot be told."""
    if runs is None:
        return "-"
    rest = sum(last - first + 1 for first, last in runs[SHOWN:])
    return write_ranges(runs[:SHOWN]) + (f" and {rest} more" if rest else "")


def join(runs: Psns) -> Psns:
    """Runs in any order, none of which overlap, as the fewest ascending ones."""
    joined: Psns = []
    for first, last in sorted(runs):
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return joined


def place(entry: LossEntry) -> str:
    """Where a loss happened, in words."""
    if entry.place == "sender":
        return f"inside {entry.root}, before its link"
    if entry.place == "receiver":
        return f"inside {entry.before}, behind its link"
    return f"between {entry.after} and {entry.before}" if entry.after else f"somewhere before {entry.before}"


def _table(title: str, words: str, numbers: str) -> Table:
    """Columns of words, then columns of numbers; ``|`` separates their names, ``~`` is a new line in one."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0, show_edge=False)
    for name in words.split("|"):
        table.add_column(name.replace("~", "\n"), no_wrap=True)
    for name in numbers.split("|"):
        table.add_column(name.replace("~", "\n"), justify="right", no_wrap=True)
    return table


def _captures(analysis: Analysis, begin: int) -> Table:
    table = _table("captures", "capture|interface|host", "packets|RoCE|missed|first~(ms)|last~(ms)")
    for entry in analysis.captures:
        times = [_ms(entry.first_ns, begin), _ms(entry.last_ns, begin)]
        counts = [str(entry.packets), str(entry.roce), str(entry.dropped)]
        table.add_row(entry.name, entry.interface or "-", entry.host or "-", *counts, *times)
    return table


def _streams(analysis: Analysis, begin: int) -> Table:
    numbers = "frames|first~(ms)|last~(ms)|rate~(Mbit/s)|peak|silence~(ms)|gaps|re-~ordered|dupli-~cates"
    table = _table("multicast streams, by operation, root and tree", "capture|op|root|tree", numbers)
    table.add_column("missing PSNs", overflow="fold")
    for entry in analysis.streams:
        seconds = (entry.last_ns - entry.first_ns) / 1e9
        rate = f"{entry.bytes * 8e-6 / seconds:.2f}" if seconds else "-"
        table.add_row(
            entry.capture,
            str(entry.op),
            entry.root,
            str(entry.tree),
            str(entry.frames),
            _ms(entry.first_ns, begin),
            _ms(entry.last_ns, begin),
            rate,
            f"{max(entry.rate.bps) / 1e6:.2f}",
            f"{entry.silence_ns / _MS:.1f}",
            str(entry.gaps),
            str(entry.reordered),
            str(entry.duplicates),
            psns(entry.missing),
        )
    return table


def _losses(analysis: Analysis) -> Table:
    """The trees of a root together: their PSNs take turns."""
    table = _table("multicast chunks lost, and where", "op|root|where", "chunks")
    table.add_column("PSNs", overflow="fold")
    found: dict[tuple[int, int, str, str], Psns] = {}
    for entry in analysis.losses:
        found.setdefault((entry.op, entry.rank, entry.root, place(entry)), []).extend(entry.psns)
    for (op, _, root, where), runs in sorted(found.items()):
        joined = join(runs)
        table.add_row(str(op), root, where, str(sum(last - first + 1 for first, last in joined)), psns(joined))
    return table


def _recoveries(analysis: Analysis, begin: int) -> Table:
    numbers = "READs|again|refused|answers|bytes|first~(ms)|last~(ms)"
    table = _table("recovered by RDMA READ, who from whom", "op|host|from", numbers)
    for name in ("PSNs", "of them late"):
        table.add_column(name, overflow="fold")
    for entry in analysis.recoveries:
        counts = (entry.requests, entry.repeated, entry.refused, entry.answers, entry.bytes)
        times = (_ms(entry.first_ns, begin), _ms(entry.last_ns, begin))
        who = (str(entry.op), entry.requester, entry.supplier)
        table.add_row(*who, *map(str, counts), *times, psns(entry.psns), psns(entry.late))
    return table


def _pairs(analysis: Analysis) -> Table:
    kinds = "SEND|WRITE|WRITE~bytes|READ|answers|answer~bytes|ACK|NAK"
    table = _table("reliable connections, by direction", "from|to|capture", f"frames|{kinds}|again|answers~again")
    for entry in analysis.pairs:
        frames, payload = entry.frames, entry.payload
        counts = (
            sum(frames.values()),
            *(frames["send"], frames["write"], payload["write"], frames["read"], frames["answer"], payload["answer"]),
            *(frames["ack"] - entry.naks, entry.naks, entry.repeated, entry.repeated_answers),
        )
        table.add_row(entry.src, entry.dst, entry.capture, *map(str, counts))
    return table


def _ms(time: int | None, begin: int) -> str:
    return "-" if time is None else f"{(time - begin) / _MS:.1f}"
