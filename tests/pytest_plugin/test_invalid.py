"""What cannot be measured is invalid: one clear message for that claim alone, no traceback, and the other claims go on."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.fakes.project import save_tokenizer

HEADER = """\
version: 1
models:
  tiny: {path: model}
  other: {path: other}
tasks:
  swap: {file: pairs.jsonl}
  bad: {file: bad.jsonl}
defaults: {size: 25%, attribution: atp, min_accuracy: 0.0}
"""
FINE = "fine:\n  reuse: {task: swap, p: 0.3}\n  at_least: 0.1\n  model: tiny\n"


def line(**changes):
    return json.dumps({"clean": "w1 w2 w3", "corrupt": "w4 w2 w3", "answer": "w1", "foil": "w4"} | changes) + "\n"


TASKS = {
    "an answer that is not in the vocabulary": (line() + line(answer="zebra"), ["zebra", "not in the tokenizer's vocabulary"]),
    "a prompt word that is not in the vocabulary": (line() + line(clean="w1 zebra w3"), ["zebra", "not in the tokenizer's vocabulary"]),
    "answers that share their first token": (line(answer="w1 w2", foil="w1 w3") * 4, ["first token"]),
    "prompts of unequal lengths": (line() + line(corrupt="w4 w2"), ["the clean prompt has 3 tokens, the corrupt one 2", "bad.jsonl:2"]),
    "an empty task file": ("\n", ["bad.jsonl: no prompt pairs in this file"]),
    "a malformed line": (line() + "\n" + line()[:-20] + "\n", ["bad.jsonl:3: not a JSON object"]),
    "a missing field": (line() + '{"clean": "w1", "answer": "w2"}\n', ["bad.jsonl:2: corrupt missing"]),
    "an unknown field": (line(anwser="w1"), ["bad.jsonl:1: unknown field 'anwser'; did you mean 'answer'?"]),
    "an answer that is its own foil": (line(foil="w1"), ["the answer equals a foil", "bad.jsonl:1"]),
    "a missing task file": (None, ["bad.jsonl: cannot read the task file: No such file or directory"]),
    "no UTF-8": (b"\xff\n", ["bad.jsonl:1: not UTF-8"]),
    "too few examples to split": (line(), ["group"]),
}


@pytest.mark.parametrize("kind", TASKS)
def test_a_task_that_does_not_fit_makes_its_claims_invalid(real, kind):
    content, told = TASKS[kind]
    if content is not None:
        (real.path / "bad.jsonl").write_bytes(content if isinstance(content, bytes) else content.encode())
    real.spec(f"{FINE}wrong:\n  reuse: {{task: bad, p: 0.3}}\n  at_least: 0.1\n  model: tiny", header=HEADER)
    check(real, told)


def check(real, told, verdict="certified"):
    result = real.run("-p", "no:cacheprovider")
    assert result.ret == 1
    assert real.verdicts["fine::tiny::swap"] == verdict
    wrong = real.claims["wrong"]
    assert (wrong["verdict"], wrong["estimate"], wrong["interval"]) == ("invalid", None, None)
    assert [part for part in told if part not in wrong["reason"]] == [], wrong["reason"]
    shown = result.stdout.str() + result.stderr.str()
    assert "Traceback" not in shown and ".py:" not in shown
    assert shown.count("\ninvalid: reuse(") == 1, "told once, besides pytest's short summary"
    assert str(real.path) + "/bad" not in shown, "paths are written from the working directory"
    assert len(wrong["reason"].replace(str(real.path), "")) < 600


def other_model(real):
    shutil.copytree(real.path / "model", real.path / "other")
    return real.path / "other"


def no_directory(real):
    return ["there is no directory", "other"]


def no_weights(real):
    (other_model(real) / "model.safetensors").unlink()
    return ["no weights"]


def no_config(real):
    (other_model(real) / "config.json").unlink()
    return ["no config.json"]


def broken_config(real):
    (other_model(real) / "config.json").write_text("{")
    return ["config.json"]


def missing_tensors(real):
    from safetensors.torch import load_file, save_file

    file = other_model(real) / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.layers.1.mlp.down_proj.weight"]
    save_file(tensors, file, {"format": "pt"})
    return ["lacks model.layers.1.mlp.down_proj.weight", "these weights would be random"]


def cut_weights(real):
    file = other_model(real) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])
    return ["cannot be loaded"]


def another_shape(real):
    folder = other_model(real)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 48}))
    return ["model.layers.0.mlp"]


def a_tokenizer_that_does_not_fit(real):
    save_tokenizer(other_model(real), ["<pad>", "<unk>", *(f"x{i}" for i in range(60)), *(f"w{i}" for i in range(40))])
    return ["token id 67 is outside the model's vocabulary of 42: the tokenizer does not fit this model"]


def no_tokenizer(real):
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (other_model(real) if not (real.path / "other").exists() else real.path / "other").joinpath(name).unlink(missing_ok=True)
    return ["tokenizer"]


def no_such_architecture(real):
    folder = other_model(real)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"model_type": "nonesuch", "architectures": ["Nonesuch"]}))
    return ["nonesuch"]


@pytest.mark.parametrize("damage", [no_directory, no_weights, no_config, broken_config, missing_tensors, cut_weights, another_shape,
                                    a_tokenizer_that_does_not_fit, no_tokenizer, no_such_architecture])  # fmt: skip
def test_a_model_that_cannot_be_used_makes_its_claims_invalid(real, damage):
    told = damage(real)
    real.spec(f"{FINE}wrong:\n  reuse: {{task: swap, p: 0.3}}\n  at_least: 0.1\n  model: other", header=HEADER)
    check(real, told)


def test_a_model_that_cannot_do_the_task_is_invalid(real):
    """There is no behaviour to explain below the gate."""
    real.spec(f"{FINE}wrong:\n  reuse: {{task: swap, p: 0.3, min_accuracy: 0.9}}\n  at_least: 0.1\n  model: tiny", header=HEADER)
    check(real, ["54 of 100 examples", "below min_accuracy 0.9", "there is no behaviour to explain"])
    assert real.claims["wrong"]["details"]["accuracy"] == 0.54


def test_an_empty_shared_set_makes_necessity_invalid_with_the_arithmetic(real):
    real.spec("wrong:\n  necessity: {task: swap, p: 1.0}\n  at_least: 0.1\n  model: tiny", header=HEADER)
    real.run()
    assert real.claims["wrong"]["verdict"] == "invalid"
    assert "no component is in 100 of 100 circuits (P = 1)" in real.claims["wrong"]["reason"]


@pytest.mark.parametrize(("option", "told"), [
    ("--circuits-device=nodevice", "nodevice"),
    ("--circuits-device=cuda:7", "cuda:7"),
])  # fmt: skip
def test_a_precision_or_device_that_is_not_there_makes_claims_invalid(real, option, told):
    real.spec(FINE, header=HEADER)
    assert real.run(option).ret == 1
    assert real.claims["fine"]["verdict"] == "invalid"
    assert told in real.claims["fine"]["reason"]
    assert "Traceback" not in real.result.stdout.str()


def test_a_model_that_fails_on_one_device_still_works_on_another(real):
    models = "models:\n  gpu: {path: model, device: 'cuda:7'}\n  cpu: {path: model}\n"
    header = f"version: 1\n{models}tasks: {{swap: {{file: pairs.jsonl}}}}\ndefaults: {{size: 25%, attribution: atp, min_accuracy: 0.0}}\n"
    real.spec("c:\n  reuse: {task: swap, p: 0.3}\n  at_least: 0.1", header=header)
    real.run("--circuits-no-cache")
    assert real.verdicts == {"c::gpu::swap": "invalid", "c::cpu::swap": "certified"}
    assert {claim["model"]: "cuda:7" in claim["reason"] for claim in real.report["claims"]} == {"gpu": True, "cpu": False}


@pytest.mark.parametrize(("claim", "told"), [
    ("reuse: {task: swap, p: 0.3, size: 100%}", "all 15 components: nothing could fail to be in it"),
    ("reuse: {task: swap, p: 0.001}", "every component of any circuit would count as shared"),
    ("necessity: {task: swap, p: 0.001}", "every component of any circuit would count as shared"),
    ("neuron_faithfulness: {task: swap, attribution: atp, neurons: 100%}", "nothing is left to ablate"),
])  # fmt: skip
def test_a_claim_that_could_not_fail_is_invalid(real, claim, told):
    real.spec(f"wrong:\n  {claim}\n  at_least: 0.1\n  model: tiny", header=HEADER)
    real.run()
    assert real.claims["wrong"]["verdict"] == "invalid"
    assert told in real.claims["wrong"]["reason"]


def test_ablation_does_not_stand_for_a_gradient(real):
    claim = "gradient_ablation_agreement: {task: swap, gradient: exact, gradient_options: {kind: zero}}"
    real.spec(f"wrong:\n  {claim}\n  at_least: 0.1\n  model: tiny", header=HEADER)
    assert real.run().ret == pytest.ExitCode.INTERRUPTED
    assert "agrees with itself" in real.result.stdout.str()


def test_copies_of_one_example_are_no_evidence(real):
    line = (real.path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()[0]
    (real.path / "copies.jsonl").write_text(f"{line}\n" * 60, encoding="utf-8")
    header = HEADER.replace("pairs.jsonl", "copies.jsonl")
    real.spec("wrong:\n  reuse: {task: swap, p: 0.3}\n  at_least: 0.1\n  model: tiny", header=header)
    real.run()
    assert real.claims["wrong"]["verdict"] == "invalid"
    assert "60 examples form 1 groups" in real.claims["wrong"]["reason"]
