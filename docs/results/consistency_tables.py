"""Tables of the page on consistency and specificity. Each function takes a report and gives Markdown, or "" where it has no such claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .claims import Claim, Report, lookup
from .markdown import cell, grid, number, short_reason, table


def said(claim: Claim, key: str) -> str:
    """A field or parameter in a word or two."""
    value = lookup(claim, key)
    if key == "tasks":
        return pair(claim) if claim["property"] == "jaccard" else str(value[0])
    if key == "circuit":
        return f"without the set of {(value or {'task': claim['tasks'][0]})['task']}"
    return f"K = {value}" if key == "size" else str(value)


def pair(claim: Claim) -> str:
    """The two tasks that an overlap or a decomposition is about; tasks to contrast with come after them."""
    return " and ".join(claim["tasks"][:2])


def titled(parts: Iterable[tuple[str, str]]) -> str:
    """Tables, each under its title."""
    return "\n\n".join(f"**{title}**\n\n{body}" for title, body in parts if body)


def _blocks(report: Report, key: str, **wanted: Any) -> Iterable[tuple[Any, Report]]:
    """The selected claims by a field, each part a report of its own."""
    found = Report(tuple(report.select(**wanted)), {})
    for value in found.values(key):
        yield value, Report(tuple(found.select(**{key: value})), {})


def _grid(report: Report, row: str, column: str, show_row: Callable[[Any], str] = str, show_column: Callable[[Any], str] = str) -> str:
    """All claims of a report by two of their fields; the first where several fit."""
    rows, columns = report.values(row), report.values(column)
    names = {show_row(value): value for value in rows}
    heads = {show_column(value): value for value in columns}

    def find(r: str, c: str) -> Claim | None:
        return next(report.select(**{row: names[r], column: heads[c]}), None)

    return grid(list(names), list(heads), find, corner=row)


def _p(value: float) -> str:
    return f"P = {value:.0%}"


def _k(value: str) -> str:
    return f"K = {value}"


# --- consistency


def reuse_over_size_and_p(report: Report) -> str:
    """Rows: task and K; columns: P."""
    body = []
    found = Report(tuple(report.select(claim="reuse-over-size-and-p")), {})
    shares = found.values("p")
    for task in found.values("task"):
        for size in found.values("size"):
            cells = [cell(found.one(task=task, size=size, p=p)) for p in shares]
            known = next((c for c in found.select(task=task, size=size) if c["estimate"] is not None), None)
            body.append([task, size, "" if known is None else known["details"]["circuit_size"], *cells])
    where = ", ".join(found.values("model"))
    return titled([(f"Reuse over K and P, {where}", table(["task", "K", "components", *map(_p, shares)], body) if body else "")])


def reuse_over_p(report: Report) -> str:
    """A table for each of the other models."""
    return titled(
        (f"Reuse over P, {model}, K = {part.claims[0]['parameters']['size']}", _grid(part, "task", "p", show_column=_p))
        for model, part in _blocks(report, "model", claim="reuse-over-p")
    )


def reuse_over_n(report: Report) -> str:
    """Rows: model and task; columns: number of prompts, half of them for discovery."""
    body, sizes = [], []
    found: dict[tuple[str, str], dict[int, Claim]] = {}
    for claim in report.select(claim="reuse-over-n"):
        name = claim["tasks"][0].partition("-")[0]
        n = claim["details"].get("examples", claim["n"])
        found.setdefault((claim["model"], name), {})[n] = claim
        sizes.append(n)
    for (model, task), row in found.items():
        body.append([model, task, *(cell(row.get(n)) for n in sorted(set(sizes)))])
    head = ["model", "task", *(f"n = {n}" for n in sorted(set(sizes)))]
    return titled([("Reuse over the number of prompts, half of them for discovery", table(head, body) if body else "")])


def reuse_in_context(report: Report) -> str:
    """At the published setting: next to chance, the noise ceiling and the sets of other tasks."""
    found = [claim for claim in report.select(claim="reuse-at-the-published-setting") if claim["estimate"] is not None]
    others = sorted({task for claim in found for task in claim["details"]["beside"]})
    body = []
    for claim in found:
        d = claim["details"]
        reuse_of_others = [_maybe(d["beside"].get(task, {}).get("reuse")) for task in others]
        units = ", ".join(d["shared_set"]["units"]) or "empty"
        body.append([claim["tasks"][0], cell(claim), _maybe(d["chance"]), _maybe(d["noise_ceiling"]), *reuse_of_others, units])
    head = ["task", "reuse", "random sets", "noise ceiling", *(f"set of {task}" for task in others), "shared set"]
    return titled([("Reuse compared with that of other sets, K = 10 %, P = 95 %", table(head, body) if body else "")])


def stability(report: Report) -> str:
    """The same set from other examples, and by another method."""
    rows = [("same-set-by-other-examples", "in two halves of the examples"), ("same-set-by-another-method", "by node attribution (atp)")]
    tasks = report.values("task", property="stability")
    body = [[how, *(cell(report.one(claim=claim, task=task)) for task in tasks)] for claim, how in rows if any(report.select(claim=claim))]
    return titled([("Jaccard index of the shared set with one selected in another way", table(["selected", *tasks], body) if body else "")])


# --- necessity


def necessity_by_control(report: Report) -> str:
    """Rows: model and control; columns: task."""
    found = Report(tuple(report.select(claim=("against-each-control", "against-two-controls", "against-any", "against-parity"))), {})
    tasks, body = found.values("task"), []
    for model in found.values("model"):
        for control in found.values("control"):
            row = {claim["tasks"][0]: claim for claim in found.select(model=model, control=control)}
            if row:
                body.append([model, control, *(cell(row.get(task)) for task in tasks)])
    return titled(
        [
            ("Necessity against each control, a share of the intact accuracy", table(["model", "control", *tasks], body) if body else ""),
            ("Details, llama-8layers", _behind_necessity(found)),
        ]
    )


def _behind_necessity(found: Report) -> str:
    """Accuracies, and the rank of the set among its controls."""
    body = []
    for claim in found.select(model="llama-8layers"):
        if claim["estimate"] is None:
            continue
        d = claim["details"]
        rank = f"none: {d['control']['distinct_sets']} possible" if d["rank_p"] is None else number(d["rank_p"])
        types = f"{d['shared_set']['heads']} heads, {d['shared_set']['mlps']} MLPs"
        values = [number(d[key]) for key in ("accuracy", "accuracy_without_shared_set", "accuracy_without_control")]
        body.append([claim["tasks"][0], d["control"]["rule"], types, *values, rank])
    head = ["task", "control", "shared set", "accuracy", "without the set", "without a control", "rank p"]
    return table(head, body) if body else ""


def necessity_over_size(report: Report) -> str:
    """Rows: task; columns: K."""
    found = Report(tuple(report.select(claim="necessity-over-size")), {})
    return titled([("Necessity over K, control c3_parity", _grid(found, "task", "size", show_column=_k) if found.claims else "")])


def necessity_by_ablation(report: Report) -> str:
    """Rows: task; columns: what removed components are replaced with; zero is from the study of controls."""
    found = list(report.select(claim="necessity-by-other-ablations"))
    models = {claim["model"] for claim in found}
    zero = [c for c in report.select(claim="against-each-control", control="c3_parity") if c["model"] in models]
    part = Report(tuple(zero + found), {})
    return titled([("Necessity by ablation, control c3_parity", _grid(part, "task", "ablation") if found else "")])


def sufficiency(report: Report) -> str:
    """What is left when all but the set is removed."""
    body = []
    for claim in report.select(claim="keeping-the-shared-set"):
        if claim["estimate"] is None:
            body.append([claim["model"], claim["tasks"][0], cell(claim), "", "", ""])
            continue
        d = claim["details"]
        values = [number(d[key]) for key in ("accuracy_kept", "accuracy_keeping_control", "accuracy_keeping_nothing")]
        body.append([claim["model"], claim["tasks"][0], cell(claim), *values])
    head = ["model", "task", "set minus control", "only the set kept", "only a control kept", "nothing kept"]
    return titled([("Keeping only the shared set, K = 30 %, in accuracy points", table(head, body) if body else "")])


# --- specificity


def overlap(report: Report) -> str:
    """Each pair next to chance level and noise ceilings."""
    return titled((f"Jaccard index, {model}", _pairs(part)) for model, part in _blocks(report, "model", claim="overlap"))


def _pairs(part: Report) -> str:
    body = []
    for claim in part.claims:
        if claim["estimate"] is None:
            body.append([pair(claim), cell(claim), "", "", ""])
            continue
        d = claim["details"]
        ceiling = ", ".join(_maybe(value) for value in d["noise_ceiling"].values())
        sizes = ", ".join(f"{one['heads']} + {one['mlps']}" for one in d["shared_sets"].values())
        chance = d["chance"]
        levels = f"{number(chance['by_type']['mean'])}, {number(chance['by_type_and_layer']['mean'])}"
        body.append([pair(claim), cell(claim), levels, ceiling, sizes])
    return table(["tasks", "Jaccard", "chance: by type, by type and layer", "ceiling: first, second", "heads + MLPs: first, second"], body)


def overlap_beyond_counting(report: Report) -> str:
    """Minus the chance level."""
    body = [[claim["model"], pair(claim), cell(claim)] for claim in report.select(claim="overlap-beyond-counting")]
    return titled([("Jaccard index minus chance level by type", table(["model", "tasks", "difference"], body) if body else "")])


def cross_task(report: Report) -> str:
    """A matrix for each model: rows, the set that is removed; columns, the task that is measured."""
    return titled(
        (f"Share of accuracy lost, {model}", _matrix(part, [c["circuit"]["task"] for c in map(_parameters, part.claims)]))
        for model, part in _blocks(report, "model", claim="cross-task")
    )


def _matrix(part: Report, sources: Sequence[str]) -> str:
    tasks = part.values("task")
    by_source = {(source, claim["tasks"][0]): claim for source, claim in zip(sources, part.claims, strict=True)}
    body = []
    for source in dict.fromkeys(sources):
        found = by_source.get((source, source))
        size = "" if found is None or found["estimate"] is None else found["details"]["shared_sets"][source]["size"]
        body.append([source, size, *(cell(by_source.get((source, task))) for task in tasks)])
    return table(["set of", "components", *(f"on {task}" for task in tasks)], body)


def specificity(report: Report) -> str:
    """Drop by a task's own set minus mean drop by the sets of the others."""
    return titled([("Specificity: own set minus mean of the others, in accuracy points", _specific(report, "specificity-of-"))])


def _specific(report: Report, prefix: str) -> str:
    found = Report(tuple(c for c in report.select(property="specificity") if c["claim"].startswith(prefix)), {})
    return _grid(found, "model", "task") if found.claims else ""


def contrastive(report: Report) -> str:
    """Specificity of contrastive circuits, and sizes of their sets."""
    body = []
    for claim in report.select(property="specificity"):
        if claim["claim"].startswith("contrastive-specificity-of-") and claim["estimate"] is not None:
            plain = report.one(claim=claim["claim"].removeprefix("contrastive-"), model=claim["model"])
            sizes = ", ".join(f"{task} {one['heads']} + {one['mlps']}" for task, one in claim["details"]["shared_sets"].items())
            body.append([claim["model"], claim["tasks"][0], cell(claim), cell(plain), sizes])
    head = ["model", "task", "contrastive, P = 50 %", "plain, P = 80 %", "contrastive sets, heads + MLPs"]
    return titled([("Specificity of contrastive circuits, in accuracy points", table(head, body) if body else "")])


def contrastive_overlap(report: Report) -> str:
    """Overlap of contrastive sets."""
    return titled(
        (f"Jaccard index of contrastive sets, {model}", _pairs(part))
        for model, part in _blocks(report, "model", claim="contrastive-overlap")
    )


def parts(report: Report) -> str:
    """Each part: size, and what it costs each task."""
    body = []
    for claim in report.select(claim=("parts", "parts-against-controls")):
        part = claim["parameters"]["part"]
        if claim["estimate"] is None:
            body.append([claim["model"], claim["parameters"]["size"], part, "", "", "", cell(claim), ""])
            continue
        d = claim["details"]
        sizes = {name: len(units) for name, units in d["parts"].items()}
        whole = sizes["core"] + sizes["complementary" if part == "complementary" else "specific"]
        drops = ", ".join(f"{task} {number(one['drop'])}" for task, one in d["measured_on"].items())
        controls = [f"{task} {number(one['control']['necessity'])}" for task, one in d["measured_on"].items() if "control" in one]
        units = f"{d['part']['heads']} + {d['part']['mlps']}"
        body.append(
            [
                claim["model"],
                claim["parameters"]["size"],
                part,
                units,
                f"{sizes[part] / whole:.0%}",
                drops,
                cell(claim),
                ", ".join(controls),
            ]
        )
    head = ["model", "K", "part", "heads + MLPs", "of its set", "accuracy lost", "selectivity", "more than a control"]
    where = next(map(pair, report.select(claim="parts")), "")
    return titled([(f"Parts of the shared sets of {where}, each removed alone", table(head, body) if body else "")])


# --- composition and layers


def composition_over_size(report: Report) -> str:
    """Share of MLPs over K."""
    found = Report(tuple(report.select(claim="composition-over-size")), {})
    where = ", ".join(found.values("model"))
    return titled([(f"Share of MLPs in a circuit over K, {where}", _grid(found, "task", "size", show_column=_k) if found.claims else "")])


def composition(report: Report) -> str:
    """Share of MLPs in the other models, and shares of all heads and of all MLPs."""
    body = []
    for claim in report.select(property="composition"):
        if claim["parameters"]["size"] != "20%" or claim["estimate"] is None:
            continue
        d = claim["details"]
        shares = [f"{d['means'][key]:.0%}" for key in ("head_share_of_heads", "mlp_share_of_mlps")]
        body.append([claim["model"], claim["tasks"][0], cell(claim), number(d["chance"]["mlp_share"]), *shares])
    head = ["model", "task", "MLPs in a circuit", "random circuit", "of all heads", "of all MLPs"]
    return titled([("Composition at K = 20 %", table(head, body) if body else "")])


def layers(report: Report) -> str:
    """Thirds of the depth, and each layer."""
    body = []
    for claim in report.select(claim="early-layers"):
        if claim["estimate"] is None:
            body.append([claim["model"], claim["tasks"][0], cell(claim), "", "", "", ""])
            continue
        d = claim["details"]
        rest = [number(d["thirds"][key]) for key in ("middle", "late")]
        each = " ".join(f"{share:.0%}" for share in d["share_per_layer"]["count"])
        body.append([claim["model"], claim["tasks"][0], cell(claim), number(d["chance"]), *rest, each])
    head = ["model", "task", "early third", "random circuit", "middle", "late", "layer by layer"]
    return titled([("Share of a circuit by depth, K = 20 %", table(head, body) if body else "")])


# --- training


def accuracy_over_training(report: Report) -> str:
    """Curves of accuracy."""
    return _curves(report, "accuracy", "Accuracy over training")


def reuse_over_training(report: Report) -> str:
    """Curves of reuse, and the claims about their shapes."""
    return _curves(report, "reuse", "Reuse over training")


def composition_over_training(report: Report) -> str:
    """Curves of the share of MLPs."""
    return _curves(report, "composition", "Share of MLPs in a circuit over training")


def overlap_over_training(report: Report) -> str:
    """Curves of Jaccard indices."""
    return _curves(report, "jaccard", "Jaccard index over training")


def necessity_over_training(report: Report) -> str:
    """Curves of necessity."""
    return _curves(report, "necessity", "Necessity over training, control c3_any, in accuracy points")


SHAPES = {
    "peaks_before": "peak before step {at:g} minus peak after",
    "no_drop": "largest drop",
    "emerges_by": "lowest from step {at:g} on",
    "spread": "highest minus lowest",
}


def _curves(report: Report, of: str, title: str) -> str:
    """Rows: tasks; columns: steps. Below: what is claimed of the shapes."""
    found = [c for c in report.select(property="trajectory") if of in c["parameters"]["of"]]
    steps = sorted({point["at"] for claim in found for point in claim["details"].get("curve", ())})
    rows, shapes = {}, []
    for claim in found:
        name, p = " and ".join(claim["tasks"]), claim["parameters"]
        if "curve" in claim["details"]:
            points = {point["at"]: point for point in claim["details"]["curve"]}
            rows.setdefault(name, [name, *(_point(points[at]) for at in steps)])
        shapes.append([name, SHAPES[p["shape"]].format(at=p["at"] or 0), cell(claim)])
    if not rows:
        return ""
    curve = table(["task", *(f"step {at:g}" for at in steps)], rows.values())
    return titled([(title, curve), (f"{title}: shapes", table(["task", "shape", "value"], shapes))])


GATES = {"below min_accuracy": "cannot do it", "not clearly above": "hardly above chance"}


def _point(point: Any) -> str:
    if point["value"] is None:
        gate = [word for sign, word in GATES.items() if sign in point["reason"]]
        return f"— ({gate[0] if gate else short_reason(point['reason'], 40)})"
    low, high = point["interval"]
    return f"{number(point['value'])} [{number(low)}, {number(high)}]"


def _parameters(claim: Claim) -> Any:
    return claim["parameters"]


def _maybe(value: float | None) -> str:
    return "" if value is None else number(value)
