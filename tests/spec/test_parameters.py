"""Parameters of the package's own properties in specs: files beside the spec, and defaults that a claim's own parameter replaces."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_circuits.spec.load import SpecErrors, load_suite

HEAD = """\
version: 1
models: {m: {path: model}, run: {checkpoints: [a-1, a-2]}}
tasks: {t: {builtin: ioi}}
"""


def spec(tmp_path, claims, defaults=""):
    path = tmp_path / "specs" / "s.circuits.yaml"
    path.parent.mkdir(exist_ok=True)
    for name in ("a-1", "a-2"):
        (path.parent / name).mkdir(exist_ok=True)
    path.write_text(f"{HEAD}{defaults}claims:\n{claims}", encoding="utf-8")
    return path


def only(path):
    (case,) = load_suite(path).claims
    return case.parameters


@pytest.mark.parametrize("at", [".", "specs"])
def test_a_known_circuit_s_file_lies_beside_the_spec_wherever_pytest_is_run(tmp_path, monkeypatch, at):
    path = spec(tmp_path, "  c: {model: m, circuit_match: {task: t, file: data/known.txt}, at_least: 0.5}\n")
    (path.parent / "data").mkdir()
    (path.parent / "data" / "known.txt").write_text("L0H1\nL1MLP\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path / at)
    found = only(path.relative_to(Path.cwd()))
    assert found.names == ("L0H1", "L1MLP") and found.file == "data/known.txt"


def test_also_inside_another_property_and_among_the_defaults(tmp_path, monkeypatch):
    inside = "  c: {model: run, trajectory: {of: {circuit_match: {task: t, file: known.json}}, shape: no_drop}, at_most: 0.5}\n"
    path = spec(tmp_path, inside)
    (path.parent / "known.json").write_text('["L0H1"]', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert only(path).of.parameters.names == ("L0H1",)
    path = spec(tmp_path, "  c: {model: m, circuit_match: {task: t}, at_least: 0.5}\n", "defaults: {file: known.json}\n")
    assert only(path).names == ("L0H1",)


def test_a_file_that_is_not_there_is_told_with_its_place(tmp_path, monkeypatch):
    path = spec(tmp_path, "  c: {model: m, circuit_match: {task: t, file: no.txt}, at_least: 0.5}\n")
    (tmp_path / "no.txt").write_text("L0H1\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecErrors, match=f"s.circuits.yaml:5:48: .*'no.txt' cannot be read from {path.parent}: No such file"):
        load_suite(path)


@pytest.mark.parametrize(("given", "default", "size", "threshold"), [
    ("threshold: 0.05", "size: 20%", "10%", 0.05),
    ("size: 5", "threshold: 0.05", 5, None),
    ("threshold: 0.05", "threshold: 0.02", "10%", 0.05),
    ("p: 0.9", "threshold: 0.02", "10%", 0.02),
])  # fmt: skip
def test_a_claim_s_own_cut_takes_the_place_of_the_other_one_among_the_defaults(tmp_path, given, default, size, threshold):
    for claim, get in (
        (f"  c: {{model: m, reuse: {{task: t, {given}}}, at_least: 0.5}}\n", lambda found: found),
        (f"  c: {{model: run, trajectory: {{of: {{reuse: {{task: t, {given}}}}}, shape: no_drop}}, at_most: 0.5}}\n",
         lambda found: found.of.parameters),
    ):  # fmt: skip
        found = get(only(spec(tmp_path, claim, f"defaults: {{{default}}}\n")))
        assert (found.size, found.threshold) == (size, threshold)


@pytest.mark.parametrize(("given", "default"), [("size: 5, threshold: 0.05", "p: 0.9"), ("p: 0.9", "size: 20%, threshold: 0.05")])
def test_both_at_once_are_refused(tmp_path, given, default):
    with pytest.raises(SpecErrors, match="two ways to cut a ranking: give one"):
        load_suite(spec(tmp_path, f"  c: {{model: m, reuse: {{task: t, {given}}}, at_least: 0.5}}\n", f"defaults: {{{default}}}\n"))
