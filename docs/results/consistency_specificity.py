"""The page on consistency and specificity of circuits: each published figure, ours with intervals and verdicts, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pytest_circuits.report.messages.verdicts import bound_text

from . import consistency_tables as tables
from .claims import Claim, Report, lookup
from .markdown import LEGEND, MARKS, anchor, cell, studies, table

PUBLISHED = Path(__file__).with_name("consistency_specificity_published.yaml")
TABLES: Mapping[str, Callable[[Report], str]] = {
    name: getattr(tables, name)
    for name in (
        "reuse_over_size_and_p", "reuse_over_p", "reuse_over_n", "reuse_in_context", "stability", "necessity_by_control",
        "necessity_over_size", "necessity_by_ablation", "sufficiency", "overlap", "overlap_beyond_counting", "cross_task", "specificity",
        "parts", "composition_over_size", "composition", "layers", "accuracy_over_training", "reuse_over_training",
        "composition_over_training", "overlap_over_training", "necessity_over_training", "contrastive", "contrastive_overlap",
    )
}  # fmt: skip
HEAD = """# Consistency and specificity of circuits

*How Much Do Circuits Tell Us?* (arXiv 2605.08348), measured on the reference models of this repository. Made by
`python -m docs.results` from the report of `pytest specs/consistency_specificity`, which has every number of this repository."""

DROPPED = ("notes", "sets", "bootstrap", "most_frequent", "count_per_layer", "per_layer_means", "interval_parts", "by_split", "accuracies")
"""Details that the page does not use; lists of control sets are most of a report."""


def published() -> Mapping[str, Any]:
    """The published figures: `figures`, and `sources` by name."""
    found: Mapping[str, Any] = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    return found


def kept(claim: Claim) -> dict[str, Any]:
    """What the stored report keeps of a claim."""
    return {**claim, "details": _without(claim["details"])}


def _without(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(inner) for key, inner in value.items() if key not in DROPPED}
    return value


def page(report: Report) -> str:
    """The page of a report."""
    data = published()
    parts = [HEAD, data["general"].strip(), "## Models", models(report), "## Published and measured", f"{LEGEND} {data['reading'].strip()}"]
    parts.append(overview(report, data["figures"]))
    for figure in data["figures"]:
        parts += section(report, figure, data["sources"])
    return "\n\n".join(part for part in parts if part) + "\n"


def models(report: Report) -> str:
    """What was measured; checkpoints of a series are one row each."""
    body = []
    for name, info in report.models.items():
        if info.get("layers") is None:
            body.append([name, "could not be opened", "", "", "", ""])
            continue
        count = info["layers"] * (info["heads"] + 1)
        body.append([name, info["architecture"], f"{info['parameters']:,}", info["layers"], info["heads"], count])
    return table(["model", "architecture", "parameters", "layers", "heads a layer", "components"], body)


def overview(report: Report, figures: Sequence[Mapping[str, Any]]) -> str:
    """Each figure next to the claims that say the same of our models."""
    rows = []
    for figure in figures:
        found = list(report.select(**figure["headline"]))
        rows.append([f"[{figure['title']}](#{anchor(figure['title'])})", figure["published"].strip(), "<br>".join(headline(found))])
    return table(["figure", "published", "measured here"], rows)


def headline(found: Sequence[Claim]) -> list[str]:
    """A line for each claim: its number, labelled by what differs between them."""
    differ = [key for key in ("tasks", "size", "circuit", "part") if len({str(lookup(claim, key)) for claim in found}) > 1]
    return [f"{' '.join([claim['model'], *(tables.said(claim, key) for key in differ)])}: {cell(claim)}" for claim in found]


def section(report: Report, figure: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """One figure: published, ours, why they differ, tables, and claims of this repository."""
    about = [claim for claim in report.claims if claim["claim"] in figure["claims"]]
    ours = own(claim for claim in about if claim["expect"] != "measured")
    return [
        f"## {figure['title']}",
        f"Published: {figure['published'].strip()} Source: {sources[figure['source']]}.",
        studies([claim for claim in about if claim["expect"] == "measured"]),
        f"Why ours differ: {figure['why'].strip()}",
        *(TABLES[name](report) for name in figure["tables"]),
        f"**Claims of this repository**\n\n{ours}" if ours else "",
    ]


def own(found: Iterable[Claim]) -> str:
    """Claims of this repository: bound, number and verdict; some expect to be refuted or invalid."""
    body = []
    for claim in found:
        verdict = f"{MARKS[claim['verdict']]} {claim['verdict']}" + (
            ", as expected" if claim["passed"] and claim["expect"] != "certified" else ""
        )
        tasks = ", ".join(claim["tasks"])
        body.append([claim["claim"], claim["model"], tasks, bound_text(claim["bound"]), cell(claim, mark=False), verdict])
    return table(["claim", "model", "tasks", "bound", "measured", "verdict"], body) if body else ""
