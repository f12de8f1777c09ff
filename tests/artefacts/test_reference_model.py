"""The shipped multi-task model: it loads by the usual calls, and its record says what it can do."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from models.multitask import vocabulary
from models.multitask.architectures import ARCHITECTURES, LENGTH, Size, build
from models.multitask.data import NAMES, Source, facts, held_out, make, stacks, test_task, training_task
from models.multitask.evaluate import accuracy
from models.multitask.muon import orthogonalized
from models.multitask.train import Plan, train
from pytest_circuits.model.encoded_task import encode
from tests.paths import ROOT

pytestmark = pytest.mark.extensive

test_task.__test__ = False  # a name of the recipe, not a test
FOLDER = ROOT / "models" / "multitask-llama"
RECORD = json.loads((FOLDER / "training.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER)


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(FOLDER)


def test_it_is_a_plain_llama_in_float32_of_the_recorded_size(model, tokenizer):
    assert type(model) is LlamaForCausalLM
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert sum(p.numel() for p in model.parameters()) == RECORD["parameters"]
    assert model.config.vocab_size == len(tokenizer) == RECORD["vocabulary"]
    assert sum(f.stat().st_size for f in FOLDER.iterdir()) < 6_000_000


def test_words_digits_and_punctuation_are_tokens_and_bos_comes_first(tokenizer):
    def split(text):
        return tokenizer.convert_ids_to_tokens(tokenizer(text)["input_ids"])

    assert split("Compute: 47 + 12 = 59") == ["<bos>", "Compute", ":", "4", "7", "+", "1", "2", "=", "5", "9"]
    assert split("(true and not false) or true") == ["<bos>", "(", "true", "and", "not", "false", ")", "or", "true"]
    assert split("Answer: B\nMary,") == ["<bos>", "Answer", ":", "B", "Mary", ","]
    assert split("quux") == ["<bos>", "<unk>"]


def test_the_recipe_makes_the_tokenizer_that_is_shipped(tokenizer, tmp_path):
    made = vocabulary.build(LENGTH)
    assert made.get_vocab() == tokenizer.get_vocab()
    made.save_pretrained(tmp_path)
    again, text = AutoTokenizer.from_pretrained(tmp_path), "When Mary and John went to the store, John gave a drink to"
    assert again(text)["input_ids"] == tokenizer(text)["input_ids"] == made(text)["input_ids"]


@pytest.mark.parametrize("name", NAMES)
def test_all_prompts_of_a_task_are_known_words_of_equal_length_and_none_is_replaced(tokenizer, name):
    code = encode(make(name, 300, seed=9), tokenizer, len(tokenizer), LENGTH)
    assert (code.n, code.regenerated, code.notes) == (300, 0, ())


@pytest.mark.parametrize("name", NAMES)
def test_it_does_each_task_as_well_as_recorded(model, tokenizer, name):
    measured = accuracy(model, tokenizer, make(name, 256))
    assert measured == pytest.approx(RECORD["load_task"][name], abs=1.01 / 256)  # rounding may turn a close call elsewhere
    assert measured >= 0.97


@pytest.mark.parametrize("name", NAMES)
def test_it_does_each_task_on_held_out_prompts(model, tokenizer, name):
    task = test_task(name, RECORD["held_out_n"][name])
    assert len(task) == RECORD["held_out_n"][name]
    assert accuracy(model, tokenizer, task) == pytest.approx(RECORD["held_out"][name], abs=0.02)
    assert RECORD["held_out"][name] >= 0.97


def test_the_model_card_quotes_the_record():
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert all(f"{RECORD['load_task'][name]:.1%}" in card and name in card for name in NAMES)


# the recipe


def test_held_out_prompts_never_enter_training():
    assert not any(held_out(p.clean) for p in training_task(Source("capitals")))
    held = test_task("capitals")
    assert len(held) > 30 and all(held_out(p.clean) for p in held)


def test_a_sum_is_trained_together_with_its_end(tokenizer):
    stack = stacks(make("addition", 1), tokenizer)[0]
    assert tokenizer.convert_ids_to_tokens(stack.wanted[0].tolist()) == ["1", "6", "4", "<eos>"]
    assert tokenizer.convert_ids_to_tokens(stack.ids[0].tolist()) == [
        "<bos>",
        *["Compute", ":", "9", "4", "+", "7", "0", "=", "1", "6", "4"],
    ]


def test_single_hop_facts_are_text_that_the_tokenizer_knows(tokenizer):
    shapes = stacks(facts(), tokenizer)
    assert sum(len(s.ids) for s in shapes) == 2 * 120 + 2 * 40
    assert not any((s.ids == tokenizer.unk_token_id).any() or (s.wanted == tokenizer.unk_token_id).any() for s in shapes)


def test_muon_makes_singular_values_nearly_equal_and_keeps_singular_vectors():
    torch.manual_seed(0)
    x = torch.randn(3, 8, 20)
    values = torch.linalg.svdvals(orthogonalized(x))
    assert values.min() > 0.6 and values.max() < 1.3
    u, _, v = torch.linalg.svd(x, full_matrices=False)
    turned = u.mT @ orthogonalized(x) @ v.mT
    assert (turned - torch.diag_embed(torch.diagonal(turned, dim1=1, dim2=2))).abs().max() < 1e-4


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_training_lowers_the_loss_and_repeats_itself(tokenizer, architecture):
    tasks = {"capitals": stacks(make("capitals", 64), tokenizer)}
    plan = Plan(steps=12, batch=16, warm_up=2)

    def run():
        torch.manual_seed(0)
        made, losses = build(architecture, Size(layers=1, heads=2, width=32), tokenizer), []
        train(made, tasks, plan, lambda step, seconds, running: losses.append(running["capitals"]))
        return made, losses

    first, losses = run()
    second, _ = run()
    assert losses[-1] < losses[0]
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
