"""`python -m models.planted`: folders that the usual calls open, with truth and task beside the weights; and those that are shipped."""

from __future__ import annotations

import json
import sys

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.planted import __main__ as command
from models.planted import card, plant
from pytest_circuits import load_task, open_model
from tests.fakes.planted_oracle import CIRCUITS, TOLERANCE, planted, replaced, shapes, universe

every_circuit = pytest.mark.parametrize("name", CIRCUITS)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder that the command wrote."""
    folder = tmp_path_factory.mktemp("planted")
    before = sys.argv
    sys.argv = ["planted", str(folder)]
    try:
        command.main()
    finally:
        sys.argv = before
    return folder


@every_circuit
def test_a_checkpoint_loads_by_the_usual_calls_and_computes_the_same(written, name):
    case = planted(name)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(written / name), AutoTokenizer.from_pretrained(written / name)
    assert type(model) is type(case.model) and tokenizer.get_vocab() == case.tokenizer.get_vocab()
    with torch.no_grad():
        for _, ids in shapes(name):
            assert torch.equal(model(input_ids=ids).logits, case.model(input_ids=ids).logits)
    assert tokenizer(case.task.pairs[0].clean).input_ids == case.tokenizer(case.task.pairs[0].clean).input_ids


@every_circuit
def test_a_checkpoint_and_its_task_file_measure_what_the_truth_file_says(written, name):
    folder = written / name
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    task = load_task(folder / "task.jsonl", scoring=truth["scoring"])
    found = open_model(str(folder)).ablate(task, remove=truth["causal"])
    assert found.baseline.correct.all() and not found.correct.any()
    assert found.baseline.metric == pytest.approx(truth["intact"], abs=1e-4)
    assert found.metric == pytest.approx(0, abs=1e-4)
    assert truth["metric"] == "logit_diff" and set(truth["zero"]) <= set(truth["causal"])


@every_circuit
def test_files_say_all_that_is_known(written, name):
    truth = json.loads((written / name / "truth.json").read_text(encoding="utf-8"))
    expected = json.loads(json.dumps(planted(name).truth.as_dict()))
    assert {key: truth[key] for key in expected} == expected and truth["name"] == name
    card = (written / name / "README.md").read_text(encoding="utf-8")
    assert type(planted(name).model).__name__ in card and "corrupt:" in card
    assert sum(file.stat().st_size for file in (written / name).iterdir()) < 1_000_000


def test_building_twice_gives_the_same_weights_whatever_the_seed():
    torch.manual_seed(1)
    first = plant("backup")
    torch.manual_seed(2)
    second = plant("backup")
    for (key, a), (_, b) in zip(first.model.state_dict().items(), second.model.state_dict().items(), strict=True):
        assert torch.equal(a, b), key


def test_one_circuit_can_be_chosen(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["planted", str(tmp_path), "--circuit", "memory"])
    command.main()
    assert [folder.name for folder in tmp_path.iterdir()] == ["memory"]
    assert "memory" in capsys.readouterr().out


# the shipped ones

TEXTS = ("task.jsonl", "truth.json", "README.md", "tokenizer.json")


@every_circuit
def test_the_recipe_rebuilds_what_is_shipped_bit_for_bit(written, name):
    shipped, made = load_file(command.FOLDER / name / "model.safetensors"), load_file(written / name / "model.safetensors")
    assert shipped.keys() == made.keys()
    assert all(torch.equal(shipped[key], made[key]) and shipped[key].dtype == torch.float32 for key in shipped)
    for file in TEXTS:
        assert (command.FOLDER / name / file).read_text(encoding="utf-8") == (written / name / file).read_text(encoding="utf-8"), file


def test_a_page_about_all_is_shipped_as_the_recipe_writes_it(written):
    text = (command.FOLDER / "README.md").read_text(encoding="utf-8")
    assert text == (written / "README.md").read_text(encoding="utf-8")
    assert sorted(f.name for f in command.FOLDER.iterdir()) == sorted([*CIRCUITS, "README.md"])
    assert sum(f.stat().st_size for f in command.FOLDER.rglob("*") if f.is_file()) < 2_000_000


@every_circuit
def test_a_shipped_model_answers_its_task_file_by_plain_forwards(name):
    folder = command.FOLDER / name
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    lines = [json.loads(line) for line in (folder / "task.jsonl").read_text(encoding="utf-8").splitlines()]
    with torch.no_grad():
        for line in lines:
            for prompt, answer in ((line["clean"], line["answer"]), (line["corrupt"], line["foil"])):
                logits = model(**tokenizer(prompt, return_tensors="pt")).logits[0, -1]
                assert tokenizer.decode(logits.argmax()) == answer
    assert len(lines) == 24


@every_circuit
def test_the_table_of_the_card_says_what_plain_hooks_measure(name):
    """The columns zero and counterfactual, read back from the text, against effects that share no code with it."""
    case = planted(name)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in card.table(case.truth).splitlines() if line.startswith("| L")]
    told = {row[0]: (float(row[1]), float(row[2])) for row in rows}
    intact = replaced(name, (), "zero")
    for unit in universe(case):
        for kind, effect in zip(("zero", "counterfactual"), told.get(unit, (0.0, 0.0)), strict=True):
            assert replaced(name, (unit,), kind) - intact == pytest.approx(effect, abs=TOLERANCE)


def test_numbers_of_the_tables_are_signed_and_what_is_no_effect_is_zero():
    text = "".join(card.table(planted(name).truth) for name in CIRCUITS)
    assert "| +32 |" in text and "| 0 |" in text and "e-" not in text
