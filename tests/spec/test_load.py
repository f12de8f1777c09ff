from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.verdict import Bound
from pytest_circuits.errors import OptionError
from pytest_circuits.spec.load import SpecErrors, load_suite
from pytest_circuits.spec.parameters import several, takes_list

pytestmark = pytest.mark.usefixtures("catalogue")
Write = Callable[..., Path]

GOOD = """\
# yaml-language-server: $schema=./circuits-spec-1.json
version: 1
models:
  candidate: {path: ../models/llama, dtype: bfloat16, device: cpu}
  hub: {path: org/name, revision: main}
  made: {loader: "pkg.mod:fn"}
tasks:
  addition: {builtin: addition, digits: 3, n: 64, seed: 0}
  ioi: {builtin: ioi}
  mine: {file: data/mine.jsonl, n: 10}
  theirs: {loader: "mypkg.tasks:pairs", n: 5, kinds: [a, b]}
defaults:
  size: 20%
  p: 0.8
  confidence: 0.9
claims:
  shared-core:
    reuse: {task: [addition, ioi], p: [0.95, 1e-1]}
    at_least: 0.4
    model: candidate
  core-matters:
    necessity: {task: addition, circuit: {task: ioi}, draws: 20}
    at_least: 0.2
    expect: refuted
    models: [hub, candidate]
    marks: [slow, {xfail: {reason: flaky, strict: true}}, {usefixtures: [gpu]}]
    description: a negative control
  differ:
    jaccard: {tasks: [addition, ioi]}
    at_most: 0.6
  few:
    neuron_faithfulness: {task: mine, attribution: relp}
    within: [0.9, 1.1]
    model: made
"""


def _cases(path: Path, **more: Any) -> dict[tuple[str, ...], Any]:
    return {(case.name, *case.ids): case for case in load_suite(path, **more).claims}


def test_each_claim_model_task_and_listed_value_makes_a_case(write: Write) -> None:
    """In the file's order, models first."""
    assert list(_cases(write(GOOD))) == [
        ("shared-core", "candidate", "addition", "p=0.95"),
        ("shared-core", "candidate", "addition", "p=0.1"),
        ("shared-core", "candidate", "ioi", "p=0.95"),
        ("shared-core", "candidate", "ioi", "p=0.1"),
        ("core-matters", "hub", "addition"),
        ("core-matters", "candidate", "addition"),
        ("differ", "candidate", "addition-ioi"),
        ("differ", "hub", "addition-ioi"),
        ("differ", "made", "addition-ioi"),
        ("few", "made", "mine"),
    ]


def test_what_a_case_holds(write: Write, catalogue: Any) -> None:
    """Everything that a test needs, typed; the place is that of the claim's name."""
    case = _cases(write(GOOD, "specs/core.circuits.yaml"))["core-matters", "hub", "addition"]
    expected = catalogue.Necessity(task="addition", circuit=catalogue.Circuit(task="ioi"), draws=20, size="20%", p=0.8, confidence=0.9)
    assert case.property == "necessity"
    assert case.parameters == expected
    assert case.model == ModelSource("hub", path="org/name", revision="main")
    assert dict(case.tasks) == {
        "addition": TaskSource.make("addition", "builtin", "addition", {"digits": 3, "n": 64, "seed": 0}),
        "ioi": TaskSource.make("ioi", "builtin", "ioi", {"n": 256, "seed": 0}),
    }
    assert case.bound == Bound(at_least=0.2)
    assert case.expect == "refuted"
    assert case.marks == (("slow", (), {}), ("xfail", (), {"reason": "flaky", "strict": True}), ("usefixtures", ("gpu",), {}))
    assert (case.line, case.column, case.description) == (21, 3, "a negative control")


def test_sources_and_bounds(write: Write, tmp_path: Path) -> None:
    """Paths are relative to the spec's folder; hub ids and loaders stay; a task's parameters are complete."""
    suite = load_suite(write(GOOD, "specs/core.circuits.yaml"))
    assert dict(suite.models) == {
        "candidate": ModelSource("candidate", path=str(tmp_path / "models" / "llama"), dtype="bfloat16", device="cpu"),
        "hub": ModelSource("hub", path="org/name", revision="main"),
        "made": ModelSource("made", loader="pkg.mod:fn"),
    }
    assert suite.tasks["mine"].target == str(tmp_path / "specs" / "data" / "mine.jsonl")
    assert suite.tasks["mine"].options["n"] == 10
    assert suite.tasks["theirs"] == TaskSource.make("theirs", "loader", "mypkg.tasks:pairs", {"n": 5, "kinds": ["a", "b"]})
    assert [case.bound for case in suite.claims[-2:]] == [Bound(at_most=0.6), Bound(0.9, 1.1)]


def test_a_directory_that_looks_like_a_hub_id_is_a_directory(write: Write, tmp_path: Path) -> None:
    """What exists beside the spec wins."""
    path = write(GOOD)
    (tmp_path / "org" / "name").mkdir(parents=True)
    assert load_suite(path).models["hub"].path == str(tmp_path / "org" / "name")


def test_a_model_can_be_replaced(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same claims about another checkpoint: a path is then relative to where the user is."""
    path = write(GOOD, "specs/core.circuits.yaml").absolute()
    cases = _cases(path, models={"candidate": "new/checkpoint-9", "made": "org/other", "hub": "./mine"})
    assert cases["differ", "candidate", "addition-ioi"].model == ModelSource(
        "candidate", path="new/checkpoint-9", dtype="bfloat16", device="cpu"
    )
    assert cases["few", "made", "mine"].model == ModelSource("made", path="org/other")
    assert cases["differ", "hub", "addition-ioi"].model == ModelSource("hub", path=str(tmp_path / "mine"))
    (tmp_path / "new" / "checkpoint-9").mkdir(parents=True)
    assert load_suite(path, models={"candidate": "new/checkpoint-9"}).models["candidate"].path == str(tmp_path / "new" / "checkpoint-9")


def test_replacing_an_unknown_model_is_refused(write: Write) -> None:
    """With what is allowed."""
    with pytest.raises(OptionError, match="no model 'candidat' to be replaced by --circuits-model; did you mean 'candidate'"):
        load_suite(write(GOOD), models={"candidat": "x"})


def test_a_default_applies_where_the_property_has_the_parameter(write: Write) -> None:
    """And a claim's own value goes before it; a listed default makes a case for each value."""
    text = GOOD.replace("  p: 0.8\n", "  p: [0.8, 0.9]\n  draws: 30\n  neurons: 7\n")
    cases = _cases(write(text))
    assert [name for name in cases if name[0] == "differ" and name[1] == "hub"] == [
        ("differ", "hub", "addition-ioi", "p=0.8"),
        ("differ", "hub", "addition-ioi", "p=0.9"),
    ]
    assert cases["core-matters", "hub", "addition", "p=0.9"].parameters.draws == 20
    assert cases["few", "made", "mine"].parameters.neurons == 7


def test_listed_values_of_every_kind_have_readable_ids(write: Write) -> None:
    """Numbers, text, percentages, mappings; without characters that node ids cannot have."""
    text = GOOD.split("claims:")[0] + (
        "claims:\n  c:\n    necessity:\n      task: ioi\n      circuit: [{task: ioi}, {task: addition}]\n"
        "      size: [10%, 5]\n      split: [in_sample, 0.5]\n    at_least: 0.2\n    model: made\n"
    )
    assert [case.ids for case in load_suite(write(text)).claims][:3] == [
        ("made", "ioi", "circuit=ioi", "size=10%", "split=in_sample"),
        ("made", "ioi", "circuit=ioi", "size=10%", "split=0.5"),
        ("made", "ioi", "circuit=ioi", "size=5", "split=in_sample"),
    ]


def test_values_that_look_alike_in_an_id_are_numbered(write: Write) -> None:
    """Blanks, slashes, colons and brackets all become dashes."""
    text = GOOD.split("claims:")[0] + "claims:\n  c: {reuse: {task: ioi, note: ['a b', 'a-b', 'a[b', '']}, at_least: 0.2, model: made}\n"
    assert [case.ids[2] for case in load_suite(write(text)).claims] == ["note=a-b", "note=a-b-2", "note=a-b-3", "note=empty"]


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [(int, False), (str, False), (list[int], True), (tuple[str, ...], True), (int | list[int], True), (float | None, False),
     (dict[str, int], False), (set[str], True), (Any, True)],
)  # fmt: skip
def test_which_types_take_a_list_as_one_value(annotation: Any, expected: bool) -> None:
    """For the others a list means several tests."""
    assert takes_list(annotation) is expected


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [(str, ["a"], True), (str, "a", False), (list[str], ["a", "b"], False), (list[str], [["a"], ["b"]], True), (list[str], [], False),
     (list[str] | None, [["a"]], True), (tuple[str, ...], [["a"], "b"], False), (list[list[int]], [[1], [2]], False), (Any, [[1]], False)],
)  # fmt: skip
def test_a_list_of_lists_means_several_values_of_a_parameter_that_is_a_list(annotation: Any, value: Any, expected: bool) -> None:
    """Such as several pairs of tasks."""
    assert several(annotation, value) is expected


def test_several_pairs_of_tasks_make_a_test_each(write: Write) -> None:
    """The ids name the pair once."""
    text = GOOD.split("claims:")[0] + "claims:\n  c: {jaccard: {tasks: [[ioi, addition], [addition, ioi]]}, at_most: 0.6, model: made}\n"
    cases = load_suite(write(text)).claims
    assert [case.ids for case in cases] == [("made", "ioi-addition"), ("made", "addition-ioi")]
    assert [list(case.tasks) for case in cases] == [["ioi", "addition"], ["addition", "ioi"]]


def test_a_suite_can_be_loaded_without_heavy_imports(write: Write) -> None:
    """Collection must not pay for torch, transformers, numpy or scipy: real properties and tasks, in a fresh process."""
    write(
        "version: 1\nmodels: {a: {path: x/y}}\ntasks: {t: {builtin: addition}, u: {builtin: ioi}}\ndefaults: {size: 5}\nclaims:\n"
        + "".join(f"  c{i}: {{reuse: {{task: [t, u], p: 0.5}}, at_least: 0.1}}\n" for i in range(30))
    )
    code = (
        "import sys; from pytest_circuits.spec.load import load_suite; n = len(load_suite('s.circuits.yaml').claims);"
        "print(n, [m for m in ('torch', 'transformers', 'numpy', 'scipy', 'pytest') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "60 []"


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters="[]/\\:="), min_size=1, max_size=4)
SHARES = st.one_of(st.floats(0.001, 1), st.sampled_from([1, 0.5, 0.95]))


def _or_list(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return values | st.lists(values, min_size=1, max_size=3, unique_by=json.dumps)


@st.composite
def suites(draw: Any) -> dict[str, Any]:
    """Valid specs as plain data."""
    tasks = draw(st.lists(NAMES, min_size=2, max_size=4, unique=True))
    models = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    task = _or_list(st.sampled_from(tasks))
    several = st.lists(st.sampled_from(tasks), min_size=2, max_size=3, unique=True)
    common = {
        "p": _or_list(SHARES),
        "size": _or_list(st.sampled_from(["10%", 3, "1%", "99.5%"])),
        "split": _or_list(st.sampled_from(["in_sample", 0.3])),
    }
    circuit = st.fixed_dictionaries({"task": st.sampled_from(tasks)})
    removal = {**common, "circuit": _or_list(circuit), "draws": _or_list(st.integers(1, 99))}
    claim = st.one_of(
        st.fixed_dictionaries({"reuse": st.fixed_dictionaries({"task": task}, optional=common)}),
        st.fixed_dictionaries({"necessity": st.fixed_dictionaries({"task": task}, optional=removal)}),
        st.fixed_dictionaries({"jaccard": st.fixed_dictionaries({"tasks": several}, optional=common)}),
    )
    claims = draw(st.dictionaries(NAMES, claim, min_size=1, max_size=3))
    bound = st.sampled_from([{"at_least": 0.2}, {"at_most": 0.9}, {"within": [0.1, 0.9]}])
    return {
        "version": 1,
        "models": {name: {"path": "x"} for name in models},
        "tasks": {name: {"builtin": draw(st.sampled_from(["addition", "ioi"])), "n": draw(st.integers(1, 500))} for name in tasks},
        "claims": {name: {**one, **draw(bound)} for name, one in claims.items()},
    }


def _size(claim: dict[str, Any], models: int) -> int:
    parameters = next(value for value in claim.values() if isinstance(value, dict))
    for name, value in parameters.items():
        models *= len(value) if isinstance(value, list) and name != "tasks" else 1
    return models


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(suites())
def test_valid_specs_expand_to_unique_readable_ids(write: Write, data: dict[str, Any]) -> None:
    """As many cases as the lists say, each with an id of its own that a node id can hold."""
    cases = load_suite(write(json.dumps(data))).claims
    ids = [(case.name, *case.ids) for case in cases]
    assert len(set(map("::".join, ids))) == len(ids) == sum(_size(claim, len(data["models"])) for claim in data["claims"].values())
    for part in (part for one in ids for part in one):
        assert re.fullmatch(r"[^\s\[\]/\\:]+", part)


def _paths(data: Any, where: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(data, dict):
        return []
    return [path for key, value in data.items() for path in ((*where, key), *_paths(value, (*where, key)))]


def _required(path: tuple[str, ...]) -> bool:
    parts = len(path)
    return (
        (parts == 1 and path[0] in ("version", "models", "claims", "tasks"))
        or path[-1] in ("task", "tasks", "reuse", "necessity", "jaccard", "at_least", "at_most", "within")
        or (path[0] in ("models", "tasks") and path[-1] in ("path", "builtin"))
    )


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(suites(), st.data())
def test_a_spec_without_one_required_key_is_refused_inside_the_file(write: Write, data: dict[str, Any], choice: st.DataObject) -> None:
    """Whichever it is."""
    path = choice.draw(st.sampled_from([path for path in _paths(data) if _required(path)]))
    inner = data
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    text = json.dumps(data, indent=1)
    with pytest.raises(SpecErrors) as caught:
        load_suite(write(text))
    for error in caught.value.errors:
        assert 1 <= error.line <= text.count("\n") + 1
        assert error.column <= len(text.splitlines()[error.line - 1]) + 1


WORDS = st.sampled_from(
    ["version", "models", "tasks", "defaults", "claims", "a", "b", "reuse", "jaccard", "necessity", "neuron_faithfulness", "task", "p",
     "size", "split", "circuit", "at_least", "at_most", "within", "marks", "model", "expect", "description", "path", "loader", "dtype",
     "builtin", "file", "n", "ioi", "addition", "eap", "10%", "attribution", "metric", "neurons"]
)  # fmt: skip
LEAVES = WORDS | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.sampled_from([0, 1, 0.5, "a:b", "~x"])
TREES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=15)
SECTION = st.dictionaries(WORDS, st.dictionaries(WORDS, TREES, max_size=4) | TREES, max_size=3)
INSERTS = st.sampled_from(["", "\t", "[", "}", "'", ": ", "\n", "- ", "0", "&a ", "*a", "!x ", "#", "ä"])


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.fixed_dictionaries({"version": st.just(1)}, optional=dict.fromkeys(("models", "tasks", "defaults", "claims"), SECTION)) | TREES)
def test_any_document_is_loaded_or_refused(write: Write, data: Any) -> None:
    """Never another exception than `SpecErrors`; each mistake is one line at a place inside the file."""
    text = json.dumps(data, indent=1).replace("NaN", ".nan").replace("-Infinity", "-.inf").replace("Infinity", ".inf")
    try:
        load_suite(write(text))
    except SpecErrors as problem:
        assert len(str(problem).splitlines()) == len(problem.errors) > 0
        assert all(1 <= error.line <= text.count("\n") + 1 and error.column >= 1 for error in problem.errors)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 30), INSERTS)
def test_a_damaged_spec_is_loaded_or_refused(write: Write, at: int, cut: int, insert: str) -> None:
    """A few characters taken out or put in, as happens while editing."""
    text = GOOD[:at] + insert + GOOD[at + cut :]
    try:
        load_suite(write(text))
    except SpecErrors as problem:
        assert all(1 <= error.line <= text.count("\n") + 1 for error in problem.errors)
