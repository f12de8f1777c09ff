"""A plan says what would be measured, and measures nothing."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from pytest_circuits.core.results import Attribution
from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Estimate
from pytest_circuits.errors import Invalid, ModelError
from pytest_circuits.measurement.planner import Forecast, Planner, universe_of
from pytest_circuits.measurement.requests import Ablate, Attribute, Conserve, Describe, Encode, MeasureNorms, Part, Sweep, freeze
from tests.fakes.executor import TASK, UNIVERSE, N, model_directory

DISCOVERY, EVALUATION = Part("discovery", 0.5), Part("evaluation", 0.5)


def necessity_like(model, p=0.9, gate=0.9):
    """Asks for scores, then ablates what they show, as real properties do."""
    found = yield Attribute(model, TASK, "eap", part=DISCOVERY)
    shared = found.circuits("30%").shared(p)
    if not shared:
        raise Invalid("empty")
    intact, out = yield [Ablate(model, TASK, ((),), part=EVALUATION), Ablate(model, TASK, (shared, ("L0H0",)), part=EVALUATION)]
    if intact.accuracy[0] < gate:
        raise Invalid("incompetent")
    return Estimate(float(out.accuracy[0]), (0, 1), out.correct.shape[1])


def files(folder):
    return sorted(p.name for p in folder.rglob("*.safetensors"))


def test_a_plan_counts_requests_and_calls_without_opening_or_keeping_anything(new_executor, model, tmp_path):
    """No model, no entry in the store: an invented result can never be taken for a measured one."""
    executor = new_executor(batch_size=4)
    forecast = Planner(executor).add(necessity_like(model))
    assert forecast.requests == Counter(Attribute=1, Ablate=2)
    assert (forecast.forwards, forecast.backwards, forecast.cached, forecast.notes) == (2 * 3 + 3 + 2 * 3, 3, 0, ())
    assert (executor.opener.opened, (tmp_path / "cache").exists(), executor.spent.measured) == ([], False, 0)


def test_what_claims_share_counts_once(new_executor, model):
    """Also under other names for the same model and task."""
    planner = Planner(new_executor())
    planner.add(necessity_like(model))
    again = planner.add(necessity_like(replace(model, name="release")))
    assert again == Forecast()
    assert planner.total.requests == Counter(Attribute=1, Ablate=2)


def test_stored_results_are_used_and_counted_as_such(new_executor, model):
    """After a run nothing is left to measure; after half of one, the stored scores choose the sets of the rest."""
    first = new_executor()
    first.result(Attribute(model, TASK, "eap", part=DISCOVERY))
    executor = new_executor()
    forecast = Planner(executor).add(necessity_like(model, 0.2))
    assert (forecast.cached, forecast.requests, executor.opener.opened) == (1, Counter(Ablate=2), [])
    first.run(necessity_like(model, 0.2, gate=0))
    assert Planner(new_executor()).add(necessity_like(model, 0.2, gate=0)) == Forecast(cached=3)


def test_a_broken_model_is_a_note_and_the_other_claims_are_planned(new_executor, model, tmp_path):
    """As in a real run: that claim alone is invalid."""
    planner = Planner(new_executor())
    assert "there is no directory" in planner.add(necessity_like(ModelSource("m", str(tmp_path / "no")))).notes[0]
    planner.add(necessity_like(model))
    assert (planner.total.requests.total(), len(planner.total.notes)) == (3, 1)


def test_a_property_that_stops_on_invented_results_leaves_a_note(new_executor, model):
    """What it would have asked for next depends on real numbers."""

    def picky():
        yield Describe(model)
        raise Invalid("not with these numbers")

    assert Planner(new_executor()).add(picky()).notes == ("not with these numbers",)


@pytest.mark.parametrize("mode", ["remove", "keep"])
def test_invented_results_have_the_shapes_of_real_ones(new_executor, model, mode):
    """Or a property would stumble over them."""
    everything = UNIVERSE.names()
    requests = [
        Describe(model),
        Encode(model, TASK),
        Attribute(model, TASK, "eap", part=DISCOVERY),
        Attribute(model, TASK, "atp", "neuron"),
        Attribute(model, TASK, "eap", reduce="mean"),
        Ablate(model, TASK, ((), everything, ("L0H0",)), mode),
        Sweep(model, TASK, part=EVALUATION),
        MeasureNorms(model, TASK),
        Conserve(model, TASK, part=EVALUATION),
    ]
    seen = []

    def steps():
        seen.extend((yield requests))

    Planner(new_executor()).add(steps())
    describe, encoded, scores, neurons, mean, outcome, sweep, norms, conserved = seen
    assert (describe.universe, encoded.n, len(encoded.groups)) == (replace(UNIVERSE, kv_heads=UNIVERSE.heads), N, N)
    half = scores.scores.shape[0]
    assert (scores.scores.shape, neurons.scores.shape, mean.scores.shape) == ((half, 8), (N, 16), (1, 8))
    assert isinstance(scores, Attribution)
    assert (outcome.correct.shape, outcome.metric.shape, outcome.metric.dtype) == ((3, N), (3, N), np.float32)
    assert outcome.correct.all(1).tolist() == ([True, False, False] if mode == "remove" else [False, True, False])
    assert (sweep.metric.shape, sweep.baseline.metric.shape, sweep.units) == ((N - half, 8), (N - half,), everything)
    assert sweep.baseline.correct.all()
    assert (norms.values.shape, norms.units, norms.values.dtype) == ((8,), everything, np.float32)
    assert (conserved.totals.shape, conserved.metric.shape, len(conserved.boundaries)) == ((N - half, 3), (N - half,), 3)
    assert (conserved.gaps == 0).all() and len(set(encoded.prompts)) == N


def invented_for(executor, model, *requests):
    seen = []

    def steps():
        seen.extend((yield list(requests)))

    Planner(executor).add(steps())
    return seen


def test_the_invented_results_of_tasks_differ_and_those_of_one_request_do_not(new_executor, model):
    """Or nothing would stand out from another task, and a changed task would be the same one."""
    executor, other = new_executor(), replace(TASK, target="another")
    for request in (Attribute(model, TASK, "eap"), Ablate(model, TASK, (("L0H0",),)), Sweep(model, TASK), MeasureNorms(model, TASK)):
        values = [
            getattr(one, "metric", None) if hasattr(one, "correct") else one.values
            for one in invented_for(
                executor, model, request, replace(request, task=replace(TASK, name="renamed")), replace(request, task=other)
            )
        ]
        assert np.array_equal(values[0], values[1]), "a name says nothing about what a task is"
        assert isinstance(request, MeasureNorms) or not np.array_equal(values[0], values[2])
    again = invented_for(new_executor(), model, Attribute(model, TASK, "eap"))[0]
    assert np.array_equal(again.values, invented_for(executor, model, Attribute(model, TASK, "eap"))[0].values), "in every process"


def test_the_circuits_of_tasks_share_a_part_and_parts_of_a_task_have_its_circuits(new_executor, model):
    executor = new_executor()
    tasks = [replace(TASK, target=f"task {i}") for i in range(20)]
    found = [one.circuits("50%").members[0] for one in invented_for(executor, model, *(Attribute(model, task, "eap") for task in tasks))]
    common = [(a & b).sum() for i, a in enumerate(found) for b in found[:i]]
    assert 0 < np.mean(common) < found[0].sum() and len({tuple(one) for one in found}) > 1
    every = Attribute(model, TASK, "eap")
    whole, half, mean = invented_for(executor, model, every, replace(every, part=EVALUATION), replace(every, reduce="mean"))
    assert np.array_equal(whole.values[0], half.values[0]) and np.array_equal(whole.values[0], mean.values[0])


@pytest.mark.parametrize(("metric", "low", "high"), [("prob", 0, 1), ("log_prob", -np.inf, 0), ("logit_diff", -np.inf, np.inf)])
def test_invented_metrics_lie_where_real_ones_do(new_executor, model, metric, low, high):
    (outcome,) = invented_for(new_executor(), model, Ablate(model, TASK, (("L0H0",),), metric=metric))
    assert (outcome.metric >= low).all() and (outcome.metric <= high).all() and (outcome.log_prob < 0).all()
    right, wrong = outcome.metric[outcome.correct], outcome.metric[~outcome.correct]
    assert right.min() > wrong.max(), "and tell right answers from wrong ones"


REQUEST = Attribute(ModelSource("m", "p"), TASK, "eap")
SETS = Ablate(ModelSource("m", "p"), TASK, ((), ("L0H0",), ("L0H1",)))
SHAPE = Universe(4, 3)


@pytest.mark.parametrize(
    ("request_", "n", "expected"),
    [
        (REQUEST, 10, (6, 3)),
        (REQUEST, 1, (2, 1)),
        (replace(REQUEST, method="gradient"), 10, (3, 3)),
        (replace(REQUEST, method="eap_ig", options=freeze({"steps": 7})), 4, (11, 7)),
        (replace(REQUEST, method="ig_activations"), 4, (11, 8)),
        (replace(REQUEST, method="ig_activations", level="neuron"), 4, (7, 4)),
        (replace(REQUEST, method="exact"), 4, (18, 0)),
        (SETS, 4, (3, 0)),
        (SETS, 1, (2, 0)),
        (replace(SETS, mode="keep"), 4, (3, 0)),
        (replace(SETS, kind="mean"), 4, (5, 0)),
        (replace(SETS, kind="mean", sets=((),)), 4, (1, 0)),
        (Sweep(ModelSource("m", "p"), TASK), 4, (17, 0)),
        (Sweep(ModelSource("m", "p"), TASK), 1, (5, 0)),
        (Sweep(ModelSource("m", "p"), TASK, "mean"), 4, (19, 0)),
        (Sweep(ModelSource("m", "p"), TASK, "residual_slice"), 4, (19, 0)),
        (MeasureNorms(ModelSource("m", "p"), TASK), 10, (3, 0)),
        (Conserve(ModelSource("m", "p"), TASK), 10, (3, 3)),
        (Describe(ModelSource("m", "p")), 4, (0, 0)),
    ],
)
def test_costs_are_counted_in_batched_calls(request_, n, expected):
    """Batches of four; a mean over eight examples; stacked while the batch has room."""
    assert request_.cost(SHAPE, n, 8, 4) == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 100}, Universe(4, 8, 100, 8)),
        ({"n_layer": 12, "n_head": 12, "n_embd": 768, "n_inner": None}, Universe(12, 12, 3072, 12)),
        ({"text_config": {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 9}}, Universe(2, 4, 9, 4)),
    ],
)
def test_the_universe_is_read_from_the_config(tmp_path, config, expected):
    """Under the names that architectures use."""
    assert universe_of(model_directory(tmp_path / "m", config=config)) == expected


def test_a_config_that_does_not_say_is_refused(tmp_path):
    """No guess at the size of a model."""
    source = model_directory(tmp_path / "m", config={"hidden_size": 8})
    with pytest.raises(ModelError, match="names no attention heads"):
        universe_of(source)
    with pytest.raises(ModelError, match=r"config.json is not here"):
        universe_of(ModelSource("l", loader="a:b"))


def test_a_forecast_reads_as_an_estimate():
    """About, not exactly."""
    some = Forecast(Counter(Attribute=2, Ablate=1), 9, 4, 3)
    assert str(some) == "to measure: 1 Ablate, 2 Attribute; about 9 forwards and 4 backwards; 3 stored"
    assert str(Forecast(cached=2)) == "nothing to measure (2 stored)"
    assert json.dumps(some.requests) == '{"Attribute": 2, "Ablate": 1}'
    assert some + Forecast(notes=("x",)) + Forecast(notes=("x",)) == replace(some, notes=("x",))
