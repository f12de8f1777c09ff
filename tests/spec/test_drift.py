"""Claims about drift as specs write them: what they stand for, and every mistake with its place."""

from __future__ import annotations

import pytest

from pytest_circuits.spec.load import SpecErrors, load_suite

HEAD = """\
version: 1
models: {candidate: {path: m}, released: {path: n}}
tasks: {addition: {builtin: addition}, ioi: {builtin: ioi}}
defaults: {size: 20%, confidence: 0.9}
claims:
  core: {reuse: {task: [addition, ioi], p: 0.8, max_n: 512}, at_least: 0.4}
  rare: {reuse: {task: ioi, p: 0.8, confidence: 0.99}, at_most: 0.4, model: candidate}
  band: {reuse: {task: ioi}, within: [0.2, 0.8]}
  pair: {jaccard: {tasks: [addition, ioi]}, at_most: 0.6}
"""  # the claim under test starts on line 10


@pytest.fixture
def load(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def load(text, models=None):
        path = tmp_path / "s.circuits.yaml"
        path.write_text(f"{HEAD}  {text}\n", encoding="utf-8")
        return [case for case in load_suite(path, models=models).claims if case.property == "drift"]

    return load


def test_a_claim_by_name_makes_one_test_for_each_of_its_own(load):
    found = load("d: {drift: {of: core, within: 0.05}}")
    assert [case.ids for case in found] == [(m, t) for m in ("candidate", "released") for t in ("addition", "ioi")]
    inner = found[1].parameters.of
    assert (inner.name, inner.parameters.task, inner.parameters.p, inner.parameters.size) == ("reuse", "ioi", 0.8, "20%")
    assert (inner.parameters.max_n, found[0].parameters.confidence) == (None, 0.9), "how sure the drift is, is its own matter"
    assert found[0].bound.as_dict() == {"within": [-0.05, 0.05]}
    assert list(found[0].tasks) == ["addition"]


def test_models_are_those_of_the_claim_unless_others_are_named(load):
    assert [case.model.name for case in load("d: {drift: {of: rare, within: 0.1}}")] == ["candidate"]
    assert [case.model.name for case in load("d: {drift: {of: rare, within: 0.1}, model: released}")] == ["released"]


@pytest.mark.parametrize(
    ("claim", "bound"),
    [
        ("drift: {of: core, no_worse_by: 0.1}", {"at_least": -0.1}),
        ("drift: {of: rare, no_worse_by: 0.1}", {"at_most": 0.1}),
        ("drift: {of: rare, overlap: jaccard, no_worse_by: 0.1}", {"at_least": -0.1}),
        ("drift: {of: {reuse: {task: ioi}}, overlap: jaccard, match: function, no_worse_by: 0.1}", {"at_least": -0.1}),
        ("drift: {of: band, within: 0.1}", {"within": [-0.1, 0.1]}),
        ("drift: {of: core}, at_least: 0.05", {"at_least": 0.05}),
        ("drift: {of: {reuse: {task: ioi}}}, at_most: 0.05", {"at_most": 0.05}),
    ],
)
def test_margins_stand_for_bounds_on_the_side_that_is_worse(load, claim, bound):
    assert {str(case.bound) for case in load(f"d: {{{claim}}}")} == {str(load(f"d: {{{claim}}}")[0].bound)}
    assert load(f"d: {{{claim}}}")[0].bound.as_dict() == bound


def test_against_names_a_model_and_leaves_it_out_of_the_tests(load, tmp_path):
    found = load("d: {drift: {of: core, against: released, within: 0.1}}")
    assert [(case.model.name, case.against.name) for case in found] == [("candidate", "released")] * 2
    moved = load("d: {drift: {of: core, against: released, within: 0.1}}", {"released": str(tmp_path / "newer")})
    assert moved[0].against.path == str(tmp_path / "newer")


MISTAKES = {
    "an unknown claim": (
        "drift: {of: cor, within: 0.1}",
        19,
        "claims.d.drift.of: unknown claim 'cor'; did you mean 'core'? allowed: band,",
    ),
    "itself": ("drift: {of: d, within: 0.1}", 19, "a claim cannot be about its own drift; allowed: band, core"),
    "an unknown property": ("drift: {of: {reuze: {task: ioi}}, within: 0.1}", 20, "unknown property 'reuze'; did you mean 'reuse'?"),
    "drift of drift": ("drift: {of: {drift: {of: {reuse: {task: ioi}}}}, within: 0.1}", 7, "drift of drift is not defined"),
    "no bound": ("drift: {of: core}", 3, "a claim needs exactly one bound"),
    "a margin and a bound": ("drift: {of: core, within: 0.1}, at_least: 0.1", 33, "the claim has a bound already, at_least"),
    "two margins": ("drift: {of: core, within: 0.1, no_worse_by: 0.1}", 7, "within and no_worse_by are both bounds: give one"),
    "a margin of 0": ("drift: {of: core, within: 0}", 33, "a margin is a number above 0, got 0"),
    "a margin that is text": ("drift: {of: core, within: much}", 33, "a margin is a number above 0, got 'much'"),
    "a side of a band": ("drift: {of: band, no_worse_by: 0.1}", 38, "which side is worse is not known: that claim has 'within'"),
    "a side of a property": ("drift: {of: {reuse: {task: ioi}}, no_worse_by: 0.1}", 54, "only a claim that 'of' names has a bound"),
    "an unknown model": ("drift: {of: core, against: release, within: 0.1}", 34, "unknown model 'release'; did you mean 'released'?"),
    "the model itself": ("drift: {of: core, against: released, within: 0.1}, model: released", 34, "would be compared with itself"),
    "matching of values": ("drift: {of: core, match: function, within: 0.1}", 7, "match: function matches the heads of circuits"),
    "circuits of two tasks": (
        "drift: {of: pair, overlap: jaccard, within: 0.1}",
        7,
        "overlap compares shared sets, and 'jaccard' has no shared set of a single task",
    ),
    "a margin of everything": ("drift: {of: core, within: 1.0}", 3, "a vacuous bound on drift: every value is within [-1, 1]"),
    "a misspelt parameter": (
        "drift: {of: core, overlaps: jaccard, within: 0.1}",
        25,
        "unknown parameter 'overlaps'; did you mean 'overlap'?",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_with_its_place(load, name):
    text, column, told = MISTAKES[name]
    with pytest.raises(SpecErrors) as caught:
        load(f"d: {{{text}}}")
    (error,) = caught.value.errors
    assert told in error.problem
    assert (error.line, error.column) == (10, column), str(error)


def test_a_mistake_in_the_claim_itself_is_told_once_and_there(load, tmp_path):
    path = tmp_path / "s.circuits.yaml"
    head = HEAD.replace("task: [addition, ioi], p: 0.8", "task: [addition, iot], p: 0.8")
    path.write_text(f"{head}  d: {{drift: {{of: core, within: 0.1}}}}\n", encoding="utf-8")
    with pytest.raises(SpecErrors) as caught:
        load_suite(path)
    assert caught.value.errors[0].line == 6
    assert all("iot" in error.problem for error in caught.value.errors)
