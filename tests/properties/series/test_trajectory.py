"""Trajectories: the shapes against brute force, simultaneous intervals, models that cannot be measured."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_circuits.core.results import Description
from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Bound, Estimate, decide
from pytest_circuits.errors import Invalid, ModelError
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.requests import Describe
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import AnyParameters, TaskName, task_references
from pytest_circuits.properties.protocol import Claim, Property
from pytest_circuits.properties.series.trajectory import TRAJECTORY
from pytest_circuits.properties.series.trajectory_parameters import Trajectory
from pytest_circuits.properties.series.trajectory_shapes import SHAPES


class Stated(AnyParameters):
    """A property that a test states for each model; `shift` is added."""

    task: TaskName = "t"
    shift: float = 0.0


class Bench:
    """What is stated: by model name an (value, low, high), an exception, or an estimate; and the confidences that were asked for."""

    def __init__(self):
        self.points, self.confidences, self.tasks = {}, [], []

    def estimate(self, claim):
        yield Describe(claim.model)
        self.confidences.append(claim.parameters.confidence)
        self.tasks.append(dict(claim.tasks))
        found = self.points[claim.model.name]
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Estimate):
            return found
        value, low, high = (x + claim.parameters.shift for x in found)
        return Estimate(value, (low, high), 50, claim.parameters.confidence, "stated interval", "stated")


@pytest.fixture
def bench(register):
    made = Bench()
    entry = Property("stated", Stated, lambda claim: made.estimate(claim), 0.0, 1.0, unit="share")
    register(PROPERTIES, "stated", entry)
    register(PROPERTIES, "over", Property("over", Stated, made.estimate, over_series=True))
    return made


def run(bench, points, ats=None, **parameters):
    """The trajectory over models that are at 10, 20, … unless said otherwise."""
    ats = [10.0 * (i + 1) for i in range(len(points))] if ats is None else ats
    series = tuple(ModelSource(f"m@{at:g}", f"p{at:g}", at=at) for at in ats)
    bench.points = dict(zip([one.name for one in series], points, strict=True))
    p = Trajectory.model_validate({"of": {"stated": {}}, "shape": "no_drop", **parameters})
    steps = TRAJECTORY.estimate(Claim("trajectory", p, series[-1], {"t": "the task"}, series))
    return drive(steps, lambda request: Description(f"weights of {request.model.path}", "fake", 1, Universe(1, 1, 1), "float32"))


def flat(*values, half=0.0):
    return [(v, v - half, v + half) for v in values]


CURVE = flat(0.2, 0.5, 0.45, 0.6, 0.3, half=0.01)


@pytest.mark.parametrize(
    ("parameters", "value", "interval", "where"),
    [
        ({"shape": "non_decreasing"}, 0.3, (0.28, 0.32), ["m@40", "m@50"]),
        ({"shape": "no_drop"}, 0.3, (0.28, 0.32), ["m@40", "m@50"]),
        ({"shape": "emerges_by", "at": 20.0}, 0.3, (0.29, 0.31), ["m@50"]),
        ({"shape": "emerges_by", "at": 50.0}, 0.3, (0.29, 0.31), ["m@50"]),
        ({"shape": "peaks_before", "at": 50.0}, 0.3, (0.28, 0.32), ["m@40", "m@50"]),
        ({"shape": "peaks_before", "at": 30.0}, -0.1, (-0.12, -0.08), ["m@20", "m@40"]),
        ({"shape": "spread"}, 0.4, (0.38, 0.42), ["m@40", "m@10"]),
    ],
)
def test_each_shape_of_one_curve_by_hand(bench, parameters, value, interval, where):
    """0.2, 0.5, 0.45, 0.6, 0.3, each ± 0.01."""
    found = run(bench, CURVE, **parameters)
    assert (found.value, *found.interval) == pytest.approx((value, *interval))
    assert found.details["where"] == where


def test_a_slow_decline_is_a_drop_though_no_step_is(bench):
    """0.05 a step, 0.2 in all."""
    curve = flat(0.5, 0.45, 0.4, 0.35, 0.3)
    assert run(bench, curve, shape="non_decreasing").value == pytest.approx(0.05)
    assert run(bench, curve, shape="no_drop").value == pytest.approx(0.2)


def test_a_curve_that_rises_at_every_step_has_a_negative_drop(bench):
    """Minus its smallest rise; so `at_most: 0` can be certified."""
    for shape in ("non_decreasing", "no_drop"):
        found = run(bench, flat(0.1, 0.2, 0.4, half=0.02), shape=shape)
        assert (found.value, *found.interval) == pytest.approx((-0.1, -0.14, -0.06))
        assert decide(found, Bound(at_most=0.0)).kind == "certified"


INSIDE = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6)


def oracle(shape, curve, at):
    """The definition, over (place, value) pairs."""
    values = dict(curve)
    places = sorted(values)
    if shape == "non_decreasing":
        return max(values[a] - values[min(b for b in places if b > a)] for a in places[:-1])
    if shape == "no_drop":
        return max(values[a] - values[b] for a in places for b in places if a < b)
    if shape == "spread":
        return max(values.values()) - min(values.values())
    if shape == "emerges_by":
        return min(values[a] for a in places if a >= at)
    return max(values[a] for a in places if a < at) - max(values[a] for a in places if a >= at)


@contextmanager
def registered(name, prop):
    PROPERTIES.add(name, prop)
    try:
        yield
    finally:
        PROPERTIES.remove(name)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=150, deadline=None)
@given(data=INSIDE, cut=st.integers(1, 5))
def test_every_curve_within_the_intervals_has_its_value_within_the_interval(shape, data, cut):
    """That is what makes simultaneous intervals enough; and the value is that of the definition."""
    made = Bench()
    with registered("stated", Property("stated", Stated, made.estimate, 0.0, 1.0)):
        cut = min(cut, len(data) - 1)
        at = {"at": 10.0 * (cut + 1)} if shape in ("emerges_by", "peaks_before") else {}
        points = []
        for a, b, c, _ in data:
            low, value, high = sorted((a, b, c))
            points.append((value, low, high))
        found = run(made, points, shape=shape, **at)
        places = [10.0 * (i + 1) for i in range(len(points))]
        assert found.value == pytest.approx(oracle(shape, zip(places, [p[0] for p in points], strict=True), at.get("at")))
        assert found.interval[0] <= found.value + 1e-12 and found.value - 1e-12 <= found.interval[1]
        truth = [low + share * (high - low) for (_, low, high), (_, _, _, share) in zip(points, data, strict=True)]
        true_value = oracle(shape, zip(places, truth, strict=True), at.get("at"))
        assert found.interval[0] - 1e-9 <= true_value <= found.interval[1] + 1e-9
        low, high = TRAJECTORY.range(Trajectory.model_validate({"of": {"stated": {}}, "shape": shape, **at}))
        assert low <= found.interval[0] <= found.interval[1] <= high


@pytest.mark.parametrize(("parameters", "models"), [({}, 5), ({"shape": "emerges_by", "at": 40.0}, 2), ({"confidence": 0.8}, 5)])
def test_the_inner_property_is_asked_for_simultaneous_confidence(bench, parameters, models):
    """α shared by the models that the value depends on; the estimate has the confidence that was claimed."""
    found = run(bench, CURVE, **parameters)
    alpha = 1 - parameters.get("confidence", 0.95)
    assert bench.confidences == pytest.approx([1 - alpha / models] * 5)
    assert found.confidence == pytest.approx(1 - alpha)
    assert found.details["confidence_each"] == pytest.approx(1 - alpha / models)


def test_the_whole_curve_is_in_the_details(bench):
    """For readers and figures: place, weights, value, interval, reason."""
    reason = Invalid("the intact model answers 3 of 50 examples correctly")
    found = run(bench, [reason, *CURVE[1:]])
    assert found.details["curve"][0] == {
        "model": "m@10", "at": 10.0, "fingerprint": "weights of p10", "value": None, "interval": None, "n": 0, "reason": str(reason)
    }  # fmt: skip
    assert found.details["curve"][3] == {
        "model": "m@40", "at": 40.0, "fingerprint": "weights of p40", "value": 0.6, "interval": [0.59, 0.61], "n": 50, "reason": None
    }  # fmt: skip
    assert found.details["left_out"] == ["m@10"]
    assert found.details["notes"] == [
        "stated over 5 models, in share: 10: –, 20: 0.500, 30: 0.450, 40: 0.600, 50: 0.300",
        "largest drop from a model to a later one: 0.300 (0.600 at 40 and 0.300 at 50)",
        f"left out: m@10; m@10: {reason}",
    ]
    assert (found.n, found.property) == (50, "trajectory")
    assert found.kind == "simultaneous over 5 models (Bonferroni) of: stated interval"
    assert bench.tasks == [{"t": "the task"}] * 5


BAD = Invalid("no behaviour")


@pytest.mark.parametrize(
    ("points", "parameters", "message"),
    [
        (
            [CURVE[0], BAD, CURVE[1]],
            {},
            r"invalid for 'm@20', after one that could be measured \(.*leaves it out\): no beh",
        ),
        ([BAD, *CURVE[:2]], {"invalid": "fail"}, "invalid for 'm@10', and `invalid: fail` leaves none out: no behaviour"),
        ([BAD, BAD], {"invalid": "skip"}, "invalid for all 2 models; for 'm@20': no behaviour"),
        ([BAD, CURVE[0]], {}, "a drop needs at least 2 models that could be measured, got 1"),
        (
            [BAD, *CURVE[:2]],
            {"shape": "emerges_by", "at": 10.0, "invalid": "skip"},
            "'m@10', which is at 10 or later and so must be measured",
        ),
        (CURVE[:1], {}, "a trajectory needs at least 2 models, and 'm@10' is a series of 1"),
        (CURVE[:2], {"shape": "emerges_by", "at": 21.0}, "emerges_by at 21 has no model from there on: .* are at 10, 20"),
        (CURVE[:2], {"shape": "peaks_before", "at": 10.0}, "peaks_before at 10 has no model before it"),
        (CURVE[:2], {"shape": "peaks_before", "at": 30.0}, "peaks_before at 30 has no model from there on"),
        ([BAD, *CURVE[:2]], {"shape": "peaks_before", "at": 20.0}, "no model before it: those that could be measured are at 20, 30"),
        ([(float("nan"), 0.0, 1.0), BAD], {}, "invalid for all 2 models"),
    ],
)
def test_what_cannot_be_judged_is_invalid_with_the_reason(bench, points, parameters, message):
    """Never a verdict from what is left."""
    with pytest.raises(Invalid, match=message) as caught:
        run(bench, points, **parameters)
    assert "NaN" not in str(caught.value)


def test_models_that_cannot_be_measured_may_be_left_out(bench):
    """At the start, or with `skip` anywhere; the others make the value."""
    assert run(bench, [BAD, BAD, *flat(0.2, 0.3)]).details["left_out"] == ["m@10", "m@20"]
    found = run(bench, [*flat(0.5), BAD, *flat(0.3)], invalid="skip")
    assert (found.value, found.details["left_out"]) == (pytest.approx(0.2), ["m@20"])
    assert run(bench, [BAD, *flat(0.5, 0.6)], shape="emerges_by", at=20.0).value == pytest.approx(0.5)


def test_an_error_that_says_nothing_about_behaviour_is_not_left_out(bench):
    """A checkpoint that cannot be opened is no early one."""
    with pytest.raises(ModelError):
        run(bench, [ModelError("broken"), *CURVE], invalid="skip")


def test_a_point_that_settles_nothing_unsettles_the_trajectory(bench):
    """With its name; of a model that does not matter it does not."""
    shaky = Estimate(0.5, (0.4, 0.6), 50, 0.95, "stated", "stated", {}, "too many ties")
    found = run(bench, [*flat(0.1), shaky])
    assert found.unsettled == "m@20: too many ties"
    assert decide(found, Bound(at_most=0.9)).kind == "inconclusive"
    assert run(bench, [shaky, *flat(0.1, 0.2)], shape="emerges_by", at=20.0).unsettled is None


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("no_drop", (-1.0, 1.0)), ("non_decreasing", (-1.0, 1.0)), ("emerges_by", (0.0, 1.0)), ("peaks_before", (-1.0, 1.0)),
     ("spread", (0.0, 1.0))],
)  # fmt: skip
def test_the_range_follows_from_that_of_the_inner_property(bench, register, shape, expected):
    """So that bounds that say nothing can be refused."""
    at = {"at": 1.0} if shape in ("emerges_by", "peaks_before") else {}
    assert TRAJECTORY.range(Trajectory.model_validate({"of": {"stated": {}}, "shape": shape, **at})) == expected
    register(PROPERTIES, "stated", Property("stated", Stated, bench.estimate))
    low, high = TRAJECTORY.range(Trajectory.model_validate({"of": {"stated": {}}, "shape": shape, **at}))
    assert (low, high) == ((0.0, None) if shape == "spread" else (None, None))


@pytest.mark.parametrize(
    ("given", "message", "place"),
    [
        ({"of": {"stated": {"shift": "x"}}, "shape": "no_drop"}, "valid number", ("of", "stated", "shift")),
        ({"of": {"stated": {"nope": 1}}, "shape": "no_drop"}, "Extra inputs", ("of", "stated", "nope")),
        ({"of": {"statde": {}}, "shape": "no_drop"}, "unknown property 'statde'; did you mean 'stated'", ("of",)),
        ({"of": {"over": {}}, "shape": "no_drop"}, "'over' is itself about a series", ("of",)),
        ({"of": {"trajectory": {}}, "shape": "no_drop"}, "'trajectory' is itself about a series", ("of",)),
        ({"of": {"stated": {"confidence": 0.9}}, "shape": "no_drop"}, "confidence belongs to the claim's own property", ("of",)),
        ({"of": {"stated": {}, "reuse": {}}, "shape": "no_drop"}, "must be a property with its parameters", ("of",)),
        ({"of": "stated", "shape": "no_drop"}, "must be a property with its parameters", ("of",)),
        ({"of": {"stated": {}}, "shape": "emerges_by"}, "shape 'emerges_by' needs 'at'", ()),
        ({"of": {"stated": {}}, "shape": "no_drop", "at": 3.0}, "'no_drop' is about the whole series: leave 'at' out", ()),
        ({"of": {"stated": {}}, "shape": "emerges_by", "at": float("inf")}, "finite", ("at",)),
    ],
)
def test_parameters_that_do_not_fit_are_refused_at_their_place(bench, given, message, place):
    """Also inside `of`."""
    with pytest.raises(ValidationError, match=message) as caught:
        Trajectory.model_validate(given)
    assert caught.value.errors()[0]["loc"] == place


def test_parameters_survive_being_written_and_read(bench):
    """Tasks inside `of` are found by their path as written."""
    p = Trajectory.model_validate({"of": {"stated": {"task": "ioi", "shift": 0.25}}, "shape": "no_drop"})
    assert p.model_dump(mode="json")["of"] == {"stated": {"task": "ioi", "shift": 0.25}}
    assert Trajectory.model_validate(p.model_dump()) == p
    assert list(task_references(p)) == [(("of", "stated", "task"), "ioi")]
