"""`--circuits-mutate` as it is run: planted models, where it is known which heads matter."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest

from tests.waiting import HANG

NECESSARY = """
matters:
  necessity: {task: words, p: 0.9, control: c3_any}
  at_least: 0.3
"""
MORE = NECESSARY + """
bloat-does-not:
  joint_ablation: {task: words, set: {units: [L1H0]}}
  at_most: 0.34
study:
  reuse: {task: words, p: 0.9}
  at_least: 0.2
  expect: measured
weak:
  reuse: {task: words, p: 0.9}
  at_most: 0.5
  expect: refuted
broken:
  reuse: {task: words, p: 0.9}
  at_most: 0.5
"""  # fmt: skip
PLACES = "--circuits-mutate=zero-head:L0H2,zero-head:L1H0,shuffle-head:in,permute-heads,noise:sigma=0.001,swap-labels"


@pytest.mark.extensive
def test_a_mutant_of_the_planted_head_is_noticed_and_one_of_a_bystander_is_not(project):
    """hero_bloat: L0H2 does the work; L1H0 writes, is read, and changes no answer by a bit."""
    box = project()
    box.spec(NECESSARY)
    assert box.run(PLACES).ret == 0
    found = box.mutants
    assert {name: m["status"] for name, m in found.items()} == {
        "zero-head:L0H2": "noticed", "zero-head:L1H0": "equivalent", "shuffle-head:L0H2": "noticed", "permute-heads": "equivalent",
        "noise:sigma=0.001": "survived", "swap-labels": "noticed",
    }  # fmt: skip
    assert list(found["zero-head:L0H2"]["caught_by"].values()) == ["invalid"]
    assert found["zero-head:L0H2"]["behaviour"]["words"]["accuracy"] == [1.0, 0.0]
    assert "equivalent on these prompts" in found["zero-head:L1H0"]["reasons"][0]
    assert "under other names" in found["permute-heads"]["reasons"][0]
    assert any("of the way to its bound" in r or "no estimate came nearer" in r for r in found["noise:sigma=0.001"]["reasons"])
    assert (box.mutation["noticed"], box.mutation["counted"], box.mutation["score"]) == (3, 4, 0.75)
    assert box.mutation["invalid_only"] == 3
    prints = [m["fingerprint"] for m in found.values() if m["fingerprint"]]
    assert len(set(prints)) == 5 and box.report["models"]["candidate"]["fingerprint"] not in prints


def test_a_claim_of_necessity_notices_by_itself_where_no_gate_stands_before_it(project):
    """Without a gate: removing a head that is cut out already costs nothing, 0 [−0.33, 0.33] on 12 examples."""
    box = project()
    box.spec("""
by-name:
  joint_ablation: {task: words, set: {units: [L0H2]}, min_accuracy: 0.0}
  at_least: 0.34
""")
    box.run("--circuits-mutate=zero-head:L0H2,zero-head:L1H0")
    assert box.mutants["zero-head:L0H2"]["caught_by"] == {"s.circuits.yaml::by-name::candidate::words": "refuted"}
    assert box.mutants["zero-head:L1H0"]["status"] == "equivalent" and box.mutation["score"] == 1.0


@pytest.mark.extensive
def test_nothing_on_disk_changes_and_a_second_run_says_the_same_without_torch(project, planted):
    """The measurements of mutants are kept under fingerprints of their own; the intact model's stay what they were."""
    box = project()
    box.spec(NECESSARY)
    before = box.digest
    box.run(PLACES)
    first, plain = box.mutation, box.report["claims"]
    assert box.digest == before
    code = "import sys, pytest\ncode = pytest.main(sys.argv[1:])\nassert not {'torch', 'transformers'} & set(sys.modules)\nsys.exit(code)"
    again = [sys.executable, "-c", code, PLACES, "--circuits-json=report.json", "-p", "no:cacheprovider"]
    done = subprocess.run(again, cwd=box.path, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {**box.mutation, "seconds": 0} == {**first, "seconds": 0}
    assert box.report["suite"]["cost"]["forwards"] == 0
    box.run()
    assert "mutation" not in box.report
    kept = ("nodeid", "estimate", "interval", "verdict", "details")
    assert [[c[key] for key in kept] for c in box.report["claims"]] == [[c[key] for key in kept] for c in plain]


def test_claims_are_told_apart_by_what_they_can_notice(project):
    """A study only by becoming invalid; a negative control by no longer being refuted; one that failed already takes no part."""
    box = project()
    box.spec(MORE)
    assert box.run(PLACES).ret == 1, "the intact run fails"
    (spec,) = box.mutation["specs"]
    claims = {c["claim"]: c for c in spec["claims"]}
    assert set(claims) == {"matters::words", "bloat-does-not::words", "study::words", "weak::words"}
    assert [(one["claim"], one["reason"]) for one in spec["left_out"]] == [("broken::words", "refuted on the intact model already")]
    assert claims["study::words"]["study"] and set(claims["study::words"]["caught"].values()) == {"invalid"}
    assert "zero-head:L0H2" in claims["weak::words"]["caught"]
    box.result.stdout.fnmatch_lines(["*= circuits mutation =*", "*left out, refuted on the intact model already: broken::words"])


def test_a_claim_that_cannot_fail_is_named(project):
    box = project()
    box.spec(NECESSARY + """
loose:
  joint_ablation: {task: words, set: {units: [L1H0]}, min_accuracy: 0.0}
  at_most: 0.9
""")  # fmt: skip
    box.run("--circuits-mutate=zero-head:L0H2")
    box.result.stdout.fnmatch_lines(["*never caught a mutant, so these may be unable to fail: loose::words", "*mutation score: 1 of 1*"])


@pytest.mark.parametrize(("score", "code"), [("0.75", 0), ("0.76", 1)])
def test_the_run_fails_below_the_score_that_is_asked_for(project, score, code):
    box = project()
    box.spec(NECESSARY)
    assert box.run(PLACES, f"--circuits-mutate-score={score}").ret == code
    assert box.mutation["passed"] is (code == 0)
    assert ("FAILED: --circuits-mutate-score asks for 76%" in box.result.stdout.str()) is bool(code)


def test_only_selected_claims_are_asked(project):
    box = project()
    box.spec(MORE)
    assert box.run("-k", "matters or weak", "--circuits-mutate=zero-head:L0H2").ret == 0
    assert [c["claim"] for c in box.mutation["specs"][0]["claims"]] == ["matters::words", "weak::words"]
    assert box.run("s.circuits.yaml::matters::candidate::words", "--circuits-mutate=zero-head:L0H2").ret == 0
    assert [c["claim"] for c in box.mutation["specs"][0]["claims"]] == ["matters::words"]


def test_offline_measures_no_mutant_and_says_so(project, planted):
    box = project("copy_head")
    box.spec("""
matters:
  necessity: {task: words, p: 0.9, control: c3_any, size: 1}
  at_least: 0.3
""")
    assert box.run().ret == 0
    assert box.run("--circuits-offline", "--circuits-mutate=zero-head:L1H2").ret == 1
    assert box.mutants["zero-head:L1H2"]["status"] == "not measured" and box.mutation["unmeasured"] == 1
    assert box.mutation["score"] is None, "a mutant that was not measured was not noticed either"
    box.result.stdout.fnmatch_lines(["FAILED: 1 mutant was not measured, which --circuits-offline forbids*"])
    assert box.run("--circuits-mutate=zero-head:L1H2").ret == 0
    assert box.run("--circuits-offline", "--circuits-mutate=zero-head:L1H2").ret == 0
    assert box.mutation["score"] == 1.0


def test_a_mutant_that_cannot_be_made_is_no_catch(project):
    """The dead heads of this model write nothing already; invalid claims would be noticed, a mutant that is none must not be."""
    box = project("copy_head")
    box.spec("""
matters:
  necessity: {task: words, p: 0.9, control: c3_any, size: 1}
  at_least: 0.3
""")
    assert box.run("--circuits-mutate=zero-head:L0H0,zero-head:L9H0,round:bits=99").ret == 0
    assert {name: m["status"] for name, m in box.mutants.items()} == {
        "zero-head:L0H0": "not made", "zero-head:L9H0": "not made", "round:bits=99": "not made",
    }  # fmt: skip
    assert "does not change the model" in box.mutants["zero-head:L0H0"]["reasons"][0]
    assert box.mutation["counted"] == 0 and box.mutation["score"] is None
    assert box.run("--circuits-mutate=zero-head:L9H0", "--circuits-mutate-score=0.1").ret == 1, "no mutants are no evidence"


@pytest.mark.parametrize(("arguments", "told"), [
    (["--circuits-mutate=zero-haed"], "unknown mutant 'zero-haed'; did you mean 'zero-head'"),
    (["--circuits-mutate", "s.circuits.yaml"], "the specs go before --circuits-mutate"),
    (["--circuits-mutate-score=0.5"], "add --circuits-mutate to make them"),
    (["--circuits-mutate", "--circuits-mutate-score=1.5"], "a share from 0 to 1, got 1.5"),
    (["--circuits-mutate", "--circuits-update-baseline=new"], "run one after the other"),
])  # fmt: skip
def test_wrong_options_are_usage_errors(project, arguments, told):
    box = project()
    box.spec(NECESSARY)
    result = box.run(*arguments)
    assert result.ret == 4 and told in " ".join(result.stderr.str().split())


@pytest.mark.extensive
def test_workers_are_not_used_and_the_report_says_so(project):
    box = project()
    box.spec(NECESSARY)
    result = box.pytester.runpytest_subprocess("-n", "2", "--circuits-mutate=zero-head:L0H2", "--circuits-json=report.json")
    assert result.ret == 0 and box.mutation["noticed"] == 1
    result.stdout.fnmatch_lines(["-n was not used: mutants are made in one process*"])


def test_a_plan_tells_the_cost_and_measures_nothing(project, planted, tmp_path):
    box = project()
    box.spec(NECESSARY)
    fresh = f"--circuits-cache-dir={tmp_path / 'fresh'}"
    assert box.run("--circuits-plan", "--circuits-mutate=zero-head:in,noise", fresh).ret == 0
    box.result.stdout.fnmatch_lines([
        "s.circuits.yaml, model candidate: 2 mutants (which ones is known once the claims are measured) × 1 claim",
        "    to measure: * Ablate, 2 Attribute, 2 Describe*",
        "mutants: to measure: *",
    ])  # fmt: skip
    assert not (box.path / "report.json").exists()
    box.run("--circuits-mutate=zero-head:in,noise", fresh)
    assert box.run("--circuits-plan", "--circuits-mutate=zero-head:in,noise", fresh).ret == 0
    box.result.stdout.fnmatch_lines(["s.circuits.yaml, model candidate: 2 mutants × 1 claim", "mutants: nothing to measure (*"])


def test_an_interruption_leaves_the_model_as_it_was_and_no_half_report(project, monkeypatch):
    from pytest_circuits.mutation import run as stage

    box = project()
    box.spec(NECESSARY)
    before, original, calls = box.digest, stage.evaluate_mutant, []

    def stopped(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(stage, "evaluate_mutant", stopped)
    with suppress(KeyboardInterrupt):
        assert box.run(PLACES).ret == pytest.ExitCode.INTERRUPTED
    assert len(calls) == 2 and box.digest == before
    assert not (box.path / "report.json").exists() or "mutation" not in box.report


def test_a_run_that_was_stopped_says_that_no_mutants_were_judged(project):
    box = project()
    box.spec(MORE)
    assert box.run(PLACES, "-x", "-k", "broken or weak").ret == 1
    told = "no result about mutants, because the run was stopped"
    assert told in box.result.stdout.str() and "mutation" not in box.report
    box.run("--circuits-mutate=zero-head:L0H2", "-k", "weak")
    assert told not in box.result.stdout.str() and box.mutation["counted"] == 1


def test_the_last_checkpoint_of_a_series_is_mutated_and_a_layer_is_taken_from_the_first(project, tmp_path):
    import shutil

    import torch
    from transformers import AutoModelForCausalLM

    box = project()
    for name in ("step-1", "step-2"):
        shutil.copytree(box.model, box.path / "run" / name)
    early = AutoModelForCausalLM.from_pretrained(box.model)
    with torch.no_grad():
        early.model.layers[0].self_attn.o_proj.weight.mul_(0.9)
    early.save_pretrained(box.path / "run/step-1")
    header = """\
version: 1
models: {candidate: {checkpoints: run/step-*}}
tasks: {words: {file: model/task.jsonl, scoring: argmax}}
defaults: {attribution: exact, size: 2, draws: 20}
claims:
"""
    box.spec(NECESSARY, header=header)
    assert box.run("--circuits-mutate=undo-layer:L0,undo-layer:L1").ret == 0, box.result.stdout.str()
    (spec,) = box.mutation["specs"]
    assert spec["model"] == "candidate@step-2"
    assert [one["reason"] for one in spec["left_out"]] == ["about an earlier checkpoint than candidate@step-2"]
    mutants = {m["name"]: m for m in spec["mutants"]}
    assert mutants["undo-layer:L0"]["from"] == "candidate@step-1" and mutants["undo-layer:L0"]["status"] in ("survived", "equivalent")
    assert mutants["undo-layer:L1"]["status"] == "not made", "layer 1 is the same in both"


def test_inconclusive_claims_notice_nothing_where_they_fail_no_test(project):
    """A bound that the mutant's interval straddles: a weak catch, and none with a lenient option."""
    box = project()
    box.spec("""
harmless:
  joint_ablation: {task: words, set: {units: [L0H2]}, min_accuracy: 0.0}
  at_least: 0.3
""")
    assert box.run("--circuits-mutate=zero-head:L0H2").ret == 0
    assert list(box.mutants["zero-head:L0H2"]["caught_by"].values()) == ["inconclusive"] and box.mutation["inconclusive_only"] == 1
    assert box.run("--circuits-mutate=zero-head:L0H2", "--circuits-inconclusive=pass").ret == 0
    assert box.mutants["zero-head:L0H2"]["status"] == "survived" and box.mutation["score"] == 0


def test_a_spec_of_studies_alone_makes_no_mutants(project):
    """Nothing but their becoming invalid could be noticed, which would make a low score of no fault."""
    box = project()
    box.spec("study:\n  reuse: {task: words, p: 0.9}\n  at_least: 0.2\n  expect: measured")
    assert box.run(PLACES).ret == 0
    (spec,) = box.mutation["specs"]
    assert spec["problem"] == "all claims are studies, which expect no verdict" and spec["mutants"] == [] and box.mutation["score"] is None


def test_a_claim_about_drift_is_held_against_the_release_as_always(project):
    """12 examples on which nothing changed give ±0.66; a mutant that answers nothing is no release that can be compared."""
    box = project()
    box.spec(NECESSARY + """
as-released:
  drift: {of: matters, within: 0.7}
""")  # fmt: skip
    box.run("--circuits-update-baseline=new")
    baseline = (box.path / "s.circuits.baseline.json").read_bytes()
    assert box.run("-k", "as-released", "--circuits-mutate=zero-head:L0H2,zero-head:L1H0").ret == 0, box.result.stdout.str()
    assert list(box.mutants["zero-head:L0H2"]["caught_by"]) == ["s.circuits.yaml::as-released::candidate::words"]
    assert box.mutants["zero-head:L1H0"]["status"] == "equivalent"
    assert (box.path / "s.circuits.baseline.json").read_bytes() == baseline


def test_operators_and_properties_of_ones_own_that_fail_end_nothing(project):
    """One raises, one changes a weight in secret: neither is a mutant, and later ones are made of the intact model."""
    box = project()
    (box.path / "conftest.py").write_text('''
from pytest_circuits import Estimate
from pytest_circuits.mutants import mutant
from pytest_circuits.properties.parameters import Parameters, TaskName
from pytest_circuits.properties.registration import register_property
from pytest_circuits.measurement.requests import Ablate


class Fragile(Parameters):
    """What breaks."""

    task: TaskName


@register_property("own_fragile", parameters=Fragile, lowest=0.0, highest=1.0, unit="share")
def fragile(claim):
    """Divides by the number of right answers."""
    found = yield Ablate(claim.model, claim.tasks[claim.parameters.task], ((),))
    value = int(found.correct.sum()) / int(found.correct.sum())
    return Estimate(value, (0.9, 1.0), 24, 0.95, "made up", "own_fragile", {})


@mutant("own-raises", of="weights")
def raises(surgery):
    """Fails after a change."""
    surgery.edit(surgery.anatomy.blocks[0].output.weight).zero_()
    raise ValueError("out of luck")


@mutant("own-secret", of="weights")
def secret(surgery):
    """Changes what it did not ask for."""
    surgery.anatomy.blocks[0].output.weight.data.zero_()


@mutant("own-partly", of="head")
def partly(surgery, head):
    """Asks for one of two."""
    surgery.head(head).zero_()
    surgery.anatomy.blocks[2].output.weight.data.add_(1)
''')
    box.spec(
        NECESSARY
        + """
breaks:
  own_fragile: {task: words}
  at_least: 0.5
"""
    )
    names = ["own-raises", "own-secret", "own-partly:L1H0", "zero-head:L1H0", "noise:sigma=0.001", "zero-head:L0H2"]
    box.run(f"--circuits-mutate={','.join(names)}", "--circuits-no-cache")
    told = {name: m["reasons"][0] for name, m in box.mutants.items() if m["status"] == "not made"}
    assert set(told) == set(names[:3])
    assert told["own-raises"] == "own-raises: the operator raised ValueError: out of luck"
    assert "changed model.layers.0.self_attn.o_proj.weight without surgery.edit" in told["own-secret"]
    assert "changed model.layers.2.self_attn.o_proj.weight without surgery.edit" in told["own-partly:L1H0"]
    assert [box.mutants[name]["status"] for name in names[3:]] == ["equivalent", "survived", "noticed"]
    (broke,) = (one for one in box.mutants["zero-head:L0H2"]["outcomes"] if one["claim"] == "breaks::words")
    assert broke["how"] == "invalid" and broke["reason"] == "the property own_fragile raised ZeroDivisionError: division by zero"
