"""Sequential sampling in specs, plans, Python tests and reports; and how a run says what it is worth as a whole."""

from __future__ import annotations

import pytest

from tests.fakes.project import header
from tests.fakes.torch_side import fake_model

TASKS = "ioi: {builtin: ioi, n: 20}, swap: {file: pairs.jsonl}"
OPEN = """
open:
  stated: {task: ioi, value: 0.5, max_n: 50}
  at_least: 0.5
"""


def test_an_open_claim_is_judged_with_more_prompts_and_the_report_lists_the_looks(box):
    box.spec(OPEN, header=header("tiny: {path: model}", TASKS))
    box.run()
    claim = box.claims["open"]
    assert (claim["verdict"], claim["looks_planned"]) == ("inconclusive", 3)
    assert [one["prompts"] for one in claim["looks"]] == [{"ioi": 20}, {"ioi": 40}, {"ioi": 50}]
    assert all(one["estimate"] == 0.5 and one["interval"] == [0.4, 0.6] and one["n"] == 100 for one in claim["looks"])
    assert claim["details"]["examples"] == 50 and claim["parameters"]["max_n"] == 50
    assert "encode ioi" in box.calls
    box.result.stdout.fnmatch_lines(
        ["  looked 3 of 3 times, with intervals wide enough for all planned looks to hold together: n = 100: 0.500 *"]
    )


def test_a_claim_that_is_settled_is_not_looked_at_again(box):
    box.spec(OPEN.replace("at_least: 0.5", "at_least: 0.3"), header=header("tiny: {path: model}", TASKS))
    box.run()
    claim = box.claims["open"]
    assert (claim["verdict"], len(claim["looks"]), claim["looks_planned"], claim["details"]["examples"]) == ("certified", 1, 3, 20)
    assert box.calls.count("encode ioi") == 1


def test_a_claim_without_it_has_no_looks(box):
    box.spec("plain:\n  stated: {task: ioi}\n  at_least: 0.3", header=header("tiny: {path: model}", TASKS))
    box.run()
    claim = box.claims["plain"]
    assert (claim["looks"], claim["looks_planned"], claim["warnings"], claim["parameters"]["max_n"]) == ([], 1, [], None)


def test_a_plan_shows_the_worst_case(box):
    box.spec(OPEN, header=header("tiny: {path: model}", TASKS))
    assert box.run("--circuits-plan").ret == 0
    box.result.stdout.fnmatch_lines([
        "s.circuits.yaml::open::tiny::ioi",
        "    to measure: 1 Attribute, 1 Describe, 1 Encode; *",
        "    if still open, 40 prompts of ioi: to measure: 1 Attribute, 1 Encode; *",
        "    if still open, 50 prompts of ioi: to measure: 1 Attribute, 1 Encode; *",
        "1 claim; to measure: 3 Attribute, 1 Describe, 3 Encode; *",
    ])  # fmt: skip
    assert box.calls == []


@pytest.mark.parametrize(("given", "told"), [
    ("{task: swap, max_n: 50}", "6:26: claims.open.stated: max_n needs tasks that make more prompts on demand*'swap' is from a file"),
    ("{task: ioi, split: in_sample, max_n: 50}",
     "*claims.open.stated: max_n adds evaluation examples, and split: in_sample has no separate ones*"),
    ("{task: ioi, max_n: 0}", "*claims.open.stated.max_n: must be at least 1*"),
])  # fmt: skip
def test_where_it_cannot_be_used_the_spec_is_wrong(box, given, told):
    box.spec(f"open:\n  stated: {given}\n  at_least: 0.5", header=header("tiny: {path: model}", TASKS))
    assert box.run().ret == 2
    box.result.stdout.fnmatch_lines([f"*s.circuits.yaml:{told}*"])
    assert box.calls == []


def test_one_from_the_defaults_is_left_unused_there_which_the_report_says(box):
    box.spec("open:\n  stated: {task: swap}\n  at_least: 0.5", header=header("tiny: {path: model}", TASKS, "defaults: {max_n: 50}\n"))
    box.run()
    claim = box.claims["open"]
    assert (claim["looks_planned"], claim["looks"]) == (1, [])
    (warning,) = claim["warnings"]
    assert warning.startswith("max_n is not used: max_n needs tasks that make more prompts on demand")
    box.result.stdout.fnmatch_lines(["  note: max_n is not used: *"])


def test_a_property_of_discovery_examples_refuses_it(box):
    tasks = f"{TASKS}, more: {{builtin: boolean, n: 20}}"
    box.spec("open:\n  jaccard: {tasks: [ioi, more], max_n: 50}\n  at_least: 0.5", header=header("tiny: {path: model}", tasks))
    assert box.run().ret == 2
    box.result.stdout.fnmatch_lines(["*: claims.open.jaccard: jaccard is estimated on discovery examples*"])


def test_a_property_inside_another_one_takes_no_further_looks(box):
    box.spec("open:\n  trajectory: {of: {stated: {max_n: 50}}, shape: spread}\n  at_most: 0.5", header=header("tiny: {path: model}", TASKS))
    assert box.run().ret == 2
    box.result.stdout.fnmatch_lines(["*'stated' is estimated once inside another property; leave 'max_n' out*"])


def test_a_task_that_cannot_make_so_many_prompts_makes_the_claim_invalid(box):
    box.spec(
        OPEN.replace("50", "6000").replace("0.5}", "0.5}"),
        header=header("tiny: {path: model}", "ioi: {builtin: copycolors, options: 2, n: 20}"),
    )
    box.run()
    claim = box.claims["open"]
    assert claim["verdict"] == "invalid" and "max_n is too large" in claim["reason"] and "5280" in claim["reason"]


def test_python_tests_look_again_when_a_bound_is_checked(box):
    box.python("""
import pytest

def test_it(circuits):
    task = circuits.task("ioi", n=20)
    found = circuits.model("model").measure("stated", task=task, value=0.5, max_n=50)
    assert found.details["examples"] == 20
    circuits.check(found, at_least=0.5, expect="inconclusive")
    circuits.check(found, at_least=0.3)

def test_refused(circuits):
    with pytest.raises(ValueError, match="'pairs' is from a file"):
        circuits.model("model").measure("stated", task=circuits.task("pairs.jsonl"), max_n=50)
""")
    box.run().assert_outcomes(passed=2)
    assert [len(claim["looks"]) for claim in box.report["claims"]] == [3, 1]


@pytest.mark.extensive
def test_a_run_corrects_its_refutations_wherever_they_were_made(box):
    claims = "\n".join(f"c{i}:\n  stated: {{task: ioi, value: 0.5}}\n  at_least: {bound}" for i, bound in enumerate([0.7, 0.3, 0.3]))
    box.spec(claims, header=header("tiny: {path: model}", TASKS))
    box.subprocess_conftest()
    result = box.pytester.runpytest_subprocess("-n2", "--circuits-json=report.json", "-p", "no:cacheprovider")
    assert result.ret == 1
    assert box.report["suite"]["holm"] == {"claims": 3, "refuted": 1, "surviving": 1}
    assert [claim["survives_holm"] for claim in box.report["claims"]] == [True, None, None]
    assert box.claims["c0"]["refuted_at"] == 0.00001  # the interval is the same whatever the confidence
    result.stdout.fnmatch_lines(["Certified claims are not corrected for their number: *"])


SMALL = """
sure:
  accuracy: {task: ioi}
  at_least: 0.9
"""


def test_what_can_be_told_beforehand_is_a_warning_of_plan_record_and_summary(box):
    """Whatever comes of the claim: this model cannot even be opened."""
    fake_model(box.path / "broken")
    models = header("tiny: {path: broken}", TASKS)
    box.spec(SMALL, header=models)
    assert box.run("--circuits-plan").ret == 0
    told = "10 groups of evaluation examples are too few for it to be certified: if all agreed on 1, *'at least 0.9'; give more prompts"
    box.result.stdout.fnmatch_lines([f"    warning: {told}"])
    assert box.calls == []
    box.spec("mild:\n  stated: {task: ioi}\n  at_least: 0.1\n" + SMALL, header=models)
    box.run()
    assert box.claims["mild"]["warnings"] == []
    (warning,) = box.claims["sure"]["warnings"]
    assert warning.startswith("10 groups of evaluation examples are too few")
    box.result.stdout.fnmatch_lines([f"warning: sure: {told}"])


def test_a_python_test_is_warned_as_well(box):
    fake_model(box.path / "broken")
    box.python("""
def test_it(circuits):
    found = circuits.model("broken").measure("accuracy", task=circuits.task("ioi", n=20))
    circuits.check(found, at_least=0.9)

def test_other(circuits):
    found = circuits.model("broken").measure("accuracy", task=circuits.task("ioi", n=20))
    circuits.check(found, at_least=0.9, expect="refuted")  # which these examples could do
""")
    box.run()
    first, second = box.report["claims"]
    assert "too few for it to be certified" in first["warnings"][0]
    assert second["warnings"] == []
