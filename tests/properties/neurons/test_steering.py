"""The property steering: tables by hand, weight surgery on real models, other tasks on the same prompts, refusals."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from pytest_circuits import PromptPair, Task, open_model
from pytest_circuits.core.results import Attribution, Description, Encoded, Outcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe, layer_of
from pytest_circuits.errors import Invalid, TaskError, UnitError
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.planner import Planner
from pytest_circuits.measurement.requests import Ablate, Attribute, Describe, Encode
from pytest_circuits.measurement.store import Store
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.neurons.neuron_clusters import control_clusters
from pytest_circuits.properties.neurons.steering import estimate
from pytest_circuits.properties.neurons.steering_parameters import Steering
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.protocol import Claim
from pytest_circuits.stats.betting import grouped_mean_interval
from pytest_circuits.stats.crossed_interval import crossed_interval
from tests.fakes import tiny

MODEL = ModelSource("m", loader="memory:1")
TASKS = {name: TaskSource.make(name, "fixture", name) for name in ("t", "other")}
SHAPE = Universe(2, 2, 10)
N = 24
CLUSTER = ["L0N1", "L1N2", "L1N5"]
GROUPS = tuple(f"g{i // 2}" for i in range(N))


def canned(answer, foils=None, scores=None, correct=None, prompts=None, other_prompts=(), asked=None, **parameters):
    """The estimate of a model that is the function answer(task, factor, set) → [n] probabilities; in sample."""
    parameters = {"units": CLUSTER, **({} if scores is None else {"units": None, "neurons": 3}), **parameters}
    prompts = tuple(f"p{i}" for i in range(N)) if prompts is None else prompts

    def reply(request):
        (asked if asked is not None else []).append(request)
        if isinstance(request, Encode):
            return Encoded(N, GROUPS, "d", prompts=prompts if request.task.name == "t" else tuple(other_prompts))
        if isinstance(request, Describe):
            return Description("f", "fake", 1, SHAPE, "float32")
        if isinstance(request, Attribute):
            return Attribution(np.asarray([scores], np.float32), SHAPE.names("neuron"), "relp", "neuron", request.metric)
        if request.metric == "foil_prob" and foils is None:
            raise TaskError("needs a foil")
        m = json.loads(request.options).get("factor", 1.0)
        tables = [np.broadcast_to(f(request.task.name, m, s), N) for f in (answer, foils or answer) for s in request.sets]
        p, q = np.array(tables[: len(request.sets)]), np.array(tables[len(request.sets) :])
        right = np.broadcast_to(np.ones(N, bool) if correct is None else correct, p.shape)
        return Outcome(right, (q if request.metric == "foil_prob" else p).astype(np.float32), np.log(p).astype(np.float32))

    steps = estimate(Claim("steering", Steering(task="t", split="in_sample", **parameters), MODEL, TASKS))
    result = drive(steps, reply)
    json.dumps(result.details)
    return result


def table(task, m, units):
    """The intact probability rises by example; the cluster's falls by 0.1 a unit of factor away from 1, a control's by 0.01."""
    base = 0.5 + np.arange(N) / 100
    return base - (0.1 if set(units) == set(CLUSTER) else 0.01) * abs(m - 1) / 2


def test_the_value_is_the_mean_change_and_its_interval_bets_over_groups():
    """−0.1 everywhere at a factor of −1; the whole curve is in the report."""
    found = canned(table, factor=-1.0)
    change = (table("t", -1, CLUSTER) - table("t", 1, CLUSTER)).astype(np.float32)
    assert found.value == pytest.approx(-0.1, abs=1e-6)
    assert found.interval == pytest.approx(grouped_mean_interval(change, GROUPS, 0.95, -1, 1)[1], abs=1e-6)
    curve = {entry["factor"]: entry for entry in found.details["curve"]}
    assert list(curve) == [-4, -2, -1, 0, 1, 2, 4]
    for m, entry in curve.items():
        assert entry["answer"] == entry["watched"] == pytest.approx(table("t", m, CLUSTER).mean(), abs=1e-6)
        assert entry["watched_control"] == pytest.approx(table("t", m, () if m != 1 else CLUSTER).mean(), abs=1e-6)
        assert (entry["foils"], entry["accuracy"]) == (None, 1.0)
    assert found.details["control"]["mean_change"] == pytest.approx(-0.01, abs=1e-6)
    assert found.details["control"]["rank_p"] == pytest.approx(2 / 21)
    assert found.details["notes"][0] == "3 of 20 neurons, chosen by name, multiplied by -1"
    assert "went from 0.615 to 0.515" in found.details["notes"][1]


def test_a_control_takes_off_what_any_cluster_would_do():
    """−0.1 − (−0.01); both groups and draws are in the interval."""
    asked = []
    found = canned(table, factor=-1.0, against="control", draws=7, asked=asked)
    assert found.value == pytest.approx(-0.09, abs=1e-6)
    own, others = table("t", -1, CLUSTER), np.stack([table("t", -1, ())] * 7)
    expected = crossed_interval(-others, -own, GROUPS, 0.95)
    assert found.interval == pytest.approx(expected[1], abs=1e-6)
    judged = [r for r in asked if isinstance(r, Ablate) and r.kind == "scale" and json.loads(r.options) == {"factor": -1.0}]
    assert [len(r.sets) for r in judged] == [8]
    assert {len(r.sets) for r in asked if isinstance(r, Ablate) and r.kind == "scale" and r not in judged} == {2}


def test_foils_can_be_watched_and_come_along_where_there_are_any():
    """The answer's and the foils' probabilities are kept apart."""
    rising = lambda task, m, units: 0.2 + 0.05 * (1 - m) * (set(units) == set(CLUSTER))  # noqa: E731
    found = canned(table, rising, factor=-1.0, watch="foils")
    assert found.value == pytest.approx(0.1, abs=1e-6)
    at = {entry["factor"]: entry for entry in found.details["curve"]}
    assert (at[-4]["foils"], at[-4]["watched"]) == (pytest.approx(0.45), pytest.approx(0.45))
    assert at[-4]["answer"] == pytest.approx(table("t", -4, CLUSTER).mean(), abs=1e-6)
    assert canned(table, rising, factor=-1.0).value == pytest.approx(-0.1, abs=1e-6)
    with pytest.raises(Invalid, match="watch: foils needs a foil for each example of task 't'"):
        canned(table, None, factor=-1.0, watch="foils")


def test_another_task_is_watched_on_the_prompts_that_both_have():
    """In whatever order they stand there; prompts that it lacks are left out."""
    order = np.random.default_rng(0).permutation(N)
    prompts = tuple(f"p{i}" for i in range(N))
    theirs = tuple(f"p{i}" if i >= 2 else f"q{i}" for i in order)

    def answer(task, m, units):
        mine = 0.5 + np.arange(N) / 200 * (1 - m) / 2 * (set(units) == set(CLUSTER))
        return mine[order] if task == "other" else 0.5

    found = canned(answer, factor=-1.0, watch_task="other", prompts=prompts, other_prompts=theirs)
    assert found.value == pytest.approx(np.arange(2, N).mean() / 200, abs=1e-6)
    assert (found.n, found.details["examples_watched"]) == (N - 2, N - 2)
    assert found.details["watched"] == "probability of the answer of task 'other'"
    assert all(entry["answer"] == pytest.approx(0.5) for entry in found.details["curve"])
    with pytest.raises(
        Invalid, match=r"0 of 24 evaluation examples of task 't', in 0 groups, have a clean prompt that task 'other' has too"
    ):
        canned(answer, factor=-1.0, watch_task="other", other_prompts=tuple(f"q{i}" for i in range(N)))


def test_the_cluster_is_the_strongest_neurons_by_absolute_score():
    """Ties by order; the score's sign does not matter."""
    scores = np.zeros(20)
    scores[[1, 12, 15, 16]] = -3, 2, 1, 1
    asked = []
    found = canned(table, factor=2.0, scores=scores, asked=asked)
    assert found.details["cluster"] == {"size": 3, "per_layer": [1, 2], "units": ["L0N1", "L1N2", "L1N5"]}
    assert next(r for r in asked if isinstance(r, Attribute)).reduce == "mean"
    assert found.details["chosen_by"] == "relp on 24 discovery examples"


@pytest.mark.parametrize(
    ("parameters", "scores", "message"),
    [
        ({"neurons": 3}, np.eye(20)[0], "only 1 of 20 neurons have a relp score other than zero, and the claim needs 3"),
        ({"neurons": 3}, np.zeros(20), "only 0 of 20"),
        ({"neurons": 20}, np.ones(20), "the claim needs 20 neurons, and the model has 20"),
        ({"neurons": "100%"}, np.ones(20), "the claim needs 100% neurons"),
        ({"units": [*SHAPE.names("neuron")]}, None, "the cluster is all 20 neurons"),
        ({"units": [f"L0N{i}" for i in range(6)], "against": "control"}, None, "layer 0 has 10 neurons, 6 of them in the cluster"),
        ({"correct": np.zeros(N, bool)}, None, "no behaviour to explain"),
    ],
)
def test_what_cannot_be_judged_is_invalid_with_the_arithmetic(parameters, scores, message):
    """Never NaN, never a pass."""
    with pytest.raises(Invalid, match=message):
        canned(table, factor=-1.0, scores=scores, **parameters)


def test_without_room_for_a_control_the_report_says_so():
    """Where none was asked for."""
    found = canned(table, factor=-1.0, units=[f"L0N{i}" for i in range(6)])
    assert found.details["control"]["draws"] == 0 and "layer 0 has 10 neurons" in found.details["control"]["why"]
    assert all(entry["watched_control"] is None for entry in found.details["curve"] if entry["factor"] != 1)
    with pytest.raises(UnitError, match="does not exist"):
        canned(table, factor=-1.0, units=["L0N99"])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"neurons": 3, "factor": 1.0}, "factor: 1 is the intact model"),
        ({"factor": 2.0}, "give the cluster either as neurons"),
        ({"factor": 2.0, "neurons": 3, "units": ["L0N1"]}, "give the cluster either as neurons"),
        ({"factor": 2.0, "units": []}, "at least 1 item"),
        ({"factor": 2.0, "units": ["L0N1", "L0N1"]}, "named twice"),
        ({"factor": 2.0, "neurons": 3, "watch_task": "t"}, "watch_task is the task itself"),
        ({"factor": float("inf"), "neurons": 3}, "finite"),
        ({"factor": 2.0, "neurons": 3, "attribution": "eap"}, "does not work at neuron level"),
    ],
)
def test_mistakes_are_refused_when_the_spec_is_read(parameters, message):
    """With what to write instead."""
    with pytest.raises(ValidationError, match=message):
        Steering(task="t", **parameters)


def test_the_watched_task_is_a_task_of_the_claim():
    """So that a spec checks its name and the executor reads it."""
    assert task_names(Steering(task="t", factor=2.0, neurons=3, watch_task="other")) == ["t", "other"]
    found = PROPERTIES.get("steering")
    assert (found.name, found.lowest, found.highest) == ("steering", -1.0, 1.0)


def test_controls_have_as_many_neurons_in_each_layer_and_none_of_the_cluster():
    """Positions are kept; the first draws do not depend on their number; a seed is a seed."""
    cluster = ("L0N1@-1", "L0N1@-2", "L1N2", "L1N5")
    p = Steering(task="t", factor=2.0, units=list(cluster), draws=30)
    found, why = control_clusters(cluster, SHAPE, p)
    assert why is None and len(set(found)) > 20
    for control in found:
        assert [layer_of(u) for u in control] == [0, 0, 1, 1]
        bare = [u.split("@")[0] for u in control]
        assert not {"L0N1", "L1N2", "L1N5"} & set(bare) and bare[0] == bare[1] and bare[2] != bare[3]
        assert control[0].endswith("@-1") and control[1].endswith("@-2")
    assert control_clusters(cluster, SHAPE, p.model_copy(update={"draws": 3}))[0] == found[:3]
    assert control_clusters(cluster, SHAPE, p.model_copy(update={"control_seed": 1}))[0] != found


def probabilities(model, task, foils=False):
    """By plain forwards."""
    found = []
    for pair in task:
        with torch.no_grad():
            p = model(input_ids=torch.tensor([pair.clean]), use_cache=False).logits[0, -1].softmax(-1)
        found.append(float(sum(p[f] for f in {f[0] for f in pair.foils}) if foils else p[pair.answer[0]]))
    return np.array(found)


def scaled(model, units, factor):
    """A copy with the neurons' columns of the down projections multiplied."""
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for unit in units:
            layer, neuron = unit[1:].split("N")
            twin.model.layers[int(layer)].mlp.down_proj.weight[:, int(neuron)] *= factor
    return twin


def real(tmp_path, **parameters):
    model, task = tiny.model("llama", dtype=torch.float32), tiny.task(n=32, foils=3)
    other = Task("other", tuple(PromptPair(p.clean, p.corrupt, p.foils[0], (p.answer,)) for p in reversed(task.pairs)))
    executor = Executor(Store(tmp_path / "cache"))
    executor.models.provide(MODEL, lambda: (model, None))
    executor.provide_task(TASKS["t"], task)
    executor.provide_task(TASKS["other"], other)
    claim = Claim("steering", Steering(task="t", min_accuracy=0.0, split="in_sample", **parameters), MODEL, TASKS)
    return model, task, other, executor, claim


def test_on_a_real_model_the_curve_equals_weight_surgery(tmp_path):
    """Answer and foils, at every factor, over two layers; and the second time nothing is measured."""
    units = ["L0N3", "L0N30", "L2N7"]
    model, task, _, executor, claim = real(tmp_path, factor=-4.0, units=units, draws=2)
    found, cost = executor.run(estimate(claim))
    intact, twin = probabilities(model, task), scaled(model, units, -4)
    assert found.value == pytest.approx((probabilities(twin, task) - intact).mean(), abs=1e-5)
    assert abs(found.value) > 1e-4
    for entry in found.details["curve"]:
        twin = scaled(model, units, entry["factor"])
        assert entry["answer"] == pytest.approx(probabilities(twin, task).mean(), abs=1e-5)
        assert entry["foils"] == pytest.approx(probabilities(twin, task, foils=True).mean(), abs=1e-5)
    assert cost.measured > 0 and executor.run(estimate(claim))[1].measured == 0


def test_on_a_real_model_another_answer_to_the_same_prompts_is_watched(tmp_path):
    """The other task's answer is the first foil; its pairs stand the other way round."""
    model, task, other, executor, claim = real(tmp_path, factor=4.0, neurons=12, watch_task="other", draws=2)
    found, _ = executor.run(estimate(claim))
    subject = open_model(model)
    scores = np.abs(subject.attribute(task, "relp", level="neuron", reduce="mean").scores[0])
    units = [subject.anatomy.universe.names("neuron")[i] for i in np.argsort(-scores, kind="stable")[:12]]
    assert found.details["cluster"]["units"] == units
    change = probabilities(scaled(model, units, 4), other) - probabilities(model, other)
    assert found.value == pytest.approx(change.mean(), abs=1e-5)


def test_foils_with_the_same_first_token_count_once():
    """And an example without foils is an error, not a zero."""
    model = tiny.model("llama", dtype=torch.float32)
    pairs = (PromptPair((1, 2, 3), (1, 2, 4), (5,), ((6,), (7,), (6,))), PromptPair((1, 2, 9), (1, 2, 4), (5,), ((8,),)))
    found = open_model(model).ablate(Task("t", pairs), remove=[], metric="foil_prob")
    np.testing.assert_allclose(found.metric, probabilities(model, pairs, foils=True), rtol=1e-5)
    bare = (pairs[0], PromptPair((1, 2, 9), (1, 2, 4), (5,)))
    for task in (Task("t", bare), Task("t", bare[1:])):
        with pytest.raises(TaskError, match="foil_prob needs a foil"):
            open_model(model).ablate(task, remove=[], metric="foil_prob")


def test_a_plan_names_every_request(tmp_path):
    """Seven factors on two tasks, the intact model's gate, the ranking, encodings; no notes."""
    _, _, _, executor, claim = real(tmp_path, factor=4.0, neurons=12, watch_task="other")
    executor.result(Describe(MODEL))
    plan = Planner(executor).add(estimate(claim))
    assert plan.notes == () and plan.requests == {"Ablate": 15, "Attribute": 1, "Encode": 2}
