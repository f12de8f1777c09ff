"""The ready spec on the shipped reference model, run as a user runs it: verdicts, thresholds, an untrained copy, workers, the cache."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.waiting import HANG

pytestmark = pytest.mark.extensive

SPEC = ROOT / "specs" / "core.circuits.yaml"
NEGATIVE = {"ioi-has-backups", "weight-gradients-mislead-on-copycolors", "too-few-neurons-do-not"}


def run(spec: Path, cache: Path, out: Path, *options: str) -> tuple[int, dict, str]:
    """pytest in a process of its own: (exit code, JSON report, output)."""
    given = [f"--circuits-cache-dir={cache}", f"--circuits-json={out}", "-p", "no:cacheprovider", *options]
    command = [sys.executable, "-m", "pytest", str(spec), *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    return done.returncode, json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}, done.stdout + done.stderr


def verdicts(report: dict) -> dict[str, str]:
    """By node id below the file."""
    return {c["nodeid"].partition("::")[2]: c["verdict"] for c in report["claims"]}


def variant(folder: Path, text: str) -> Path:
    """A copy of the ready spec with another text, which finds the model where it is."""
    path = folder / "variant.circuits.yaml"
    path.write_text(text.replace("../models", str(ROOT / "models")), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A run from an empty cache."""
    folder = tmp_path_factory.mktemp("ready")
    code, report, text = run(SPEC, folder / "cache", folder / "first.json")
    assert code == 0, text
    return folder / "cache", report, text


def test_every_claim_is_certified_or_refuted_as_the_spec_says(first):
    _, report, text = first
    wrong = {c["nodeid"]: c["verdict"] for c in report["claims"] if c["verdict"] != ("refuted" if c["claim"] in NEGATIVE else "certified")}
    assert wrong == {}
    assert {c["property"] for c in report["claims"]} == {
        "reuse", "necessity", "jaccard", "gradient_ablation_agreement", "neuron_faithfulness",
    }  # fmt: skip
    assert all(c["reason"] and c["interval"][0] <= c["estimate"] <= c["interval"][1] for c in report["claims"])
    assert "refuted (as expected)" in text and "13 certified, 3 refuted" in text


def test_a_second_run_measures_nothing_imports_no_torch_and_says_the_same(first, tmp_path):
    cache, report, _ = first
    probe = tmp_path / "probe.py"
    probe.write_text(
        "import sys\ndef pytest_unconfigure(config):\n"
        "    print('HEAVY', [m for m in ('torch', 'transformers', 'tokenizers') if m in sys.modules])\n"
    )
    given = [f"--circuits-cache-dir={cache}", f"--circuits-json={tmp_path / 'r.json'}", "-p", "probe", "-q"]
    command = [sys.executable, "-m", "pytest", str(SPEC), *given]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=HANG, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    again = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert "HEAVY []" in done.stdout
    assert again["suite"]["cost"]["forwards"] == 0 == again["suite"]["cost"]["backwards"]
    strip = [{k: v for k, v in c.items() if k != "cost"} for c in again["claims"]]
    assert strip == [{k: v for k, v in c.items() if k != "cost"} for c in report["claims"]]


@pytest.mark.parametrize(
    ("claim", "old", "new", "expected"),
    [
        ("boolean-is-spread-out", "at_most: 0.4", "at_most: 0.1", "refuted"),
        ("tasks-differ", "at_most: 0.6", "at_most: 0.2", "inconclusive"),
        ("shared-set-matters", "at_least: 0.2", "at_least: 0.9", "refuted"),
    ],
)
def test_flipping_a_threshold_turns_exactly_that_claim(first, tmp_path, claim, old, new, expected):
    cache, report, _ = first
    text = SPEC.read_text(encoding="utf-8")
    start = text.index(f"  {claim}:\n")
    changed = text[:start] + text[start:].replace(old, new, 1)
    _, other, _ = run(variant(tmp_path, changed), cache, tmp_path / "out.json")
    differing = {k: v for k, v in verdicts(other).items() if verdicts(report)[k] != v}
    assert {k.split("::")[0] for k in differing} == {claim}
    assert set(differing.values()) == {expected}
    assert other["suite"]["cost"]["forwards"] == 0


def test_other_p_and_k_run_no_attribution(first, tmp_path):
    """P and K are applied to stored scores: the reuse claims at other settings run no forward at all."""
    cache, _, _ = first
    text = SPEC.read_text(encoding="utf-8").replace("p: 0.8", "p: 0.7").replace("size: 20%", "size: 25%")
    _, other, _ = run(variant(tmp_path, text), cache, tmp_path / "out.json", "-k", "recur or spread or differ")
    assert len(other["claims"]) == 5
    assert other["suite"]["cost"]["forwards"] == 0


@pytest.mark.parametrize("gate", ["min_accuracy: 0.9", "min_accuracy: 0.6", "min_accuracy: 0.4"])
def test_an_untrained_copy_is_never_certified(tmp_path, gate):
    """Random weights in the same architecture, under the spec's gate, the default one, and one below guessing on two choices."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = ROOT / "models" / "multitask-llama"
    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(source)).save_pretrained(tmp_path / "untrained")
    AutoTokenizer.from_pretrained(source).save_pretrained(tmp_path / "untrained")
    text = re.sub(r"min_accuracy: [\d.]+", gate, SPEC.read_text(encoding="utf-8"))
    _, report, _ = run(
        variant(tmp_path, text), tmp_path / "cache", tmp_path / "out.json", f"--circuits-model=candidate={tmp_path / 'untrained'}", "-q"
    )
    assert len(report["claims"]) == 16
    assert set(verdicts(report).values()) <= {"invalid", "refuted"}


def test_two_workers_measure_each_thing_once_and_agree(first, tmp_path):
    _, report, _ = first
    code, shared, text = run(SPEC, tmp_path / "cache", tmp_path / "out.json", "-n", "2")
    assert code == 0, text
    assert verdicts(shared) == verdicts(report)
    assert shared["suite"]["cost"]["forwards"] == report["suite"]["cost"]["forwards"]
    assert [c["estimate"] for c in shared["claims"]] == [c["estimate"] for c in report["claims"]]


def test_the_spec_about_all_prompts_finds_the_counterexample_and_reruns_without_a_forward(tmp_path):
    spec = ROOT / "specs" / "all_prompts.circuits.yaml"
    code, report, text = run(spec, tmp_path / "cache", tmp_path / "out.json", "--hypothesis-seed=0")
    assert code == 0, text
    assert verdicts(report) == {
        "no-sum-survives-without-the-core::candidate": "certified",
        "no-component-outside-flips-a-capital::candidate": "certified",
        "no-component-outside-flips-a-name::candidate": "refuted",
        "hardly-any-does::candidate": "certified",
    }
    refuted = next(c for c in report["claims"] if c["verdict"] == "refuted")
    assert len(refuted["details"]["counterexample"]["units"]) == 1
    assert report["suite"]["cost"]["forwards"] < 150, "hundreds of prompts in a few batches"
    _, again, _ = run(spec, tmp_path / "cache", tmp_path / "again.json", "--hypothesis-seed=0")
    assert again["suite"]["cost"]["forwards"] == 0
    assert verdicts(again) == verdicts(report)
