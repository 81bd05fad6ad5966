"""The DPA's predicted throughput, drawn over its threads and over the link's rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from matplotlib.axes import Axes

from experiments.dpa.model import LINKS_BPS, Dpa, Work, doubling, throughput_bps
from experiments.report import style
from experiments.units import format_rate, format_size

_GBPS = 10**9


def draw(dpa: Dpa, works: Mapping[str, Work], chunk_bytes: int, path: Path) -> None:
    """Both panels, into a file whose suffix decides its kind; ``works`` by the names of their lines."""
    with style.in_style():
        figure, (left, right) = style.grid_of_axes(2, inches=(4.6, 3.6))
        figure.suptitle(
            f"{dpa.cores} cores of {dpa.threads_per_core} threads at {dpa.clock_hz / 1e9:g} GHz, "
            f"chunks of {format_size(chunk_bytes)} (model, without contention)",
            fontsize=9,
        )
        _over_threads(left, dpa, works, chunk_bytes)
        _over_links(right, dpa, works, chunk_bytes)
        for axes in (left, right):
            axes.set_yscale("log")
            axes.set_ylabel("payload (Gbit/s)")
            axes.legend(handlelength=3.5)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _over_threads(axes: Axes, dpa: Dpa, works: Mapping[str, Work], chunk_bytes: int) -> None:
    threads = doubling(dpa.threads)
    for number, (name, work) in enumerate(works.items()):
        rates = [throughput_bps(dpa, work, count, chunk_bytes) / _GBPS for count in threads]
        axes.plot(threads, rates, style.DASHES[0], marker="o", ms=3, color=style.COLOURS[number], label=name)
    axes.axhline(LINKS_BPS[-1] / _GBPS, color=style.GREY, lw=0.8, label=format_rate(LINKS_BPS[-1]))
    style.count_axis(axes, threads, "threads")


def _over_links(axes: Axes, dpa: Dpa, works: Mapping[str, Work], chunk_bytes: int) -> None:
    counts = dict.fromkeys(min(count, dpa.threads) for count in (1, dpa.threads_per_core, dpa.threads))
    links = [link / _GBPS for link in LINKS_BPS]
    axes.plot(links, links, color=style.GREY, lw=0.8, label="the link")
    for number, (name, work) in enumerate(works.items()):
        for dashes, count in zip(style.DASHES, counts, strict=False):
            rates = [throughput_bps(dpa, work, count, chunk_bytes, link) / _GBPS for link in LINKS_BPS]
            label = f"{name}, {count} thread{'' if count == 1 else 's'}"
            axes.plot(links, rates, linestyle=dashes, marker="o", ms=3, color=style.COLOURS[number], label=label)
    style.count_axis(axes, links, "link (Gbit/s)")
