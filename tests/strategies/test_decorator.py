"""`@for_all` and plain `@given` with the `circuits` fixture, on models of which the smallest counterexample is known."""

from __future__ import annotations

import json
import re

import pytest

COUNTRIES = ["Austria", "Cuba", "Egypt", "France", "Italy", "Japan", "Kenya", "Peru"]
CITIES = ["Vienna", "Havana", "Cairo", "Paris", "Rome", "Tokyo", "Nairobi", "Lima"]
HEAD = f"""
import json, time
from hypothesis import HealthCheck, Phase, Verbosity, assume, example, given, seed, settings
from pytest_circuits import PromptPair
from pytest_circuits import strategies as cs

COUNTRIES, CITIES = {COUNTRIES!r}, {CITIES!r}
PAIRS = cs.template_pairs(
    ["capital of {{C}}", "the capital of {{C}}"], {{"C": COUNTRIES, "D": COUNTRIES}}, corrupt=["capital of {{D}}", "the capital of {{D}}"],
    answer="{{C.capital}}", foil="{{D.capital}}", facts={{"capital": dict(zip(COUNTRIES, CITIES))}},
)
SMALLEST = PromptPair("capital of Kenya", "capital of Austria", "Nairobi", ("Vienna",), group="Nairobi+Vienna")

def spent(circuits):
    return circuits._session.executor().spent.forwards
"""
FLIPS = """
@cs.for_all(pair=PAIRS)
def test_flips(circuits, pair):
    found = circuits.model("{model}").answer(pair, remove=["L1MLP"])
    assume(found.intact.correct)
    assert not found.correct
"""


def run(project, source, *options):
    """The inner run of a Python test, with measurements of its own, and how many forwards it took."""
    project.pytester.makeconftest("""
import pytest
@pytest.fixture(autouse=True, scope="session")
def forwards(circuits):
    yield
    with open("forwards.txt", "w") as file:
        file.write(str(circuits._session.executor().spent.forwards))
""")
    (project.path / "test_inner.py").write_text(HEAD + source, encoding="utf-8")
    project.result = project.pytester.runpytest_inprocess("-p", "no:cacheprovider", "test_inner.py", "--circuits-no-cache", *options)
    project.forwards = int((project.path / "forwards.txt").read_text("utf-8"))
    return project.result


@pytest.mark.extensive
def test_a_test_that_holds_costs_a_few_forwards(project):
    """Two lengths of prompts: two batches each for the intact and the changed model, and again for what `assume` brought up."""
    run(project, FLIPS.format(model="plain")).assert_outcomes(passed=1)
    assert 4 <= project.forwards <= 12


def test_without_the_decorator_every_example_is_measured_by_itself(project):
    source = FLIPS.replace("@cs.for_all(pair=PAIRS)", "@settings(max_examples=20, deadline=None)\n@given(pair=PAIRS)")
    run(project, source.format(model="plain")).assert_outcomes(passed=1)
    assert project.forwards >= 30


def test_a_failure_shrinks_to_the_known_smallest_prompt_and_its_printed_line_brings_it_back(project):
    result = run(project, FLIPS.format(model="spared"))
    result.assert_outcomes(failed=1)
    text = "\n".join(result.outlines)
    printed = re.search(r"test_flips\(.*?pair=(PromptPair\(.*?source=None\))", text, re.S)
    assert printed, text
    pair = re.sub(r"\nE", "\n", printed[1])
    from pytest_circuits import PromptPair

    found = eval(pair, {"PromptPair": PromptPair})
    assert (found.clean, found.corrupt, found.answer, found.foils) == ("capital of Kenya", "capital of Austria", "Nairobi", ("Vienna",))
    narrow = FLIPS.replace("@cs.for_all", f"@example(pair={found!r})\n@settings(max_examples=1, phases=[Phase.explicit])\n@cs.for_all")
    run(project, narrow.format(model="spared")).assert_outcomes(failed=1)
    run(project, narrow.format(model="plain")).assert_outcomes(passed=1)


def test_the_failing_example_is_in_the_database_and_run_first(project):
    """The second run generates nothing, and fails all the same; the third one holds, and forgets it; the fourth has nothing to run."""
    source = FLIPS.replace('circuits.model("{model}")', 'circuits.model(open("which.txt").read())')
    outcomes = []
    for model, phases in (("spared", "list(Phase)"), *((name, "[Phase.reuse]") for name in ("spared", "plain", "plain"))):
        (project.path / "which.txt").write_text(model, encoding="utf-8")
        result = run(project, source.replace("@cs.for_all", f"@settings(phases={phases})\n@cs.for_all"))
        outcomes.append(result.parseoutcomes())
    assert [set(one) & {"passed", "failed", "skipped"} for one in outcomes] == [{"failed"}, {"failed"}, {"passed"}, {"skipped"}]


@pytest.mark.parametrize("where", ["above", "below"])
def test_settings_seeds_and_examples_work_above_and_below(project, where):
    """As with `given`: max_examples is kept, explicit examples are run, and a seed gives the same examples again."""
    source = """
SEEN = []
{above}
@cs.for_all(pair=PAIRS)
{below}
def test_seen(circuits, pair):
    circuits.model("plain").answer(pair)
    SEEN.append(pair)

def test_report(circuits):
    real = SEEN[-14:]
    with open("seen.json", "w") as file:
        json.dump([pair.clean + pair.corrupt for pair in real], file)
    assert SMALLEST in real
"""
    marks = "@settings(max_examples=13, database=None)\n@seed(5)\n@example(pair=SMALLEST)"
    texts = {"above": "", "below": "", where: marks}
    seen = []
    for _ in range(2):
        run(project, source.format(**texts)).assert_outcomes(passed=2)
        seen.append(json.loads((project.path / "seen.json").read_text("utf-8")))
    assert seen[0] == seen[1] and len(seen[0]) == 14 and seen[0][0] == "capital of Kenyacapital of Austria"


def test_neither_a_deadline_nor_a_slow_model_fails_a_test(project):
    source = """
settings.register_profile("strict", deadline=1)
settings.load_profile("strict")
@cs.for_all(pair=PAIRS)
def test_slow(circuits, pair):
    time.sleep(0.005)
    assert circuits.model("plain").answer(pair).correct
"""
    run(project, source).assert_outcomes(passed=1)


def test_several_questions_and_drawn_sets_are_batched_too(project):
    source = """
UNITS = [f"L{layer}{tail}" for layer in range(3) for tail in ("H0", "H1", "MLP")]

@settings(max_examples=100)
@cs.for_all(pair=PAIRS, units=cs.component_sets(UNITS, (1, 4), outside=["L1MLP"]))
def test_only_one_matters(circuits, pair, units):
    model = circuits.model("plain")
    assert model.answer(pair, remove=units).correct
    alone = model.answer(pair, keep=["L1MLP"])
    assert alone.correct and alone.metric == alone.intact.metric
"""
    run(project, source).assert_outcomes(passed=1)
    assert project.forwards <= 20


@pytest.mark.extensive
def test_the_smallest_set_that_does_harm_is_found(project):
    source = """
UNITS = [f"L{layer}{tail}" for layer in range(3) for tail in ("H0", "H1", "H2", "H3", "MLP")]

@seed(1)
@settings(max_examples=200)
@cs.for_all(pair=cs.prompt_pairs("backup.jsonl", scoring="argmax"), units=cs.component_sets(UNITS, (1, 5), outside=["L2MLP"]))
def test_no_other_set_matters(circuits, pair, units):
    assert circuits.model("backup").answer(pair, remove=units).correct, units
"""
    result = run(project, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*AssertionError: ('L0H1', 'L1H3')*"])
    assert project.forwards <= 150


def test_a_pair_that_does_not_fit_is_no_example_of_a_test_and_an_error_elsewhere(project):
    source = """
WRONG = PromptPair("capital of Peru", "the capital of Peru", "Lima", ("Rome",))

@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@cs.for_all(pair=cs.prompt_pairs([WRONG, SMALLEST]))
def test_together(circuits, pair):
    circuits.model("plain").answer(pair)
    assert pair.answer == "Nairobi"

@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(pair=cs.prompt_pairs([WRONG, SMALLEST]))
def test_one_by_one(circuits, pair):
    circuits.model("plain").answer(pair)
    assert pair.answer == "Nairobi"

def test_plain(circuits):
    circuits.model("plain").answer(WRONG)
"""
    result = run(project, source)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*TaskError: 1 of 1 pairs of task*cannot be used*"])


def test_the_way_of_scoring_can_be_that_of_a_task(project):
    """With foils an answer is compared with them; the task of the spec compares it with the whole vocabulary."""
    source = """
def test_scoring(circuits):
    model, wrong = circuits.model("plain"), PromptPair("capital of Peru", "capital of Cuba", "Rome", ("Havana",))
    pairs = circuits.task([PromptPair("capital of Peru", "capital of Cuba", "Lima", ("Havana",))])
    argmax = circuits.task("backup.jsonl", scoring="argmax")
    right = PromptPair("capital of Peru", "capital of Cuba", "Lima", ("Havana",))
    assert model.answer(right).correct and model.answer(right, like=argmax).correct and model.answer(right, like=pairs).correct
    assert not model.answer(wrong, like=argmax).correct
"""
    run(project, source).assert_outcomes(passed=1)


def test_a_search_is_a_measurement_like_any_other_in_python(project):
    source = """
def test_search(circuits):
    task = circuits.task("template", n=4, template="capital of {C}", corrupt="capital of {D}", slots={"C": COUNTRIES, "D": COUNTRIES},
                         facts={"capital": dict(zip(COUNTRIES, CITIES))}, answer="{C.capital}", foil="{D.capital}")
    for model, verdict in (("plain", "certified"), ("spared", "refuted")):
        found = circuits.model(model).measure(
            "for_all", prompts={"task": task}, remove={"units": ["L1MLP"]}, check="answer_changes", examples=40)
        circuits.check(found, expect=verdict, claim=model)
        circuits.check(found, at_least=0.5, claim=model + " mostly")
    assert found.details["counterexample"]["clean"] == "capital of Kenya"
"""
    result = run(project, source, "--circuits-json=out.json")
    result.assert_outcomes(passed=1)
    claims = json.loads((project.path / "out.json").read_text("utf-8"))["claims"]
    assert [claim["verdict"] for claim in claims] == ["certified", "certified", "refuted", "certified"]


def test_questions_of_different_kinds_in_one_batch_are_each_answered(project):
    """Removed or kept, by one metric or another: what was asked first says nothing of what is asked later."""
    source = """
from hypothesis import strategies as st

@settings(max_examples=60, database=None)
@cs.for_all(pair=PAIRS, mode=st.sampled_from(["remove", "keep"]), metric=st.sampled_from(["logit_diff", "prob"]), n=st.integers(0, 5))
def test_kinds(circuits, pair, mode, metric, n):
    model = circuits.model("plain")
    assume(model.answer(pair, remove=["L0H0"]).correct and n != 3)
    found = model.answer(pair, **{mode: ["L1MLP"]}, metric=metric)
    assert found.correct is (mode == "keep")
    assert (found.intact.metric > 1) is (metric == "logit_diff")
    assert 0 <= model.answer(pair, remove=["L0H1"], metric="prob").metric <= 1
"""
    run(project, source).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        ("async def", "assert False", "*doesn't know how to run async test functions*"),
        ("def", "yield; assert False", "*should return None, but test_nothing returned <generator object*"),
        ("def", "return pair.clean == 'wrong'", "*should return None, but test_nothing returned False*"),
    ],
)
def test_a_body_that_would_not_run_or_not_assert_fails_as_under_given(project, kind, body, message):
    source = f"""
def test_count(circuits):
    assert circuits.model("plain").answer(SMALLEST).correct

@cs.for_all(pair=PAIRS)
{kind} test_nothing(circuits, pair):
    {body}
"""
    result = run(project, source)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines([message])


@pytest.mark.parametrize(
    ("arguments", "message"), [("par=PAIRS", "*unexpected keyword argument 'par'*"), ("", "*must be called with at least one argument*")]
)
def test_arguments_that_the_test_does_not_have_are_told(project, arguments, message):
    source = f"""
@cs.for_all({arguments})
def test_wrong(circuits, pair=None):
    pass
"""
    result = run(project, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])


@pytest.mark.parametrize(
    "fails",
    ["if found.correct: pytest.fail('still right')", "with pytest.raises(ValueError):\n        if not found.correct: raise ValueError"],
)
def test_failures_of_pytest_are_shrunk_like_any_other(project, fails):
    source = f"""
import pytest

@settings(database=None)
@cs.for_all(pair=PAIRS)
def test_flips(circuits, pair):
    found = circuits.model("spared").answer(pair, remove=["L1MLP"])
    {fails}
"""
    result = run(project, source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*Failing test case: test_flips(*", "*PromptPair(clean='capital of Kenya',", "*corrupt='capital of Austria',"]
    )
    assert project.forwards <= 60


@pytest.mark.extensive
def test_an_error_of_some_examples_is_theirs_alone(project):
    """Components that do not exist, drawn beside others: a test may expect that, and one that does not is shown the example."""
    source = """
import pytest
from hypothesis import strategies as st
from pytest_circuits.errors import UnitError

UNITS = st.sampled_from(["L1MLP", "L1H9"])

@settings(max_examples=20)
@cs.for_all(pair=PAIRS, unit=UNITS)
def test_expected(circuits, pair, unit):
    model = circuits.model("plain")
    if unit == "L1H9":
        with pytest.raises(UnitError, match="'L1H9' does not exist"):
            model.answer(pair, remove=[unit])
    else:
        assert not model.answer(pair, remove=[unit]).correct

@settings(max_examples=20)
@cs.for_all(pair=PAIRS, unit=UNITS)
def test_unexpected(circuits, pair, unit):
    circuits.model("plain").answer(pair, remove=[unit])
"""
    result = run(project, source)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*'L1H9' does not exist*", "*Failing test case: test_unexpected(*", "*unit='L1H9',*"])


def test_pairs_of_which_none_fits_are_filtered_as_under_given(project):
    source = """
WRONG = cs.prompt_pairs([PromptPair("capital of Peru", "the capital of Peru", "Lima", ("Rome",))])

@cs.for_all(pair=WRONG)
def test_together(circuits, pair):
    circuits.model("plain").answer(pair)

@settings(deadline=None)
@given(pair=WRONG)
def test_one_by_one(circuits, pair):
    circuits.model("plain").answer(pair)
"""
    result = run(project, source)
    result.assert_outcomes(failed=2)
    text = "\n".join(result.outlines)
    assert len(re.findall("^E .*Unsatisfi|^E .*FailedHealthCheck", text, re.M)) == 2, text
