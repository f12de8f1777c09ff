"""The failure text of a claim."""

from __future__ import annotations

import pytest

from pytest_circuits.errors import Invalid
from pytest_circuits.report.messages.claims import headline
from pytest_circuits.report.renderers.explanation import ExplanationRenderer
from tests.fakes.records import record

explain = ExplanationRenderer().explain
LOOKS = [
    {"prompts": {"a": 16}, "n": 8, "estimate": 0.4, "interval": [0.1, 0.7]},
    {"prompts": {"a": 32}, "n": 20, "estimate": 0.4, "interval": [0.3, 0.45]},
]
CASES = {
    "refuted": lambda: record(),
    "within": lambda: record(bound={"within": [0.5, 0.6]}),
    "certified-but-expected-refuted": lambda: record(bound={"at_least": 0.2}, expect="refuted"),
    "inconclusive": lambda: record(bound={"at_least": 0.35}, tasks=["a", "b"]),
    "invalid-in-lines": lambda: record(Invalid("nothing there\nmore"), tasks=[]),
    "invalid-but-expected-refuted": lambda: record(Invalid("nothing there"), expect="refuted"),
    "weak-refutation": lambda: record(fields={"refuted_at": 0.001, "survives_holm": False}),
    "everything": lambda: record(
        description="heads are shared", parameters={"confidence": 0.9, "split": 0.5, "split_seed": 7},
        fields={"warnings": ["too few"], "looks": LOOKS, "looks_planned": 3, "seed": 4, "refuted_at": 0.05,
                "details": {"notes": ["shared set {L0H1}"]}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_an_explanation(case, snapshot):
    made = CASES[case]()
    text = explain(made)
    assert text.split("\n")[0] == headline(made), "pytest's short summary shows only the first line"
    snapshot(f"report/explanation-{case}", text)


def test_the_node_id_is_the_one_to_type():
    lines = explain(record(), "sub/s.circuits.yaml::c::tiny::swap").split("\n")
    assert (
        lines[1] == "  sub/s.circuits.yaml:3 claim 'c', model 'tiny'" and lines[-1] == "  rerun: pytest sub/s.circuits.yaml::c::tiny::swap"
    )
    assert explain(record(), "test_it.py::test_it's[1]").endswith("""  rerun: pytest 'test_it.py::test_it'"'"'s[1]'""")


def test_a_claim_without_looks_says_nothing_of_them():
    assert "looked" not in explain(record()) and "still be refuted" not in explain(record(bound={"at_least": 0.35}))
