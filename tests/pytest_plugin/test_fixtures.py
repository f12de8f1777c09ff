"""Fixtures of the user's conftest beside specs, and fixtures that specs name as models and tasks."""

from __future__ import annotations

import pytest

from tests.fakes.project import header

ONE = "c:\n  stated: {}\n  at_least: 0.1"
FIXTURES = """
version: 1
models: {candidate: {fixture: my_model}}
tasks: {mine: {fixture: my_pairs}}
"""
BOTH = "c:\n  stated: {task: mine}\n  at_least: 0.1"
TWO_MODELS = f"{BOTH}\n  model: candidate\nother:\n  stated: {{}}\n  at_least: 0.1\n  model: fine"
PAIRS = str([
    {"clean": "w1 w2", "corrupt": "w3 w2", "answer": "w1", "foil": "w3"},
    {"clean": "w4 w2", "corrupt": "w5 w2", "answer": "w4", "foil": "w5"},
])  # fmt: skip
NO_MODEL = "it must be a model directory, a hub id, a Hugging Face model, or (model, tokenizer)"


def test_autouse_fixtures_of_every_scope_run_around_claims(box):
    """Module-scoped fixtures need a module; a spec is one."""
    box.pytester.makeconftest("""
import pytest
def made(scope):
    @pytest.fixture(scope=scope, autouse=True, name=f"auto_{scope}")
    def fixture(request):
        print(f"{scope} up")
        yield
        print(f"{scope} down")
    return fixture
for_session, for_package, for_module, for_class, for_function = map(made, ["session", "package", "module", "class", "function"])
""")
    box.spec("c:\n  stated: {value: [0.5, 0.55]}\n  at_least: 0.1", "one.circuits.yaml")
    box.spec(ONE, "two.circuits.yaml")
    box.run("-s").assert_outcomes(passed=3)
    text = box.result.stdout.str()
    counts = {scope: (text.count(f"{scope} up"), text.count(f"{scope} down")) for scope in ("session", "package", "module", "function")}
    assert counts == {"session": (1, 1), "package": (1, 1), "module": (2, 2), "function": (3, 3)}


def test_fixtures_see_a_request_like_that_of_a_test_function(box):
    box.pytester.makeconftest("""
import pytest
@pytest.fixture(autouse=True)
def look(request, tmp_path, monkeypatch, record_property):
    assert request.node.name == "tiny" and request.path.name == "s.circuits.yaml"
    assert request.cls is None and request.instance is None
    assert getattr(request.module, "missing", "default") == "default" and request.module.__name__ == "s.circuits.yaml"
    assert callable(request.function) and request.node.originalname
    assert request.keywords["circuits"] and [m.name for m in request.node.iter_markers()] == ["circuits"]
    record_property("seen", "yes")
""")
    box.spec(ONE)
    box.run("--junitxml=junit.xml").assert_outcomes(passed=1)
    text = (box.path / "junit.xml").read_text()
    assert 'name="seen" value="yes"' in text and 'name="circuits_verdict" value="certified"' in text


def test_hooks_that_look_at_every_item_work_on_claims(box):
    box.pytester.makeconftest("""
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.reportinfo()[1], reverse=True)
    for item in items:
        assert item.location[0] == "s.circuits.yaml" and item.fixturenames == ["request"] and not hasattr(item, "callspec")
""")
    box.spec("a:\n  stated: {}\n  at_least: 0.1\nb:\n  stated: {}\n  at_least: 0.1")
    box.run("-v").assert_outcomes(passed=2)
    box.result.stdout.fnmatch_lines(["*::b::tiny CERTIFIED*", "*::a::tiny CERTIFIED*"])
    assert list(box.verdicts) == ["a::tiny", "b::tiny"], "the report is in the order of the file"


def test_a_second_run_of_a_test_replaces_what_the_first_one_said(box):
    """As plugins that rerun failures do."""
    box.pytester.makeconftest("""
import os
from _pytest.runner import runtestprotocol
def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(2):
        item._initrequest()
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if attempt == 0 and report.failed:
                report.outcome = "rerun"
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
def pytest_report_teststatus(report):
    if report.outcome == "rerun":
        return "rerun", "R", "RERUN"
""")
    box.spec("c:\n  stated: {value: 0.1, low: 0.0, high: 0.2, task: swap}\n  at_least: 0.5")
    box.run("--junitxml=junit.xml", "-v")
    box.result.stdout.fnmatch_lines(["*::c::tiny::swap RERUN*", "*::c::tiny::swap REFUTED*"])
    (record,) = box.report["claims"]
    assert (record["verdict"], record["outcome"], record["cost"]["cached"]) == ("refuted", "failed", True)
    assert box.calls.count("attribute atp swap") == 1, "more luck is not more evidence: a rerun replays the cache"
    assert (box.path / "junit.xml").read_text().count('name="circuits_verdict"') == 2, "one for each attempt, and none twice"


def test_specs_name_fixtures_for_models_and_tasks(box):
    box.pytester.makeconftest(f"""
import pytest
@pytest.fixture(scope="session")
def my_model():
    return "model"
@pytest.fixture
def my_pairs():
    return {PAIRS}
""")
    box.spec(BOTH, header=FIXTURES)
    box.run("-v").assert_outcomes(passed=1)
    box.result.stdout.fnmatch_lines(["s.circuits.yaml::c::candidate::mine CERTIFIED*"])
    (record,) = box.report["claims"]
    assert (record["model"], record["tasks"], record["details"]["examples"]) == ("candidate", ["mine"], 2)
    assert box.report["models"]["candidate"]["fingerprint"] == "weights of model"
    box.run()
    assert box.report["suite"]["cost"]["forwards"] == 0, "a path that a fixture returns is told apart by its files"


@pytest.mark.parametrize("made", [
    f"Task('whatever', tuple(PromptPair(r['clean'], r['corrupt'], r['answer'], (r['foil'],)) for r in {PAIRS}))",
    f"(PromptPair(r['clean'], r['corrupt'], r['answer'], (r['foil'],)) for r in {PAIRS})",
    f"iter({PAIRS})",
])  # fmt: skip
def test_a_task_fixture_returns_a_task_or_an_iterable_of_pairs(box, made):
    box.pytester.makeconftest(f"""
import pytest
from pathlib import Path
from pytest_circuits import PromptPair, Task
@pytest.fixture
def my_model(): return Path("model")
@pytest.fixture
def my_pairs(): return {made}
""")
    box.spec(BOTH, header=FIXTURES)
    box.run().assert_outcomes(passed=1)
    assert box.claims["c"]["details"]["examples"] == 2
    assert box.claims["c"]["tasks"] == ["mine"]


@pytest.mark.parametrize(("model", "pairs", "told"), [
    ("None", PAIRS, f"model 'candidate': the fixture 'my_model' is of type NoneType; {NO_MODEL}"),
    ("3.5", PAIRS, "model 'candidate': the fixture 'my_model' is of type float"),
    ("'./elsewhere'", PAIRS, "model 'candidate' (elsewhere): there is no directory elsewhere; "),
    ("'model'", "None", "the fixture 'my_pairs' returned NoneType; it must return a Task, or an iterable of PromptPair or dict"),
    ("'model'", "[]", "the fixture 'my_pairs' returned no prompt pairs"),
    ("'model'", "[{'clean': 'w1'}]", "the fixture 'my_pairs'[[]0]: corrupt and answer missing*"),
])  # fmt: skip
def test_what_a_fixture_returns_wrongly_makes_its_claims_invalid(box, model, pairs, told):
    box.pytester.makeconftest(
        f"import pytest\n@pytest.fixture\ndef my_model(): return {model}\n@pytest.fixture\ndef my_pairs(): return {pairs}\n"
    )
    box.spec(TWO_MODELS, header=FIXTURES.replace("models: {", "models: {fine: {path: model}, "))
    assert box.run().ret == 1
    assert box.verdicts == {"c::candidate::mine": "invalid", "other::fine": "certified"}
    box.result.stdout.fnmatch_lines([f"invalid: stated(mine): {told}*"])
    assert "Traceback" not in box.result.stdout.str()


def test_a_fixture_that_does_not_exist_is_an_error_of_that_claim_alone(box):
    box.spec(TWO_MODELS, header=FIXTURES.replace("models: {", "models: {fine: {path: model}, "))
    box.run().assert_outcomes(errors=1, passed=1)
    box.result.stdout.fnmatch_lines(["*fixture 'my_model' not found*"])
    assert box.verdicts == {"c::candidate::mine": "invalid", "other::fine": "certified"}
    assert box.claims["c"]["reason"].startswith("internal error:")
    assert "my_model" in box.claims["c"]["reason"]


def test_a_fixture_that_raises_is_shown_with_its_traceback(box):
    box.pytester.makeconftest(
        "import pytest\n@pytest.fixture\ndef my_model(): raise OSError('download failed')\n@pytest.fixture\ndef my_pairs(): return []\n"
    )
    box.spec(BOTH, header=FIXTURES)
    box.run().assert_outcomes(errors=1)
    box.result.stdout.fnmatch_lines(["*def my_model(): raise OSError*", "E*OSError: download failed"])
    assert box.claims["c"]["reason"] == "internal error: OSError: download failed"


def test_a_fixture_model_can_be_replaced_on_the_command_line(box):
    box.spec("c:\n  stated: {}\n  at_least: 0.1", header="version: 1\nmodels: {candidate: {fixture: my_model}}\n")
    box.run("--circuits-model=candidate=model").assert_outcomes(passed=1)
    assert box.report["models"]["candidate"]["fingerprint"] == "weights of model"


def test_bad_names_of_fixtures_are_mistakes_of_the_spec(box):
    box.spec(
        ONE,
        header=header("a: {fixture: 'my model'}, b: {fixture: m, path: x}", "t: {fixture: m, n: 3}, u: {fixture: class}"),
    )
    assert box.run().ret == pytest.ExitCode.INTERRUPTED
    box.result.stdout.fnmatch_lines([
        "s.circuits.yaml:2:23: models.a.fixture: must be the name of a pytest fixture, got 'my model'",
        "s.circuits.yaml:2:36: models.b: a model needs exactly one of path, loader and fixture, got path and fixture",
        "s.circuits.yaml:3:25: tasks.t: unknown key 'n'; *",
        "s.circuits.yaml:3:45: tasks.u.fixture: must be the name of a pytest fixture, got 'class'",
    ])  # fmt: skip
