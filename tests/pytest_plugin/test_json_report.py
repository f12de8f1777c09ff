"""The JSON document: the fields that outside checks rely on, and how it is written."""

from __future__ import annotations

import json
import os

import pytest

from tests.fakes.project import DEFAULTS, header

CLAIMS = """
shared:
  stated: {task: [swap, other], value: 0.5}
  at_least: 0.1
  description: what it means
too-much:
  stated: {value: 0.5}
  within: [0.8, 0.9]
  expect: refuted
nothing:
  stated: {raises: invalid}
  at_most: 0.9
"""


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_the_document_has_the_fields_and_types_that_are_promised(box):
    box.spec(CLAIMS)
    box.run()
    content = strict((box.path / "report.json").read_text(encoding="utf-8"))
    assert list(content) == ["schema", "suite", "models", "claims", "circuits"]
    assert content["schema"] == 1
    suite = content["suite"]
    assert suite["alpha"] == 0.05 and isinstance(suite["seconds"], float)
    assert suite["cost"] == {"forwards": 4, "backwards": 2, "cached": sum(c["cost"]["hits"] for c in content["claims"])}
    assert suite["verdicts"] == {"certified": 2, "refuted": 1, "inconclusive": 0, "invalid": 1}
    assert suite["errors"] == []
    (tiny,) = content["models"].values()
    assert list(content["models"]) == ["tiny"]
    assert tiny.items() >= {"fingerprint": "weights of model", "architecture": "fake", "parameters": 10, "layers": 2, "heads": 3}.items()
    ids = ["shared::tiny::swap", "shared::tiny::other", "too-much::tiny", "nothing::tiny"]
    assert [c["nodeid"] for c in content["claims"]] == [f"s.circuits.yaml::{one}" for one in ids]
    promised = [
        "nodeid",
        "claim",
        "property",
        "model",
        "tasks",
        "parameters",
        "estimate",
        "interval",
        "confidence",
        "n",
        "bound",
        "verdict",
        "reason",
        "details",
        "cost",
    ]
    for claim in content["claims"]:
        assert [key for key in claim if key in promised] == promised
    swap = content["claims"][0]
    assert (swap["claim"], swap["property"], swap["model"], swap["tasks"]) == ("shared", "stated", "tiny", ["swap"])
    assert (swap["estimate"], swap["interval"], swap["confidence"], swap["n"]) == (0.5, [0.4, 0.6], 0.95, 100)
    assert (swap["bound"], swap["verdict"], swap["expect"], swap["description"]) == (
        {"at_least": 0.1},
        "certified",
        "certified",
        "what it means",
    )
    assert swap["parameters"]["method"] == "atp" and "task" not in swap["parameters"]
    assert swap["details"] == {"array": [0.0, 1.0, 2.0], "nothing": None, "examples": 200, "scored": [200, 8]}
    assert set(swap["cost"]) >= {"forwards", "backwards", "seconds", "cached"}
    assert swap["cost"]["cached"] is False and swap["cost"]["forwards"] == 2
    assert swap["line"] == 8 and swap["file"] == "s.circuits.yaml"
    refuted, invalid = content["claims"][2:]
    assert (refuted["bound"], refuted["verdict"], refuted["passed"], refuted["outcome"]) == (
        {"within": [0.8, 0.9]},
        "refuted",
        True,
        "passed",
    )
    assert refuted["cost"]["cached"] is True
    assert (invalid["estimate"], invalid["interval"], invalid["n"], invalid["verdict"]) == (None, None, 0, "invalid")
    assert invalid["details"] == {"counted": 3}


def test_every_number_in_the_terminal_comes_from_the_document(box):
    box.spec(CLAIMS)
    box.run()
    suite = box.report["suite"]
    cached = suite["cost"]["cached"]
    box.result.stdout.fnmatch_lines([
        "claim     model  tasks  property  estimate  interval        n    bound              verdict",
        "shared    tiny   swap   stated    0.500     [[]0.400, 0.600[]]  100  at least 0.1       certified",
        "too-much  tiny          stated    0.500     [[]0.400, 0.600[]]  100  within [[]0.8, 0.9[]]  refuted (as expected)",
        "nothing   tiny          stated    —         —               —    at most 0.9        invalid",
        f"2 certified, 1 refuted, 1 invalid; 4 forwards, 2 backwards, {cached} stored measurements used; {suite['seconds']:.1f} s",
        "report: report.json",
    ])  # fmt: skip


def test_the_report_is_written_where_it_is_asked_for_and_whole(box, monkeypatch):
    box.spec(CLAIMS)
    box.run("--circuits-json=deep/er/out.json")
    assert (box.path / "deep" / "er" / "out.json").exists()
    assert sorted(p.name for p in (box.path / "deep" / "er").iterdir()) == ["out.json"]
    (box.path / "report.json").write_text("an older report")

    def broken(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    result = box.run("--circuits-cache-dir=cache", "-k", "shared")
    assert (box.path / "report.json").read_text() == "an older report"
    assert result.ret == pytest.ExitCode.USAGE_ERROR, "a report that is missing must not look like success"
    result.stdout.fnmatch_lines(["ERROR: the report cannot be written: disk full", "* 2 passed*"])
    assert sorted(p.name for p in box.path.glob("report*")) == ["report.json"]


@pytest.mark.parametrize(
    ("where", "told"), [("model", "*model is a folder; give the name of a file"), ("pairs.jsonl/out.json", "*pairs.jsonl is a file")]
)
def test_a_report_that_cannot_be_written_is_refused_before_measuring(box, where, told):
    box.spec(CLAIMS)
    assert box.run(f"--circuits-json={where}").ret == pytest.ExitCode.USAGE_ERROR
    box.result.stderr.fnmatch_lines([f"ERROR: --circuits-json: {told}"])
    assert box.calls == []


def test_a_model_that_cannot_be_opened_is_listed_without_facts(box):
    (box.path / "broken").symlink_to(box.path / "model")
    box.spec("c:\n  stated: {}\n  at_least: 0.1", header="version: 1\nmodels: {bad: {path: broken}, good: {path: model}}\n")
    assert box.run().ret == 1
    assert box.report["models"]["bad"] == {"fingerprint": None, "architecture": None, "parameters": None}
    assert box.verdicts == {"c::bad": "invalid", "c::good": "certified"}


def test_one_name_for_two_models_in_two_files_is_told_apart(box):
    box.spec("c:\n  stated: {}\n  at_least: 0.1", "a.circuits.yaml", header="version: 1\nmodels: {m: {path: model}}\n")
    box.spec("c:\n  stated: {}\n  at_least: 0.1", "b.circuits.yaml", header="version: 1\nmodels: {m: {path: second}}\n")
    box.spec("c:\n  stated: {raises: bug}\n  at_least: 0.1", "c.circuits.yaml", header="version: 1\nmodels: {m: {path: model}}\n")
    from tests.fakes import torch_side

    torch_side.fake_model(box.path / "second", b"other weights")
    box.run()
    assert [(c["file"], c["model"]) for c in box.report["claims"]] == [
        ("a.circuits.yaml", "m"),
        ("b.circuits.yaml", "m-2"),
        ("c.circuits.yaml", "m"),
    ]
    assert {name: m["fingerprint"] for name, m in box.report["models"].items()} == {"m": "weights of model", "m-2": "weights of second"}


def test_names_that_are_no_text_of_ascii_survive(box):
    header = "version: 1\nmodels: {größe: {path: model}}\ntasks: {aufgabe-π: {file: pairs.jsonl}}\n"
    box.spec("behauptung-→:\n  stated: {task: aufgabe-π}\n  at_least: 0.1\n  description: 'ünïcode \"quoted\" — 模型'", header=header)
    box.run("--junitxml=j.xml")
    (claim,) = box.report["claims"]
    assert (claim["claim"], claim["model"], claim["tasks"]) == ("behauptung-→", "größe", ["aufgabe-π"])
    assert "größe" in (box.path / "report.json").read_text(encoding="utf-8"), "readable, not escaped"


FAILING = """
reused:
  reuse: {task: own, p: 0.2}
  at_least: 0.99
needed:
  necessity: {task: own, p: 0.4, draws: 20}
  at_least: 0.9
overlapping:
  jaccard: {tasks: [own, swap], p: 0.2}
  at_least: 0.99
agreeing:
  gradient_ablation_agreement: {task: own}
  at_least: 0.99
few:
  neuron_faithfulness: {task: own, attribution: atp, neurons: 2}
  within: [0.99, 1.01]
"""


def test_each_property_tells_what_was_compared_with_what(real, tiny):
    """The model's own favourites are the answers, so that its parts matter."""
    import torch
    from transformers import LlamaForCausalLM

    prompts = torch.randint(2, 42, (60, 3), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        order = LlamaForCausalLM.from_pretrained(tiny.model)(prompts).logits[:, -1].argsort(-1)
    rows = [
        {"clean": clean, "corrupt": [(i - 1) % 40 + 2 for i in clean], "answer": [ranked[-1]], "foil": [ranked[0]]}
        for clean, ranked in zip(prompts.tolist(), order.tolist(), strict=True)
    ]
    (real.path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tasks = "own: {file: own.jsonl}, swap: {file: pairs.jsonl, n: 60}"
    real.spec(FAILING, header=header("tiny: {path: model}", tasks, DEFAULTS))
    assert real.run().ret == 1
    assert [c["verdict"] for c in real.report["claims"] if c["verdict"] not in ("refuted", "inconclusive")] == []
    real.result.stdout.fnmatch_lines([
        "  shared set of 30 discovery examples: {*} (* head*, * MLP*); circuits have 3 of 15 components",
        "  accuracy of the intact model: 1.000",
        "  removed: shared set of own {*} (* head*, * MLP*)",
        "  accuracy: intact 1.000, without the shared set *, without a control (c3, 20 draws) *",
        "  no rank among the controls: only 11 different control sets are possible*",
        "  own: {*} (* head*, * MLP*)",
        "  swap: {*} (* head*, * MLP*)",
        "  chance level (same numbers of heads and MLPs): *; noise ceiling (split halves): own *, swap *",
        "  G: weight_gradient on 30 examples; C: loss under zero ablation on 30; 15 components",
        "  ρ = *, τ-b = *; unrelated rankings: 0 ± 0.27",
        "  hidden heroes {*}, gradient bloats {*} by *; * expected by chance",
        "  2 of 192 neurons (atp, mlp_activation, * ablation); completeness *",
        "  mean metric: intact *, circuit kept *, circuit removed *, all neurons ablated *",
    ])  # fmt: skip
