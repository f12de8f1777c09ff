"""What a run imports: the heavy libraries only when something is measured. Each run is a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

TORCH = ("torch", "transformers")
HEAVY = (*TORCH, "numpy", "scipy")
CONFTEST = f"""
import sys
def pytest_unconfigure(config):
    import json
    open("imported.json", "w").write(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))
"""
HEADER = """\
version: 1
models: {tiny: {path: model}}
tasks:
  swap: {file: pairs.jsonl}
  digits: {builtin: addition, n: 20}
  loaded: {loader: "json:loads"}
"""
SUITE = """
shared:
  reuse: {task: swap, p: 0.3, size: 25%, attribution: atp, min_accuracy: 0.0}
  at_least: 0.1
too-much:
  reuse: {task: swap, p: 0.3, size: 25%, attribution: atp, min_accuracy: 0.0}
  at_least: 0.9
nec:
  necessity: {task: swap, p: 0.3, size: 25%, attribution: atp, min_accuracy: 0.0, draws: 20}
  at_most: 0.9
few:
  neuron_faithfulness: {task: swap, attribution: atp, neurons: 20, min_accuracy: 0.0}
  within: [0.9, 1.1]
"""
EVERYTHING = SUITE + """
agree:
  gradient_ablation_agreement: {task: [swap, digits, loaded], confidence: [0.9, 0.95]}
  at_least: 0.1
overlap:
  jaccard: {tasks: [swap, digits], attribution: [eap, relp]}
  at_most: 0.9
"""  # fmt: skip


@pytest.fixture
def fresh(real):
    """A project whose runs are processes of their own and leave a list of what they imported."""
    real.pytester.makeconftest(CONFTEST)

    def run(*arguments):
        import json

        (real.path / "imported.json").unlink(missing_ok=True)
        result = real.pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
        return result, json.loads((real.path / "imported.json").read_text())

    real.fresh = run
    return real


def test_importing_the_package_imports_nothing_else(tmp_path):
    others = (*HEAVY, "pydantic", "yaml", "pytest")
    code = f"import sys, pytest_circuits; print([m for m in {others} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path).stdout == "[]\n"


@pytest.mark.extensive
@pytest.mark.parametrize("argument", ["--help", "--collect-only", "--markers"])
def test_help_and_collection_import_neither_torch_nor_numpy(fresh, argument):
    fresh.spec(EVERYTHING, header=HEADER)
    fresh.python("def test_it(circuits): pass\n")
    result, imported = fresh.fresh(argument)
    assert (result.ret, imported) == (0, [])
    if argument == "--collect-only":
        assert result.stdout.str().count("<ClaimItem") == 12


@pytest.mark.extensive
def test_a_wrong_spec_is_refused_without_torch_or_numpy(fresh):
    fresh.spec("c:\n  reuse: {task: swap, p: 2}\n  at_least: 3", header=HEADER)
    result, imported = fresh.fresh()
    assert (result.ret, imported) == (2, [])


@pytest.mark.extensive
def test_a_plan_imports_no_torch(fresh):
    fresh.spec(SUITE, header=HEADER)
    result, imported = fresh.fresh("--circuits-plan", "--circuits-cache-dir=cold")
    assert (result.ret, [m for m in imported if m in TORCH]) == (0, [])


@pytest.mark.extensive
def test_a_warm_rerun_imports_no_torch_and_says_the_same(fresh):
    """Also when nothing but thresholds, P and K were changed."""
    fresh.spec(SUITE, header=HEADER)
    assert fresh.run().ret == 1
    cold = fresh.report
    result, imported = fresh.fresh("--circuits-json=report.json")
    assert (result.ret, imported) == (1, [])
    warm = fresh.report
    assert [{k: v for k, v in c.items() if k != "cost"} for c in warm["claims"]] == [
        {k: v for k, v in c.items() if k != "cost"} for c in cold["claims"]
    ]
    assert (warm["suite"]["cost"]["forwards"], warm["suite"]["cost"]["backwards"]) == (0, 0)
    assert all(c["cost"]["cached"] for c in warm["claims"])

    fresh.spec(SUITE.replace("at_least: 0.9", "at_least: 0.1").replace("p: 0.3, size: 25%", "p: 0.4, size: 4", 2), header=HEADER)
    result, imported = fresh.fresh("--circuits-json=report.json", "--circuits-offline")
    changed = fresh.claims
    assert [m for m in imported if m in TORCH] == []
    assert (fresh.report["suite"]["cost"]["forwards"], changed["too-much"]["verdict"]) == (0, "certified")
    assert changed["shared"]["estimate"] != next(c for c in cold["claims"] if c["claim"] == "shared")["estimate"]
