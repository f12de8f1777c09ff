"""Mutants and claims that are stated in Python."""

from __future__ import annotations


def test_claims_in_python_take_part_and_models_in_memory_do_not(project):
    box = project()
    (box.path / "test_python.py").write_text("""
from pytest_circuits.subject import open_model


def test_path(circuits):
    words = circuits.task("model/task.jsonl", scoring="argmax")
    found = circuits.model("model").circuits(words, attribution="exact", size=2)
    circuits.check(found.necessity(p=0.9, control="c3_any", draws=20), at_least=0.3)


def test_memory(circuits):
    words = circuits.task("model/task.jsonl", scoring="argmax")
    opened = open_model("model")
    circuits.check(circuits.model(opened).circuits(words, attribution="exact", size=2).reuse(p=0.9), at_least=0.3)
""", encoding="utf-8")  # fmt: skip
    assert box.run("--circuits-mutate=zero-head:in").ret == 0, box.result.stdout.str()
    by_model = {spec["model"]: spec for spec in box.mutation["specs"]}
    assert sum(bool(spec["claims"]) for spec in by_model.values()) == 1 and box.mutation["score"] == 1.0
    assert any("comes from a fixture" in claim["reason"] for spec in by_model.values() for claim in spec["left_out"])


def test_several_claims_of_one_test_have_their_own_node_ids(project):
    box = project()
    (box.path / "test_python.py").write_text("""
def test_two(circuits):
    words = circuits.task("model/task.jsonl", scoring="argmax")
    found = circuits.model("model").circuits(words, attribution="exact", size=2)
    circuits.check(found.necessity(p=0.9, control="c3_any", draws=20), at_least=0.3)
    circuits.check(found.reuse(p=0.9), at_most=0.5, expect="refuted")
""", encoding="utf-8")  # fmt: skip
    assert box.run("--circuits-mutate=zero-head:in").ret == 0, box.result.stdout.str()
    (spec,) = box.mutation["specs"]
    assert [c["nodeid"] for c in spec["claims"]] == ["test_python.py::test_two", "test_python.py::test_two #2"]
    assert set(spec["mutants"][0]["caught_by"]) == {"test_python.py::test_two", "test_python.py::test_two #2"}
