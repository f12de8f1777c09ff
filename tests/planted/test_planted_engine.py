"""The measuring engine against planted truth: effects, every attribution method, edges, circuits, faithfulness, redundancy."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from planted_oracle import NAMES, SOFT, TOLERANCE, expected, planted, universe

from pytest_circuits import open_model
from pytest_circuits.attribution.base import Job
from pytest_circuits.attribution.eap import clean_pass, edge_scores, residual_changes
from pytest_circuits.engine.sites import sites_of
from pytest_circuits.engine.taps import measuring

every_circuit = pytest.mark.parametrize("name", NAMES)
SIGNED = {"gradient": {}, "atp": {}, "relp": {}, "ig_activations": {"steps": 8}}
KINDS = ("zero", "counterfactual", "mean", "resample")


@cache
def opened(name):
    case = planted(name)
    return case, open_model(case.model, case.tokenizer)


@cache
def swept(name, kind):
    case, subject = opened(name)
    return subject.sweep(case.task, kind=kind)


def columns(case, units):
    names = universe(case)
    return [names.index(unit) for unit in units]


def close(found, wanted):
    np.testing.assert_allclose(found, np.broadcast_to(wanted, np.shape(found)), atol=TOLERANCE, rtol=0)


def faithfulness(outcome, empty):
    """(F(kept) − F(∅)) / (F(M) − F(∅)) by means over the examples."""
    nothing = empty.metric.mean()
    return (outcome.metric.mean() - nothing) / (outcome.baseline.metric.mean() - nothing)


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


# where methods fail, by how much, and which ones do not


def single_effects(name, kind, units):
    case, _ = opened(name)
    found = swept(name, kind)
    return (found.metric - found.baseline.metric[:, None])[:, columns(case, units)]


def test_heads_that_back_each_other_up_are_superadditive_by_the_whole_metric():
    """Joint effect minus the sum of single effects: −16 under removal, on every example."""
    case, subject = opened("backup")
    heads = ["L0H1", "L1H3"]
    joint = subject.ablate(case.task, remove=heads)
    close(single_effects("backup", "zero", heads), 0.0)
    close(joint.metric - joint.baseline.metric - single_effects("backup", "zero", heads).sum(1), -16.0)
    assert swept("backup", "zero").correct[:, columns(case, heads)].all() and not joint.correct.any()


def test_a_counterfactual_patch_of_one_backup_is_additive_since_it_brings_evidence_for_the_foil():
    case, subject = opened("backup")
    heads = ["L0H1", "L1H3"]
    joint = subject.ablate(case.task, remove=heads, kind="counterfactual")
    close(joint.metric - joint.baseline.metric - single_effects("backup", "counterfactual", heads).sum(1), 0.0)


@pytest.mark.parametrize("name", ["two_step", "induction"])
def test_links_of_a_chain_are_subadditive_by_the_whole_metric(name):
    case, subject = opened(name)
    joint = subject.ablate(case.task, remove=case.truth.causal)
    close(joint.metric - joint.baseline.metric - single_effects(name, "zero", case.truth.causal).sum(1), 16.0)


def test_either_backup_head_with_the_read_out_is_a_faithful_circuit_and_neither_is_complete():
    case, subject = opened("backup")
    empty = subject.ablate(case.task, keep=[])
    for head in ("L0H1", "L1H3"):
        assert faithfulness(subject.ablate(case.task, keep=[head, "L2MLP"]), empty) == pytest.approx(1)
        assert faithfulness(subject.ablate(case.task, remove=[head]), empty) == pytest.approx(1)


@pytest.mark.parametrize("method", ["gradient", "atp", "relp", "eap", "weight_gradient"])
def test_first_order_methods_do_not_see_backups(method):
    """The read-out is saturated at the clean point; a rule for derivatives does not change that."""
    case, subject = opened("backup")
    scores = np.abs(subject.attribute(case.task, method).scores)
    heads = scores[:, columns(case, ["L0H1", "L1H3"])]
    assert (heads <= 1e-7 * scores.max()).all()
    assert (scores[:, columns(case, ["L2MLP"])] > 1e-5).all()


@pytest.mark.parametrize(("method", "options"), [("eap_ig", {"steps": 8}), ("ig_activations", {"steps": 8}), ("exact", {})])
def test_integrated_gradients_and_patching_see_backups(method, options):
    case, subject = opened("backup")
    scores = np.abs(subject.attribute(case.task, method, **options).scores)
    close(scores[:, columns(case, ["L0H1", "L1H3", "L2MLP"])], [16.0, 16.0, 32.0])


def test_an_integral_towards_zero_over_one_backup_is_blind_like_its_removal():
    case, subject = opened("backup")
    scores = subject.attribute(case.task, "ig_activations", steps=8, unpaired=True).scores
    close(scores[:, columns(case, ["L0H1", "L1H3", "L2MLP"])], [0.0, 0.0, -16.0])


@pytest.mark.parametrize("method", ["gradient", "atp", "relp", "eap"])
def test_first_order_methods_rank_the_bloat_above_the_hero_and_ablation_the_reverse(method):
    case, subject = opened("hero_bloat")
    hero, bloat = columns(case, ["L0H2", "L1H0"])
    scores = np.abs(subject.attribute(case.task, method).scores)
    assert (scores[:, hero] < 1e-6).all() and (scores[:, bloat] > 10).all()
    for kind in ("zero", "counterfactual"):
        effects = np.abs(swept("hero_bloat", kind).metric - case.truth.intact)
        assert (effects[:, hero] > 10).all() and (effects[:, bloat] < 1e-5).all()


@pytest.mark.parametrize("method", ["eap_ig", "ig_activations"])
def test_integrated_gradients_tell_hero_from_bloat(method):
    case, subject = opened("hero_bloat")
    scores = np.abs(subject.attribute(case.task, method, steps=8).scores)
    close(scores[:, columns(case, ["L0H2", "L1H0"])], [32.0, 0.0])


OF_8 = {"steps": 8}


@pytest.mark.parametrize(
    ("method", "options"), [("gradient", {}), ("atp", {}), ("relp", {}), ("eap", {}), ("eap_ig", OF_8), ("ig_activations", OF_8)]
)
def test_no_gradient_sees_a_head_that_acts_through_saturated_attention(method, options):
    case, subject = opened("induction")
    scores = np.abs(subject.attribute(case.task, method, **options).scores)
    assert (scores[:, columns(case, ["L0H3"])] < 1e-6).all()
    close(single_effects("induction", "zero", ["L0H3"]), -16.0)


@pytest.mark.parametrize("method", ["eap_ig", "ig_activations"])
def test_a_midpoint_that_meets_the_jump_of_saturated_attention_overshoots_by_far(method):
    """Half way, answer, foil and <bos> share the attention: the slope there is 576·16·⅔, in one of five steps, for an effect of 32."""
    case, subject = opened("induction")
    scores = np.abs(subject.attribute(case.task, method, steps=5).scores)
    np.testing.assert_allclose(scores[:, columns(case, ["L0H3"])], 576 * 16 * 2 / 3 / 5, rtol=1e-4)
    close(single_effects("induction", "counterfactual", ["L0H3"]), -32.0)


def test_weight_gradients_score_dead_mlps_above_the_one_causal_head():
    """An output matrix of zeros has a gradient as long as something reads the stream: a bloat by construction."""
    case, subject = opened("copy_head")
    scores = subject.attribute(case.task, "weight_gradient").scores
    head, mlp, shared = columns(case, ["L1H2", "L0MLP", "L1H3"])
    assert (scores[:, mlp] > scores[:, head]).all() and (scores[:, head] > 0).all()
    assert (scores[:, shared] == scores[:, head]).all()  # one value head serves both
