"""A figure over training: the curves of a report, one panel each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from math import ceil
from pathlib import Path
from textwrap import fill
from typing import Any

from ...core.atomic import replacement
from ...errors import OptionError
from ..curves import CURVE, Curve, curves
from ..model import Report

FACTS = {"purpose": "file"}

COLUMNS = 3
LOG = 20  # from which ratio of the last place to the first on steps are shown on a logarithmic axis
FORMATS = (".svg", ".pdf", ".png")
MARKS: Mapping[str, dict[str, Any]] = {
    "certified": {"marker": "o", "markerfacecolor": "#1b6e3c"},
    "refuted": {"marker": "s", "markerfacecolor": "#b3261e"},
    "inconclusive": {"marker": "D", "markerfacecolor": "white"},
    "invalid": {"marker": "x", "markerfacecolor": "black"},
    CURVE: {"marker": "^", "markerfacecolor": "#33539e"},
}
_STYLE = {"text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "pytest-circuits", "font.size": 8}


class FigureRenderer:
    """The curves of a report, one panel each."""

    def write(self, report: Report, path: Path) -> int:
        """Write the figure, whole or not at all; returns the number of panels.

        Estimates with their intervals against the place in the series (a step, a seed). The marker's shape is the verdict, or says that
        the point is part of a curve that the claim is about; a cross at the lower edge is a model without a number. Bounds are dashed
        lines. Raises `OptionError` for a report without claims over a series, for an unknown format, and without matplotlib.
        """
        if path.suffix not in FORMATS:
            raise OptionError(f"{path}: a figure is written as {', '.join(FORMATS)}; use one of these endings")
        if path.is_dir():
            raise OptionError(f"{path} is a folder; give the name of a file")
        drawn = curves(report.claims)
        if not drawn:
            raise OptionError(
                "this report has no claim over a series of models: give a model `checkpoints` in the spec, and run it with --circuits-json"
            )
        try:
            matplotlib = import_module("matplotlib")
        except ImportError:
            raise OptionError("a figure needs matplotlib, which is not installed: pip install 'pytest-circuits[figure]'") from None
        with matplotlib.rc_context(_STYLE):
            _save(_figure(drawn), path)
        return len(drawn)


def _figure(drawn: Sequence[Curve]) -> Any:
    columns = min(COLUMNS, len(drawn))
    rows = ceil(len(drawn) / columns)
    figure = import_module("matplotlib.figure").Figure(figsize=(4.2 * columns, 2.9 * rows + 0.5), layout="constrained")
    axes = list(figure.subplots(rows, columns, squeeze=False).flat)
    for i, (axis, curve) in enumerate(zip(axes, drawn, strict=False)):
        _panel(axis, curve, i)
    for axis in axes[len(drawn) :]:
        axis.set_visible(False)
    lines = import_module("matplotlib.lines")
    used = [mark for mark in MARKS if any(point.mark == mark for curve in drawn for point in curve.points)]
    handles = [lines.Line2D([], [], linestyle="", color="black", markersize=6, label=mark, **MARKS[mark]) for mark in used]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles), frameon=False)
    return figure


def _panel(axis: Any, curve: Curve, number: int) -> None:
    known = [point for point in curve.points if point.value is not None]
    axis.plot([p.at for p in known], [p.value for p in known], color="#777777", linewidth=0.8, gid=f"curve-{number}")
    for i, point in enumerate(curve.points):
        name, style = f"point-{number}-{i}-{point.mark}", MARKS[point.mark]
        if point.value is None or point.interval is None:
            axis.plot(
                [point.at], [0.03], transform=axis.get_xaxis_transform(), linestyle="", color="black", gid=name, clip_on=False, **style
            )
            continue
        axis.plot([point.at] * 2, point.interval, color="black", linewidth=1, gid=f"interval-{number}-{i}", solid_capstyle="butt")
        axis.plot([point.at], [point.value], linestyle="", color="black", gid=name, zorder=3, **style)
    _scale(axis, [point.at for point in curve.points])
    for i, (value, start) in enumerate(curve.lines):
        first, last = axis.get_xlim()
        axis.plot(
            [first if start is None else start, last], [value] * 2, linestyle="--", color="black", linewidth=0.8, gid=f"bound-{number}-{i}"
        )
        axis.set_xlim(first, last)
    axis.set_title("\n".join([curve.title, *(fill(claim, 62) for claim in curve.claims)]), fontsize=7, loc="left")
    axis.set_xlabel("step, or place in the series")
    axis.set_ylabel(fill(curve.unit, 30))


def _scale(axis: Any, ats: Sequence[float]) -> None:
    """Every place is a tick; steps that double and double again are shown on a logarithmic axis."""
    if min(ats) > 0 and max(ats) >= LOG * min(ats):
        axis.set_xscale("log")
    axis.set_xticks(ats, [f"{at:g}" for at in ats], rotation=45)
    axis.minorticks_off()
    axis.autoscale_view()


def _save(figure: Any, path: Path) -> None:
    metadata = {".svg": {"Date": None, "Creator": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with replacement(path, path.suffix) as temporary:
        figure.savefig(temporary, metadata=metadata, dpi=150)
