"""Where methods fail on planted truth, by how much, and which ones do not: redundancy, saturation, chains, bloats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.fakes.planted_subject import close, columns, faithfulness, opened, single_effects, swept


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
