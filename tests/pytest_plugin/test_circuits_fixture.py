"""Claims in Python: the `circuits` fixture."""

from __future__ import annotations

from tests.fakes.project import DEFAULTS, header

SETUP = """
import pytest
OPTIONS = dict(attribution="atp", size="25%", min_accuracy=0.0)
@pytest.fixture
def found(circuits):
    return circuits.model("model").circuits(circuits.task("pairs.jsonl", name="swap"), **OPTIONS)
"""


def test_a_claim_in_python_is_the_claim_of_a_spec(real):
    """Same estimate, same record, one measurement."""
    real.spec("test_shared:\n  reuse: {task: swap, p: 0.3}\n  at_least: 0.1", header=header("model: {path: model}", more=DEFAULTS))
    real.python(SETUP + "def test_shared(circuits, found):\n    circuits.check(found.reuse(p=0.3), at_least=0.1)\n")
    real.run().assert_outcomes(passed=2)
    spec, python = sorted(real.report["claims"], key=lambda c: c["file"])
    assert spec["file"] == "s.circuits.yaml" and python["nodeid"] == "test_python.py::test_shared"
    own = ("nodeid", "file", "line", "cost")
    assert {k: v for k, v in spec.items() if k not in own} == {k: v for k, v in python.items() if k not in own}
    assert python["line"] == 7 and python["cost"]["measured"] == 0
    assert list(real.report["models"]) == ["model"]


def test_a_refuted_check_explains_itself_and_stops_the_test(real):
    real.python(SETUP + "def test_shared(circuits, found):\n    circuits.check(found.reuse(p=0.3), at_least=0.9)\n    raise SystemExit\n")
    assert real.run("-v").ret == 1
    real.result.stdout.fnmatch_lines([
        "test_python.py::test_shared REFUTED*",
        ">*circuits.check(found.reuse(p=0.3), at_least=0.9)",
        "E*refuted: reuse(swap) = 0.443 [[]0.381, 0.506], should be at least 0.9",
        "E*test_python.py:7 claim 'test_shared', model 'model'",
        "E*shared set of 100 discovery examples: {L0H0, L0H3, L1H2, L1H3} (4 heads, 0 MLPs); *",
        "E*rerun: pytest test_python.py::test_shared",
        "REFUTED test_python.py::test_shared - refuted: reuse(swap) = 0.443*",
    ])  # fmt: skip
    assert "bench.py" not in real.result.stdout.str(), "the traceback ends in the user's own line"


def test_several_checks_of_one_test_are_several_claims(real):
    real.python(SETUP + """
@pytest.mark.parametrize("p", [0.3, 0.6])
def test_many(circuits, found, p):
    measured = found.reuse(p=p)
    assert circuits.check(measured, at_most=0.9, claim=f"low-{p}") is measured
    circuits.check(measured, at_least=0.9, claim=f"high-{p}", expect="refuted")
    circuits.check(measured, within=[0.9, 0.99])
""")  # fmt: skip
    real.run("-v").assert_outcomes(failed=2)
    real.result.stdout.fnmatch_lines(["*::test_many[[]0.3] REFUTED*", "*::test_many[[]0.6] REFUTED*"])
    claims = [(c["nodeid"].partition("::")[2], c["claim"], c["verdict"], c["passed"]) for c in real.report["claims"]]
    assert claims == [
        (f"test_many[{p}]", name, verdict, ok) for p in (0.3, 0.6)
        for name, verdict, ok in ((f"low-{p}", "certified", True), (f"high-{p}", "refuted", True), ("test_many", "refuted", False))
    ]  # fmt: skip
    for first, second, third in (real.report["claims"][:3], real.report["claims"][3:]):
        assert first["cost"]["hits"] > 0, "the first claim about a measurement carries what it cost"
        assert second["cost"]["hits"] == third["cost"]["hits"] == 0


def test_a_failing_assertion_beside_passing_checks_blames_no_claim(real):
    real.python(SETUP + "def test_it(circuits, found):\n    circuits.check(found.reuse(p=0.3), at_least=0.1)\n    assert 1 == 2\n")
    real.run("-v")
    real.result.stdout.fnmatch_lines(["*::test_it FAILED*"])
    (claim,) = real.report["claims"]
    assert (claim["verdict"], claim["passed"], claim["outcome"]) == ("certified", True, "failed")


def test_expectations_and_leniency_are_those_of_specs(box):
    box.python("""
import pytest
@pytest.mark.parametrize("expect", ["certified", "refuted", "inconclusive", "invalid"])
def test_it(circuits, expect):
    model = circuits.model("model")
    circuits.check(model.measure("stated", value=0.9, low=0.8, high=1.0), at_least=0.5, expect="certified")
    circuits.check(model.measure("stated", value=0.1, low=0.0, high=0.2), at_least=0.5, expect="refuted")
    circuits.check(model.measure("stated", value=0.5, low=0.4, high=0.6), at_least=0.55, expect="inconclusive")
    circuits.check(model.measure("stated", raises="invalid"), at_least=0.5, expect="invalid")
    circuits.check(model.measure("stated", value=0.5, low=0.4, high=0.6), at_least=0.45, expect=expect)
""")
    box.run("-v").assert_outcomes(passed=1, failed=3)
    box.result.stdout.fnmatch_lines(
        ["*[[]certified] INCONCLUSIVE*", "*[[]refuted] INCONCLUSIVE (expected refuted)*", "*[[]inconclusive] INVALID (as expected)*"]
    )
    box.run("--circuits-inconclusive=pass").assert_outcomes(passed=2, failed=2)
    box.run("--circuits-inconclusive=skip").assert_outcomes(passed=1, skipped=3)


def test_what_is_measured_can_be_looked_at(real):
    real.python(SETUP + """
from pytest_circuits import CircuitsError, Estimate, Invalid
def test_it(circuits, found):
    measured = found.reuse(p=0.3)
    assert str(measured) == "0.443 [0.381, 0.506] (n=100, 95%)"
    assert (round(measured.value, 3), measured.n, isinstance(measured.estimate, Estimate)) == (0.443, 100, True)
    assert measured.interval[0] < measured.value < measured.interval[1]
    assert measured.details["shared_set"]["heads"] == 4
    nothing = found.necessity(p=1.0)
    assert str(nothing).startswith("invalid: the shared set of task 'swap' is empty")
    with pytest.raises(Invalid, match="is empty"):
        nothing.value
""")  # fmt: skip
    real.run().assert_outcomes(passed=1)
    assert real.report["claims"] == [], "only what was checked is a claim"


def test_every_property_can_be_asked_for(real):
    real.python(SETUP + """
def test_it(circuits, found):
    other = circuits.task("pairs.jsonl", name="first", n=60)
    subject = circuits.model("model")
    circuits.check(found.jaccard(other, p=0.3), at_least=0.01, claim="jaccard", expect="invalid")  # the same prompts
    circuits.check(found.necessity(p=0.3, ablation="mean", draws=20), at_most=0.9, claim="necessity")
    few = subject.measure("neuron_faithfulness", task=found.task, attribution="atp", neurons=20, min_accuracy=0.0)
    agree = subject.measure("gradient_ablation_agreement", task=found.task, min_accuracy=0.0)
    circuits.check(agree, at_most=0.99, claim="agreement")
    circuits.check(few, within=[0.9, 1.1], claim="few", expect="invalid")
    circuits.check(found.measure("reuse", p=0.3), at_least=0.1, claim="reuse")
""")  # fmt: skip
    real.run().assert_outcomes(passed=1)
    long = {"agreement": "gradient_ablation_agreement", "few": "neuron_faithfulness"}
    names = ["jaccard", "necessity", "agreement", "few", "reuse"]
    assert {c["claim"]: c["property"] for c in real.report["claims"]} == {name: long.get(name, name) for name in names}
    assert real.claims["jaccard"]["tasks"] == ["swap", "first"]


def test_what_is_wrong_in_the_calls_is_an_error_with_what_is_allowed(box):
    box.python("""
import pytest
from pytest_circuits import CircuitsError, ModelError, TaskError
from pytest_circuits.errors import OptionError
def refused(text, call, *args, kind=OptionError, **kwargs):
    with pytest.raises(kind, match=text):
        call(*args, **kwargs)
def test_it(circuits):
    model, swap = circuits.model("model"), circuits.task("pairs.jsonl", name="swap")
    found = model.circuits(swap)
    stated = model.measure("stated")
    refused("stated has no parameter 'valu'; did you mean 'value'", model.measure, "stated", valu=1)
    refused("stated, value: ", model.measure, "stated", value="much")
    refused("unknown property 'resue'; did you mean 'reuse'", model.measure, "resue")
    refused("task 'sva' is given by name; pass circuits.task\\('sva'\\)", model.measure, "reuse", task="sva")
    refused("task 'b' is given by name", model.measure, "jaccard", tasks=[swap, "b"])
    refused("reuse, p: Input should be greater than 0", found.reuse, p=0)
    refused("reuse has no parameter 'siez'; did you mean 'size'", found.reuse, siez=3)
    refused("a circuit size is a percentage", found.reuse, size=0)
    refused("unknown attribution method 'epa'; did you mean", found.reuse, attribution="epa")
    refused("unknown task 'adition'.*did you mean 'addition'", circuits.task, "adition")
    refused("task 'addition' has no parameter 'digts'; did you mean 'digits'", circuits.task, "addition", digts=2)
    refused("task 'pairs' has no parameter 'sed'", circuits.task, "pairs.jsonl", sed=2)
    refused("two different tasks are called 'swap'", model.measure, "jaccard", tasks=[swap, circuits.task("pairs.jsonl", name="swap", n=3)])
    refused("exactly one bound", circuits.check, stated)
    refused("exactly one bound", circuits.check, stated, at_least=0.1, at_most=0.9)
    refused("says nothing: every value is at least 0", circuits.check, stated, at_least=0)
    refused("says nothing: no value can be at most -1", circuits.check, stated, at_most=-1)
    refused("two numbers", circuits.check, stated, within=[0.1])
    refused("two numbers", circuits.check, stated, within="ab")
    refused("must be below the upper one", circuits.check, stated, within=[0.5, 0.5])
    refused("a finite number, got nan", circuits.check, stated, at_least=float("nan"))
    refused("a finite number, got '0.5'", circuits.check, stated, at_least="0.5")
    refused("a finite number, got True", circuits.check, stated, at_least=True)
    refused("unknown verdict 'refutd'; did you mean 'refuted'", circuits.check, stated, at_least=0.1, expect="refutd")
    refused("check needs what a measurement returned", circuits.check, 0.5, at_least=0.1)
    refused("must be a model directory, a hub id", circuits.model, None, kind=ModelError)
    refused("no prompt pairs", circuits.task, [], kind=TaskError)
    refused("has no parameters; got n", circuits.task, [{"clean": "a", "corrupt": "b", "answer": "c"}], n=3)
""")
    box.run().assert_outcomes(passed=1)
    assert box.report["claims"] == []


def test_a_model_or_task_that_cannot_be_opened_makes_the_check_invalid(box):
    box.python("""
def test_model(circuits):
    circuits.check(circuits.model("./missing").measure("stated"), at_least=0.1)
def test_task(circuits):
    circuits.check(circuits.model("model").measure("stated", task=circuits.task("missing.jsonl")), at_least=0.1)
def test_bug(circuits):
    circuits.check(circuits.model("model").measure("stated", raises="bug"), at_least=0.1)
def test_fine(circuits):
    circuits.check(circuits.model("model").measure("stated"), at_least=0.1)
""")
    box.run("-v").assert_outcomes(failed=3, passed=1)
    assert {c["claim"]: c["verdict"] for c in box.report["claims"]} == {
        "test_model": "invalid",
        "test_task": "invalid",
        "test_fine": "certified",
    }
    box.result.stdout.fnmatch_lines(["*::test_model INVALID*", "*::test_task INVALID*", "*::test_bug FAILED*", "*::test_fine CERTIFIED*"])


def test_paths_are_relative_to_the_root_directory(box, monkeypatch):
    (box.path / "sub").mkdir()
    box.pytester.makeini("[pytest]\n")
    box.python("""
def test_it(circuits):
    circuits.check(circuits.model('model').measure('stated', task=circuits.task('pairs.jsonl')), at_least=0.1)
""")
    monkeypatch.chdir(box.path / "sub")
    box.run("..", "--circuits-json=../report.json").assert_outcomes(passed=1)
    (claim,) = box.report["claims"]
    assert (claim["model"], claim["tasks"], claim["file"]) == ("model", ["pairs"], "test_python.py")


def test_prompt_pairs_and_tasks_can_be_given_as_they_are(box):
    box.python("""
from pytest_circuits import PromptPair, Task
PAIRS = [PromptPair("w1 w2", "w3 w2", "w1", ("w3",)), PromptPair("w4 w2", "w5 w2", "w4", ("w5",))]
def test_it(circuits):
    model = circuits.model("model", name="candidate")
    for task in (circuits.task(PAIRS, name="mine"), circuits.task(Task("mine", tuple(PAIRS))), circuits.task(iter(PAIRS), name="mine")):
        measured = model.measure("stated", task=task)
        circuits.check(measured, at_least=0.1)
        assert measured.details["examples"] == 2
""")
    box.run().assert_outcomes(passed=1)
    assert [(c["model"], c["tasks"], c["cost"]["forwards"]) for c in box.report["claims"]] == [
        ("candidate", ["mine"], n) for n in (2, 0, 0)
    ]


def test_checks_in_fixtures_belong_to_the_test_that_sets_them_up(box):
    box.pytester.makeconftest("""
import pytest
@pytest.fixture(scope="session")
def gate(circuits, request):
    circuits.check(circuits.model("model").measure("stated", low=0.0, high=1.0), at_least=0.5, claim="gate", expect="inconclusive")
@pytest.fixture
def strict(circuits):
    circuits.check(circuits.model("model").measure("stated", value=0.1, low=0.0, high=0.2), at_least=0.5, claim="strict")
""")
    box.python("def test_a(gate): pass\ndef test_b(gate): pass\ndef test_c(strict): pass\n")
    box.run().assert_outcomes(passed=2, errors=1)
    found = {c["claim"]: (c["nodeid"], c["verdict"], c["outcome"]) for c in box.report["claims"]}
    assert found == {
        "gate": ("test_python.py::test_a", "inconclusive", "passed"),
        "strict": ("test_python.py::test_c", "refuted", "failed"),
    }


def test_the_model_under_test_has_to_be_named_by_the_user(box):
    box.python(
        "def test_it(circuits, circuits_model):\n    circuits.check(circuits.model(circuits_model).measure('stated'), at_least=0.1)\n"
    )
    box.run().assert_outcomes(errors=1)
    box.result.stdout.fnmatch_lines(["*the fixture circuits_model has to be overridden: define it in conftest.py with scope='session'*"])
    assert "Traceback" not in box.result.stdout.str() and "fixtures.py" not in box.result.stdout.str()
    box.pytester.makeconftest("import pytest\n@pytest.fixture(scope='session')\ndef circuits_model(): return 'model'\n")
    box.run().assert_outcomes(passed=1)


MEMORY = """
import pytest, torch
from tests.fakes.project import tiny_llama, save_tokenizer
from transformers import AutoTokenizer
OPTIONS = dict(attribution="atp", size="25%", min_accuracy=0.0)
@pytest.fixture(scope="session")
def tokenizer():
    return AutoTokenizer.from_pretrained("model")
"""


def test_a_model_in_memory_is_what_it_is_now(real):
    """The same weights are measured once whoever holds them; changed weights are another model, however they were changed."""
    real.python(MEMORY + """
def test_it(circuits, tokenizer):
    swap = circuits.task("pairs.jsonl", name="swap")
    module = tiny_llama(seed=1)
    subject = circuits.model(module, tokenizer=tokenizer)
    first = subject.circuits(swap, **OPTIONS).reuse(p=0.3)
    circuits.check(first, at_least=0.01, claim="first")
    twin = circuits.model((tiny_llama(seed=1), tokenizer), name="twin").circuits(swap, **OPTIONS).reuse(p=0.3)
    assert (twin.value, twin.cost.forwards) == (first.value, 0)
    module.model.layers[0].mlp.down_proj.weight.data.zero_()
    changed = subject.circuits(swap, **OPTIONS).reuse(p=0.3)
    assert changed.cost.forwards > 0 and changed.details != first.details
    assert not any(hook for m in module.modules() for hook in (*m._forward_hooks.values(), *m._forward_pre_hooks.values()))
    circuits.check(changed, at_least=0.01, claim="changed")
    other = tiny_llama(seed=1)
    spare = circuits.model((other, tokenizer))
    assert spare.circuits(swap, **OPTIONS | {"attribution": "gradient"}).reuse(p=0.2).cost.forwards > 0
    assert circuits._session.executor().models.subject(spare.source).model is other, "not the twin that was changed meanwhile"
    bare = circuits.model(module, name="bare").circuits(swap, **OPTIONS).reuse(p=0.3)
    circuits.check(bare, at_least=0.01, claim="bare", expect="invalid")
""")  # fmt: skip
    real.run().assert_outcomes(passed=1)
    assert {c["claim"]: c["model"] for c in real.report["claims"]} == {
        "first": "LlamaForCausalLM",
        "changed": "LlamaForCausalLM-2",
        "bare": "bare",
    }
    assert "tokenizer" in real.claims["bare"]["reason"]


def test_two_tokenizers_on_the_same_weights_are_two_models(real):
    """Encodings of models without a folder are known by weights alone otherwise."""
    real.python(MEMORY + """
def test_it(circuits, tokenizer, tmp_path):
    save_tokenizer(tmp_path, ["<pad>", "<unk>", *(f"w{i}" for i in reversed(range(40)))])
    module, swap = tiny_llama(seed=2), circuits.task("pairs.jsonl", name="swap")
    both = tokenizer, AutoTokenizer.from_pretrained(tmp_path)
    values = [circuits.model(module, tokenizer=t).circuits(swap, **OPTIONS).reuse(p=0.3) for t in both]
    assert values[0].details != values[1].details
""")  # fmt: skip
    real.run().assert_outcomes(passed=1)


def test_fixtures_of_specs_hand_over_modules_and_subjects(real):
    real.pytester.makeconftest(MEMORY + """
import pytest_circuits
@pytest.fixture(params=None, scope="session")
def pair(tokenizer): return tiny_llama(seed=1), tokenizer
@pytest.fixture(scope="session")
def subject(): return pytest_circuits.open_model("model")
@pytest.fixture
def bare(): return tiny_llama(seed=1)
@pytest.fixture
def ids(): return [{"clean": [3, 4 + i % 5, 5], "corrupt": [4, 4 + i % 5, 5], "answer": [6], "foil": [7]} for i in range(40)]
""")  # fmt: skip
    models = ", ".join(f"{name}: {{fixture: {name}}}" for name in ("pair", "subject", "bare"))
    real.spec(
        "c:\n  reuse: {task: ids, p: 0.3, split: in_sample}\n  at_least: 0.01", header=header(models, "ids: {fixture: ids}", DEFAULTS)
    )
    real.run().assert_outcomes(passed=3)
    by_model = {c["model"]: c for c in real.report["claims"]}
    assert by_model["pair"]["estimate"] == by_model["bare"]["estimate"] != by_model["subject"]["estimate"]
    assert by_model["bare"]["cost"]["forwards"] == 0, "token ids need no tokenizer, and the same weights were measured already"
