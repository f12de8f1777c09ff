"""The part of the report about mutants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..baseline.compare import is_beyond_noise, signed_difference
from ..core.json_values import plain
from ..core.verdict import INCONCLUSIVE, INVALID
from ..report.messages.mutation import mutant_reason
from ..report.messages.verdicts import reason
from ..report.model import (
    BehaviourChange,
    DetectionOutcome,
    ExcludedClaim,
    MutantReason,
    MutantRecord,
    MutationClaim,
    MutationReport,
    SpecCircuitRecord,
    SpecMutation,
    StatedBound,
)
from .circuit import SpecCircuit
from .detection import Behaviour, Detection, MutantResult
from .explain import reasons, share_of_way
from .judged_claim import JudgedClaim
from .recipes import UnmadeMutant


@dataclass(frozen=True)
class GroupResult:
    """The claims of one spec about one model, its circuit, and the result of each mutant. `left_out`: excluded claims with reasons."""

    file: str
    model: str
    claims: Sequence[JudgedClaim]
    circuit: SpecCircuit | None
    results: Sequence[MutantResult | UnmadeMutant]
    left_out: Sequence[tuple[JudgedClaim, str]] = ()
    problem: str = ""


def build_mutation_report(
    groups: Iterable[GroupResult], wanted: str, threshold: float | None, seconds: float, notes: Sequence[str] = ()
) -> MutationReport:
    """The report: `score` over all specs, whether the threshold was reached, and one entry for each spec and model.

    `score` is noticed / counted: equivalent, unmade and unmeasured mutants do not count. None if no mutant counts. `inconclusive_only` and
    `invalid_only` count the noticed mutants with no other verdict: weak detections, which a test of accuracy would mostly make as well.
    """
    specs = tuple(map(_spec, groups))
    noticed, counted = sum(spec.noticed for spec in specs), sum(spec.counted for spec in specs)
    score = noticed / counted if counted else None
    unmeasured = sum(mutant.status == "not measured" for spec in specs for mutant in spec.mutants)
    is_reached = threshold is None or (score is not None and score >= threshold)
    return MutationReport(
        mutants=wanted,
        score=score,
        noticed=noticed,
        counted=counted,
        inconclusive_only=sum(spec.inconclusive_only for spec in specs),
        invalid_only=sum(spec.invalid_only for spec in specs),
        threshold=threshold,
        passed=is_reached and not unmeasured,
        unmeasured=unmeasured,
        seconds=round(seconds, 3),
        notes=tuple(notes),
        specs=specs,
    )


def _spec(group: GroupResult) -> SpecMutation:
    mutants = tuple(_mutant(result, group.circuit) for result in group.results)
    noticed = [mutant for mutant in mutants if mutant.status == "noticed"]
    counted = sum(mutant.status in ("noticed", "survived") for mutant in mutants)
    circuit = None if group.circuit is None else SpecCircuitRecord(source=group.circuit.source, sets=group.circuit.sets)
    return SpecMutation(
        file=group.file,
        model=group.model,
        score=len(noticed) / counted if counted else None,
        noticed=len(noticed),
        counted=counted,
        inconclusive_only=sum(set(mutant.caught_by.values()) == {INCONCLUSIVE} for mutant in noticed),
        invalid_only=sum(set(mutant.caught_by.values()) == {INVALID} for mutant in noticed),
        problem=group.problem,
        circuit=circuit,
        mutants=mutants,
        claims=tuple(_claim(judged, mutants) for judged in group.claims),
        left_out=tuple(ExcludedClaim(nodeid=judged.nodeid, claim=judged.name, reason=why) for judged, why in group.left_out),
    )


def _mutant(result: MutantResult | UnmadeMutant, circuit: SpecCircuit | None) -> MutantRecord:
    if isinstance(result, UnmadeMutant):
        return _mutant_record({"name": result.name, "status": "not made"}, [_message("not-made", result.reason)])
    assert circuit is not None
    mutation = result.mutation
    facts = {
        "name": mutation.name,
        "operator": mutation.operator,
        "units": mutation.units,
        "options": {**mutation.defaults, **mutation.arguments},
        "seed": mutation.seed,
        "from": None if mutation.donor is None else mutation.donor.name,
        "fingerprint": result.fingerprint,
        "sets": sorted({name for unit in mutation.units for name in circuit.sets_of(unit)}),
    }
    if result.problem:
        status, code = ("not measured", "not-measured") if result.unmeasured else ("not made", "not-made")
        return _mutant_record({**facts, "status": status}, [_message(code, result.problem)])
    status = "equivalent" if result.equivalent else "noticed" if result.noticed else "survived"
    why = [] if result.noticed else reasons(result, circuit)
    if result.equivalent and result.noticed:
        why = [MutantReason(code="equivalent-and-noticed")]
    outcomes = tuple(map(_outcome, result.answers))
    moved = [outcome.claim for outcome in outcomes if outcome.beyond_noise]
    if status == "survived" and moved:
        why.append(MutantReason(code="seen-by-baseline", arguments={"claims": moved}))
    caught = {answer.judged.id: answer.how for answer in result.answers if answer.how}
    behaviour = {name: _behaviour(change) for name, change in result.behaviour.items()}
    return _mutant_record({**facts, "status": status, "caught_by": caught, "behaviour": behaviour, "outcomes": outcomes}, why)


_EMPTY: dict[str, object] = {
    "operator": None, "units": (), "options": {}, "seed": None, "from": None, "fingerprint": None, "sets": (), "caught_by": {},
    "behaviour": {}, "outcomes": (),
}  # fmt: skip


def _mutant_record(facts: dict[str, object], why: Sequence[MutantReason]) -> MutantRecord:
    sentences = tuple(mutant_reason(cause.code, cause.arguments) for cause in why)
    return MutantRecord.model_validate({**_EMPTY, **facts, "reasons": sentences, "reason_codes": tuple(why)})


def _message(code: str, message: str) -> MutantReason:
    return MutantReason(code=code, arguments={"message": message})


def _behaviour(change: Behaviour) -> BehaviourChange:
    return BehaviourChange.model_validate(
        plain(
            {
                "accuracy": change.accuracy,
                "largest_metric_change": change.metric,
                "largest_log_prob_change": change.log_prob,
                "changed": change.changed,
            }
        )
    )


def _outcome(answer: Detection) -> DetectionOutcome:
    """The result of one claim. `beyond_noise`: a comparison with a baseline would flag the change, whatever the verdict."""
    before, after = answer.judged.evaluation.estimate, answer.evaluation.estimate
    moved = None
    if before is not None and after is not None and before.property != "drift":
        then, now = ({"estimate": e.value, "interval": list(e.interval), "kept": plain(e.payload)} for e in (before, after))
        try:
            moved = is_beyond_noise(signed_difference(then, now, after.confidence)[1])
        except (ValueError, KeyError):  # the payloads cannot be paired
            moved = None
    facts = {
        "nodeid": answer.judged.id,
        "claim": answer.judged.name,
        "how": answer.how,
        "verdict": answer.evaluation.verdict.kind,
        "estimate": None if after is None else after.value,
        "interval": None if after is None else after.interval,
        "reason": reason(answer.evaluation.verdict),
        "share_of_way_to_bound": share_of_way(answer),
        "beyond_noise": moved,
    }
    return DetectionOutcome.model_validate(plain(facts))


def _claim(judged: JudgedClaim, mutants: Sequence[MutantRecord]) -> MutationClaim:
    """The mutants that a claim detected, equivalent ones excluded."""
    noticed = [mutant for mutant in mutants if mutant.status == "noticed"]
    outcomes = [outcome for mutant in mutants if mutant.status != "equivalent" for outcome in mutant.outcomes]
    estimate = judged.evaluation.estimate
    return MutationClaim.model_validate(
        {
            "nodeid": judged.id,
            "claim": judged.name,
            "expect": judged.claim.expect,
            "bound": StatedBound(**judged.claim.required_bound().as_dict()),
            "study": judged.is_study,
            "estimate": None if estimate is None else plain(estimate.value),
            "caught": {mutant.name: mutant.caught_by[judged.id] for mutant in noticed if judged.id in mutant.caught_by},
            "beyond_noise": sum(bool(outcome.beyond_noise) for outcome in outcomes if outcome.nodeid == judged.id),
        }
    )
