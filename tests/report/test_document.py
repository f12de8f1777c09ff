"""The report: plain values, the document, explanations and annotations, from records alone."""

from __future__ import annotations

import json
import math
import os
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.claims.evaluation import Evaluation, decide_outcome
from pytest_circuits.core.results import Description
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import INVALID, Estimate, Verdict
from pytest_circuits.errors import Invalid, ModelError
from pytest_circuits.measurement.cost import Cost
from pytest_circuits.report.document import document, plain, tally, write
from pytest_circuits.report.explain import explain, headline
from pytest_circuits.report.record import claim_record
from pytest_circuits.report.renderers.github import commands
from pytest_circuits.report.renderers.status import failed, passed
from pytest_circuits.report.renderers.terminal import table
from tests.fakes.record_facts import claim_of

FACTS = {
    "claim": "c", "description": "", "property": "reuse", "model": "tiny", "tasks": ["swap"], "parameters": {"confidence": 0.9},
    "bound": {"at_least": 0.5}, "expect": "certified", "file": "s.circuits.yaml", "line": 3,
}  # fmt: skip
MODEL = Description("abc", "llama", 1000, Universe(2, 3, 8), "float32")


def record(outcome=None, model=MODEL, cost=None, passed=None, nodeid="s.circuits.yaml::c::tiny::swap", **facts):
    facts = FACTS | facts
    claim = claim_of(facts)
    outcome = Estimate(0.4, (0.3, 0.45), 100, 0.9) if outcome is None else outcome
    made = claim_record(nodeid, claim, decide_outcome(outcome, claim.required_bound(), cost or Cost(), model), passed=passed)
    return made | {key: value for key, value in facts.items() if key not in ("parameters", "tasks")} | {"outcome": "failed"}


class Word(str, Enum):  # noqa: UP042 (StrEnum prints otherwise)
    ONE = "one"


class Number(IntEnum):
    TWO = 2


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
    | st.sampled_from([Word.ONE, Number.TWO, Fraction(1, 3), Path("a/b")])
    | st.floats(width=32).map(np.float32) | st.integers(-5, 5).map(np.int64) | st.booleans().map(np.bool_),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner) | st.sets(st.integers()),
    max_leaves=20,
)  # fmt: skip


@given(json_like)
def test_whatever_goes_in_comes_out_as_strict_json_of_plain_types(value):
    """Records also travel between processes, which carries no subclasses."""

    def check(one):
        assert type(one) in (dict, list, str, int, float, bool, type(None)), type(one)
        for inner in one.values() if isinstance(one, dict) else one if isinstance(one, list) else ():
            check(inner)

    made = plain(value)
    check(made)
    assert json.loads(json.dumps(made, allow_nan=False, ensure_ascii=False).encode("utf-8")) == made


def test_numbers_that_are_not_finite_become_null_and_arrays_lists():
    given = {"a": np.array([1.5, np.nan]), "b": float("inf"), 3: (1, {2}), "c": Word.ONE, "d": np.float64(0.5)}
    assert plain(given) == {"a": [1.5, None], "b": None, "3": [1, [2]], "c": "one", "d": 0.5}


def test_a_record_says_all_that_is_known_of_a_claim():
    made = record(Estimate(np.float64(0.4), (0.3, 0.45), 100, 0.9, "betting", details={"k": np.int64(3)}), cost=Cost(2, 1, 0.5, 3, 4))
    assert made.items() >= {"estimate": 0.4, "interval": [0.3, 0.45], "interval_kind": "betting", "confidence": 0.9, "n": 100}.items()
    assert made.items() >= {"verdict": "refuted", "passed": False, "details": {"k": 3}, "bound": {"at_least": 0.5}}.items()
    assert made["cost"] == {"forwards": 2, "backwards": 1, "seconds": 0.5, "hits": 3, "measured": 4, "cached": False}
    assert record(expect="refuted")["passed"] is True
    assert record(expect="refuted", passed=False)["passed"] is False


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_record_holds_a_whole_measurement_or_none(value, place):
    parts = [0.4, 0.3, 0.5]
    parts[place] = value
    made = record(Estimate(parts[0], (parts[1], parts[2]), 100))
    assert (made["estimate"], made["interval"], made["n"], made["verdict"]) == (None, None, 0, "invalid")
    assert table(document([made], 0.1))


def test_what_stopped_a_measurement_is_in_the_details():
    assert record(Invalid("why", {"counted": 3}))["details"] == {"counted": 3}
    assert record(ModelError("why"), model=None)["details"] == {"error": "ModelError"}


def test_the_document_sums_costs_and_counts_verdicts():
    records = [record(cost=Cost(2, 1, 0.1, 3, 4)), record(Invalid("x"), cost=Cost(5, 0, 0.1, 1, 1)), record(bound={"at_least": 0.2})]
    made = document(records, 1.23456, [{"file": "f", "line": 1, "column": 2, "problem": "p"}])
    assert made["schema"] == 1
    assert made["suite"]["cost"] == {"forwards": 7, "backwards": 1, "cached": 4}
    assert made["suite"]["verdicts"] == {"certified": 1, "refuted": 1, "inconclusive": 0, "invalid": 1}
    assert (made["suite"]["seconds"], made["suite"]["errors"][0]["problem"]) == (1.235, "p")
    assert all("model_info" not in claim for claim in made["claims"])
    assert tally([]) == {"certified": 0, "refuted": 0, "inconclusive": 0, "invalid": 0}


def test_models_of_one_name_are_told_apart_and_unknown_ones_are_not_made_into_another():
    other = Description("xyz", "llama", 1000, Universe(2, 3, 8), "float32")
    made = document([record(model=None), record(), record(model=other), record(model=None), record(), record(model=other)], 0.0)
    assert [c["model"] for c in made["claims"]] == ["tiny", "tiny", "tiny-2", "tiny", "tiny", "tiny-2"]
    assert {k: v["fingerprint"] for k, v in made["models"].items()} == {"tiny": "abc", "tiny-2": "xyz"}
    assert document([record(model=None)], 0.0)["models"] == {"tiny": {"fingerprint": None, "architecture": None, "parameters": None}}


def test_a_document_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "new" / "deep" / "report.json"
    write(target, {"a": math.nan, "b": "ü"})
    assert target.read_text(encoding="utf-8") == '{\n "a": null,\n "b": "ü"\n}\n'
    assert target.stat().st_mode & 0o777 == 0o644
    write(target, {"c": 1})

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write(target, {"d": 2})
    assert json.loads(target.read_text()) == {"c": 1}
    assert [p.name for p in target.parent.iterdir()] == ["report.json"]


@pytest.mark.parametrize(("made", "line"), [
    (record(), "refuted: reuse(swap) = 0.400 [0.300, 0.450], should be at least 0.5"),
    (record(bound={"within": [0.5, 0.6]}), "refuted: reuse(swap) = 0.400 [0.300, 0.450], should be within [0.5, 0.6]"),
    (record(bound={"at_least": 0.2}, expect="refuted"), 
     "certified: reuse(swap) = 0.400 [0.300, 0.450], is at least 0.2; the claim expects refuted"),
    (record(bound={"at_least": 0.35}, tasks=["a", "b"]), "inconclusive: reuse(a, b) = 0.400 [0.300, 0.450], should be at least 0.35"),
    (record(Invalid("nothing there\nmore"), tasks=[]), "invalid: reuse: nothing there"),
    (record(Invalid("nothing there"), expect="refuted"), "invalid: reuse(swap): nothing there; the claim expects refuted"),
], ids=lambda v: v if isinstance(v, str) else "")  # fmt: skip
def test_the_first_line_of_an_explanation_says_it_all(made, line):
    """pytest's short summary shows only that one."""
    assert headline(made) == line
    assert explain(made).split("\n")[0] == line


def test_an_explanation_names_the_place_the_meaning_and_how_to_rerun():
    lines = explain(record(description="heads are shared"), "sub/s.circuits.yaml::c::tiny::swap").split("\n")
    assert lines[1:4] == [
        "  sub/s.circuits.yaml:3 claim 'c', model 'tiny'",
        "  heads are shared",
        "  0.400 with 90% interval [0.300, 0.450]: the whole interval misses 'at least 0.5' (n = 100 examples)",
    ]
    assert lines[-1] == "  rerun: pytest sub/s.circuits.yaml::c::tiny::swap"
    assert explain(record(), "test_it.py::test_it's[1]").endswith("""  rerun: pytest 'test_it.py::test_it'"'"'s[1]'""")
    assert "  more" in explain(record(Invalid("nothing there\nmore"))).split("\n")


def test_words_blame_the_worst_claim_that_failed():
    certified, refuted, invalid = record(bound={"at_least": 0.2}), record(), record(Invalid("x"))
    expected, open_ = record(expect="refuted"), record(bound={"at_least": 0.35})
    assert failed([certified, refuted, open_]) == ("F", "REFUTED")
    assert failed([refuted, invalid]) == ("!", "INVALID")
    assert failed([certified, open_]) == ("?", "INCONCLUSIVE")
    assert failed([certified, expected]) is None
    assert failed([certified, open_], "pass") is None
    assert failed([record(bound={"at_least": 0.35}, expect="refuted")], "pass") == ("?", "INCONCLUSIVE (expected refuted)")
    assert failed([record(bound={"at_least": 0.2}, expect="invalid")]) == ("F", "CERTIFIED (expected invalid)")
    assert (passed([certified]), passed([certified, expected]), passed([open_])) == ("CERTIFIED", "REFUTED (as expected)", "INCONCLUSIVE")


def test_annotations_escape_what_github_reads_as_its_own(tmp_path, monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    bad = record(Invalid("50% of\nthem"), claim="a,b:c", file="x/s.circuits.yaml", line=7)
    made = document(
        [bad, record(passed=True), record() | {"outcome": "xfailed"}], 0.0, [{"file": "t", "line": 1, "column": 2, "problem": "a%\nb"}]
    )
    found = commands(made, tmp_path)
    assert found == [
        "::error file=t,line=1,col=2,title=spec::a%25%0Ab",
        "::error file=x/s.circuits.yaml,line=7,title=claim a%2Cb%3Ac::invalid: reuse(swap): 50%25 of",
    ]
    assert commands(made, tmp_path, claims=False) == found[:1]
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path.parent))
    assert commands(made, tmp_path, claims=False) == [found[0].replace("file=t", f"file={tmp_path.name}/t")]


def test_a_judgement_without_a_model_is_a_record_without_facts():
    made = claim_record("n", claim_of(FACTS), Evaluation(Verdict(INVALID, "gone"), None, Cost(), None))
    assert (made["model_info"], made["details"], made["reason"]) == (None, {}, "gone")


def test_rows_of_one_claim_are_told_apart_by_the_parameters_that_were_listed():
    rows = [record(nodeid="s.circuits.yaml::c::tiny::swap::p=0.8"), record(nodeid="s.circuits.yaml::c::tiny::swap::p=0.9")]
    lines = table(document(rows, 1.0))
    assert [line.split("  ")[0] for line in lines[2:4]] == ["c p=0.8", "c p=0.9"]


def test_warnings_are_shown_once_with_all_claims_that_they_are_about_and_capped():
    rows = [record(claim=f"c{i}") | {"warnings": ["too few", f"only {i}"]} for i in range(8)]
    lines = [line for line in table(document(rows, 1.0)) if "warning" in line]
    assert lines[0] == "warning: c0, c1, c2, c3, c4, c5, c6, c7: too few"
    assert lines[1] == "warning: c0: only 0"
    assert lines[-1] == "3 further warnings: see the JSON report" and len(lines) == 7
    assert "  note: too few" in explain(rows[0]).split("\n")


def test_looks_are_explained_one_by_one():
    looks = [
        {"prompts": {"a": 16}, "n": 8, "estimate": 0.4, "interval": [0.1, 0.7]},
        {"prompts": {"a": 32}, "n": 20, "estimate": 0.4, "interval": [0.3, 0.45]},
    ]
    made = record() | {"looks": looks, "looks_planned": 3}
    (line,) = [one for one in explain(made).split("\n") if "looked" in one]
    assert line.startswith("  looked 2 of 3 times, each interval so wide that all planned ones hold together: ")
    assert line.endswith("n = 8: 0.400 [0.100, 0.700]; n = 20: 0.400 [0.300, 0.450]")
    assert "looked" not in explain(record())


@pytest.mark.parametrize(
    ("details", "told"),
    [
        ({"examples": 256, "groups": 40}, ["swap 256 prompts in 40 groups"]),
        ({"examples": 256, "groups": 129}, []),
        ({"examples": {"a": {"examples": 8, "groups": 4}, "b": {"examples": 8, "groups": 5}}}, ["a 8 prompts in 4 groups"]),
        ({"groups": ["L0H1"], "examples": "many"}, []),
        ({}, []),
    ],
)
def test_it_is_told_where_prompts_are_few_groups(details, told):
    from pytest_circuits.report.renderers.terminal import few_groups

    found = few_groups([{"details": details, "tasks": ["swap"]}] * 2)
    assert [note.partition(": ")[2] for note in found] == told


@pytest.mark.parametrize(
    ("bound", "verdict", "shown", "notes"),
    [
        ({"at_least": 1.0}, "certified", "all examples", 1),
        ({"at_least": 1.0}, "refuted", "all examples", 0),
        ({"at_least": 0.9}, "certified", "at least 0.9", 0),
    ],
)
def test_the_table_says_what_a_search_is_worth(bound, verdict, shown, notes):
    from pytest_circuits.report.renderers import terminal

    claim = {
        "claim": "flips", "nodeid": "s::flips::m", "model": "m", "tasks": [], "property": "for_all", "estimate": 1.0,
        "interval": [0.96, 1.0], "n": 100, "bound": bound, "verdict": verdict, "expect": "certified", "passed": True, "survives_holm": None,
        "details": {"fails_at_most": 0.0295},
    }  # fmt: skip
    assert terminal.row(claim)[7] == shown
    found = terminal.searches([claim])
    assert len(found) == notes and all(note.endswith(": flips 2.95%") for note in found)
