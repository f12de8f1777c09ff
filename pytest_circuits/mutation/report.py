"""The part of the JSON document about mutants: the key `mutation`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..baseline.compare import difference
from ..core.verdict import INCONCLUSIVE, INVALID
from ..report.document import plain
from ..report.renderers.mutation import named
from .circuit import SpecCircuit
from .detection import DetectionAnswer, MutantResult
from .explain import reasons, share_of_way
from .judged_claim import JudgedClaim
from .recipes import NotMade

Json = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """The claims of one spec about one model, its circuit, and what came of each mutant. `left_out`: claims that took no part, and why."""

    file: str
    model: str
    claims: Sequence[JudgedClaim]
    circuit: SpecCircuit | None
    results: Sequence[MutantResult | NotMade]
    left_out: Sequence[tuple[JudgedClaim, str]] = ()
    problem: str = ""


def content(groups: Iterable[Group], wanted: str, threshold: float | None, seconds: float, notes: Sequence[str] = ()) -> Json:
    """The whole of it: `score` over all specs, whether the threshold was reached, and one entry for each spec and model.

    `score` is noticed / counted: mutants that are equivalent, not made or not measured count neither way. None where none counts. Of the
    noticed ones, `inconclusive_only` and `invalid_only` were given away by no other verdict: a weak catch, and one that a test of
    accuracy would mostly make as well.
    """
    specs = [_spec(group) for group in groups]
    noticed, counted, weak, gated = (
        sum(spec[key] for spec in specs) for key in ("noticed", "counted", "inconclusive_only", "invalid_only")
    )
    score = noticed / counted if counted else None
    unmeasured = sum(one["status"] == "not measured" for spec in specs for one in spec["mutants"])
    reached = threshold is None or (score is not None and score >= threshold)
    made: Json = plain(
        {
            "mutants": wanted, "score": score, "noticed": noticed, "counted": counted, "inconclusive_only": weak, "invalid_only": gated,
            "threshold": threshold,
            "passed": bool(reached and not unmeasured), "unmeasured": unmeasured, "seconds": round(seconds, 3), "notes": list(notes),
            "specs": specs,
        }
    )  # fmt: skip
    return made


def _spec(group: Group) -> Json:
    mutants = [_mutant(one, group.circuit) for one in group.results]
    noticed, counted = [m for m in mutants if m["status"] == "noticed"], [m for m in mutants if m["status"] in ("noticed", "survived")]
    return {
        "file": group.file,
        "model": group.model,
        "score": len(noticed) / len(counted) if counted else None,
        "noticed": len(noticed),
        "counted": len(counted),
        "inconclusive_only": sum(set(m["caught_by"].values()) == {INCONCLUSIVE} for m in noticed),
        "invalid_only": sum(set(m["caught_by"].values()) == {INVALID} for m in noticed),
        "problem": group.problem,
        "circuit": None if group.circuit is None else {"source": group.circuit.source, "sets": group.circuit.sets},
        "mutants": mutants,
        "claims": [_claim(judged, mutants) for judged in group.claims],
        "left_out": [{"nodeid": judged.nodeid, "claim": judged.name, "reason": reason} for judged, reason in group.left_out],
    }


def _mutant(one: MutantResult | NotMade, circuit: SpecCircuit | None) -> Json:
    if isinstance(one, NotMade):
        return {**_EMPTY, "name": one.name, "status": "not made", "reasons": [one.reason]}
    assert circuit is not None
    m = one.mutation
    made = {**_EMPTY, "name": m.name, "operator": m.operator, "units": m.units, "options": {**m.defaults, **m.arguments}, "seed": m.seed,
            "from": None if m.donor is None else m.donor.name, "fingerprint": one.fingerprint,
            "sets": sorted({name for unit in m.units for name in circuit.sets_of(unit)})}  # fmt: skip
    if one.problem:
        return {**made, "status": "not measured" if one.unmeasured else "not made", "reasons": [one.problem]}
    status = "equivalent" if one.equivalent else "noticed" if one.noticed else "survived"
    why = reasons(one, circuit) if not one.noticed else []
    if one.equivalent and one.noticed:
        why = ["equivalent, and noticed all the same: these claims depend on what heads are called, or on noise"]
    outcomes = [_outcome(answer) for answer in one.answers]
    moved = [o["claim"] for o in outcomes if o["beyond_noise"]]
    if status == "survived" and moved:
        why.append(f"a comparison with a baseline would tell: {named(moved)} moved by more than noise")
    return {
        **made,
        "status": status,
        "reasons": why,
        "caught_by": {answer.judged.id: answer.how for answer in one.answers if answer.how},
        "behaviour": {
            name: {
                "accuracy": list(b.accuracy),
                "largest_metric_change": b.metric,
                "largest_log_prob_change": b.log_prob,
                "changed": b.changed,
            }
            for name, b in one.behaviour.items()
        },
        "outcomes": outcomes,
    }


_EMPTY: Json = {
    "name": "", "operator": None, "units": [], "options": {}, "seed": None, "from": None, "fingerprint": None, "sets": [], "status": "",
    "reasons": [], "caught_by": {}, "behaviour": {}, "outcomes": [],
}  # fmt: skip


def _outcome(answer: DetectionAnswer) -> Json:
    """What one claim said. `beyond_noise`: a comparison with a baseline would tell the change, whatever the verdict."""
    before, after = answer.judged.evaluation.estimate, answer.evaluation.estimate
    moved = None
    if before is not None and after is not None and before.property != "drift":
        then, now = ({"estimate": e.value, "interval": list(e.interval), "kept": plain(e.kept)} for e in (before, after))
        try:
            moved = difference(then, now, after.confidence)["beyond_noise"]
        except (ValueError, KeyError):  # what is kept of it cannot be paired
            moved = None
    return {
        "nodeid": answer.judged.id, "claim": answer.judged.name, "how": answer.how, "verdict": answer.evaluation.verdict.kind,
        "estimate": None if after is None else after.value, "interval": None if after is None else list(after.interval),
        "reason": answer.evaluation.verdict.reason, "share_of_way_to_bound": share_of_way(answer), "beyond_noise": moved,
    }  # fmt: skip


def _claim(judged: JudgedClaim, mutants: Sequence[Json]) -> Json:
    """What a claim caught: mutants that are equivalent do not count as caught."""
    caught = {m["name"]: m["caught_by"][judged.id] for m in mutants if m["status"] == "noticed" and judged.id in m["caught_by"]}
    told = sum(bool(o["beyond_noise"]) for m in mutants if m["status"] != "equivalent" for o in m["outcomes"] if o["nodeid"] == judged.id)
    estimate = judged.evaluation.estimate
    return {
        "nodeid": judged.id, "claim": judged.name, "expect": judged.claim.expect, "bound": judged.claim.required_bound().as_dict(),
        "study": judged.is_study,
        "estimate": None if estimate is None else estimate.value, "caught": caught, "beyond_noise": told,
    }  # fmt: skip
