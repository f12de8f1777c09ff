"""The measuring engine against planted truth: effects, every attribution method, edges, circuits, faithfulness, neurons."""

from __future__ import annotations

import numpy as np
import pytest

from pytest_circuits.attribution.eap import clean_pass, edge_scores, residual_changes
from pytest_circuits.attribution.method import Job
from pytest_circuits.model.hooks import measuring
from pytest_circuits.model.sites import sites_of
from tests.fakes.planted_oracle import NAMES, SOFT, TOLERANCE, expected, universe
from tests.fakes.planted_subject import close, columns, faithfulness, opened, swept

every_circuit = pytest.mark.parametrize("name", NAMES)
SIGNED = {"gradient": {}, "atp": {}, "relp": {}, "ig_activations": {"steps": 8}}
KINDS = ("zero", "counterfactual", "mean", "resample")


# exact effects


@every_circuit
@pytest.mark.parametrize("kind", ["zero", "counterfactual"])
def test_a_sweep_finds_the_exact_effect_of_every_component(name, kind):
    case, _ = opened(name)
    found = swept(name, kind)
    assert found.units == universe(case)
    assert found.baseline.correct.all()
    close(found.metric - found.baseline.metric[:, None], expected(case, getattr(case.truth, kind)))


@every_circuit
@pytest.mark.parametrize("kind", KINDS)
def test_ablating_a_dead_component_changes_no_bit(name, kind):
    case, subject = opened(name)
    found, dead = swept(name, kind), columns(case, case.truth.dead)
    assert (found.metric[:, dead] == found.baseline.metric[:, None]).all()
    assert (found.log_prob[:, dead] == found.baseline.log_prob[:, None]).all()
    together = subject.ablate(case.task, remove=case.truth.dead, kind=kind)
    assert together.metric.tolist() == together.baseline.metric.tolist()


@every_circuit
@pytest.mark.parametrize("kind", ["zero", "counterfactual"])
def test_the_exact_method_scores_what_the_sweep_measures(name, kind):
    case, subject = opened(name)
    scores = subject.attribute(case.task, "exact", kind=kind).scores
    close(scores, expected(case, getattr(case.truth, kind)))
    assert (scores[:, columns(case, case.truth.dead)] == 0).all()


@every_circuit
def test_an_example_is_answered_correctly_exactly_where_some_of_the_metric_is_left(name):
    case, _ = opened(name)
    for kind in ("zero", "counterfactual"):
        left = case.truth.intact + expected(case, getattr(case.truth, kind))
        decided = np.abs(left) > TOLERANCE  # one patched backup leaves answer and foil level at 16 logits
        assert (swept(name, kind).correct[:, decided] == (left > 0)[decided]).all()
    assert not swept(name, "zero").correct[:, np.abs(expected(case, case.truth.zero)) > 1].any()


@every_circuit
def test_sets_have_their_joint_effects(name):
    case, subject = opened(name)
    for joint in case.truth.joint:
        found = subject.ablate(case.task, remove=joint.units, kind=joint.kind)
        close(found.metric - found.baseline.metric, joint.effect)


# attribution


@every_circuit
@pytest.mark.parametrize("method", SIGNED)
def test_a_method_scores_what_its_theory_says(name, method):
    """Value by value; where the theory is wrong about the model, the score is wrong by as much."""
    case, subject = opened(name)
    scores = subject.attribute(case.task, method, **SIGNED[method]).scores
    close(scores, expected(case, getattr(case.truth, method)))
    assert (scores[:, columns(case, case.truth.dead)] == 0).all()


@every_circuit
def test_eap_scores_are_the_absolute_edges_summed_over_readers(name):
    case, subject = opened(name)
    totals: dict[str, float] = {}
    for edge, score in case.truth.edges.items():
        upstream = edge.split(">")[0]
        totals[upstream] = totals.get(upstream, 0.0) + abs(score)
    scores = subject.attribute(case.task, "eap").scores
    close(scores, expected(case, totals))
    assert (scores[:, columns(case, case.truth.dead)] == 0).all()


@every_circuit
def test_eap_ig_scores_are_the_integrated_edges(name):
    """Each component has one reader in these circuits, so that its score is the size of one edge."""
    case, subject = opened(name)
    scores = subject.attribute(case.task, "eap_ig", steps=8).scores
    close(scores, np.abs(expected(case, case.truth.eap_ig)))
    assert (scores[:, columns(case, case.truth.dead)] == 0).all()


def reader_names(anatomy):
    """Names of readers in the order of `edge_scores`."""
    for block in anatomy.blocks:
        if block.index:
            for what, count in (("q", anatomy.heads), ("k", anatomy.kv_heads), ("v", anatomy.kv_heads)):
                yield from (f"L{block.index}H{head}.{what}" for head in range(count))
        if block.index or not anatomy.parallel:
            yield f"L{block.index}MLP"
    yield "logits"


def named_edges(name):
    """Every edge's scores on all examples, by "upstream>reader"."""
    case, subject = opened(name)
    sites, whole = sites_of(subject.anatomy)
    job = Job(subject._runner, subject.encode(case.task), None, "logit_diff", "component", None, sites, whole)
    found: dict[str, list[float]] = {}
    with measuring(subject.model):
        for batch in job.batches():
            corrupt = subject._runner.activations(batch.corrupt, sites)
            seen = clean_pass(subject._runner, batch, "logit_diff", sites)
            change = residual_changes(subject.anatomy, sites, corrupt, seen.activations)
            readers = reader_names(subject.anatomy)
            for upstream, scores in edge_scores(subject.anatomy, change, seen):
                for reader in range(scores.shape[2]):
                    label = next(readers)
                    for i, unit in enumerate(universe(case)[upstream]):
                        found.setdefault(f"{unit}>{label}", []).extend(scores[:, i, reader].tolist())
            assert next(readers, None) is None
    return found


@every_circuit
def test_only_the_true_edges_carry_anything(name):
    case, _ = opened(name)
    found = named_edges(name)
    assert set(case.truth.edges) <= set(found)
    for edge, scores in found.items():
        assert len(scores) == len(case.task)
        close(scores, case.truth.edges.get(edge, 0.0))
        if edge.split(">")[0] in case.truth.dead:
            assert not np.any(scores)


# circuits


@every_circuit
def test_exact_circuits_of_the_true_size_are_the_truth_on_every_example(name):
    case, subject = opened(name)
    circuits = subject.attribute(case.task, "exact").circuits(len(case.truth.causal))
    assert set(circuits.shared(1)) == set(case.truth.causal)
    assert circuits.reuse(1) == 1.0


@pytest.mark.parametrize("name", ["copy_head", "two_step", "memory", SOFT])
@pytest.mark.parametrize("method", ["eap", "atp", "gradient", "eap_ig", "ig_activations"])
def test_where_responses_are_not_saturated_every_derivative_finds_the_circuit(name, method):
    case, subject = opened(name)
    circuits = subject.attribute(case.task, method).circuits(len(case.truth.causal))
    assert set(circuits.shared(1)) == set(case.truth.causal)
    assert circuits.reuse(1) == 1.0


@pytest.mark.parametrize("name", ["copy_head", "two_step", "memory"])
def test_relp_finds_circuits_that_act_through_values(name):
    case, subject = opened(name)
    assert set(subject.attribute(case.task, "relp").circuits(len(case.truth.causal)).shared(1)) == set(case.truth.causal)


@pytest.mark.parametrize("name", ["copy_head", "memory"])
def test_a_circuit_is_never_filled_up_with_dead_components(name):
    """Asked for more than do anything, a method returns those that do."""
    case, subject = opened(name)
    for method in ("eap", "atp", "gradient", "relp", "exact"):
        circuits = subject.attribute(case.task, method).circuits(5)
        assert circuits.members.sum(1).tolist() == [len(case.truth.causal)] * len(case.task)


@every_circuit
@pytest.mark.parametrize("kind", KINDS)
def test_the_true_circuit_is_faithful_and_complete(name, kind):
    """Kept alone it is the model, faithfulness 1; removed, nothing is left of the metric, completeness 0."""
    case, subject = opened(name)
    kept = subject.ablate(case.task, keep=case.truth.causal, kind=kind)
    if name != "hero_bloat":
        assert kept.metric.tolist() == kept.baseline.metric.tolist()
    if kind in ("zero", "counterfactual"):
        empty = subject.ablate(case.task, keep=[], kind=kind)
        removed = subject.ablate(case.task, remove=case.truth.causal, kind=kind)
        assert faithfulness(kept, empty) == pytest.approx(1, abs=1e-5)
        assert faithfulness(removed, empty) == pytest.approx(0, abs=1e-5)
        assert kept.correct.all() and not removed.correct.any()


@pytest.mark.parametrize("name", ["copy_head", "two_step", "memory", SOFT, "induction"])
def test_no_proper_part_of_a_chain_is_faithful(name):
    case, subject = opened(name)
    empty = subject.ablate(case.task, keep=[])
    for unit in case.truth.causal:
        kept = subject.ablate(case.task, keep=[u for u in case.truth.causal if u != unit])
        assert faithfulness(kept, empty) == pytest.approx(0, abs=1e-5)


def test_mean_ablation_of_a_memory_leaves_no_preference():
    """Every value occurs equally often, so that the mean output favours none: the effect is that of removal."""
    case, subject = opened("memory")
    found = subject.ablate(case.task, remove=["L1MLP"], kind="mean")
    close(found.metric, 0.0)


def test_resampling_a_memory_writes_the_donors_value():
    """The metric is 16, 0 or −16: the donor has the same answer, an unrelated one, or the foil."""
    case, subject = opened("memory")
    found = subject.ablate(case.task, remove=["L1MLP"], kind="resample").metric
    nearest = np.round(found / 16) * 16
    close(found, nearest)
    assert set(nearest) <= {-16, 0, 16} and (nearest == 0).any()


# neurons


@pytest.mark.parametrize("method", ["atp", "relp", "ig_activations"])
def test_two_neurons_of_a_memory_score_on_an_example_those_of_answer_and_foil(method):
    case, subject = opened("memory")
    found = subject.attribute(case.task, method, level="neuron")
    for row, pair in zip(found.scores, case.task, strict=True):
        named = {unit: score for unit, score in zip(found.units, row.tolist(), strict=True) if score}
        assert named == pytest.approx({case.truth.neurons[pair.answer]: -16.0, case.truth.neurons[pair.foils[0]]: -16.0}, abs=TOLERANCE)


def test_without_a_counterfactual_one_neuron_scores():
    case, subject = opened("memory")
    circuits = subject.attribute(case.task, "gradient", level="neuron").circuits("100%")
    found = [[u for u, inside in zip(circuits.units, row, strict=True) if inside] for row in circuits.members]
    assert found == [[case.truth.neurons[pair.answer]] for pair in case.task]
    assert circuits.shared(1) == () and circuits.reuse(1) == 0
    assert set(circuits.shared(0.125)) == set(case.truth.neurons.values()) and circuits.reuse(0.125) == 1


def test_dead_neurons_score_exactly_zero():
    for name in ("copy_head", "two_step", "backup", "memory", "hero_bloat"):
        case, subject = opened(name)
        for method in ("atp", "gradient", "relp"):
            found = subject.attribute(case.task, method, level="neuron")
            dead = [found.units.index(unit) for unit in case.truth.dead_neurons]
            assert not found.scores[:, dead].any()


@pytest.mark.parametrize("name", ["memory", "two_step"])
def test_the_memory_neurons_are_a_faithful_and_complete_circuit_of_known_size(name):
    case, subject = opened(name)
    neurons = list(case.truth.neurons.values())
    empty = subject.ablate(case.task, keep=[], level="neuron")
    kept = subject.ablate(case.task, keep=neurons)
    removed = subject.ablate(case.task, remove=neurons)
    assert kept.metric.tolist() == kept.baseline.metric.tolist()
    assert faithfulness(kept, empty) == 1 and faithfulness(removed, empty) == 0
    assert len(neurons) == 8


@pytest.mark.parametrize("count", [1, 3, 7])
def test_some_of_the_memory_neurons_are_faithful_to_their_share_of_the_answers(count):
    """Hence eight neurons are needed for 0.9, and seven reach 0.875."""
    case, subject = opened("memory")
    empty = subject.ablate(case.task, keep=[], level="neuron")
    some = list(case.truth.neurons.items())[:count]
    kept = subject.ablate(case.task, keep=[unit for _, unit in some])
    assert faithfulness(kept, empty) == pytest.approx(count / 8)
    assert kept.correct.tolist() == [pair.answer in dict(some) for pair in case.task]


def test_removing_dead_neurons_changes_no_bit():
    case, subject = opened("memory")
    found = subject.ablate(case.task, remove=case.truth.dead_neurons)
    assert found.metric.tolist() == found.baseline.metric.tolist()
