"""circuit_match: hand-made circuits, files, and planted models whose circuits are known."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from models.planted import plant
from pytest_circuits import open_model
from pytest_circuits.core.edges import ARROW
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid
from pytest_circuits.properties.consistency.circuit_match import CircuitMatch
from pytest_circuits.properties.steps.known_units import ANY_MODEL, check_names
from tests.fakes.components import Fake, Opened, Study, planted_scores

UNIVERSE = Universe(4, 3)
N = 200
CORE = ["L0H1", "L2H0", "L2MLP"]


def study(scores=None, n=N):
    return Study(UNIVERSE, {"t": Fake(planted_scores(n, UNIVERSE, CORE) if scores is None else scores)})


def match(known, made=None, **more):
    return (made or study()).estimate("circuit_match", **{"task": "t", "known": known, "size": 3, "p": 0.9} | more)


@pytest.mark.parametrize("circuit", ["shared", "mean"])
@pytest.mark.parametrize(
    ("known", "recall", "precision", "jaccard"),
    [(CORE, 1, 1, 1), (["L0H1"], 1, 1 / 3, 1 / 3), (["L0H1", "L1H1"], 0.5, 1 / 3, 0.25), (["L1H1"], 0, 0, 0)],
)
def test_measures_count_what_is_in_both(circuit, known, recall, precision, jaccard):
    """The circuit is the same three units whichever examples are drawn."""
    values = {name: match(known, measure=name, circuit=circuit) for name in ("recall", "precision", "jaccard")}
    assert [one.value for one in values.values()] == pytest.approx([recall, precision, jaccard])
    assert all(one.interval == pytest.approx((one.value, one.value)) and one.unsettled is None for one in values.values())
    details = json.loads(json.dumps(values["recall"].details, allow_nan=False))
    assert set(details["both"]) == set(CORE) & set(known)
    assert set(details["missing"]) == set(known) - set(CORE) and set(details["extra"]) == set(CORE) - set(known)
    assert details["found"] | {"per_layer": 0, "units": 0} == {"units": 0, "size": 3, "heads": 2, "mlps": 1, "per_layer": 0}
    heads, mlps = sum("H" in u for u in known), sum("MLP" in u for u in known)
    assert details["chance"]["overlap"] == pytest.approx(2 * heads / 12 + 1 * mlps / 4)


def test_contains_and_excludes_are_yes_or_no_with_as_much_certainty_as_the_frequencies_allow():
    """A unit in all of 100 discovery circuits is in S_0.9 for sure; one in 85% of them is neither surely in nor surely out."""
    sure, maybe, never = "L0H1", "L1H1", "L3MLP"
    scores = np.zeros((N, 16))
    scores[:, UNIVERSE.index([sure])] = 3
    scores[:, UNIVERSE.index([maybe])] = np.where(np.arange(N) % 8 == 0, 0, 2)[:, None]
    scores[:, UNIVERSE.index([never])] = np.where(np.arange(N) % 8 == 0, 1, 0)[:, None]
    made = study(scores)
    assert made.estimate("shared_size", task="t", p=0.85, size=2).details["count"] == 2

    def answer(known, measure):
        found = match(known, made, size=2, p=0.85, measure=measure)
        return found.value, found.interval, found.unsettled

    assert answer([sure], "contains") == (1, (1, 1), None)
    assert answer([sure, maybe], "contains") == (1, (0, 1), None)
    assert answer([sure, never], "contains") == (0, (0, 0), None)
    assert answer([never], "excludes") == (1, (1, 1), None)
    assert answer([sure, never], "excludes") == (0, (0, 0), None)
    assert answer([maybe, never], "excludes") == (0, (0, 1), None)


def test_the_mean_circuit_is_the_top_of_the_mean_absolute_scores():
    """Signs do not cancel, and a unit that is strong on few examples can win over one that is in most circuits; p plays no part."""
    scores = np.zeros((N, 16))
    scores[:, 0] = np.where(np.arange(N) % 2, 5, -5)
    scores[:, 1] = np.where(np.arange(N) % 4, 1, 0)
    scores[:, 2] = np.where(np.arange(N) % 4, 0, 40)
    found = match(["L0H0", "L0H2"], study(scores), size=2, circuit="mean", p=1.0)
    assert (found.value, found.interval, found.unsettled) == (1, (1, 1), None)
    shared = match(["L0H0", "L0H2"], study(scores), size=2, p=0.6)
    assert shared.value == 0.5 and shared.details["found"]["units"] == ["L0H0", "L0H1"]


def test_the_mean_circuit_is_found_again_in_each_resample():
    """Two units of nearly equal mean take turns: whether one is contained cannot be known; recall of both moves."""
    rng = np.random.default_rng(0)
    scores = np.zeros((N, 16))
    scores[:, 0] = 10
    scores[:, 1:3] = rng.exponential(1, (N, 2))
    made = study(scores)
    units = match(["L0H0"], made, size=2, circuit="mean").details["found"]["units"]
    found = match([units[1]], made, size=2, circuit="mean", measure="contains")
    assert (found.value, found.interval) == (1, (0, 1))
    assert 0.3 < found.details["interval_parts"]["share_of_resamples"] < 0.99
    assert match(["L0H0"], made, size=2, circuit="mean", measure="contains").interval == (1, 1)
    low, high = match(units, made, size=2, circuit="mean").interval
    assert low < 1 and high == 1


def test_with_contrast_the_mean_circuit_is_that_of_the_contrastive_scores():
    """L0H0 is strong on both tasks, L1H1 on this one only."""
    both = planted_scores(N, UNIVERSE, ["L0H0"])
    here = both.copy()
    here[:, UNIVERSE.index(["L1H1"])] = 0.9
    made = Study(UNIVERSE, {"t": Fake(here), "other": Fake(both)})
    found = [match(["L1H1"], made, size=1, circuit="mean", contrast=contrast).value for contrast in ([], ["other"])]
    assert found == [0, 1]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"known": ["L9H0"]}, "'L9H0' does not exist: this model has layers 0–3"),
        ({"known": ["L0H3"]}, "'L0H3' does not exist: .* heads 0–2"),
        ({"known": list(UNIVERSE.names())}, "the known circuit is all 16 components"),
        (
            {"known": ["L0H0", "L0H1", "L0H2", "L1H0"], "measure": "contains"},
            "has 4 components, and circuits have 3 .* at most 3 can be",
        ),
    ],
)
def test_what_cannot_be_matched_is_invalid(wrong, reason):
    with pytest.raises(Invalid, match=reason):
        match(wrong.pop("known"), **wrong)


def test_a_mean_circuit_that_reaches_no_threshold_is_invalid():
    """Each example has a unit with all of its score, another one each time."""
    scores = np.zeros((N, 16))
    scores[np.arange(N), np.arange(N) % 16] = 1
    with pytest.raises(Invalid, match=r"the mean circuit of task 't' is empty: no component has 0\.5"):
        study(scores).estimate("circuit_match", task="t", known=["L0H0"], threshold=0.5, circuit="mean")


def test_an_empty_shared_set_matches_nothing_and_excludes_nothing():
    """Otherwise a set of noise would certify that it excludes anything."""
    scores = np.zeros((N, 16))
    scores[np.arange(N), np.arange(N) % 16] = 1
    for measure in ("recall", "excludes"):
        with pytest.raises(Invalid, match="the shared set of task 't' is empty"):
            match(["L0H0"], study(scores), size=1, measure=measure)


def test_a_match_with_a_set_that_needs_every_example_is_unsettled_but_a_frequency_is_not():
    """At P = 1 the set has no stable value; that a unit is not in 1 in 2 circuits is known all the same."""
    scores = planted_scores(N, UNIVERSE, ["L0H0"])
    scores[::2, UNIVERSE.index(["L1H1"])] = 0.5
    assert "has no value that examples could estimate" in match(["L0H0"], study(scores), p=1.0).unsettled
    found = match(["L1H1"], study(scores), size=2, p=1.0, measure="contains")
    assert (found.value, found.interval, found.unsettled) == (0, (0, 0), None)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({}, "one of known"),
        ({"known": ["L0H0"], "file": "x.txt"}, "x.txt"),
        ({"known": []}, "at least one component"),
        ({"known": ["L0H0", "L0H0"]}, "named twice"),
        ({"known": ["10.7"]}, "'10.7' is not a unit name"),
        ({"known": ["L01H0"]}, "is not a unit name"),
        ({"known": ["L0N3"]}, "is not a component"),
        ({"known": [f"L0H0{ARROW}L1MLP"]}, "is an edge"),
        ({"known": ["L0H0@-1"]}, "is not a unit name"),
        ({"file": "nowhere.txt"}, "'nowhere.txt' cannot be read"),
    ],
)
def test_a_known_circuit_is_checked_when_the_spec_is_read(wrong, reason):
    with pytest.raises(ValidationError, match=reason):
        CircuitMatch(task="t", **wrong)


def test_any_component_that_can_be_written_is_accepted_without_a_model():
    assert check_names(["L0H0", f"L{10**15}MLP"]) == ("L0H0", f"L{10**15}MLP")
    assert "component_names" not in vars(ANY_MODEL)


def test_a_known_circuit_can_come_from_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("known.txt").write_text("# from a paper\nL0H1  # copies\n\nL2H0\nL2MLP\n", encoding="utf-8")
    Path("known.json").write_text('["L0H1", "L2H0", "L2MLP"]', encoding="utf-8")
    for name in ("known.txt", "known.json", str(tmp_path / "known.txt")):
        assert match(None, file=name).details["known"]["units"] == CORE
    for name, text, reason in (("a.txt", "L0H1\nhead 3\n", "'head 3' is not a unit name"), ("b.txt", "#\n", "at least one"),
                               ("c.json", '{"units": []}', "must hold a list"), ("d.json", "[", "file 'd.json'"),
                               ("e.json", "[3]", "written as text")):  # fmt: skip
        Path(name).write_text(text, encoding="utf-8")
        with pytest.raises(ValidationError, match=reason):
            CircuitMatch(task="t", file=name)


def test_the_circuit_is_what_stood_in_the_file_when_the_claim_was_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("known.txt").write_text("L0H1\n", encoding="utf-8")
    parameters = CircuitMatch(task="t", file="known.txt", size=3)
    Path("known.txt").unlink()
    assert parameters.names == ("L0H1",) == parameters.model_copy(update={"confidence": 0.9}).names
    assert parameters.model_dump()["file"] == "known.txt", "reports say what the spec says"


@pytest.mark.parametrize("name", ["copy_head", "two_step", "memory", "backup"])
def test_planted_circuits_are_found_exactly(name):
    """Parts that are not planted have no output, so atp scores are zero there: recall, precision and containment are certain."""
    case = plant(name)
    causal = sorted(unit for unit, effect in case.truth.atp.items() if abs(effect) > 1e-3)
    dead = case.truth.dead[:2]
    made = Opened(open_model(case.model, case.tokenizer), {"t": case.task})

    def found(known, **more):
        return made.estimate("circuit_match", task="t", known=known, attribution="atp", size=len(causal), p=0.8, **more)

    assert found(causal).details["found"]["size"] == len(causal)
    for circuit in ("shared", "mean"):
        assert [found(causal, circuit=circuit, measure=m).value for m in ("recall", "precision", "jaccard", "contains")] == [1, 1, 1, 1]
        assert found(list(dead), circuit=circuit, measure="excludes").value == 1
    assert found(list(dead)).value == 0
    assert made.estimate("shared_size", task="t", attribution="atp", size=len(causal), p=0.8, of="circuit").value == 1
    assert made.estimate("accuracy", task="t").value == 1
