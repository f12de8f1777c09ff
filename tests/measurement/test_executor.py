"""Requests become results: once each, in order, from the store where it has them."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pytest_circuits.ablation import ABLATIONS
from pytest_circuits.attribution import METHODS
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.verdict import Estimate
from pytest_circuits.errors import Invalid, MeasurementError, Offline, OptionError, TaskError
from pytest_circuits.measurement import version
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.requests import Ablate, Attribute, Conserve, Describe, Encode, MeasureNorms, Part, Sweep, freeze
from pytest_circuits.measurement.store import Store
from tests.fakes.executor import TASK, FakeSubject, N, Opener, load_task, model_directory
from tests.paths import ROOT

DISCOVERY, EVALUATION = Part("discovery", 0.5, 0), Part("evaluation", 0.5, 0)
ESTIMATE = Estimate(0.5, (0.4, 0.6), 9)


def asking(*steps, seen=None):
    """A property that yields these in turn and returns an estimate."""
    for step in steps:
        answer = yield step
        if seen is not None:
            seen.append(answer)
    return ESTIMATE


def test_a_property_gets_results_in_the_shape_it_asked_in(new_executor, model):
    """One request, one result; a list, a list in its order, repeats included."""
    one, two = Attribute(model, TASK, "eap"), Attribute(model, TASK, "atp")
    seen = []
    estimate, _ = new_executor().run(asking(two, [one, two, one], [], seen=seen))
    assert estimate is ESTIMATE
    assert seen[0].method == "atp"
    assert [a.method for a in seen[1]] == ["eap", "atp", "eap"]
    assert seen[2] == []


def test_each_measurement_is_made_once_and_its_cost_is_told(new_executor, model):
    """A first run measures and counts model calls; a second one, in a new session, opens nothing."""
    steps = [Describe(model), [Attribute(model, TASK, "eap", part=DISCOVERY), Sweep(model, TASK)], Ablate(model, TASK, ((), ("L0H0",)))]
    executor = new_executor()
    _, cost = executor.run(asking(*steps))
    assert (cost.forwards, cost.backwards, cost.hits, cost.measured, cost.cached) == (4, 1, 0, 5, False)  # the fifth is the encoding
    _, again = executor.run(asking(*steps))
    assert (again.forwards, again.backwards, again.hits, again.measured, again.cached) == (0, 0, 4, 0, True)
    assert (executor.spent.forwards, executor.spent.hits, executor.spent.measured) == (4, 4, 5)
    late = new_executor()
    _, cost = late.run(asking(*steps))
    assert (cost.cached, cost.hits, late.opener.opened) == (True, 4, [])


def test_cold_and_warm_results_are_equal(new_executor, model):
    """What was just measured and what is read later are the same values and types."""
    for request in (Describe(model), Encode(model, TASK), Attribute(model, TASK, "eap"), Sweep(model, TASK)):
        cold, warm = new_executor().result(request), new_executor().result(request)
        assert type(cold) is type(warm)
        assert str(cold) == str(warm)


def test_the_examples_of_a_part_are_the_ones_measured(new_executor, model):
    """The torch side gets indices of one side; groups stay together; None means all."""
    executor = new_executor()
    left, right = executor.part(model, TASK, DISCOVERY), executor.part(model, TASK, EVALUATION)
    assert sorted([*left, *right]) == list(range(N))
    assert not {i // 2 for i in left} & {i // 2 for i in right}
    assert executor.part(model, TASK, Part("discovery", None)).tolist() == executor.part(model, TASK, Part()).tolist() == list(range(N))
    executor.result(Ablate(model, TASK, (("L0H0",),), part=EVALUATION, reference=DISCOVERY, kind="mean"))
    executor.result(Ablate(model, TASK, (("L0H0",),), part=EVALUATION, kind="mean"))
    executor.result(Ablate(model, TASK, (("L0H0",),), part=EVALUATION, reference=Part(), kind="mean"))
    assert [call[2:] for call in executor.opener.calls if call[0] == "ablate"] == [
        (len(right), len(left)),
        (len(right), None),
        (len(right), N),
    ]


def test_an_unknown_part_is_refused(new_executor, model):
    """A misspelt side must not mean all examples."""
    with pytest.raises(OptionError, match="did you mean 'discovery'"):
        new_executor().result(Attribute(model, TASK, "eap", part=Part("discovry", 0.5)))


def test_options_reach_the_torch_side(new_executor, model):
    """Keyword arguments of a method travel as JSON."""
    executor = new_executor(batch_size=7, dtype="float64", device="cuda:1")
    executor.result(Attribute(model, TASK, "eap_ig", options=freeze({"steps": 3})))
    assert executor.opener.calls[-1] == ("attribute", "eap_ig", None, {"steps": 3})
    assert executor.opener.opened == [(model.path, {"revision": None, "dtype": "float64", "device": "cuda:1"})]


EAP = lambda model: Attribute(model, TASK, "eap")  # noqa: E731
CUT = lambda model: Ablate(model, TASK, (("L0H0",), ("L0H1",)))  # noqa: E731
HELD = lambda model: Conserve(model, TASK)  # noqa: E731
OTHERS = {
    "rules": (HELD, lambda r: replace(r, rules="none")),
    "metric of a conservation": (HELD, lambda r: replace(r, metric="another")),
    "examples of a conservation": (HELD, lambda r: replace(r, part=DISCOVERY)),
    "examples of norms": (lambda m: MeasureNorms(m, TASK), lambda r: replace(r, part=EVALUATION)),
    "method": (EAP, lambda r: replace(r, method="atp")),
    "level": (EAP, lambda r: replace(r, level="neuron")),
    "metric": (EAP, lambda r: replace(r, metric="prob")),
    "reduce": (EAP, lambda r: replace(r, reduce="mean")),
    "options": (EAP, lambda r: replace(r, options='{"steps": 9}')),
    "examples": (EAP, lambda r: replace(r, part=DISCOVERY)),
    "the other side": (lambda m: replace(EAP(m), part=DISCOVERY), lambda r: replace(r, part=EVALUATION)),
    "split seed": (lambda m: replace(EAP(m), part=DISCOVERY), lambda r: replace(r, part=Part("discovery", 0.5, 1))),
    "prompts": (EAP, lambda r: replace(r, task=TaskSource.make("swap", "builtin", "swap", {"n": 22}))),
    "sets": (CUT, lambda r: replace(r, sets=(("L0H0",), ("L0H2",)))),
    "order of sets": (CUT, lambda r: replace(r, sets=r.sets[::-1])),
    "mode": (CUT, lambda r: replace(r, mode="keep")),
    "kind": (CUT, lambda r: replace(r, kind="mean")),
    "reference": (CUT, lambda r: replace(r, reference=DISCOVERY)),
    "reference all": (CUT, lambda r: replace(r, reference=Part())),
    "dtype": (EAP, lambda r: replace(r, model=replace(r.model, dtype="bfloat16"))),
    "device": (EAP, lambda r: replace(r, model=replace(r.model, device="cuda"))),
}


@pytest.mark.parametrize("what", OTHERS)
def test_another_request_is_another_measurement(new_executor, model, what):
    """Everything that can change a number is in the key."""
    make, change = OTHERS[what]
    executor = new_executor()
    executor.result(make(model))
    before = executor.spent.measured
    executor.result(change(make(model)))
    assert executor.spent.measured > before


def test_norms_and_conservations_are_measured_on_their_examples_and_stored(new_executor, model):
    """With what a request says, no more; the second session reads them."""
    executor = new_executor()
    half = len(executor.part(model, TASK, EVALUATION))
    asked = [MeasureNorms(model, TASK), Conserve(model, TASK, "none", part=EVALUATION)]
    first = [executor.result(request) for request in asked]
    assert executor.opener.calls[-2:] == [("norms", None), ("conserve", "none", "logit_diff", half)]
    again = new_executor()
    for request, value in zip(asked, first, strict=True):
        stored = again.result(request)
        assert type(stored) is type(value)
        assert all(
            np.array_equal(getattr(stored, f), getattr(value, f)) for f in value.__dataclass_fields__ if getattr(value, f) is not None
        )
    assert again.spent.measured == 0 and stored.biases is None
    assert "contribution on task 'swap' on model" in asked[0].describe()
    assert "the plain gradient (logit_diff) on task 'swap' (evaluation examples)" in asked[1].describe()


@pytest.mark.parametrize("file", ["model.safetensors", "config.json", "tokenizer.json"])
def test_changed_files_are_measured_anew(new_executor, model, file):
    """New weights, new config, new tokenizer."""
    new_executor().result(EAP(model))
    Path(model.path, file).write_text('{"changed": true}')
    executor = new_executor()
    executor.result(EAP(model))
    assert executor.opener.count("attribute") == 1


@pytest.mark.parametrize("options", [{"batch_size": 3}, {"dtype": "float64"}, {"device": "cuda"}])
def test_session_settings_are_part_of_the_key(new_executor, model, options):
    """Command-line options change what is measured."""
    new_executor().result(EAP(model))
    executor = new_executor(**options)
    executor.result(EAP(model))
    assert executor.opener.count("attribute") == 1


@pytest.mark.parametrize("name", ["MEASUREMENT_VERSION", "libraries"])
def test_versions_are_part_of_the_key(new_executor, model, name, monkeypatch):
    """Another library, or another way of measuring, gives other numbers."""
    new_executor().result(EAP(model))
    other = version.MEASUREMENT_VERSION + 1 if name == "MEASUREMENT_VERSION" else lambda: {"torch": "9"}
    monkeypatch.setattr(f"pytest_circuits.measurement.keys.{name}", other)
    executor = new_executor()
    executor.result(EAP(model))
    assert executor.opener.count("attribute") == 1


def test_names_in_a_spec_and_places_on_disk_are_not_part_of_the_key(new_executor, model, tmp_path):
    """A renamed model or task, a copy of a model, or cuda:1 instead of cuda:0, is the same measurement."""
    new_executor(device="cuda:0").result(EAP(model))
    copy = replace(model_directory(tmp_path / "copy"), name="renamed")
    executor = new_executor(device="cuda:1")
    executor.result(Attribute(copy, replace(TASK, name="other"), "eap"))
    assert executor.opener.opened == []


def test_p_k_and_thresholds_cost_no_measurement(new_executor, model):
    """They are applied to stored scores; a request has no field for them."""
    executor = new_executor()
    found = [executor.result(EAP(model)).circuits(size).shared(p) for size in ("10%", "30%") for p in (0.3, 1.0)]
    assert (len(found), executor.opener.count("attribute")) == (4, 1)


@pytest.mark.parametrize(
    ("registry", "request_of"), [(METHODS, lambda m: Attribute(m, TASK, "mine")), (ABLATIONS, lambda m: Sweep(m, TASK, "mine"))]
)
def test_changed_code_of_a_third_party_method_is_noticed(new_executor, model, tmp_path, monkeypatch, register, registry, request_of):
    """Its versions are not ours to raise, so its source counts."""

    def install(body):
        path = tmp_path / "mine.py"
        path.write_text(body)
        module = types.ModuleType("mine_of_test")
        module.__file__ = str(path)
        exec(compile(body, str(path), "exec"), module.__dict__)
        monkeypatch.setitem(sys.modules, "mine_of_test", module)
        module.Mine.__module__ = "mine_of_test"
        register(registry, "mine", module.Mine)

    measured = []
    for body in ("class Mine: a = 1", "class Mine: a = 1", "class Mine: a = 2"):
        install(body)
        executor = new_executor()
        executor.result(request_of(model))
        measured.append(executor.opener.count("attribute") + executor.opener.count("sweep"))
    assert measured == [1, 0, 1]


class Failing(FakeSubject):
    def attribute(self, task, method="eap", **options):
        self._called("attribute", method)
        raise {"eap": MeasurementError("a hook did not fire"), "atp": Invalid("nothing there", {"n": 0})}.get(method, RuntimeError("a bug"))


def test_an_error_of_measuring_reaches_the_property(new_executor, model):
    """A property may handle it, and go on asking."""

    def careful():
        try:
            yield EAP(model)
        except MeasurementError as problem:
            found = yield Describe(model)
            return replace(ESTIMATE, details={"problem": str(problem), "model": found.architecture})

    estimate, _ = new_executor(Opener(Failing)).run(careful())
    assert estimate.details == {"problem": "a hook did not fire", "model": "fake"}


@pytest.mark.parametrize(("method", "error", "times"), [("eap", MeasurementError, 1), ("atp", Invalid, 1), ("relp", RuntimeError, 2)])
def test_an_error_leaves_the_lab_and_is_not_tried_again(new_executor, model, method, error, times):
    """Known failures are remembered for the session, bugs are not; neither is written down."""
    executor = new_executor(Opener(Failing))
    closed = []

    def steps():
        try:
            yield Attribute(model, TASK, method)
        finally:
            closed.append(True)

    for _ in range(2):
        with pytest.raises(error) as seen:
            executor.run(steps())
    assert (closed, executor.opener.count("attribute")) == ([True, True], times)
    assert getattr(seen.value, "details", {}) == ({"n": 0} if error is Invalid else {})
    fresh = new_executor()
    fresh.result(Attribute(model, TASK, method))
    assert fresh.opener.count("attribute") == 1


def test_the_first_failure_of_a_list_is_the_one_that_is_raised(new_executor, model, tmp_path):
    """In the order asked, although open models are served first."""
    executor = new_executor(Opener(Failing))
    other = model_directory(tmp_path / "other", b"other")
    executor.describe(model)
    with pytest.raises(Invalid, match="nothing there"):
        executor.run(asking([Attribute(other, TASK, "atp"), EAP(model)]))


def test_a_list_does_not_switch_models_more_than_needed(new_executor, model, tmp_path):
    """Opening is slow: the open model first, each model once."""
    other = model_directory(tmp_path / "other", b"other")
    executor = new_executor()
    executor.describe(model)
    asked = [Attribute(m, TASK, method) for method in ("eap", "atp") for m in (other, model)]
    seen = []
    executor.run(asking(asked, seen=seen))
    assert [path for path, _ in executor.opener.opened] == [model.path, other.path]
    assert [a.method for a in seen[0]] == ["eap", "eap", "atp", "atp"]


def test_something_else_than_a_request_is_a_mistake_in_the_property(new_executor):
    """With the allowed kinds named."""
    for wrong in ("eap", ["eap"]):
        with pytest.raises(TypeError, match="yielded 'eap', which is not a request; allowed: Ablate, Attribute"):
            new_executor().run(asking(wrong))


def test_a_broken_task_fails_each_claim_with_one_message(new_executor, model):
    """A loader's own exception becomes a TaskError that names the task; it is called once."""
    calls = []

    def load(source):
        calls.append(source)
        raise ZeroDivisionError("oops")

    executor = Executor(Store(Path(model.path).parent / "c"), opener=Opener(), load_task=load)
    for _ in range(2):
        with pytest.raises(TaskError, match=r"task 'swap' \(swap\) cannot be read: ZeroDivisionError: oops"):
            executor.result(EAP(model))
    assert len(calls) == 1


def test_offline_names_what_is_missing_and_opens_nothing(new_executor, model):
    """What is stored is served; what is not is refused."""
    new_executor().result(EAP(model))
    executor = new_executor(offline=True)
    assert executor.result(EAP(model)).method == "eap"
    with pytest.raises(
        Offline, match=r"not in .*cache: relp attribution \(component, logit_diff\) of task 'swap' on model 'm' .*run once without"
    ):
        executor.result(Attribute(model, TASK, "relp"))
    with pytest.raises(Offline, match="has to be loaded"):
        executor.result(Describe(ModelSource("l", loader="pkg:fn")))
    assert executor.opener.opened == []
    assert executor.stored(EAP(model)).method == "eap"
    assert executor.stored(Attribute(model, TASK, "relp")) is None


def test_events_tell_what_happens(new_executor, model):
    """For a progress bar."""
    events = []
    executor = new_executor(on_event=events.append)
    executor.result(EAP(model))
    executor.result(EAP(model))
    assert [e.kind for e in events] == ["opening", "opened", "measuring", "measured", "measuring", "measured", "cached"]
    assert events[-1].what.startswith("eap attribution (component, logit_diff) of task 'swap' on model 'm'")


def test_costs_add_up():
    """`spent` after minus before is the cost of what happened between."""
    a, b = Cost(1, 2, 0.5, 3, 4), Cost(5, 6, 1.5, 7, 8)
    assert a + b == Cost(6, 8, 2.0, 10, 12)
    assert a + b - b == a
    assert a.as_dict() == {"forwards": 1, "backwards": 2, "seconds": 0.5, "hits": 3, "measured": 4, "cached": False}


def test_the_cost_of_a_claim_that_failed_is_not_lost(new_executor, model):
    """`spent` counts it."""
    executor = new_executor(Opener(Failing))
    with pytest.raises(MeasurementError):
        executor.run(asking(Sweep(model, TASK), EAP(model)))
    assert (executor.spent.measured, executor.spent.forwards) == (2, 0)


WARM = """
import sys
from tests.fakes.executor import TASK, load_task
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.store import Store
from pytest_circuits.measurement.requests import *
from pytest_circuits.core.sources import ModelSource
model = ModelSource("m", sys.argv[1])
executor = Executor(Store(sys.argv[2]), load_task=load_task)
for request in (Describe(model), Attribute(model, TASK, "eap", part=Part("discovery", 0.5)), Sweep(model, TASK)):
    executor.result(request)
print(executor.spent.cached, [m for m in ("torch", "transformers", "tokenizers", "scipy.stats") if m in sys.modules])
"""


def test_the_warm_path_imports_no_torch(new_executor, model, tmp_path):
    """A rerun of unchanged specs is fast: with the real opener, which would import torch."""
    executor = new_executor()
    for request in (Describe(model), Attribute(model, TASK, "eap", part=DISCOVERY), Sweep(model, TASK)):
        executor.result(request)
    done = subprocess.run(
        [sys.executable, "-c", WARM, model.path, str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (done.stdout.strip(), done.stderr) == ("True []", "")


def test_results_of_one_session_are_shared_not_copied(new_executor, model):
    """Ten claims on the same scores hold them once."""
    executor = new_executor()
    assert np.shares_memory(executor.result(EAP(model)).scores, executor.result(EAP(model)).scores)


def test_load_task_of_the_fakes_follows_its_parameters():
    """The tests above rely on it."""
    assert [len(load_task(TaskSource.make("t", "builtin", "t", p))) for p in ({}, {"n": 3})] == [N, 3]
