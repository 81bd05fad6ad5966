"""Throughput over size: what each rank's link received per second, beside the rate of the link."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.report import style
from experiments.report.curves import Curve, plates
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, Plate
from experiments.report.groups import Panel

_LIMIT = Line2D([], [], color=style.GREY, linestyle=":", label="rate of the links")
_CAPTION = (
    "Payload received per rank and second, (P - 1) N / t for Allgather and N / t for Broadcast, from the first barrier "
    "message to the last handshake (nccl-tests call it busbw)."
)
_MISSING = "all operations have the same size; vary size_bytes"


def _size(operation: Operation) -> float:
    return operation.run.bytes_per_rank


def _measured(operation: Operation) -> float:
    return operation.throughput_bps / 1e6


def _scaled(operation: Operation) -> float:
    return operation.throughput_bps * operation.scenario.scale / 1e9


def _decorate(axes: Axes, panel: Panel, *, scaled: bool) -> None:
    style.size_axis(axes, panel.places)
    for rate in {_rate(o, scaled=scaled) for cells in panel.series.values() for cell in cells for o in cell.operations}:
        axes.axhline(rate, color=style.GREY, linestyle=":", zorder=0)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("throughput per rank " + ("at the emulated rate (Gbit/s)" if scaled else "(Mbit/s)"))


def _rate(operation: Operation, *, scaled: bool) -> float:
    scenario = operation.scenario
    return scenario.rate_bps / 1e9 if scaled else scenario.link_rate_bps / 1e6


def _make(evidence: Evidence) -> list[Plate]:
    measured = Curve(
        "throughput", "Throughput over size, as measured", _CAPTION, _size, ("size_bytes",), "bytes per rank",
        _measured, "Mbit/s", lambda axes, panel: _decorate(axes, panel, scaled=False), (_LIMIT,),
    )  # fmt: skip
    scaled = Curve(
        "throughput-scaled", "Throughput over size, at the emulated rate",
        f"{_CAPTION} Multiplied by the scale: what was measured means this on links of the emulated rate.",
        _size, ("size_bytes",), "bytes per rank", _scaled, "Gbit/s",
        lambda axes, panel: _decorate(axes, panel, scaled=True), (_LIMIT,),
    )  # fmt: skip
    return plates(evidence, measured, scaled, _MISSING)


FIGURE = Figure("throughput", "Throughput over size", 10, _make)
