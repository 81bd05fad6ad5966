"""Part of the limit over loss: what recovery costs."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from experiments import theory
from experiments.report import style
from experiments.report.curves import Curve, plate
from experiments.report.evidence import Evidence, Operation
from experiments.report.figure import Figure, Plate
from experiments.report.groups import Panel

_CAP = Line2D([], [], color=style.GREY, linestyle=":", label="with headers, no more is possible")
_CAPTION = (
    "The time that a receiving link needs for the payload alone, over the time taken; loss is injected at every "
    "receiver."
)


def _loss(operation: Operation) -> float:
    return operation.scenario.loss * 100


def _ratio(operation: Operation) -> float:
    return operation.limit_ratio


def _decorate(axes: Axes, panel: Panel) -> None:
    for mtu in {o.scenario.mtu for cells in panel.series.values() for cell in cells for o in cell.operations}:
        axes.axhline(theory.header_cap(mtu), color=style.GREY, linestyle=":", zorder=0)
    axes.set_ylim(0, 1.05)
    axes.xaxis.set_major_formatter(PercentFormatter(100))
    axes.set_xlabel("injected loss (% of frames)")
    axes.set_ylabel("part of the limit")


def _make(evidence: Evidence) -> list[Plate]:
    curve = Curve(
        "loss", "Part of the limit over loss", _CAPTION, _loss, ("loss",), "injected loss (%)", _ratio, "1", _decorate,
        (_CAP,),
    )  # fmt: skip
    return [plate(evidence, curve, evidence.counting, "all operations have the same injected loss; vary loss")]


FIGURE = Figure("loss", "Part of the limit over loss", 30, _make)
