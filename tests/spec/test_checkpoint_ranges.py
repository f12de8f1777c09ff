"""`checkpoints: {pattern: …, first: …, last: …}`: those of a run whose step lies in a range."""

from __future__ import annotations

import pytest

from pytest_circuits.spec.load import SpecErrors, load_suite

STEPS = ("step-0025", "step-0100", "step-0900", "step-1000")


@pytest.fixture
def places(tmp_path):
    """Writes a spec beside the checkpoints; returns name and place of those that it has."""

    def load(checkpoints, names=STEPS, model=""):
        for name in names:
            (tmp_path / "run" / name).mkdir(parents=True, exist_ok=True)
        path = tmp_path / "s.circuits.yaml"
        path.write_text(
            f"version: 1\nmodels:\n  run: {{{model}checkpoints: {checkpoints}}}\ntasks: {{t: {{builtin: ioi}}}}\n"
            "claims:\n  c: {accuracy: {task: t}, at_least: 0.5}\n", encoding="utf-8",
        )  # fmt: skip
        return [(one.name, one.at) for one in load_suite(path).series["run"]]

    return load


EVERY = [("run@step-0025", 25), ("run@step-0100", 100), ("run@step-0900", 900), ("run@step-1000", 1000)]


@pytest.mark.parametrize(("ends", "wanted"), [
    ("", EVERY),
    (", first: 100", EVERY[1:]),
    (", last: 100", EVERY[:2]),
    (", first: 26, last: 999.5", EVERY[1:3]),
    (", first: 900, last: 900", EVERY[2:3]),
])  # fmt: skip
def test_ends_belong_to_the_range_and_either_may_be_left_out(places, ends, wanted):
    assert places(f"{{pattern: run/step-*{ends}}}") == wanted
    assert places(f"{{pattern: step-*{ends}}}", model="path: run, ") == wanted, "also relative to the model's path"


def test_a_range_of_a_list_and_a_pattern_name_the_same_checkpoints(places):
    """Ways to say it: the same names, so the same node ids."""
    ways = ["{pattern: run/step-*, last: 100}", "[run/step-0025, run/step-0100]", "'run/step-0[01][02]*'", "['run/step-0[01][02]*']"]
    assert [places(way) for way in ways] == [EVERY[:2]] * len(ways)


@pytest.mark.parametrize(("checkpoints", "model", "names", "told"), [
    ("{pattern: run/step-*, first: 101, last: 899}", "", STEPS, "3:22: .*lies from 101 to 899: they are at 25, 100, 900, 1000"),
    ("{pattern: run/other-*}", "", STEPS, "no directory matches 'run/other-.'"),
    ("{pattern: run/*, first: 1}", "", ("a", "b"), "have no number that tells them apart; list them"),
    ("{pattern: step*}", "path: org/name, ", STEPS, "the checkpoints of the hub id 'org/name' are its revisions, as a list"),
    ("{pattern: run/step-*, frist: 1}", "", STEPS, "unknown key 'frist'; did you mean 'first'"),
    ("{pattern: run/step-*, first: soon}", "", STEPS, "must be a number, got 'soon'"),
])  # fmt: skip
def test_mistakes_have_a_place_and_a_remedy(places, checkpoints, model, names, told):
    with pytest.raises(SpecErrors, match=told):
        places(checkpoints, names, model)
