"""Entries that cannot be what was measured: edited by hand, beside equal weights, data and versions."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.baseline import files
from pytest_circuits.baseline.consistency import contradiction
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.payload import per_group, plain_json
from tests.fakes.scored import SCORED
from tests.fakes.torch_side import fake_model

SUITE = """
first:
  stated: {task: swap, value: 0.55, low: 0.5, high: 0.6}
  at_least: 0.3
core:
  scored: {task: swap}
  at_least: 0.3
moved:
  drift: {of: {stated: {task: swap, value: 0.55, low: 0.5, high: 0.6}}, within: 0.2}
"""
KEYS = {name: f"{name}::tiny::swap" for name in ("first", "core", "moved")}
ASKED = "although weights, data and versions are equal: was the file edited, or measured on another kind of machine?"


@pytest.fixture
def written(box, register):
    register(PROPERTIES, "scored", SCORED)
    fake_model(box.path / "other", b"other weights")
    box.spec(SUITE)
    box.run("--circuits-update-baseline=new").assert_outcomes(passed=3)
    return box


def edit(box, name, change):
    path = box.path / "s.circuits.baseline.json"
    entries = files.read(path)
    change(entries[KEYS[name]])
    files.write(path, entries)


def told(box, name):
    return box.claims[name]["baseline"]["inconsistent"]


def test_an_estimate_edited_by_hand_is_called_inconsistent(written):
    edit(written, "first", lambda entry: entry.update(estimate=0.61))
    result = written.run()
    assert told(written, "first") == f"the baseline says 0.61, the same measurement now gives 0.55, {ASKED}"
    result.stdout.fnmatch_lines(
        [
            "  first::tiny::swap: stated 0.610 → 0.550; certified",
            f"    the baseline says 0.61, the same measurement now gives 0.55, {ASKED}".replace("?", "[?]"),
            "entries that cannot be what was measured: 1; restore the file from version control",
        ]
    )
    assert written.report["suite"]["drift"]["inconsistent"] == ["s.circuits.yaml::first::tiny::swap"]
    assert told(written, "core") is None and told(written, "moved") is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"interval": [0.5, 0.7]}, "says interval [0.5, 0.7], the same measurement now gives [0.5, 0.6]"),
        ({"n": 99}, "says n 99, the same measurement now gives 100"),
        ({"verdict": "refuted"}, "says refuted, the same measurement now gives certified"),
    ],
)
def test_so_is_any_other_number_and_the_verdict(written, change, says):
    edit(written, "first", lambda entry: entry.update(change))
    written.run()
    assert says in told(written, "first")


def test_what_a_claim_about_drift_kept_of_the_release_counts_as_well(written):
    edit(written, "moved", lambda entry: entry["kept"]["of"].update(estimate=0.61))
    result = written.run()
    assert told(written, "moved").startswith("the baseline says 0.61, the same measurement now gives 0.55, although")
    result.stdout.fnmatch_lines(["  moved::tiny::swap: *", "    the baseline says 0.61*"])
    edit(written, "moved", lambda entry: (entry["kept"]["of"].update(estimate=0.55), entry.update(estimate=0.1)))
    written.run()
    assert told(written, "moved") is None, "a difference is about two models, and may have been taken from another release"


def test_an_estimate_that_its_own_values_contradict_is_told_whatever_the_model(written):
    edit(written, "core", lambda entry: entry.update(estimate=0.61))
    for more in ((), ("--circuits-model=tiny=other",)):
        written.run(*more)
        assert told(written, "core") == (
            "the baseline's entry contradicts itself: it says 0.61, and the values that it holds have mean 0.75: was the file edited?"
        )


@pytest.mark.parametrize("what", ["model", "versions", "bound"])
def test_another_model_version_or_bound_explains_another_number_or_verdict(written, what):
    if what == "bound":
        edit(written, "first", lambda entry: entry.update(bound={"at_least": 0.7}, verdict="refuted"))
    else:
        edit(written, "first", lambda entry: entry.update(estimate=0.61))
    if what == "versions":
        edit(written, "first", lambda entry: entry["versions"].update(torch="1.0"))
    written.run(*(["--circuits-model=tiny=other"] if what == "model" else []))
    assert told(written, "first") is None


values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def entry(numbers):
    kept = per_group(numbers, [f"g{i}" for i in range(len(numbers))], 0.0, 1.0)
    mean = sum(numbers) / len(numbers)
    made = {
        "property": "scored", "parameters": {}, "bound": {}, "estimate": mean, "interval": [0.0, 1.0], "n": len(numbers), "kept": kept,
        "verdict": "certified", "fingerprints": {"weights": "w", "data": {}, "tokenizer": None}, "versions": {"measurement": 1},
    }  # fmt: skip
    return plain_json(made)


@given(values)
def test_what_was_measured_twice_never_contradicts_itself(numbers):
    assert contradiction(entry(numbers), entry(numbers)) is None


@given(values, st.floats(1e-4, 1) | st.floats(-1, -1e-4), st.booleans())
def test_every_edit_of_the_third_digit_is_noticed_with_and_without_values(numbers, by, keeps):
    then, now = entry(numbers), entry(numbers)
    for one in (then, now):
        one["kept"] = one["kept"] if keeps else {}
    edited = deepcopy(then) | {"estimate": plain_json(then["estimate"] + by)}
    assert ("contradicts itself" in contradiction(edited, now)) == keeps
