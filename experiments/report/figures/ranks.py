"""Time over ranks: a multicast broadcast takes as long to fifty receivers as to four."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from experiments.report import style
from experiments.report.curves import Curve, plates
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, Plate
from experiments.report.groups import Panel

_LIMIT = Line2D([], [], color=style.GREY, linestyle=":", label="a receiving link's least time")
_CAPTION = (
    "Time from the first rank's first barrier message to the last rank's last handshake, whatever the topology that "
    "brings the ranks. A broadcast by multicast needs each link once, so its time should not depend on their number."
)
_MISSING = "all operations have the same number of ranks; vary topology"
_OWN = ("topology", "ranks", "chains")


def _ranks(operation: Operation) -> float:
    return operation.run.ranks


def _measured(operation: Operation) -> float:
    return operation.seconds


def _scaled(operation: Operation) -> float:
    return operation.seconds / operation.scenario.scale * 1e3


def _decorate(axes: Axes, panel: Panel, *, scaled: bool) -> None:
    style.count_axis(axes, panel.places, "ranks")
    limits: dict[float, float] = {}
    for cells in panel.series.values():
        for cell in cells:
            first = cell.operations[0]
            limits[cell.x] = first.run.limit_seconds / (first.scenario.scale / 1e3 if scaled else 1)
    places = sorted(limits)
    axes.plot(places, [limits[at] for at in places], color=style.GREY, linestyle=":", zorder=0)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("time at the emulated rate (ms)" if scaled else "time (s)")


def _make(evidence: Evidence) -> list[Plate]:
    measured = Curve(
        "ranks", "Time over ranks, as measured", _CAPTION, _ranks, _OWN, "ranks", _measured, "s",
        lambda axes, panel: _decorate(axes, panel, scaled=False), (_LIMIT,), share_y=False,
    )  # fmt: skip
    scaled = Curve(
        "ranks-scaled", "Time over ranks, at the emulated rate",
        f"{_CAPTION} Divided by the scale: what was measured means this on links of the emulated rate.",
        _ranks, _OWN, "ranks", _scaled, "ms", lambda axes, panel: _decorate(axes, panel, scaled=True), (_LIMIT,),
        share_y=False,
    )  # fmt: skip
    return plates(evidence, measured, scaled, _MISSING)


FIGURE = Figure("ranks", "Time over ranks", 20, _make)
