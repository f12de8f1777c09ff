"""The comparison with the baseline, as lines."""

from __future__ import annotations

from pytest_circuits.baseline.compare import summarize
from pytest_circuits.errors import Invalid
from pytest_circuits.report.build import build_report
from pytest_circuits.report.model import BaselineComparison
from pytest_circuits.report.renderers import RunContext
from pytest_circuits.report.renderers.baseline import BaselineRenderer, is_notable, lines
from tests.fakes.records import recorded

THEN = {"estimate": 0.6, "interval": [0.5, 0.7], "n": 90, "verdict": "certified"}
STILL = {"value": 0.0, "interval": [-0.1, 0.1], "how": "paired", "beyond_noise": False}


def compared(name, then=THEN, outcome=None, **comparison):
    facts = {"path": "s.circuits.baseline.json", "status": "compared", "same_model": False, **comparison}
    return recorded(
        outcome, claim=name, nodeid=f"s.circuits.yaml::{name}::tiny", property=comparison.pop("property", "reuse"),
        fields={"baseline": {**facts, **({} if then is None else {"then": then})}},
    )  # fmt: skip


ENTRIES = [
    compared("still", then={**THEN, "verdict": "refuted"}, difference=STILL),
    compared("moved", difference={"value": -0.2, "interval": [-0.3, -0.1], "how": "independent", "beyond_noise": True}),
    compared("circuit", then={**THEN, "verdict": "refuted"}, difference=STILL, circuits={
        "shared_set": {"entered": ["L0H1", "L0H2"], "left": ["L1MLP"], "shares": {"L0H1": [0.1, 0.9], "L1MLP": [0.82, 0.78]},
                       "beyond_noise": ["L0H1"]},
        "task_sets": {"entered": [f"L0H{i}" for i in range(14)], "left": []},
    }),
    compared("other", status="incomparable", changed=["p was 0.8 and is 0.9"]),
    compared("gone", outcome=Invalid("nothing there\nmore"), status="unmeasured"),
    compared("edited", then={**THEN, "verdict": "refuted"}, difference=STILL,
             inconsistent="the baseline says 1, the same measurement now gives 2"),
    compared("new", then=None, status="missing"),
    compared("judged", status="judged"),
]  # fmt: skip


def report(entries=ENTRIES):
    return build_report(entries, 1.0, drift=summarize([entry.record for entry in entries]))


def test_what_moved_and_counts(snapshot):
    snapshot("baseline/section", lines(report()))
    assert lines(report(), adds=True)[-3].endswith("was not in the baseline before this run")


def test_claims_that_did_not_move_are_not_shown():
    notable = {entry.record.claim: is_notable(entry.record, entry.record.baseline) for entry in ENTRIES}
    assert notable == {
        "still": False, "moved": True, "circuit": True, "other": True, "gone": True, "edited": True, "new": False, "judged": True,
    }  # fmt: skip


def test_without_a_baseline_there_is_no_section(tmp_path):
    alone = build_report([recorded()], 1.0)
    assert list(BaselineRenderer().sections(alone, RunContext(tmp_path))) == []
    (section,) = BaselineRenderer().sections(alone, RunContext(tmp_path, baseline_messages=("baseline x: 1 written",)))
    assert (section.title, section.lines) == ("", ("baseline x: 1 written",))


def test_a_missing_entry_has_neither_numbers_nor_circuits():
    assert BaselineComparison(path="x", status="missing").as_json() == {"path": "x", "status": "missing"}
