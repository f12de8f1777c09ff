"""The shipped reversal and sorting models: they load by the usual calls, do what their records say, and can be measured."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2LMHeadModel

from models.sequence import card, vocabulary
from models.sequence.architecture import LENGTH, build
from models.sequence.evaluate import accuracies, usable
from models.sequence.recipes import FURTHER, PUBLISHED, RECIPES, SEEDS, TRAINED, Recipe
from models.sequence.train import batch, pace, rows, train
from pytest_circuits import load_task, open_model
from pytest_circuits.model.encoded_task import encode
from tests.paths import ROOT

pytestmark = pytest.mark.extensive

MODELS = [(name, seed) for name in RECIPES for seed in SEEDS]


def folder(name: str, seed: int) -> Path:
    return ROOT / "models" / f"sequence-{name}" / f"seed-{seed:02}"


@cache
def record(name: str, seed: int) -> dict:
    return json.loads((folder(name, seed) / "training.json").read_text(encoding="utf-8"))


@cache
def subject(name: str, seed: int):
    return open_model(str(folder(name, seed)), dtype="float32")  # this includes the self-check


# all twenty


@pytest.mark.parametrize(("name", "seed"), MODELS)
def test_it_is_a_plain_gpt2_without_positions_of_the_recorded_size(name, seed):
    model = AutoModelForCausalLM.from_pretrained(folder(name, seed))
    assert type(model) is GPT2LMHeadModel
    assert {p.dtype for p in model.parameters()} == {torch.bfloat16}
    assert not model.transformer.wpe.weight.any()
    assert model.lm_head.weight.data_ptr() != model.transformer.wte.weight.data_ptr()
    kept = record(name, seed)
    assert sum(p.numel() for p in model.parameters()) == kept["parameters"]
    assert kept["parameters"] - kept["trained_parameters"] == model.transformer.wpe.weight.numel()
    assert sum(f.stat().st_size for f in folder(name, seed).iterdir()) < 500_000


@pytest.mark.parametrize(("name", "seed"), MODELS)
def test_the_record_is_of_this_recipe_and_seed(name, seed):
    kept, recipe = record(name, seed), RECIPES[name]
    assert kept.items() >= {**vars(recipe), "seed": seed}.items()
    accuracy = {int(length): share for length, share in kept["accuracy"].items()}
    assert [*accuracy] == [*TRAINED, *FURTHER]
    assert kept["usable_lengths"] == usable(accuracy)
    assert kept["accuracy_published"] == pytest.approx(np.mean([accuracy[length] for length in PUBLISHED]), abs=1e-4)


@pytest.mark.parametrize(("name", "seed"), MODELS)
def test_it_does_its_task_as_well_as_recorded(name, seed):
    length = (*TRAINED, *FURTHER)[seed % 12]
    expected = record(name, seed)["accuracy"][str(length)]
    task = load_task(RECIPES[name].task, n=300, length=length)
    found = subject(name, seed).ablate_many(task, [()]).correct.mean()
    assert abs(found - expected) <= 4.5 * math.sqrt(max(expected * (1 - expected), 0.003) / 300)


def test_all_weights_differ_between_seeds():
    assert len({(folder(name, seed) / "model.safetensors").read_bytes() for name, seed in MODELS}) == len(MODELS)


@pytest.mark.parametrize("name", RECIPES)
def test_the_recorded_accuracy_is_that_of_the_recorded_prompts(name):
    kept = record(name, 0)
    tokenizer = AutoTokenizer.from_pretrained(folder(name, 0))
    found = accuracies(subject(name, 0).model, tokenizer, RECIPES[name], (9,), kept["prompts"])
    assert found[9] == pytest.approx(kept["accuracy"]["9"], abs=3.01 / kept["prompts"])  # rounding may turn a close call elsewhere


@pytest.mark.parametrize("name", RECIPES)
def test_the_card_is_made_from_the_records(name):
    shown = (ROOT / "models" / f"sequence-{name}" / "README.md").read_text(encoding="utf-8")
    assert shown == card.text(RECIPES[name], [record(name, seed) for seed in SEEDS])
    for seed in SEEDS:
        (row,) = re.findall(rf"^\| {seed} \|.*$", shown, re.M)
        assert f" {100 * record(name, seed)['accuracy']['10']:.1f} " in row


# the tokenizer


def test_the_recipe_makes_the_tokenizer_that_is_shipped():
    made = vocabulary.build(LENGTH)
    for name in RECIPES:
        shipped = AutoTokenizer.from_pretrained(folder(name, 0))
        assert made.get_vocab() == shipped.get_vocab() and len(shipped) == 104
        text = "[START] 5 17 3 [SEP] 3 17 5 [END]"
        assert shipped(text)["input_ids"] == made(text)["input_ids"] == [101, 5, 17, 3, 102, 3, 17, 5, 103]
        assert shipped.decode(shipped(text)["input_ids"]) == text
        assert [shipped.bos_token_id, shipped.sep_token_id, shipped.eos_token_id, shipped.pad_token_id] == [101, 102, 103, 100]


# measuring


@pytest.mark.parametrize("name", RECIPES)
def test_greedy_decoding_agrees_with_the_teacher_forced_argmax(name):
    found = subject(name, 1)
    task = load_task(RECIPES[name].task, n=60, length=9)
    code = found.encode(task)
    prompts = torch.tensor([ids[: start + 1] for ids, start in zip(code.clean, code.start, strict=True)])
    written = found.model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=10, do_sample=False)
    right = [tuple(row[: len(answer)]) == answer for row, answer in zip(written[:, prompts.shape[1] :].tolist(), code.answer, strict=True)]
    assert 0 < sum(right) < 60
    assert right == found.ablate_many(task, [()]).correct[0].tolist()


@pytest.mark.parametrize("name", RECIPES)
def test_positions_say_nothing(name):
    ids = torch.tensor([[101, 5, 17, 3, 102, 3, 17]])
    model = subject(name, 0).model
    with torch.no_grad():
        assert torch.equal(model(ids).logits, model(ids, position_ids=torch.tensor([[9, 2, 2, 30, 0, 1, 7]])).logits)


@pytest.mark.parametrize("name", RECIPES)
def test_prompts_of_mixed_lengths_are_answered_as_they_are_alone(name):
    found = subject(name, 0)
    task = load_task(RECIPES[name].task, n=64, length=[3, 8, 11])
    together = found.ablate_many(task, [()])
    for i in range(8):
        alone = found.ablate_many(task, [()], examples=[i])
        assert alone.log_prob[0, 0] == pytest.approx(together.log_prob[0, i], abs=1e-4)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("method", ["atp", "eap", "relp", "weight_gradient"])
def test_attributions_are_finite_and_tell_components_apart(name, method):
    found = subject(name, 0).attribute(load_task(RECIPES[name].task, n=24, length=[8, 9, 10, 11]), method)
    assert found.scores.shape == (24, 20) and np.isfinite(found.scores).all()
    assert len(set(np.abs(found.scores).mean(0).round(9).tolist())) == 20


@pytest.mark.parametrize("name", RECIPES)
def test_a_sweep_finds_components_that_the_answer_needs(name):
    found, task = subject(name, 0), load_task(RECIPES[name].task, n=64, length=7)
    swept = found.sweep(task)
    assert swept.correct.shape == (64, 20)
    assert swept.baseline.correct.mean() > 0.7 and swept.correct.mean(0).min() < 0.2
    worst = found.anatomy.universe.names("component")[int(swept.log_prob.mean(0).argmin())]
    assert found.ablate(task, remove=[worst]).log_prob == pytest.approx(swept.log_prob[:, swept.log_prob.mean(0).argmin()], abs=1e-3)


@pytest.mark.parametrize("name", RECIPES)
def test_the_weight_gradient_is_that_of_the_loss_on_the_answer(name):
    """Against autograd on the parameters, with the recipe's own rows."""
    found, task = subject(name, 0), load_task(RECIPES[name].task, n=3, length=8)
    numbers = torch.tensor([[int(word) for word in pair.clean.split()[1:-1]] for pair in task])
    ids, wanted = rows(numbers, name)
    scores = found.attribute(task, "weight_gradient", normalisation="none", gradient_batch=3).scores
    model = found.model
    c_attn, c_proj = model.transformer.h[2].attn.c_attn.weight, model.transformer.h[2].mlp.c_proj.weight
    logits = model(ids).logits[:, -wanted.shape[1] :]
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
    attention, mlp = torch.autograd.grad(loss, [c_attn, c_proj])
    heads = attention[:, 2 * 64 :].reshape(64, 4, 16).norm(dim=(0, 2))
    assert scores[0, 10:15] == pytest.approx([*heads.tolist(), mlp.norm().item()], rel=1e-3)


# the recipe


def test_a_training_batch_reads_and_predicts_what_the_task_encodes():
    tokenizer = vocabulary.build(LENGTH)
    for name, recipe in RECIPES.items():
        task = load_task(recipe.task, n=50, length=6)
        code = encode(task, tokenizer, len(tokenizer))
        ids, wanted = rows(torch.tensor([[int(word) for word in pair.clean.split()[1:-1]] for pair in task]), name)
        assert [tuple(row) for row in ids.tolist()] == list(code.clean)
        assert [tuple(row) for row in wanted.tolist()] == list(code.answer)


def test_batches_have_one_length_each_from_3_to_7_and_all_numbers():
    generator = torch.Generator().manual_seed(0)
    drawn = [batch(RECIPES["sort"], generator) for _ in range(60)]
    assert {wanted.shape[1] - 1 for _, wanted in drawn} == set(TRAINED)
    assert all(ids.shape == (64, 2 * (wanted.shape[1] - 1) + 2) for ids, wanted in drawn)
    assert set(range(1, 100)) == {int(i) for ids, _ in drawn for i in ids[:, 1:3].flatten()}


def test_the_learning_rate_warms_up_and_falls_to_its_floor():
    recipe = RECIPES["reverse"]
    assert [pace(0, recipe), pace(49, recipe)] == pytest.approx([0.01, 0.5])
    assert pace(500, recipe) == pytest.approx(0.5)
    assert pace(999, recipe) == recipe.floor
    assert all(pace(step, recipe) >= pace(step + 1, recipe) for step in range(100, 999))


def test_training_lowers_the_loss_repeats_itself_and_leaves_positions_at_zero():
    recipe = Recipe("reverse", "reversal", steps=60, batch=16, warm_up=10)

    def run(seed):
        made, losses = build(seed), []
        train(made, recipe, seed, lambda step, loss: losses.append(loss))
        return made, losses

    first, losses = run(0)
    again, repeated = run(0)
    other, _ = run(1)
    assert losses == repeated and np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.3
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)
    assert not first.transformer.wpe.weight.any()


def test_usable_lengths_are_those_between_floor_and_ceiling():
    given = {**dict.fromkeys(TRAINED, 0.5), **dict.fromkeys(FURTHER, 0.0), 8: 0.751, 9: 0.75, 10: 0.2, 11: 0.199}
    assert usable(given) == [9, 10]
