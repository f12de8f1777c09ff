"""The page about training: the claims over the checkpoints of one run, as curves with a figure."""

from __future__ import annotations

from pytest_circuits.report.curves import Curve, curves
from pytest_circuits.report.model import ClaimRecord

from .claims import Report
from .markdown import number, table

HEAD = """# Over training

Claims of `specs/consistency_specificity/training.circuits.yaml` on eight checkpoints of one run of the OLMo 2 model
([steps 25 to 1000](../../models/multitask-olmo2/README.md)). Their report is stored in
[consistency_specificity.json](consistency_specificity.json). The figure is made by
`pytest-circuits figure docs/results/consistency_specificity.json --out docs/results/training.svg`, this page by `python -m docs.results`.

![Curves over training](training.svg)

Each triangle is a checkpoint, and its line the interval. The intervals of a panel are simultaneous, so they are wide. A cross at the lower
edge is a checkpoint that cannot do the task yet (accuracy below 0.6, or not clearly above guessing), so there is no behaviour to explain.
Dashed lines are bounds; they start where the claim starts.
"""


def page(report: Report) -> str:
    """Head, and a table of each curve with the claims about it."""
    found = curves([ClaimRecord.model_validate(claim) for claim in report.claims])
    return HEAD + "\n" + "\n".join(map(_section, found))


def _section(curve: Curve) -> str:
    head = ["step", *(f"{point.at:g}" for point in curve.points)]
    row = [curve.unit or "value", *(_cell(point.value, point.interval) for point in curve.points)]
    claims = "\n".join(f"- {claim}" for claim in curve.claims)
    return f"## {curve.title}\n\n{table(head, [row])}\n\n{claims}\n"


def _cell(value: float | None, interval: tuple[float, float] | None) -> str:
    if value is None or interval is None:
        return "—"
    return f"{number(value)} [{number(interval[0])}, {number(interval[1])}]"
