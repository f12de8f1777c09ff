"""Baseline files by themselves: what they look like, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_circuits.baseline import files
from pytest_circuits.baseline.entries import changes, entry_of
from pytest_circuits.report.model import ModelInfo
from tests.fakes.records import recorded

ENTRY = {
    "property": "reuse", "parameters": {"p": 0.8}, "bound": {"at_least": 0.4}, "estimate": 0.5, "interval": [0.4, 0.6], "n": 64,
    "verdict": "certified", "circuits": {"shared_set": ["L0H1", "L0MLP"]},
    "fingerprints": {"weights": "w", "tokenizer": "t", "data": {"ioi": "d"}},
    "versions": {"measurement": 6, "dtype": "float32"}, "kept": {},
}  # fmt: skip


def test_a_baseline_is_next_to_its_spec():
    assert files.path_for(Path("specs/core.circuits.yaml")) == Path("specs/core.circuits.baseline.json")


def test_the_same_entries_give_the_same_bytes_and_each_field_a_line(tmp_path):
    path = tmp_path / "new" / "a.circuits.baseline.json"
    files.write(path, {"b::m": ENTRY, "a::m": dict(reversed(ENTRY.items()))})
    first = path.read_bytes()
    files.write(path, {"a::m": ENTRY, "b::m": ENTRY})
    assert path.read_bytes() == first
    assert files.read(path) == {"a::m": ENTRY, "b::m": ENTRY}
    lines = first.decode().splitlines()
    assert lines[:4] == ["{", ' "claims": {', '  "a::m": {', '   "bound": {"at_least": 0.4},']
    assert lines[4] == '   "circuits": {"shared_set": ["L0H1", "L0MLP"]},'
    assert '   "estimate": 0.5,' in lines
    assert [p.name for p in path.parent.iterdir()] == [path.name], "neither a lock nor a temporary file is left"


def test_no_file_is_no_baseline(tmp_path):
    assert files.read(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON"),
        ('<<<<<<< HEAD\n{"schema": 1}\n=======\n', "merge conflict markers"),
        ("[]", "it is not a JSON object"),
        ('{"schema": 2, "claims": {}}', "its schema is 2; 1 is needed"),
        ('{"schema": 1, "claims": []}', "is not a baseline .*it has no mapping 'claims'"),
        ('{"schema": 1, "claims": {"c::m": 3, "c::m": 4}}', "duplicate key 'c::m'"),
        (json.dumps({"schema": 1, "claims": {"c::m": {**ENTRY, "estimate": float("nan")}}}), "NaN is not a number"),
        (json.dumps({"schema": 1, "claims": {"c": ENTRY}}), "claim 'c' is not named like a test"),
        (json.dumps({"schema": 1, "claims": {"c::m": {**ENTRY, "circuits": {"shared_set": "L0H1"}}}}), "has no valid 'circuits'"),
        ('{"schema": 1, "claims": {"c::m": 3}}', "claim 'c::m' is not a mapping"),
        (json.dumps({"schema": 1, "claims": {"c": {**ENTRY, "kept": None}}}), "claim 'c' has no valid 'kept'"),
        (json.dumps({"schema": 1, "claims": {"c": {**ENTRY, "interval": [0.1, None]}}}), "no estimate with an interval"),
    ],
)
def test_a_damaged_file_is_refused_with_the_reason(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(files.BaselineError, match=message):
        files.read(path)
    with pytest.raises(files.BaselineError):
        files.change(path, lambda entries: entries)
    assert path.read_text(encoding="utf-8") == text, "a file that cannot be read is not overwritten"


def test_a_change_that_changes_nothing_does_not_touch_the_file(tmp_path):
    path = tmp_path / "x.json"
    files.write(path, {"a::m": ENTRY})
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert not files.change(path, lambda entries: entries)
    assert path.read_text(encoding="utf-8").endswith("\n\n")
    assert files.change(path, lambda entries: {})


def record(model_info=("w", "float32"), measured_on=None, **other):
    fields = {"estimate": 1 / 3, "interval": [0.1234567891, 0.4], "n": 64, "verdict": "certified", "parameters": {"p": 0.8}, **other}
    fingerprint, dtype = model_info
    on = measured_on or {"tokenizer": "t", "data": {"ioi": "d"}, "versions": {"measurement": 6, "torch": "1"}}
    model = ModelInfo(fingerprint=fingerprint, architecture="llama", parameters=1, dtype=dtype)
    return recorded(bound={"at_least": 0.4}, fields=fields).model_copy(update={"model": model, "payload": {}, "measured_on": on})


def test_numbers_are_rounded_to_six_digits_and_what_was_not_measured_makes_no_entry():
    entry = entry_of(record())
    assert (entry["estimate"], entry["interval"]) == (0.333333, [0.123457, 0.4])
    assert entry_of(record(estimate=None, interval=None)) is None


@pytest.mark.parametrize(
    ("other", "reasons"),
    [
        ({}, []),
        ({"estimate": 0.9, "verdict": "refuted"}, []),
        ({"parameters": {"p": 0.9}}, ["p was 0.8 and is 0.9"]),
        ({"property": "necessity"}, ["the property was reuse and is necessity"]),
        ({"bound": {"at_least": 0.5}}, ["the bound changed"]),
        ({"model_info": ("v", "float32")}, ["the model changed"]),
        ({"model_info": ("w", "bfloat16")}, ["the precision changed"]),
        (
            {"measured_on": {"tokenizer": "u", "data": {"ioi": "e"}, "versions": {"measurement": 6}}},
            ["the encoded prompts of ioi differ", "the tokenizer's files differ"],
        ),
        ({"measured_on": {"tokenizer": "u", "data": {"ioi": "d"}, "versions": {"measurement": 6}}}, []),
        (
            {"measured_on": {"tokenizer": "t", "data": {"ioi": "d"}, "versions": {"measurement": 7}}},
            ["the measurement version changed (6 then, 7 now)"],
        ),
    ],
)
def test_what_counts_as_a_change(other, reasons):
    """Another number is none: it is what a later run is compared on. Nor are other tokenizer files that give the same ids."""
    assert changes(entry_of(record()), entry_of(record(**other))) == reasons
