"""Tables of the page on circuits of neurons. Each function takes a report and gives Markdown, or "" where the report has no such claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from .claims import Claim, Report, lookup
from .markdown import MARKS, cell, grid, number, table

METHODS = {
    "relp": "RelP",
    "ig_activations": "integrated gradients",
    "atp": "attribution patching",
    "gradient": "gradient × activation",
    "eap": "EAP",
    "eap_ig": "EAP-IG (inputs)",
    "exact": "exact patching",
}
SITES = {"mlp_activation": "MLP activations", "mlp_output": "MLP outputs"}
NEURONS = ("neuron_faithfulness", "neurons_to_reach")


def integer(value: float) -> str:
    """A count."""
    return f"{value:.0f}"


def fine(value: float) -> str:
    """Three significant digits, so that rounding errors differ from 0."""
    return f"{value:.2e}" if 0 < abs(value) < 0.01 else number(value)


def first(report: Report, **wanted: Any) -> Claim | None:
    """The first such claim: the same measurement may be under several claims, each with its own bound."""
    return next(report.select(**wanted), None)


def measured(report: Report, **wanted: Any) -> list[Claim]:
    """Such claims that have a number."""
    return [claim for claim in report.select(**wanted) if claim["estimate"] is not None]


def unpaired(claim: Claim) -> bool:
    """Whether scores had a zero baseline instead of the corrupt prompt."""
    return bool(claim["parameters"]["attribution_options"].get("unpaired", False))


def method(claim: Claim) -> str:
    """The name of the method that ranked."""
    name = str(claim["parameters"]["attribution"])
    return METHODS.get(name, name) + (", zero baseline" if unpaired(claim) else "")


def distinct(values: Iterable[Any]) -> list[Any]:
    """Without repeats, in order of appearance."""
    return list(dict.fromkeys(values))


def blocks(found: Sequence[Claim], *keys: str) -> Iterator[tuple[tuple[Any, ...], Report]]:
    """The claims by the values of `keys`, each part a report of its own."""
    for values in distinct(tuple(lookup(claim, key) for key in keys) for claim in found):
        yield values, Report(tuple(c for c in found if tuple(lookup(c, key) for key in keys) == values), {})


def titled(parts: Iterable[tuple[str, str]]) -> str:
    """Tables, each under its title."""
    return "\n\n".join(f"**{title}**\n\n{body}" for title, body in parts if body)


def rows_of(found: Iterable[Claim], *values: Callable[[Claim], Any]) -> list[tuple[Any, ...]]:
    """Distinct rows of a table, by what `values` say of its claims; those of equal first value stand together."""
    rows = distinct(tuple(value(claim) for value in values) for claim in found)
    firsts = distinct(row[0] for row in rows)
    return sorted(rows, key=lambda row: firsts.index(row[0]))


def model(claim: Claim) -> str:
    """The model's name."""
    return str(claim["model"])


def task(claim: Claim) -> str:
    """The first task's name."""
    return str(lookup(claim, "task"))


def _paired(report: Report, **wanted: Any) -> list[Claim]:
    return [c for c in report.select(**wanted) if not unpaired(c)]


def faithfulness(report: Report) -> str:
    """Faithfulness over circuit size, a table for each task and site, all other neurons ablated to zero."""
    return titled(
        (f"{t}, {SITES[site]}", _over_size(part.claims, lambda claim: cell(claim)))
        for (t, site), part in blocks(_paired(report, property="neuron_faithfulness", ablation="zero"), "task", "site")
    )


def completeness(report: Report) -> str:
    """Completeness over circuit size, from the same measurements, and the claims that are about it."""
    curves = [
        (f"{t}, {SITES[site]}, without the circuit", _over_size(part.claims, _complete))
        for (t, site), part in blocks(_paired(report, property="neuron_faithfulness", ablation="zero"), "task", "site")
    ]
    about = list(report.select(property="neuron_completeness"))
    found = [
        [model(c), task(c), SITES[c["parameters"]["site"]], c["parameters"]["neurons"], f"{cell(c)}"]
        for c in about
        if c["expect"] == "measured"
    ]
    claims = table(["model", "task", "site", "neurons", "completeness"], found) if found else ""
    return titled([("Claims about completeness", claims), *curves])


def _complete(claim: Claim) -> str:
    if claim["estimate"] is None:
        return cell(claim)
    low, high = claim["details"]["completeness_interval"]
    return f"{number(claim['details']['completeness'])} [{number(low)}, {number(high)}]"


def _over_size(found: Sequence[Claim], show: Callable[[Claim], str]) -> str:
    """Rows: model and method; columns: what there is, what is right without any neuron, and circuit sizes."""
    sizes = sorted({c["parameters"]["neurons"] for c in found if isinstance(c["parameters"]["neurons"], int)})
    body = []
    for name, how in rows_of(found, model, method):
        here = {c["parameters"]["neurons"]: c for c in reversed(found) if (model(c), method(c)) == (name, how)}
        known = next((c["details"] for c in here.values() if c["estimate"] is not None), None)
        about = ["", ""] if known is None else [known["universe"], number(known["accuracy_nothing"])]
        body.append([name, how, *about, *(show(here[size]) if size in here else "" for size in sizes)])
    return table(["model", "ranked by", "of", "accuracy without any", *map(str, sizes)], body) if body else ""


def reach(report: Report) -> str:
    """How many neurons reach faithfulness 0.9, by task."""
    found = _paired(report, property="neurons_to_reach")
    tasks, body = distinct(map(task, found)), []
    for row in rows_of(found, model, lambda c: c["parameters"]["site"], method, lambda c: c["parameters"]["ablation"]):
        here = [c for c in found if (model(c), c["parameters"]["site"], method(c), c["parameters"]["ablation"]) == row]
        universe = next((c["details"]["universe"] for c in here if "universe" in c["details"]), "")
        name, site, how, kind = row
        cells = [cell(next((c for c in here if task(c) == t), None), show=integer) for t in tasks]
        body.append([name, SITES[site], universe, how, kind, *cells])
    return table(["model", "site", "of", "ranked by", "ablation", *tasks], body) if body else ""


def sparsity(report: Report) -> str:
    """MLP outputs against MLP activations, with the largest ratio that a model's outputs allow."""
    body: list[list[str]] = []
    for c in _paired(report, property="sparsity_ratio"):
        if any(r[:4] == [model(c), task(c), method(c), c["parameters"]["ablation"]] for r in body):
            continue
        if c["estimate"] is None:
            body.append([model(c), task(c), method(c), c["parameters"]["ablation"], "", "", cell(c), "", ""])
            continue
        activations, outputs = c["details"]["mlp_activation"], c["details"]["mlp_output"]
        counts = [f"{side['neurons']} of {side['universe']}" for side in (activations, outputs)]
        most = outputs["universe"] / activations["neurons"]
        shares = number(c["details"]["ratio_of_shares"])
        body.append([model(c), task(c), method(c), c["parameters"]["ablation"], *counts, cell(c), number(most), shares])
    head = ["model", "task", "ranked by", "ablation", "activations", "outputs", "ratio", "at most", "ratio of shares"]
    return table(head, body) if body else ""


def passes(claim: Claim) -> tuple[float, float] | None:
    """Forward and backward passes of one prompt that the scores of an example cost."""
    found: Mapping[str, float] | None = claim["details"].get("attribution_passes")
    return None if found is None else (found["forwards"], found["backwards"])


def passes_text(claim: Claim) -> str:
    """`2 + 1`."""
    found = passes(claim)
    return "" if found is None else " + ".join(f"{count:g}" for count in found)


def cost(report: Report) -> str:
    """Passes for each example, and how far that goes: neurons for faithfulness 0.9 on the first task."""
    found = [c for c in measured(report, property=NEURONS, site="mlp_activation") if passes(c) is not None]
    body = []
    for name, how in rows_of(found, model, method):
        one = next(c for c in found if (model(c), method(c)) == (name, how))
        base = next((c for c in found if model(c) == name and method(c) == METHODS["relp"]), None)
        mine, theirs = passes(one), None if base is None else passes(base)
        times = "" if mine is None or theirs is None else f"{sum(mine) / sum(theirs):.3g} ×"
        counts = [
            c for c in report.select(property="neurons_to_reach", model=name, site="mlp_activation", ablation="zero") if method(c) == how
        ]
        body.append([name, how, passes_text(one), times, ", ".join(f"{task(c)}: {cell(c, mark=False, show=integer)}" for c in counts)])
    return (
        table(["model", "scores by", "forward + backward passes an example", "against RelP", "neurons for faithfulness 0.9"], body)
        if body
        else ""
    )


def pairs(report: Report) -> str:
    """Scores from the corrupt prompt or from zero, under each kind of ablation."""
    found = [
        c
        for c in report.select(property="neuron_faithfulness", site="mlp_activation")
        if "unpaired" in c["parameters"]["attribution_options"]
    ]
    parts = []
    for (name, size), part in blocks(found, "model", "neurons"):
        kinds, body = part.values("ablation"), []
        for t, how in rows_of(part.claims, task, method):
            here = {c["parameters"]["ablation"]: c for c in part.claims if (task(c), method(c)) == (t, how)}
            body.append([t, how, *(cell(here.get(kind)) for kind in kinds)])
        parts.append((f"{name}, faithfulness of {size} MLP activations", table(["task", "scores", *kinds], body)))
    return titled(parts)


def cmd(report: Report) -> str:
    """CMD by level and model: methods × tasks, random rankings, and what the grid can reach."""
    return _areas(report, "cmd", "lowest possible", lambda d: d["lowest"])


def cpr(report: Report) -> str:
    """CPR by level and model: methods × tasks, random rankings, and what the grid can reach."""
    return _areas(report, "cpr", "1 at every size", lambda d: d["grid"]["reachable"])


def _areas(report: Report, name: str, limit: str, of: Callable[[Mapping[str, Any]], float]) -> str:
    parts = []
    for (level, where, kind), part in blocks(list(report.select(property=name)), "level", "model", "ablation"):
        tasks = part.values("task")
        every = [first(part, task=t) if not measured(part, task=t) else measured(part, task=t)[0] for t in tasks]
        details = [None if c is None or c["estimate"] is None else c["details"] for c in every]
        made = grid(distinct(map(method, part.claims)), tasks, lambda how, t, part=part: _by(part, how, t), "ranked by")  # type: ignore[misc]
        ends = [
            ["*random rankings*", *(chance(d) for d in details)],
            [f"*{limit}*", *("" if d is None else f"{of(d):.3f}" for d in details)],
        ]
        universe = next((d["universe"] for d in details if d), None)
        several = "" if universe is None else f", {universe} {level}s"
        parts.append((f"{where}{several}, {kind} ablation", made + "\n" + table(["", *tasks], ends).split("\n", 2)[2]))
    return titled(parts)


def _by(part: Report, how: str, t: str) -> Claim | None:
    return next((c for c in part.select(task=t) if method(c) == how), None)


def chance(details: Mapping[str, Any] | None) -> str:
    """What random rankings score: mean ± standard deviation over rankings."""
    if details is None or "mean" not in details["chance"]:
        return ""
    found = details["chance"]
    spread = f" ± {number(found['standard_deviation'])}" if "standard_deviation" in found else ""
    return f"{number(found['mean'])}{spread}"


def ranks(report: Report, name: str = "relp") -> list[tuple[str, str, str, int, int, Claim, Claim]]:
    """(model, level, task, rank of a method by CMD, methods, its claim, the best claim), where it was measured next to others."""
    found = []
    for (where, level, _, t), part in blocks(measured(report, property="cmd"), "model", "level", "ablation", "task"):
        order = sorted({lookup(c, "attribution"): c for c in part.claims}.values(), key=lambda c: c["estimate"])
        names = [lookup(c, "attribution") for c in order]
        if name in names and len(order) > 1:
            place = names.index(name)
            found.append((where, level, t, place + 1, len(order), order[place], order[0]))
    return found


def best(report: Report) -> str:
    """RelP among the methods by CMD."""
    body = [
        [where, t, f"{place} of {of}", cell(mine, mark=False), method(top), cell(top, mark=False)]
        for where, _, t, place, of, mine, top in ranks(report)
    ]
    return table(["model", "task", "rank of RelP", "RelP", "best", "its CMD"], body) if body else ""


def conservation(report: Report) -> str:
    """The largest error of any task at each boundary, and the claims' own estimates."""
    found = measured(report, property="conservation")
    boundaries: list[str] = max((c["details"]["boundaries"] for c in found), key=len, default=[])
    body, claims = [], []
    for (name, rules), part in blocks(found, "model", "rules"):
        errors = [dict(zip(c["details"]["boundaries"], c["details"]["errors"], strict=True)) for c in part.claims]
        worst = {b: max(e[b] for e in errors) for b in errors[0]}
        body.append([name, rules, part.claims[0]["details"]["dtype"], *(fine(worst[b]) if b in worst else "" for b in boundaries)])
    every = list(report.select(property="conservation"))
    tasks = distinct(map(task, every))
    for (name, rules), part in blocks(every, "model", "rules"):
        claims.append([name, rules, *(cell(first(part, task=t), show=fine) for t in tasks)])
    return titled(
        [
            ("Largest gap of any boundary", table(["model", "rules", *tasks], claims) if claims else ""),
            ("Largest gap of any task, at each boundary", table(["model", "rules", "computed in", *boundaries], body) if body else ""),
        ]
    )


WATCHED = {("answer", None): "the answer", ("foils", None): "other capitals", ("answer", "states"): "the state"}


def watched(claim: Claim) -> str:
    """What a steering claim watches, in words."""
    what, where = claim["parameters"]["watch"], claim["parameters"]["watch_task"]
    return WATCHED.get((what, where)) or f"{what} of task {where}"


def steering(report: Report) -> str:
    """The curves over all factors, and the claims with their intervals."""
    found = list(report.select(property="steering"))
    claims = []
    for name, what, size, against in rows_of(
        found, model, watched, lambda c: c["parameters"]["neurons"], lambda c: c["parameters"]["against"]
    ):
        here = [
            c
            for c in found
            if (model(c), watched(c), c["parameters"]["neurons"], c["parameters"]["against"]) == (name, what, size, against)
        ]
        by_factor = {c["parameters"]["factor"]: c for c in reversed(here)}
        claims.append((name, what, size, against, by_factor))
    factors = sorted({f for row in claims for f in row[-1]})
    body = [[*row[:-1], *(cell(row[-1].get(f)) for f in factors)] for row in claims]
    head = ["model", "probability of", "neurons", "against", *(f"× {f:g}" for f in factors)]
    return titled([*_curves(report), ("Change of the probability", table(head, body) if body else "")])


def _curves(report: Report) -> Iterator[tuple[str, str]]:
    """Mean probabilities and accuracy by factor, for each model and cluster size."""
    for (name, size), part in blocks(measured(report, property="steering"), "model", "neurons"):
        curve = part.claims[0]["details"]["curve"]
        factors = [point["factor"] for point in curve]
        rows: dict[str, list[Any]] = {
            "accuracy": [p["accuracy"] for p in curve],
            "the answer": [p["answer"] for p in curve],
            "other capitals": [p["foils"] for p in curve],
        }
        for claim in part.claims:
            points = {p["factor"]: p for p in claim["details"]["curve"]}
            rows.setdefault(watched(claim), [points[f]["watched"] if f in points else None for f in factors])
            if watched(claim) == "the answer":
                rows.setdefault("the answer, a random cluster", [points[f]["watched_control"] if f in points else None for f in factors])
        body = [[what, *("" if v is None else number(v) for v in values)] for what, values in rows.items()]
        layers = ", ".join(f"layer {i}: {n}" for i, n in enumerate(part.claims[0]["details"]["cluster"]["per_layer"]))
        yield f"{name}, a cluster of {size} neurons ({layers})", table(["", *(f"× {f:g}" for f in factors)], body)


def own(found: Iterable[Claim], bound: Callable[[Mapping[str, Any]], str]) -> str:
    """Claims of this repository: bound, number and verdict; negative controls expect to be refuted."""
    body = []
    for c in found:
        verdict = f"{MARKS[c['verdict']]} {c['verdict']}" + (", as expected" if c["passed"] and c["expect"] != "certified" else "")
        show = fine if c["property"] == "conservation" else number
        body.append([c["claim"], model(c), task(c), bound(c["bound"]), cell(c, mark=False, show=show), verdict])
    return table(["claim", "model", "task", "bound", "measured", "verdict"], body) if body else ""
