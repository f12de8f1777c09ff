"""How well each circuit of a run is supported, from its certified claims alone. There is nothing to set.

A circuit is what one model, task, way of ranking and cut give: the shared set S_P of component circuits, or the strongest neurons.

| tier | asks for |
|---|---|
| proposed | a measurement that the circuit comes from: attribution only |
| suggestive | certified necessity |
| supported | and certified two-sided faithfulness under at least two kinds of ablation |
| triangulated | and certified stability and certified specificity |

What counts, of claims with the verdict `certified` whatever their test expects:

- necessity: `necessity` of the task's own set with a bound from below, 0 or higher, and an interval above 0. Of neurons:
  `neuron_completeness` with a bound from above of 0.5 or lower: without the circuit at most half is left.
- faithfulness: `sufficiency` of the task's own set with `definition: relative` and `control: none`, or `neuron_faithfulness`, `within`
  bounds that have 1 between them and lie in [0.5, 1.5]. Options of a kind of ablation do not make another kind.
- stability: `stability` with a bound from below of at least 0.5, or with `over_chance: true` of at least 0 and an interval above 0.
- specificity: `specificity` with a bound from below, 0 or higher, and an interval above 0.

There is no stability and no specificity of neuron circuits yet, so that these can be supported at most. Claims of these kinds that were
refuted are named; they do not lower a tier, since a bound may also be refuted for being too strict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

TIERS = ("proposed", "suggestive", "supported", "triangulated")
ABLATIONS = 2
"""Kinds of ablation under which a supported circuit must be faithful."""
MOST = 8
"""Circuits that the terminal shows."""
LOWEST, HIGHEST = 0.5, 1.5
_COMMON = ("attribution", "attribution_options", "metric", "split", "split_seed")
_SHARED = ("size", "threshold", "rounding", "p", "contrast", "contrast_by")
_NEURONS = ("neurons", "site")
_TWO = ("jaccard", "decomposition")  # properties about the circuits of two tasks alike, which their tasks begin with
_WANTED = {
    "necessity": ("a certified necessity", "a certified neuron_completeness of at most 0.5"),
    "faithfulness": (
        "certified sufficiency (definition: relative, control: none) within bounds around 1, in [0.5, 1.5], under {more}",
        "certified neuron_faithfulness within bounds around 1, in [0.5, 1.5], under {more}",
    ),
    "stability": ("a certified stability of at least 0.5, or over chance", "stability, which neuron circuits have no property for"),
    "specificity": ("a certified specificity", "specificity, which neuron circuits have no property for"),
}


def tiers(claims: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One entry for each circuit that claims with an estimate are about, in the order of the claims: what it is, its tier, the claims
    that it rests on, what is missing for the next tier, and claims of these kinds that were refuted.
    """
    found: dict[str, dict[str, Any]] = {}
    for claim in claims:
        for circuit in _circuits(claim) if claim["estimate"] is not None else ():
            entry = found.setdefault(
                json.dumps(circuit, sort_keys=True),
                {**circuit, "evidence": {"necessity": [], "faithfulness": {}, "stability": [], "specificity": []}, "refuted": []},
            )
            _add(entry, claim)
    return [_rated(entry) for entry in found.values()]


def lines(circuits: list[dict[str, Any]]) -> list[str]:
    """For the terminal: circuits above proposed, the best first; none where there are none."""
    above = sorted((one for one in circuits if one["tier"] != TIERS[0]), key=lambda one: -TIERS.index(one["tier"]))
    made = [_line(one) for one in above[:MOST]]
    rest = len(circuits) - len(made)
    more = [f"{rest} further circuit{'s' * (rest != 1)}: see the JSON report"] if made and rest else []
    return [*made, *more]


def _circuits(claim: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The circuits that a claim is about; none of a claim that is not about a set which attribution found."""
    p = claim["parameters"]
    if "attribution" not in p or not claim["tasks"]:
        return
    if all(key in p for key in _SHARED) and p.get("circuit") in (None, "shared") and p.get("set") in (None, "shared"):
        tasks = claim["tasks"][: 2 if claim["property"] in _TWO else 1]
        cut = {key: p[key] for key in _SHARED} | ({"size": None} if p["threshold"] is not None else {})
        level = "component"
    elif all(key in p for key in _NEURONS):
        tasks, cut, level = claim["tasks"][:1], {key: p[key] for key in _NEURONS}, "neuron"
    else:
        return
    for task in tasks:
        yield {"model": claim["model"], "task": task, "level": level, **{key: p[key] for key in _COMMON}, **cut}


def _add(entry: dict[str, Any], claim: Mapping[str, Any]) -> None:
    kind = _kind(claim)
    if kind is None:
        return
    if claim["verdict"] == "refuted":
        entry["refuted"].append(claim["nodeid"])
    elif claim["verdict"] == "certified" and kind == "faithfulness":
        entry["evidence"][kind].setdefault(claim["parameters"]["ablation"], []).append(claim["nodeid"])
    elif claim["verdict"] == "certified":
        entry["evidence"][kind].append(claim["nodeid"])


def _kind(claim: Mapping[str, Any]) -> str | None:
    """Which kind of evidence the claim would be if it is certified; None for none."""
    name, p, (floor, ceiling) = claim["property"], claim["parameters"], _edges(claim["bound"])
    above = floor is not None and floor >= 0 and (claim["interval"][0] > 0 or claim["verdict"] != "certified")
    if name in ("necessity", "specificity"):
        return name if above else None
    if name == "neuron_completeness":
        return "necessity" if ceiling is not None and ceiling <= LOWEST else None
    if name == "stability":
        return name if floor is not None and (above if p["over_chance"] else floor >= LOWEST) else None
    bare = name == "sufficiency" and p["control"] == "none" and p["definition"] == "relative"
    if bare or name == "neuron_faithfulness":
        around = floor is not None and ceiling is not None and LOWEST <= floor <= 1 <= ceiling <= HIGHEST
        return "faithfulness" if around else None
    return None


def _edges(bound: Mapping[str, Any]) -> tuple[float | None, float | None]:
    if "within" in bound:
        return bound["within"][0], bound["within"][1]
    return bound.get("at_least"), bound.get("at_most")


def _rated(entry: dict[str, Any]) -> dict[str, Any]:
    """With the tier, and what is missing for the next one."""
    evidence, place = entry["evidence"], int(entry["level"] == "neuron")
    short = ABLATIONS - len(evidence["faithfulness"])
    steps = (["necessity"] * (not evidence["necessity"]), ["faithfulness"] * (short > 0),
             [kind for kind in ("stability", "specificity") if not evidence[kind]])  # fmt: skip
    tier = next((i for i, missing in enumerate(steps) if missing), len(steps))
    more = f"{short} more kind{'s' * (short != 1)} of ablation"
    missing = [_WANTED[kind][place].format(more=more) for kind in (steps[tier] if tier < len(steps) else ())]
    return {**entry, "tier": TIERS[tier], "missing": missing}


def _line(one: Mapping[str, Any]) -> str:
    evidence = one["evidence"]
    kinds = [f"faithful under {' and '.join(evidence[kind])}" if kind == "faithfulness" else kind for kind in evidence if evidence[kind]]
    if one["level"] == "neuron":
        cut = f"{one['neurons']} neurons"
    else:
        cut = f"{one['size'] if one['threshold'] is None else one['threshold']}, P = {one['p']:g}"
    following = TIERS[min(TIERS.index(one["tier"]) + 1, len(TIERS) - 1)]
    missing = f"; for {following}: {' and '.join(one['missing'])}" if one["missing"] else ""
    refuted = f"; refuted: {', '.join(one['refuted'])}" if one["refuted"] else ""
    return (
        f"{one['tier']}: a circuit of {one['task']} in {one['model']} ({one['attribution']}, {cut}): {', '.join(kinds)}{missing}{refuted}"
    )
