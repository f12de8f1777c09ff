"""The page on circuits of neurons: each published figure, ours with intervals and verdicts, and why they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pytest_circuits.report.messages.verdicts import bound_text

from . import neuron_tables as tables
from .claims import Claim, Report, lookup
from .markdown import LEGEND, MARKS, anchor, cell, studies, table

PUBLISHED = Path(__file__).with_name("neuron_circuits_published.yaml")
TELLING_APART = ("task", "site", "level", "attribution", "ablation", "neurons", "factor", "against")
TABLES: Mapping[str, Callable[[Report], str]] = {
    name: getattr(tables, name)
    for name in ("faithfulness", "completeness", "reach", "sparsity", "cost", "pairs", "cmd", "best", "cpr", "conservation", "steering")
}
LEFT_OUT = ("strongest", "notes", "bootstrap", "units", "changes", "interval_parts")  # of details; names of units, and what others repeat
HEAD = """# Circuits of neurons

*Language model circuits are sparse in the neuron basis*, RelP and MIB, measured on the reference models of this repository. Made by
`python -m docs.results` from the report of `pytest specs/neuron_circuits`, which has every number of this repository."""


def published() -> Mapping[str, Any]:
    """The published figures: `figures`, and `sources` by name."""
    found: Mapping[str, Any] = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    return found


def page(report: Report) -> str:
    """The page of a report."""
    data = published()
    figures = data["figures"]
    # studies first: where one measurement is under several claims, tables show the verdict on the published figure
    report = Report(tuple(sorted(report.claims, key=lambda claim: claim["expect"] != "measured")), report.models)
    parts = [
        HEAD,
        "## Models",
        models(report),
        "## Published and measured",
        LEGEND + " " + data["reading"].strip(),
        overview(report, figures),
    ]
    for figure in figures:
        parts += section(report, figure, data["sources"])
    return "\n\n".join(part for part in parts if part) + "\n"


def kept(claim: Claim) -> Claim:
    """What a stored report keeps of a claim, so that the report stays small: details without `LEFT_OUT`, at any depth.

    The two curves behind a sparsity ratio are those of `neurons_to_reach`, and left out as well.
    """
    return {**claim, "details": _without(claim["details"], (*LEFT_OUT, "curve") if claim["property"] == "sparsity_ratio" else LEFT_OUT)}


def _without(value: Any, left_out: Sequence[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _without(inner, left_out) for key, inner in value.items() if key not in left_out}
    return [_without(inner, left_out) for inner in value] if isinstance(value, list) else value


def models(report: Report) -> str:
    """What was measured."""
    body = []
    for name, info in report.models.items():
        if info.get("layers") is None:
            body.append([name, "could not be opened", "", "", "", "", ""])
            continue
        counts = [info["layers"], info["layers"] * (info["heads"] + 1), info["layers"] * info["neurons"]]
        body.append([name, info["architecture"], f"{info['parameters']:,}", *counts, info["dtype"]])
    return table(["model", "architecture", "parameters", "layers", "components", "MLP activations", "computed in"], body)


def overview(report: Report, figures: Sequence[Mapping[str, Any]]) -> str:
    """Each figure next to the claims that say the same of our models."""
    rows = [
        [f"[{f['title']}](#{anchor(f['title'])})", f["published"].strip(), "<br>".join(headline(report, f["headline"]))] for f in figures
    ]
    return table(["figure", "published", "measured here"], rows)


def headline(report: Report, wanted: Mapping[str, Any]) -> list[str]:
    """A line for each model: its numbers, labelled by what differs between them."""
    what = wanted.get("show", "estimate")
    if what == "rank":
        return _ranks(report)
    chosen = {key: tuple(value) if isinstance(value, list) else value for key, value in wanted.items() if key != "show"}
    found = list(report.select(**chosen))
    differ = [key for key in TELLING_APART if len({_said(key, c) for c in found}) > 1]
    show = _shows(what)
    lines: dict[tuple[str, str], list[str]] = {}
    for claim in found:
        label = ", ".join(filter(None, (_said(key, claim) for key in differ)))
        lines.setdefault((claim["model"], label), []).append(show(claim))
    return [f"{name}{f' ({label})' if label else ''}: {'; '.join(dict.fromkeys(shown))}" for (name, label), shown in lines.items()]


def _shows(what: str) -> Callable[[Claim], str]:
    if what == "passes":
        return lambda c: f"{tables.passes_text(c)} passes"
    if what == "count":
        return lambda c: cell(c, show=tables.integer)
    if what == "chance":
        return lambda c: f"random rankings {tables.chance(c['details'])}, {tables.method(c)} {cell(c)}"
    return lambda c: cell(c, show=tables.fine) if c["property"] == "conservation" else cell(c)


def _said(key: str, claim: Claim) -> str:
    value = lookup(claim, key)
    if value is None:
        return ""
    if key == "attribution":
        return tables.method(claim)
    if key == "level":
        return f"{value}s"
    if key == "ablation":
        return f"{value} ablation"
    return f"× {value:g}" if key == "factor" else f"{value} neurons" if key == "neurons" else str(value)


def _ranks(report: Report) -> list[str]:
    found = tables.ranks(report)
    lines = []
    for name in dict.fromkeys(row[0] for row in found):
        here = [row for row in found if row[0] == name]
        won = sum(row[3] == 1 for row in here)
        most = max(row[4] for row in here)
        lines.append(f"{name}: best on {won} of {len(here)} tasks, among up to {most} methods")
    return lines


def section(report: Report, figure: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """One figure: published, the bound of its studies where verdicts are shown, why ours differ, tables, claims of this repository."""
    about = [c for c in report.claims if c["claim"] in figure["claims"]]
    made = [TABLES[name](report) for name in figure["tables"]]
    marked = any(mark in text for text in made for mark in (MARKS[verdict] for verdict in ("certified", "refuted", "inconclusive")))
    ours = tables.own([c for c in about if c["expect"] != "measured"], bound_text)
    return [
        f"## {figure['title']}",
        f"Published: {figure['published'].strip()} Source: {sources[figure['source']]}.",
        studies([c for c in about if c["expect"] == "measured"]) if marked else "",
        f"Why ours differ: {figure['why'].strip()}",
        *made,
        f"**Claims of this repository**\n\n{ours}" if ours else "",
    ]
