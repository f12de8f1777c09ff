"""The results page on mutation testing: made from its stored report, and of nothing else."""

from __future__ import annotations

import json

from docs.results import mutation as pages
from docs.results.__main__ import FOLDER, render


def mutant(name, status, caught=None, reasons=(), accuracy=(1.0, 1.0), units=()):
    return {
        "name": name, "operator": name.split(":")[0], "units": list(units), "options": {}, "seed": 1, "from": None,
        "fingerprint": "f", "sets": [],
        "status": status, "reasons": list(reasons), "caught_by": caught or {},
        "behaviour": {"ioi": {"accuracy": list(accuracy), "largest_metric_change": 0.5, "largest_log_prob_change": 0.5, "changed": True}},
        "outcomes": [{"beyond_noise": True}, {"beyond_noise": None}],
    }  # fmt: skip


def content():
    claims = [
        {"nodeid": "f::a", "claim": "a", "expect": "certified", "study": False, "caught": {"zero-head:L0H1": "invalid"}},
        {"nodeid": "f::b", "claim": "b", "expect": "refuted", "study": False, "caught": {}},
    ]  # fmt: skip
    mutants = [
        mutant("zero-head:L0H1", "noticed", {"f::a": "invalid"}, accuracy=(0.95, 0.25)),
        mutant("noise:sigma=0.1", "survived", reasons=["bounds too far away: a"]),
        mutant("permute-heads", "equivalent", reasons=["equivalent: the same"]),
        {**mutant("reinit-mlp:out", "not made", reasons=["every mlp has a part"]), "behaviour": {}, "outcomes": []},
    ]
    numbers = {"score": 0.5, "noticed": 1, "counted": 2, "inconclusive_only": 0, "invalid_only": 1}
    out = [{"nodeid": "f::c", "claim": "c", "reason": "refuted"}]
    circuit = {"source": "told by claims", "sets": {"s": ["L0H1", "L1MLP"]}}
    spec = {
        "file": "specs/x/f.circuits.yaml", "model": "m", **numbers, "problem": "", "mutants": mutants, "claims": claims, "circuit": circuit,
        "left_out": out,
    }  # fmt: skip
    return {"suite": {}, "claims": [], "mutation": {"mutants": "default", **numbers, "seconds": 3.0, "specs": [spec], "notes": []}}


def test_the_page_is_what_its_stored_report_gives():
    """If this fails: `python -m docs.results`."""
    assert (FOLDER / "mutation.md").read_text(encoding="utf-8") == render("mutation")


def test_scores_survivors_and_idle_claims_stand_where_they_belong():
    text = pages.page(pages.stored(content()))
    assert "| `specs/x/f.circuits.yaml` | 2 | 1 | 2 | 50% | 0 | 1 |" in text and "pytest specs/x \\" in text
    assert "| `zero-head:L0H1` | noticed | ioi 0.95 → 0.25 | invalid: a |" in text
    assert "- `noise:sigma=0.1`: bounds too far away: a" in text and "- `reinit-mlp:out` was not made: every mlp has a part" in text
    assert "| `a` | certified | 1 | invalid 1 |" in text and "| `b` | refuted | 0 |  |" in text
    assert "told by claims; L0H1, L1MLP." in text and "Left out: `c` (refuted)." in text


def test_what_is_stored_has_no_times_and_no_answers_one_by_one():
    kept = pages.stored(content())
    assert "seconds" not in kept and json.loads(json.dumps(kept)) == kept
    assert all("outcomes" not in m for m in kept["specs"][0]["mutants"]) and kept["specs"][0]["mutants"][0]["beyond_noise"] == 1


def test_every_spec_on_the_page_is_one_of_this_repository_and_every_survivor_is_explained():
    found = pages.stored_report(FOLDER / "mutation.json")
    root = FOLDER.parents[1]
    assert found["specs"] and all((root / spec["file"]).is_file() for spec in found["specs"])
    for spec in found["specs"]:
        assert all(m["reasons"] for m in spec["mutants"] if m["status"] in ("survived", "equivalent"))
        assert spec["noticed"] == sum(m["status"] == "noticed" for m in spec["mutants"])
        assert spec["counted"] == sum(m["status"] in ("noticed", "survived") for m in spec["mutants"])
    assert found["noticed"] == sum(spec["noticed"] for spec in found["specs"])
