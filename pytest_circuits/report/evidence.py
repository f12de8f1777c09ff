"""How well each circuit of a run is supported, from its certified claims alone. Nothing is configurable.

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

No property measures stability or specificity of neuron circuits yet, so these are supported at most. Claims of these kinds that were
refuted are named; they do not lower a tier, because a bound may also be refuted for being too strict.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .messages.circuits import missing
from .model import CircuitEvidence, ClaimRecord, Evidence
from .model.circuits import TIERS

ABLATIONS = 2
"""Kinds of ablation under which a supported circuit must be faithful."""
LOWEST, HIGHEST = 0.5, 1.5
_COMMON = ("attribution", "attribution_options", "metric", "split", "split_seed")
_SHARED = ("size", "threshold", "rounding", "p", "contrast", "contrast_by")
_NEURONS = ("neurons", "site")
_OF_TWO_TASKS = ("jaccard", "decomposition")  # properties about the circuits of two tasks alike, which their tasks begin with


def circuit_evidence(claims: Iterable[ClaimRecord]) -> tuple[CircuitEvidence, ...]:
    """One entry for each circuit that claims with an estimate are about, in the order of the claims."""
    circuits: dict[str, _Collected] = {}
    for claim in claims:
        for identity in _identities(claim) if claim.estimate is not None else ():
            key = json.dumps(identity, sort_keys=True)
            circuits.setdefault(key, _Collected(identity)).add(claim)
    return tuple(circuit.rated() for circuit in circuits.values())


@dataclass
class _Collected:
    """What is known about one circuit so far: node ids of certified claims by kind, those of faithfulness by the kind of ablation."""

    identity: dict[str, Any]
    certified: dict[str, list[str]] = field(default_factory=lambda: {"necessity": [], "stability": [], "specificity": []})
    faithful: dict[str, list[str]] = field(default_factory=dict)
    refuted: list[str] = field(default_factory=list)

    def add(self, claim: ClaimRecord) -> None:
        """Count a claim about the circuit, if it is of a kind that counts."""
        kind = evidence_kind(claim)
        if kind is None:
            return
        if claim.verdict == "refuted":
            self.refuted.append(claim.nodeid)
        elif claim.verdict == "certified" and kind == "faithfulness":
            self.faithful.setdefault(claim.parameters["ablation"], []).append(claim.nodeid)
        elif claim.verdict == "certified":
            self.certified[kind].append(claim.nodeid)

    def rated(self) -> CircuitEvidence:
        """With the tier, and what is missing for the next one."""
        short = ABLATIONS - len(self.faithful)
        steps = (
            ["necessity"] if not self.certified["necessity"] else [],
            ["faithfulness"] if short > 0 else [],
            [kind for kind in ("stability", "specificity") if not self.certified[kind]],
        )
        tier = next((i for i, lacking in enumerate(steps) if lacking), len(steps))
        lacking = steps[tier] if tier < len(steps) else []
        evidence = {**self.certified, "faithfulness": self.faithful}
        return CircuitEvidence(
            **self.identity,
            evidence=Evidence.model_validate(evidence),
            refuted=tuple(self.refuted),
            tier=TIERS[tier],
            missing=tuple(missing(kind, self.identity["level"], short) for kind in lacking),
        )


def _identities(claim: ClaimRecord) -> Iterator[dict[str, Any]]:
    """The circuits that a claim is about, each by what defines it; none for a claim about a set that attribution did not choose."""
    p = claim.parameters
    if "attribution" not in p or not claim.tasks:
        return
    if all(key in p for key in _SHARED) and p.get("circuit") in (None, "shared") and p.get("set") in (None, "shared"):
        tasks = claim.tasks[: 2 if claim.property in _OF_TWO_TASKS else 1]
        cut = {key: p[key] for key in _SHARED} | ({"size": None} if p["threshold"] is not None else {})
        level = "component"
    elif all(key in p for key in _NEURONS):
        tasks, cut, level = claim.tasks[:1], {key: p[key] for key in _NEURONS}, "neuron"
    else:
        return
    for task in tasks:
        yield {"model": claim.model, "task": task, "level": level, **{key: p[key] for key in _COMMON}, **cut}


def evidence_kind(claim: ClaimRecord) -> str | None:
    """Which kind of evidence the claim would be if it is certified; None for none."""
    name, p, (floor, ceiling) = claim.property, claim.parameters, claim.bound.edges()
    is_positive = claim.interval is not None and claim.interval[0] > 0
    above = floor is not None and floor >= 0 and (is_positive or claim.verdict != "certified")
    if name in ("necessity", "specificity"):
        return name if above else None
    if name == "neuron_completeness":
        return "necessity" if ceiling is not None and ceiling <= LOWEST else None
    if name == "stability":
        return name if floor is not None and (above if p["over_chance"] else floor >= LOWEST) else None
    is_bare = name == "sufficiency" and p["control"] == "none" and p["definition"] == "relative"
    if is_bare or name == "neuron_faithfulness":
        is_around_one = floor is not None and ceiling is not None and LOWEST <= floor <= 1 <= ceiling <= HIGHEST
        return "faithfulness" if is_around_one else None
    return None
