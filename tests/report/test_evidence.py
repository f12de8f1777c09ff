"""How well circuits are supported: from records alone, never settable."""

from __future__ import annotations

import itertools

import pytest

from pytest_circuits.claims.outcome import decide_outcome
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.verdict import Bound, Estimate
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.report.build import build_report
from pytest_circuits.report.evidence import circuit_evidence
from pytest_circuits.report.record import record_claim
from pytest_circuits.report.renderers.terminal import SHOWN_CIRCUITS, circuit_lines, table

NUMBER = itertools.count()
FAITHFUL = {"control": "none", "definition": "relative"}


def claim(name, bound, interval=(0.4, 0.6), model="m", expect="certified", **parameters):
    """The record of a claim, as a run makes it from validated parameters."""
    checked = PROPERTIES.get(name).parameters(**parameters)
    tasks = {task: TaskSource(task, "builtin", task) for task in task_names(checked)}
    nodeid = f"s.circuits.yaml::{name}{next(NUMBER)}::{model}"
    outcome = interval if isinstance(interval, Exception) else Estimate(sum(interval) / 2, interval, 100)
    about = Claim(name, checked, ModelSource(model), tasks, bound=bound, expect=expect, name=name, entry=model)
    return record_claim(nodeid, about, decide_outcome(outcome, bound, Cost(), None))


def evidence(claims):
    """Of records, each circuit."""
    return circuit_evidence([entry.record for entry in claims])


def of(kind, task="ioi", **more):
    """A certified claim of each kind of evidence about the same circuit."""
    if kind == "reuse":
        return claim("reuse", Bound(0.1), task=task, **more)
    if kind == "necessity":
        return claim("necessity", Bound(0.2), task=task, **more)
    if kind == "stability":
        return claim("stability", Bound(0.5), (0.6, 0.9), task=task, under="resampling", **more)
    if kind == "specificity":
        return claim("specificity", Bound(0.1), task=task, tasks=["other"], **more)
    return claim("sufficiency", Bound(0.9, 1.1), (0.95, 1.05), task=task, ablation=kind, **FAITHFUL, **more)


def tier(*claims):
    found = evidence(claims)
    assert len(found) == 1, found
    return found[0].tier


def test_a_circuit_rises_by_what_is_certified_of_it():
    proposed = [of("reuse")]
    suggestive = [*proposed, of("necessity")]
    supported = [*suggestive, of("zero"), of("mean")]
    triangulated = [*supported, of("stability"), of("specificity")]
    assert [tier(*c) for c in (proposed, suggestive, supported, triangulated)] == ["proposed", "suggestive", "supported", "triangulated"]
    assert tier(*reversed(triangulated)) == "triangulated"
    found = evidence(triangulated)[0]
    assert (
        found.as_json().items()
        >= {"model": "m", "task": "ioi", "level": "component", "attribution": "eap", "size": "10%", "p": 0.95}.items()
    )
    assert set(found.evidence.faithfulness) == {"zero", "mean"}
    assert found.evidence.necessity == (suggestive[-1].record.nodeid,)
    assert found.missing == ()


@pytest.mark.parametrize("without", ["necessity", "zero", "mean", "stability", "specificity"])
def test_no_tier_is_reached_without_all_that_it_asks_for(without):
    kinds = ["necessity", "zero", "mean", "stability", "specificity"]
    found = evidence([of(kind) for kind in kinds if kind != without])[0]
    expected = {"necessity": "proposed", "zero": "suggestive", "mean": "suggestive"}.get(without, "supported")
    assert found.tier == expected
    word = {"zero": "1 more kind of ablation", "mean": "1 more kind of ablation"}.get(without, without)
    assert len(found.missing) == 1 and word in found.missing[0]


def test_what_is_missing_is_for_the_next_tier_only():
    found = evidence([of("reuse")])[0]
    assert found.missing == ("a certified necessity",)
    found = evidence([of("necessity")])[0]
    assert "under 2 more kinds of ablation" in found.missing[0]
    assert len(evidence([of(kind) for kind in ("necessity", "zero", "mean")])[0].missing) == 2


@pytest.mark.parametrize(("made", "counts"), [
    (lambda: claim("necessity", Bound(0.0), (0.1, 0.3), task="ioi"), True),
    (lambda: claim("necessity", Bound(0.0), (0.0, 0.3), task="ioi"), False),  # it may be nothing
    (lambda: claim("necessity", Bound(-0.5), (-0.2, 0.3), task="ioi"), False),
    (lambda: claim("necessity", Bound(None, 0.9), task="ioi"), False),
    (lambda: claim("necessity", Bound(0.3, 0.8), task="ioi"), True),
    (lambda: claim("necessity", Bound(0.5), task="ioi"), False),  # inconclusive
    (lambda: claim("necessity", Bound(0.2), task="ioi", circuit={"task": "other"}), False),
    (lambda: claim("necessity", Bound(0.2), task="ioi", expect="refuted"), True),
], ids=["lower", "from-zero", "below-zero", "upper", "within", "inconclusive", "other-circuit", "expected-refuted"])  # fmt: skip
def test_which_necessity_counts(made, counts):
    assert evidence([of("reuse"), made()])[0].tier == ("suggestive" if counts else "proposed")


@pytest.mark.parametrize(("bound", "more", "counts"), [
    (Bound(0.9, 1.1), {}, True),
    (Bound(0.5, 1.5), {}, True),
    (Bound(0.4, 1.1), {}, False),
    (Bound(0.9, 1.6), {}, False),
    (Bound(0.9), {}, False),  # one-sided: 1.6 would be no faithful circuit either
    (Bound(0.9, 1.1), {"control": "c3"}, False),
    (Bound(0.9, 1.1), {"definition": "absolute"}, False),
    (Bound(0.9, 1.1), {"circuit": {"task": "other"}}, False),
], ids=str)  # fmt: skip
def test_which_faithfulness_counts(bound, more, counts):
    common = FAITHFUL | {"task": "ioi", "ablation": "mean"} | more
    made = claim("sufficiency", bound, (0.95, 1.05), **common)
    assert made.record.verdict == "certified"
    assert tier(of("necessity"), of("zero"), made) == ("supported" if counts else "suggestive")


def test_options_of_an_ablation_are_not_another_kind():
    other = claim(
        "sufficiency", Bound(0.9, 1.1), (0.95, 1.05), task="ioi", ablation="mean", ablation_options={"prompts": "corrupt"}, **FAITHFUL
    )
    assert tier(of("necessity"), of("mean"), other) == "suggestive"


@pytest.mark.parametrize(("bound", "interval", "more", "counts"), [
    (Bound(0.5), (0.6, 0.9), {}, True),
    (Bound(0.4), (0.6, 0.9), {}, False),
    (Bound(0.0), (0.1, 0.9), {"over_chance": True}, True),
    (Bound(0.0), (0.0, 0.9), {"over_chance": True}, False),
])  # fmt: skip
def test_which_stability_counts(bound, interval, more, counts):
    made = claim("stability", bound, interval, task="ioi", under="resampling", **more)
    kinds = [of(kind) for kind in ("necessity", "zero", "mean", "specificity")]
    assert tier(*kinds, made) == ("triangulated" if counts else "supported")


def test_neuron_circuits_have_completeness_for_necessity_and_can_be_supported_at_most():
    common = {"task": "ioi", "neurons": 200}
    kept = [claim("neuron_faithfulness", Bound(0.9, 1.1), (0.95, 1.05), ablation=kind, **common) for kind in ("zero", "mean")]
    assert tier(*kept) == "proposed"
    removed = claim("neuron_completeness", Bound(None, 0.3), (0.0, 0.2), **common)
    found = evidence([*kept, removed])[0]
    assert (found.tier, found.level, found.neurons, found.site) == ("supported", "neuron", 200, "mlp_activation")
    assert all("no property" in one for one in found.missing)
    loose = claim("neuron_completeness", Bound(None, 0.9), (0.0, 0.2), **common)
    assert tier(*kept, loose) == "proposed"


@pytest.mark.parametrize("more", [
    {"size": "20%"}, {"size": None, "threshold": 0.1}, {"p": 0.8}, {"attribution": "atp"}, {"attribution_options": {"steps": 3}},
    {"split_seed": 1}, {"split": "in_sample"}, {"metric": "prob"}, {"contrast": ["third"]}, {"model": "n"}, {"task": "boolean"},
], ids=str)  # fmt: skip
def test_circuits_found_in_different_ways_are_different_circuits(more):
    """What is certified of one says nothing of the other."""
    if more.get("attribution_options"):
        more = {"attribution": "eap_ig", **more}
    more = {key: value for key, value in more.items() if value is not None}
    found = evidence([of("necessity"), of("reuse", **more)])
    assert [one.tier for one in found] == ["suggestive", "proposed"]


def test_how_it_was_looked_at_is_no_part_of_what_a_circuit_is():
    assert tier(of("reuse"), of("necessity", control="c3_any", draws=30, confidence=0.99, min_accuracy=0.9)) == "suggestive"


def test_a_threshold_makes_size_meaningless():
    found = evidence([claim("reuse", Bound(0.1), task="ioi", threshold=0.1)])[0]
    assert (found.size, found.threshold) == (None, 0.1)


def test_claims_about_two_tasks_propose_two_circuits():
    found = evidence([claim("jaccard", Bound(None, 0.9), tasks=["ioi", "boolean"], contrast=["third"])])
    assert [one.task for one in found] == ["ioi", "boolean"]
    found = evidence([of("specificity")])
    assert [one.task for one in found] == ["ioi"]


def test_what_is_no_circuit_of_attribution_has_no_tier():
    assert evidence([claim("accuracy", Bound(0.1), task="ioi")]) == ()
    assert evidence([claim("reuse", Bound(0.1), Invalid("no behaviour"), task="ioi")]) == ()
    named = claim("circuit_match", Bound(0.1), task="ioi", known=["L0H1"], circuit="mean")
    assert evidence([named]) == ()
    assert len(evidence([claim("circuit_match", Bound(0.1), task="ioi", known=["L0H1"])])) == 1
    assert evidence([claim("joint_ablation", Bound(0.1), task="ioi", set={"units": ["L0H1"]})]) == ()


def test_refuted_claims_are_named_and_lower_nothing():
    strict = claim("necessity", Bound(0.9), task="ioi")
    found = evidence([of("necessity"), strict])[0]
    assert (found.tier, found.refuted) == ("suggestive", (strict.record.nodeid,))
    assert strict.record.nodeid in circuit_lines([found])[0]


def test_every_property_with_a_shared_set_names_its_own_task_first():
    """The tier of a circuit must not be given by claims about another task's."""
    for name in PROPERTIES:
        model = PROPERTIES.get(name).parameters
        fields = model.model_fields
        if {"p", "size", "attribution", "task"} <= set(fields):
            needed = {
                "stability": {"under": "corruption", "other_task": "z"}, "specificity": {"tasks": ["z"]},
                "circuit_match": {"known": ["L0H1"]},
                "joint_ablation": {"set": "shared"}, "superadditivity": {"set": "shared"},
            }.get(name, {})  # fmt: skip
            if "circuit" in fields and name != "circuit_match":
                needed = {"circuit": {"task": "z"}}
            assert task_names(model(task="own", contrast=["a", "z"], **needed))[0] == "own", name


def test_the_document_has_them_and_the_table_shows_what_is_above_proposed():
    plain = build_report([of("reuse")], 1.0)
    assert plain.circuits[0].tier == "proposed"
    assert not any("proposed" in line for line in table(plain))
    made = build_report([of("reuse", task="sva"), of("necessity"), of("necessity", task="boolean"), of("zero", task="boolean"),
                     of("mean", task="boolean")], 1.0)  # fmt: skip
    shown = [line for line in table(made) if line.startswith(("supported:", "suggestive:", "1 further circuit"))]
    assert shown[0] == (
        "supported: a circuit of boolean in m (eap, 10%, P = 0.95): necessity, faithful under zero and mean; "
        "for triangulated: a certified stability of at least 0.5, or over chance and a certified specificity"
    )
    assert shown[1].startswith("suggestive: a circuit of ioi in m (eap, 10%, P = 0.95): necessity; for supported: ")
    assert shown[2] == "1 further circuit: see the JSON report"


def test_a_long_list_is_capped():
    found = evidence([of("necessity", split_seed=seed) for seed in range(SHOWN_CIRCUITS + 3)])
    assert len(circuit_lines(found)) == SHOWN_CIRCUITS + 1
    assert circuit_lines(found)[-1] == "3 further circuits: see the JSON report"
