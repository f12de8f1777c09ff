"""Heroes and bloats: how many, where they sit, whether seeds agree, and what removing them costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from pytest_circuits.core.units import layer_of

from .claims import Claim, Report
from .gradient_seeds import EFFECTS, HOOKS, NORMALISATIONS, ROLES, TASKS, by_loss, options, over_seeds, read, seed
from .markdown import cell, number, table

WAYS = [(hook, key) for key in NORMALISATIONS for hook in HOOKS]
OFTEN = 4  # components named by how often they have a role


def roles(report: Report) -> str:
    """How many heroes and bloats a model has, by the published rule and by the sound one, and by chance."""
    rows, members = [], []
    for task in TASKS:
        for role, name in ROLES.items():
            for effect, key in (("loss", "sqrt_parameters"), ("accuracy", "sqrt_parameters"), ("loss", "none")):
                wanted = {"property": name, "task": task, "rule": "rank_gap", "effect": effect, "gradient_options": options(key)}
                found = {h: list(report.select(**wanted, ablation=h)) for h in HOOKS}
                if not any(found.values()):
                    continue
                start = [task, role, EFFECTS[effect], NORMALISATIONS[key]]
                chance = [p for claims in found.values() for c in claims if (p := read(c, "expected_by_chance")) is not None]
                cells = [over_seeds(c["estimate"] for c in claims) for claims in found.values()]
                rows.append([*start, *cells, number(mean(chance)) if chance else "", " / ".join(map(_unlikely, found.values()))])
                members.append([*start, *(cell for claims in found.values() for cell in (_mlps(claims, role), _most(claims, role)))])
    head = ["task", "role", "C by", "normalisation"]
    parts = []
    if rows:
        unlikely = "models with more than by chance (p < 0.05), heads / hook"
        who = [f"{name}: {what}" for name in HOOKS.values() for what in ("MLPs", "in how many models")]
        parts = [table([*head, *HOOKS.values(), "by chance", unlikely], rows)]
        parts += ["Which components they are, and how many are MLPs (one in five components is an MLP):", table([*head, *who], members)]
    sure = []
    for task in TASKS:
        for role, name in ROLES.items():
            claims = list(report.select(property=name, task=task, rule="certified"))
            if claims:
                ends = [[c["interval"][i] for c in claims if c["interval"]] for i in (0, 1)]
                sure.append([task, role, *(over_seeds(end) for end in ends), _most(claims, role)])
    if sure:
        parts += ["By the certified rule, by loss:", table(["task", "role", "surely", "possibly", "surely in how many models"], sure)]
    return "\n\n".join(parts)


def _mlps(claims: Sequence[Claim], role: str) -> str:
    """How many of all components with the role are MLPs."""
    names = [unit for c in claims for unit in c["details"].get(role, [])]
    return f"{sum(one.endswith('MLP') for one in names)} of {len(names)}" if claims else ""


def _unlikely(claims: Sequence[Claim]) -> str:
    known = [p for c in claims if (p := read(c, "chance_of_as_many")) is not None]
    return f"{sum(p < 0.05 for p in known)} of {len(known)}"


def _most(claims: Sequence[Claim], role: str) -> str:
    """The components that have the role in most models."""
    counts: dict[str, int] = {}
    for unit in (unit for c in claims for unit in c["details"].get(role, [])):
        counts[unit] = counts.get(unit, 0) + 1
    best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:OFTEN]
    return ", ".join(f"{unit} {count}" for unit, count in best) or ("none" if claims else "")


def layers(report: Report) -> str:
    """Each layer's share of all gradients and of all effects; then heroes and bloats of a layer, in a model."""
    profiles = []
    for task in TASKS:
        for hook, name in HOOKS.items():
            shown = [c["details"]["layer_profile"] for c in by_loss(report, task, hook) if "layer_profile" in c["details"]]
            if shown:
                sides = {"gradient": "G", "causal": "C"} if hook == "mean" else {"causal": "C"}
                profiles += [
                    [task, f"{label}, {name}" if side == "causal" else label, *_shares([s[side] for s in shown])]
                    for side, label in sides.items()
                ]
    parts = []
    if profiles:
        count = max(len(row) for row in profiles) - 2
        parts += ["Share of the sum over layers, mean over seeds:", table(["task", "", *(f"layer {i}" for i in range(count))], profiles)]
    places = []
    for task in TASKS:
        for role, name in ROLES.items():
            for hook, key in WAYS:
                wanted = {"task": task, "rule": "rank_gap", "effect": "loss", "ablation": hook, "gradient_options": options(key)}
                claims = list(report.select(property=name, **wanted))
                found = [c["details"][role] for c in claims if role in c["details"]]
                if found:
                    at = [layer_of(unit) for units in found for unit in units]
                    deep = max((len(c["details"]["layer_profile"]["causal"]) for c in claims if "layer_profile" in c["details"]), default=0)
                    places.append([task, role, _way(hook, key), *(number(at.count(i) / len(found)) for i in range(deep))])
    if places:
        count = max(len(row) for row in places) - 3
        parts += [
            "Number of components with the role in each layer, by the published rule and loss, mean over seeds:",
            table(["task", "role", "ablation; normalisation", *(f"layer {i}" for i in range(count))], places),
        ]
    return "\n\n".join(parts)


def _shares(profiles: Sequence[Sequence[float]]) -> list[str]:
    shares = [[v / sum(one) for v in one] for one in profiles if sum(one)]
    return [f"{mean(column):.0%}" for column in zip(*shares, strict=True)]


def stability(report: Report) -> str:
    """Mean ρ between seeds of each ranking; the components that most often have a role."""
    rankings = ("importance", "gap", "gradient")
    rows, often = [], []
    for task in TASKS:
        for hook, key in WAYS:
            wanted = {"property": "role_stability", "task": task, "ablation": hook, "gradient_options": options(key)}
            found = {r: report.one(**wanted, ranking=r) for r in rankings}
            if any(found.values()):
                rows.append([task, _way(hook, key), *(cell(found[r], mark=False) for r in rankings)])
            shown = next((c for c in found.values() if c is not None and "roles" in c["details"]), None)
            if shown is not None:
                named = shown["details"]["roles"]
                for role in ROLES:
                    counts = sorted(named[role]["counts"].items(), key=lambda item: (-item[1], item[0]))[:OFTEN]
                    chances = named[role]["chance_of_as_many"]
                    listed = ", ".join(f"{unit} {count} ({_chance(chances[unit])})" for unit, count in counts if count)
                    often.append([task, role, _way(hook, key), listed or "none", number(named[role]["expected_models"]), named["models"]])
    parts = [table(["task", "ablation; normalisation", "causal importance", "rank gap", "gradient"], rows)] if rows else []
    if often:
        who = "seeds in which a component has the role (p by chance)"
        head = ["task", "role", "ablation; normalisation", who, "by chance", "seeds"]
        parts += ["Which components have a role most often, by the published rule and loss:", table(head, often)]
    return "\n\n".join(parts)


def _way(hook: str, normalisation: str) -> str:
    return f"{HOOKS[hook]}; {NORMALISATIONS[normalisation]}"


def removal(report: Report) -> str:
    """What sets cost together and one by one, and the difference; mean over seeds, and seed by seed."""
    parts = []
    rows = []
    for task in TASKS:
        for role in ROLES:
            for hook, hook_name in HOOKS.items():
                wanted = {"task": task, "set": role, "ablation": hook, "effect": "accuracy"}
                joint = list(report.select(property="joint_ablation", control="none", **wanted))
                beyond = {w: list(report.select(property="superadditivity", against=w, **wanted)) for w in ("mean", "sum", "independence")}
                if joint or any(beyond.values()):
                    single = over_seeds(read(c, "mean_single.0") for c in beyond["mean"])
                    cells = [over_seeds(c["estimate"] for c in claims) for claims in (joint, *beyond.values())]
                    rows.append([task, role, hook_name, over_seeds(read(c, "set.size") for c in joint), cells[0], single, *cells[1:]])
    if rows:
        head = ["together", "mean single", "together − mean single", "together − sum", "together − independent"]
        parts += ["Exact answers lost:", table(["task", "set", "ablation", "components", *head], rows)]
    rows = []
    for task in TASKS:
        for role in ROLES:
            wanted = {"task": task, "set": role, "ablation": "mean", "effect": "loss", "against": "sum"}
            for claim in report.select(property="superadditivity", **wanted):
                if claim["estimate"] is not None:
                    d = claim["details"]
                    drops = (d["joint"]["loss"], d["sum_of_singles"]["loss"], d["mean_single"][0])
                    rows.append([task, role, seed(claim), ", ".join(d["set"]["units"]), *map(number, drops), cell(claim), _ratio(d)])
    if rows:
        head = ["together", "sum of singles", "mean single", "together − sum (✓: surely above 0)", "together / mean single"]
        parts += ["Nats lost, heads, mean ablation:", table(["task", "set", "seed", "components", *head], rows)]
    rows = []
    for claim in report.select(property="joint_ablation", control="c3_any"):
        if claim["estimate"] is not None:
            d = claim["details"]
            start = [claim["tasks"][0].partition("-")[0], claim["parameters"]["set"], seed(claim), ", ".join(d["set"]["units"])]
            rows.append([*start, number(d["drop"]), number(d["control"]["mean_drop"]), cell(claim)])
    if rows:
        head = ["task", "set", "seed", "components", "lost", "lost without random sets", "difference (✓: surely above 0)"]
        parts += ["Exact answers lost, compared with random sets of the same size:", table(head, rows)]
    return "\n\n".join(parts)


def _ratio(details: Mapping[str, Any]) -> str:
    ratio = details["joint_over_mean_single"]
    return "none" if ratio is None else number(ratio) + (" (denominator not clearly above 0)" if details["ratio_warning"] else "")


def _chance(p: float) -> str:
    return "p < 0.01" if p < 0.01 else f"p = {p:.2f}"
