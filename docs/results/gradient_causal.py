"""The page on the gradient–causal gap: the right ablation next to the published hook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pytest_circuits.core.units import layer_of

from .claims import Claim, Report
from .gradient_seeds import ABLATIONS, EFFECTS, HOOKS, NORMALISATIONS, TASKS, by_loss, options, over_seeds, read, rho
from .gradient_sets import layers, removal, roles, stability
from .markdown import cell, number, table

PUBLISHED = Path(__file__).with_name("gradient_causal_published.yaml")
DETAILS = (
    "accuracy", "noise_ceiling", "layer_profile", "share_at_floor_or_ceiling", "heroes", "bloats", "expected_by_chance",
    "chance_of_as_many", "roles", "mean_over_pairs", "curve", "left_out", "set", "joint", "sum_of_singles", "mean_single",
    "joint_over_mean_single", "ratio_warning", "accuracy_without_set", "drop", "control",
)  # fmt: skip
UNDER = {
    "The largest ρ that the noise of both rankings allows (by loss, √parameters):": "noise_ceiling.largest",
    "Share of components whose ablation leaves (nearly) all exact answers or none; above 0.25 the ranks by exact "
    "answers are tied, and claims about them are inconclusive:": "share_at_floor_or_ceiling",
}
CONTROL = ("rule", "mean_drop", "rank_p")


def published() -> Mapping[str, Any]:
    """The published figures, each with the claims that answer it, and the sentences of the page."""
    found: Mapping[str, Any] = yaml.safe_load(PUBLISHED.read_text(encoding="utf-8"))
    return found


def kept(claim: Claim) -> dict[str, Any]:
    """A claim as it is stored: of its details, what the page shows; hundreds of claims would be too large otherwise."""
    left_out = ("cost", "file", "line", "interval_kind", "outcome", "refuted_at", "checkpoint")
    details = {key: value for key, value in claim["details"].items() if key in DETAILS}
    if details.get("control"):
        details["control"] = {key: details["control"][key] for key in CONTROL}
    return {**{key: value for key, value in claim.items() if key not in left_out}, "details": details}


def page(report: Report) -> str:
    """The page, in Markdown, from a report and the published figures."""
    data = published()
    texts = data["texts"]
    sections: list[tuple[str, str, Callable[[Report], str]]] = [
        ("Published and measured", "figures", lambda r: figures(r, data["figures"])),
        ("Agreement of gradients and ablation", "agreement", agreement),
        ("Other gradients, other batches, other lengths", "variants", variants),
        ("Seed by seed", "seeds", by_seed),
        ("Heroes and bloats", "roles", roles),
        ("Where they sit", "layers", layers),
        ("Do seeds agree?", "stability", stability),
        ("Removing heroes and bloats together", "removal", removal),
        ("Claims of this repository", "own", own),
    ]
    parts = [f"# {data['title']}", texts["head"].strip()]
    for title, key, make in sections:
        body = make(report)
        if body:
            parts += [f"## {title}", texts[key].strip(), body]
    return "\n\n".join(parts) + "\n"


def figures(report: Report, listed: Iterable[Mapping[str, Any]]) -> str:
    """Each published figure next to the values of heads and of the published hook."""
    rows = []
    for one in listed:
        found = [answer(report, one, hook) for hook in HOOKS]
        if any(found):
            rows.append([one["figure"], f"{one['published']} ({one['source']})", *found, one["why"].strip()])
    return table(["figure", "published", *HOOKS.values(), "why they differ"], rows) if rows else ""


def answer(report: Report, figure: Mapping[str, Any], hook: str) -> str:
    """What the claims of a figure say under one way of ablating; empty where there are none."""
    found = list(report.select(**{**figure["claims"], "ablation": hook}))
    if "layers" in figure:
        return share_of_layers(found, figure["layers"]["role"], figure["layers"]["first"], figure["layers"]["last"])
    values = [read(claim, figure["read"]) if "read" in figure else claim["estimate"] for claim in found]
    if figure.get("show") == "lowest":
        return min((number(v) for v in values if v is not None), key=float, default="")
    return over_seeds(values)


def share_of_layers(claims: Sequence[Claim], role: str, first: int, last: int) -> str:
    """Which share of all components with a role, over models, sits in these layers."""
    at = [layer_of(unit) for claim in claims for unit in claim["details"].get(role, [])]
    return f"{sum(first <= layer <= last for layer in at) / len(at):.0%} of {len(at)}" if at else ""


def agreement(report: Report) -> str:
    """Mean ρ over seeds by task, effect and normalisation × ablation; then the spread over seeds, and what noise allows."""
    rows = []
    for task in TASKS:
        for effect, effect_name in EFFECTS.items():
            for key, name in NORMALISATIONS.items():
                cells = [
                    over_seeds(c["estimate"] for c in rho(report, task, effect=effect, ablation=a, gradient_options=options(key)))
                    for a in ABLATIONS
                ]
                if any(cells):
                    rows.append([task, effect_name, name, *cells])
    parts = [table(["task", "measured by", "normalisation", *ABLATIONS.values()], rows)] if rows else []
    spread = []
    for task in TASKS:
        found = list(report.select(property="trajectory", task=task))
        if found:
            spread.append([task, *(cell(_of(found, ablation), mark=False) for ablation in ABLATIONS)])
    if spread:
        parts += ["Highest minus lowest ρ of the seeds, by loss, √parameters:", table(["task", *ABLATIONS.values()], spread)]
    for title, path in UNDER.items():
        rows = []
        for task in TASKS:
            cells = [over_seeds(read(c, path) for c in by_loss(report, task, a)) for a in ABLATIONS]
            if any(cells):
                rows.append([task, *cells])
        if rows:
            parts += [title, table(["task", *ABLATIONS.values()], rows)]
    return "\n\n".join(parts)


def _of(found: Iterable[Claim], ablation: str) -> Claim | None:
    """The trajectory of agreement under an ablation."""
    for claim in found:
        ((_, inner),) = claim["parameters"]["of"].items()
        if inner.get("ablation") == ablation:
            return claim
    return None


def variants(report: Report) -> str:
    """Mean ρ over seeds with another gradient side, another gradient batch, or the published lengths."""
    columns: dict[str, dict[str, Any]] = {
        "weight gradient, 64 at a time": {"gradient_options": options(batch=64)},
        "16 at a time": {"gradient_options": options()},
        "one at a time": {"gradient_options": options(batch=1)},
        **{method: {"gradient": method} for method in ("atp", "eap", "relp")},
    }
    rows = [
        [task, *(over_seeds(c["estimate"] for c in rho(report, task, ablation="mean", effect="loss", **w)) for w in columns.values())]
        for task in TASKS
    ]
    parts = [table(["task", *columns], rows)] if any(any(row[1:]) for row in rows) else []
    lengths = [
        [task, over_seeds(c["estimate"] for c in found), over_seeds(read(c, "accuracy") for c in found)]
        for task in TASKS
        if (found := rho(report, f"{task}-8-to-11", ablation="mean", effect="loss"))
    ]
    if lengths:
        parts += ["Lengths 8 to 11, the published ones:", table(["task", "ρ", "exact answers, intact"], lengths)]
    return "\n\n".join(parts)


def by_seed(report: Report) -> str:
    """ρ of each seed with its interval, by loss."""
    parts = []
    for task in TASKS:
        columns = [(a, n) for a in ABLATIONS for n in NORMALISATIONS]
        found = {
            (c["model"], a, n): c for a, n in columns for c in rho(report, task, effect="loss", ablation=a, gradient_options=options(n))
        }
        models = list(dict.fromkeys(model for model, _, _ in found))
        if not models:
            continue
        rows = [
            [model.partition("@")[2], _accuracy(found, model), *(cell(found.get((model, *c)), mark=False) for c in columns)]
            for model in models
        ]
        rows.append(["mean", "", *(over_seeds(found[m, *c]["estimate"] for m in models if (m, *c) in found) for c in columns)])
        head = [f"{ABLATIONS[a]}; {NORMALISATIONS[n]}" for a, n in columns]
        prompts = min(claim["n"] for claim in found.values())
        parts.append(f"{task.capitalize()}, C on {prompts} prompts a seed:\n\n" + table(["seed", "exact answers, intact", *head], rows))
    return "\n\n".join(parts)


def _accuracy(found: Mapping[tuple[str, str, str], Claim], model: str) -> str:
    known = [read(claim, "accuracy") for (name, _, _), claim in found.items() if name == model]
    return number(known[0]) if known and known[0] is not None else ""


def own(report: Report) -> str:
    """The claims with an expected verdict, and what came of them."""
    rows: dict[str, list[Claim]] = {}
    for claim in report.claims:
        if claim["expect"] != "measured":
            rows.setdefault(claim["claim"], []).append(claim)
    body = []
    for name, claims in rows.items():
        first = claims[0]
        values = over_seeds((c["estimate"] for c in claims), "tests")
        bound = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in first["bound"].items())
        as_expected = sum(bool(c["passed"]) for c in claims)
        body.append([name, first.get("description") or "", bound, first["expect"], values, f"{as_expected} of {len(claims)}"])
    return table(["claim", "what it says", "bound", "expected", "measured", "as expected"], body) if body else ""
