"""Series of models in specs: what is found, what it is called, where it stands, what may be claimed of it, and mistakes."""

# ruff: noqa: E501 (tables: one mistake a line)

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from pytest_circuits.core.sources import ModelSource
from pytest_circuits.errors import OptionError
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.nested import PropertyOf
from pytest_circuits.properties.parameters import AnyParameters, TaskName
from pytest_circuits.properties.protocol import Property
from pytest_circuits.spec.checkpoints import numbers
from pytest_circuits.spec.load import SpecErrors, load_suite
from pytest_circuits.spec.schema import json_schema

pytestmark = pytest.mark.usefixtures("catalogue", "over")
Write = Callable[..., Path]


class Course(AnyParameters):
    """Over a series, of another property."""

    of: Annotated[PropertyOf, Field(description="another property")]
    shape: Literal["drop", "rise"] = "drop"
    strict: int = 0


class Seeds(AnyParameters):
    """Over a series, of a task."""

    task: TaskName
    p: float = 0.5


@pytest.fixture
def over(catalogue: Any, register: Any) -> None:
    """Properties over a series, beside those of the test catalogue."""
    course = Property("course", Course, catalogue.estimate, over_series=True, limits=lambda p: p.of.property.range(p.of.parameters))
    register(PROPERTIES, "course", course)
    register(PROPERTIES, "seeds", Property("seeds", Seeds, catalogue.estimate, -1.0, 1.0, over_series=True))


@pytest.fixture
def folders(write: Write, tmp_path: Path) -> Path:
    """A training run with five checkpoints, a file among them, and two runs from other seeds."""
    for name in ("run/step-0100", "run/step-0900", "run/step-1000", "run/step-20", "run/final", "seeds/sort-s1", "seeds/sort-s0"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run" / "step-0500").write_text("a file")
    return tmp_path


TASKS = "tasks: {addition: {builtin: addition}, ioi: {builtin: ioi}}\n"
REUSE = "claims:\n  c: {reuse: {task: ioi}, at_least: 0.4}\n"


def _models(path: Path, **more: Any) -> dict[str, tuple[str | None, str | None, float | None]]:
    return {name: (one.path, one.revision, one.at) for name, one in load_suite(path, **more).models.items()}


def spec(entry: str, claims: str = REUSE, more: str = "") -> str:
    return f"version: 1\nmodels:\n  m: {entry}\n  plain: {{path: x}}\n{TASKS}{more}{claims}"


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("{checkpoints: run/step-*}", [("step-20", 20), ("step-0100", 100), ("step-0900", 900), ("step-1000", 1000)]),
        ("{path: run, checkpoints: step-*}", [("step-20", 20), ("step-0100", 100), ("step-0900", 900), ("step-1000", 1000)]),
        ("{path: ./run, checkpoints: [step-0900, step-0100]}", [("step-0100", 100), ("step-0900", 900)]),
        ("{checkpoints: [run/step-0900, seeds/sort-s0]}", [("sort-s0", 0), ("step-0900", 900)]),
        ("{checkpoints: [run/step-1*, run/step-0*]}", [("step-0100", 100), ("step-0900", 900), ("step-1000", 1000)]),
        ("{checkpoints: [run/final, run/step-20]}", [("final", 0), ("step-20", 1)]),
        ("{checkpoints: run/final}", [("final", 0)]),
        ("{checkpoints: seeds/*}", [("sort-s0", 0), ("sort-s1", 1)]),
        ("{checkpoints: '**/step-??'}", [("step-20", 20)]),
        ("{checkpoints: [{path: run/final, at: 5e3}, {path: run/step-20}]}", [("step-20", 20), ("final", 5000)]),
        ("{path: run, checkpoints: [{path: final, at: -1.5}, {path: step-20, at: -2}]}", [("step-20", -2), ("final", -1.5)]),
    ],
)  # fmt: skip
def test_directories_are_found_called_and_placed(write: Write, folders: Path, entry: str, found: list[tuple[str, float]]) -> None:
    """In the order of their place, which a name tells where it can; files are no models."""
    models = _models(write(spec(entry)))
    assert list(models) == [*(f"m@{label}" for label, _ in found), "plain"]
    for label, at in found:
        folder = folders / ("seeds" if label.startswith("sort") else "run") / label
        assert models[f"m@{label}"] == (str(folder), None, at)


@pytest.mark.parametrize(
    "entry",
    [
        "checkpoints: [s1-step20-tokens3B, s1-step3-tokens1B]",
        "checkpoints: {revisions: [s1-step20-tokens3B, s1-step3-tokens1B]}",
        "checkpoints: [{revision: s1-step20-tokens3B}, {revision: s1-step3-tokens1B}]",
    ],
)
def test_revisions_of_a_hub_id(write: Write, entry: str) -> None:
    """However they are written; options of the entry hold for each."""
    models = load_suite(write(spec(f"{{path: org/name, dtype: bfloat16, device: cuda, {entry}}}"))).models
    assert list(models) == ["m@s1-step3-tokens1B", "m@s1-step20-tokens3B", "plain"]
    made = models["m@s1-step20-tokens3B"]
    assert made == ModelSource("m@s1-step20-tokens3B", "org/name", "s1-step20-tokens3B", "bfloat16", "cuda")
    assert (made.at, models["plain"].at) == (20, None)


def test_labels_hold_only_what_node_ids_can(write: Write, folders: Path) -> None:
    """And are different; hub ids are called by their last part, revisions by their name."""
    (folders / "a b[1]").mkdir()
    entry = "{checkpoints: ['a b[1]', org/x, other/x, {path: org/x, revision: refs/pr/1=x}]}"
    suite = load_suite(write(spec(entry)))
    assert list(suite.models) == ["m@a-b-1-", "m@x", "m@x-2", "m@refs-pr-1-x", "plain"]
    assert [case.ids for case in suite.claims] == [(name, "ioi") for name in suite.models]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["step-0100", "step-20"], [100, 20]),
        (["stage1-step1000-tokens3B", "stage2-step50-tokens9B"], [1000, 50]),
        (["epoch=0.5", "epoch=1"], [0.5, 1]),
        (["Checkpoint-3", "checkpoint_12"], [3, 12]),
        (["llama-3.2-x7", "llama-3.2-x8"], [7, 8]),
        (["v1-7", "v2-8"], None),
        (["a1", "b1"], None),
        (["step-1", "step-01"], None),
        (["first", "second"], None),
        (["main", "step-1"], None),
        (["only-12"], [12]),
        (["v1-12"], None),
    ],
)
def test_the_number_of_a_name(names: list[str], expected: list[float] | None) -> None:
    """After a word that tells, else the only one that varies; all different, or none."""
    assert numbers(names) == expected


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6, unique=True), st.sampled_from(["step-{:04}", "{}", "run-{}", "seed{}-x"]))
def test_whole_numbers_are_read_whatever_surrounds_them(values: list[int], form: str) -> None:
    """Each as written."""
    assert numbers([form.format(value) for value in values]) == values


SERIES = """\
claims:
  each: {reuse: {task: [ioi, addition]}, at_least: 0.4}
  some: {reuse: {task: ioi}, at_least: 0.4, models: [plain, m@step-0900]}
  whole: {seeds: {task: ioi}, at_least: 0.4}
  one: {seeds: {task: ioi}, at_least: 0.4, model: m}
"""


def test_a_claim_is_about_each_checkpoint_or_about_the_series(write: Write, folders: Path) -> None:
    """By its property; a plain model is a series of one."""
    cases = {(case.name, *case.ids): case for case in load_suite(write(spec("{checkpoints: run/step-*}", SERIES))).claims}
    steps = ["step-20", "step-0100", "step-0900", "step-1000"]
    every = [*(f"m@{step}" for step in steps), "plain"]
    assert list(cases) == [
        *(("each", name, task) for name in every for task in ("ioi", "addition")),
        ("some", "plain", "ioi"), ("some", "m@step-0900", "ioi"),
        ("whole", "m", "ioi"), ("whole", "plain", "ioi"), ("one", "m", "ioi"),
    ]  # fmt: skip
    single, series, alone = cases["some", "m@step-0900", "ioi"], cases["whole", "m", "ioi"], cases["whole", "plain", "ioi"]
    assert (single.model.name, single.series, single.entry, single.subject) == ("m@step-0900", (), "m", "m@step-0900")
    assert [(one.name, one.at) for one in series.series] == [
        ("m@step-20", 20),
        ("m@step-0100", 100),
        ("m@step-0900", 900),
        ("m@step-1000", 1000),
    ]
    assert (series.model, series.entry, series.subject) == (series.series[-1], "m", "m")
    assert (alone.series, alone.model.name, alone.subject) == ((alone.model,), "plain", "plain")


NESTED = """\
defaults: {size: 20%, p: 0.8, confidence: 0.9}
claims:
  c:
    course: {of: {reuse: {task: [ioi, addition], note: x}}, shape: [drop, rise]}
    at_least: 0.4
    model: m
  d:
    course:
      of: [{reuse: {task: ioi}}, {jaccard: {tasks: [ioi, addition], size: [5, 10%]}}]
    at_least: 0.4
    model: m
"""


def test_the_property_inside_has_defaults_lists_and_tasks_of_its_own(write: Write, folders: Path) -> None:
    """`confidence` is the outer one's."""
    cases = {(case.name, *case.ids): case for case in load_suite(write(spec("{checkpoints: run/step-*}", NESTED))).claims}
    assert list(cases) == [
        ("c", "m", "ioi", "shape=drop"), ("c", "m", "ioi", "shape=rise"),
        ("c", "m", "addition", "shape=drop"), ("c", "m", "addition", "shape=rise"),
        ("d", "m", "reuse", "ioi"), ("d", "m", "jaccard", "ioi-addition", "size=5"), ("d", "m", "jaccard", "ioi-addition", "size=10%"),
    ]  # fmt: skip
    case = cases["c", "m", "addition", "shape=rise"]
    assert (list(case.tasks), case.parameters.confidence, case.parameters.shape) == (["addition"], 0.9, "rise")
    inner = case.parameters.of
    assert (inner.name, inner.parameters.p, inner.parameters.size, inner.parameters.note) == ("reuse", 0.8, "20%", "x")
    assert list(cases["d", "m", "jaccard", "ioi-addition", "size=5"].tasks) == ["ioi", "addition"]
    assert case.parameters.model_dump(mode="json")["of"]["reuse"]["size"] == "20%"


REPLACED = "claims:\n  c: {reuse: {task: ioi}, at_least: 0.4}\n  s: {seeds: {task: ioi}, at_least: 0.4}\n"


@pytest.mark.parametrize(
    ("given", "models"),
    [
        ({"m": "seeds/*"}, {"m@sort-s0": ("seeds/sort-s0", 0), "m@sort-s1": ("seeds/sort-s1", 1), "plain": ("x", None)}),
        ({"m": "seeds/sort-s0"}, {"m": ("seeds/sort-s0", None), "plain": ("x", None)}),
        ({"m@step-20": "seeds/sort-s0"}, {"m@step-20": ("seeds/sort-s0", 20), "m@step-0100": ("run/step-0100", 100), "plain": ("x", None)}),
        ({"m@step-20": "run/fin*"}, {"m@step-20": ("run/final", 20), "m@step-0100": ("run/step-0100", 100), "plain": ("x", None)}),
        ({"plain": "seeds/*"}, {"m@step-20": ("run/step-20", 20), "m@step-0100": ("run/step-0100", 100),
                                "plain@sort-s0": ("seeds/sort-s0", 0), "plain@sort-s1": ("seeds/sort-s1", 1)}),
        ({"m": "seeds/*", "m@sort-s1": "run/final"}, {"m@sort-s0": ("seeds/sort-s0", 0), "m@sort-s1": ("run/final", 1), "plain": ("x", None)}),
    ],
)  # fmt: skip
def test_a_series_or_a_checkpoint_can_be_replaced(
    write: Write, folders: Path, given: dict[str, str], models: dict[str, tuple[str, float | None]]
) -> None:
    """By a model, by the directories that a pattern matches, or one checkpoint by another that keeps its name and place."""
    suite = load_suite(write(spec("{path: run, dtype: float32, checkpoints: [step-20, step-0100]}", REPLACED)), models=given)
    assert {name: (one.path, one.at) for name, one in suite.models.items()} == {
        n: (str(folders / path), at) for n, (path, at) in models.items()
    }
    assert suite.replaced == set(given)
    assert all(one.dtype == "float32" for name, one in suite.models.items() if name.startswith("m"))
    assert [case.ids[0] for case in suite.claims if case.name == "c"] == list(models)
    assert [case.ids[0] for case in suite.claims if case.name == "s"] == ["m", "plain"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"m": "nothing-*"}, r"--circuits-model m=nothing-\*: no directory matches \(looked for .*nothing-\*\)"),
        ({"m@step-20": "seeds/*"}, r"2 directories match, and 'm@step-20' is a single checkpoint"),
        ({"m@step-21": "x"}, "no model 'm@step-21' to be replaced by --circuits-model; did you mean 'm@step-20'"),
    ],
)
def test_a_replacement_that_cannot_be_is_told(write: Write, folders: Path, given: dict[str, str], told: str) -> None:
    """Also where the name belongs to no entry."""
    path = write(spec("{path: run, checkpoints: [step-20, step-0100]}"))
    with pytest.raises(OptionError, match=told):
        load_suite(path, models=given)
    if "m@step-21" in given:
        assert load_suite(path, models=given, unknown="ignore").replaced == frozenset()


def test_a_replaced_series_need_not_be_there(write: Write, folders: Path) -> None:
    """The spec of another machine can be run on one's own checkpoints."""
    path = write(spec("{checkpoints: elsewhere/step-*}"))
    with pytest.raises(SpecErrors, match="no directory matches"):
        load_suite(path)
    assert list(load_suite(path, models={"m": "seeds/*"}).models) == ["m@sort-s0", "m@sort-s1", "plain"]
    assert list(load_suite(path, models={"m": "seeds/sort-s0"}).models) == ["m", "plain"]


HEAD = "version: 1\nmodels:\n  m: {checkpoints: run/step-*}\n  plain: {path: x}\n" + TASKS + "claims:\n"  # a claim starts on line 7
MISTAKES = {
    "a pattern that matches nothing": ("version: 1\nmodels:\n  m: {checkpoints: run/stp-*}\n", 3, 20, "models.m.checkpoints: no directory matches 'run/stp-*' (looked for "),
    "a pattern that matches files only": ("version: 1\nmodels:\n  m: {checkpoints: run/step-05*}\n", 3, 20, "no directory matches"),
    "a pattern in a list that matches nothing": ("version: 1\nmodels:\n  m: {checkpoints: [run/final, run/x*]}\n", 3, 32, "models.m.checkpoints[1]: no directory matches"),
    "an empty list": ("version: 1\nmodels:\n  m: {checkpoints: []}\n", 3, 20, "models.m.checkpoints: must be "),
    "a number": ("version: 1\nmodels:\n  m: {checkpoints: [12]}\n", 3, 21, "models.m.checkpoints[0]: must be "),
    "a directory twice": ("version: 1\nmodels:\n  m: {checkpoints: [run/final, ./run/final]}\n", 3, 32, "is given twice"),
    "with a revision": ("version: 1\nmodels:\n  m: {path: a/b, revision: x, checkpoints: [y]}\n", 3, 18, "models.m: checkpoints are directories or revisions, so 'revision' does not go"),
    "with a loader": ("version: 1\nmodels:\n  m: {loader: 'a:b', checkpoints: [y]}\n", 3, 7, "so 'loader' does not go with them"),
    "with a fixture": ("version: 1\nmodels:\n  m: {fixture: f, checkpoints: [y]}\n", 3, 7, "so 'fixture' does not go with them"),
    "revisions without a hub id": ("version: 1\nmodels:\n  m: {checkpoints: {revisions: [x]}}\n", 3, 33, "models.m.checkpoints.revisions[0]: a revision needs 'path', a hub id"),
    "revisions of a directory": ("version: 1\nmodels:\n  m: {path: ./run, checkpoints: {revisions: [x]}}\n", 3, 46, "/run is a directory, which has no revisions"),
    "a revision of a directory": ("version: 1\nmodels:\n  m: {checkpoints: [{path: run/final, revision: x}]}\n", 3, 49, "checkpoints[0].revision: run/final is a directory"),
    "a directory of a hub id": ("version: 1\nmodels:\n  m: {path: a/b, checkpoints: [{path: x}]}\n", 3, 39, "checkpoints[0].path: the checkpoints of the hub id 'a/b' are its revisions"),
    "a pattern of a hub id": ("version: 1\nmodels:\n  m: {path: a/b, checkpoints: step*}\n", 3, 31, "the checkpoints of a hub id are its revisions, as a list"),
    "a checkpoint that is neither": ("version: 1\nmodels:\n  m: {checkpoints: [{at: 3}]}\n", 3, 21, "models.m.checkpoints[0]: a checkpoint needs a path, or the revision of a hub id"),
    "a misspelt key": ("version: 1\nmodels:\n  m: {checkpoints: [{path: x, att: 3}]}\n", 3, 31, "unknown key 'att'; did you mean 'at'?"),
    "a place that is text": ("version: 1\nmodels:\n  m: {checkpoints: [{path: x, at: last}]}\n", 3, 35, "models.m.checkpoints[0].at: must be a number, got 'last'"),
    "a place that is infinite": ("version: 1\nmodels:\n  m: {checkpoints: [{path: x, at: .inf}]}\n", 3, 35, "must be a finite number"),
    "places for some": ("version: 1\nmodels:\n  m: {checkpoints: [{path: x, at: 1}, y]}\n", 3, 20, "'at' is given for some checkpoints, and the name of "),
    "a place twice": ("version: 1\nmodels:\n  m: {checkpoints: [{path: x, at: 1}, {path: y, at: 1}]}\n", 3, 20, "two checkpoints are at 1; each needs a place of its own"),
    "a model called like a checkpoint": ("version: 1\nmodels:\n  m: {checkpoints: [run/final]}\n  m@final: {path: x}\n", 4, 3, "'m@final' is also what a checkpoint of 'm' is called"),
    "an unknown checkpoint": (HEAD + "  c: {reuse: {task: ioi}, at_least: 0.4, model: m@stp-0100}\n", 7, 49, "claims.c.model: 'm' has no checkpoint 'm@stp-0100'; did you mean 'm@step-0100'?"),
    "a checkpoint of a plain model": (HEAD + "  c: {reuse: {task: ioi}, at_least: 0.4, model: plain@x}\n", 7, 49, "'plain' has no checkpoint 'plain@x'; it is a single model"),
    "a checkpoint and its entry": (HEAD + "  c: {reuse: {task: ioi}, at_least: 0.4, models: [m, m@step-20]}\n", 7, 54, "claims.c.models[1]: 'm@step-20' is given twice"),
    "an entry and its checkpoint": (HEAD + "  c: {reuse: {task: ioi}, at_least: 0.4, models: [m@step-20, m]}\n", 7, 62, "claims.c.models[1]: 'm@step-20' is given twice"),
    "a checkpoint for a series": (HEAD + "  c: {seeds: {task: ioi}, at_least: 0.4, model: m@step-20}\n", 7, 49, "seeds is about a series, and 'm@step-20' is one checkpoint of it; name 'm'"),
    "an unknown property inside": (HEAD + "  c: {course: {of: {reuze: {task: ioi}}}, at_least: 0.4}\n", 7, 21, "claims.c.course.of: unknown property 'reuze'; did you mean 'reuse'? allowed: jaccard,"),
    "a series inside": (HEAD + "  c: {course: {of: {seeds: {task: ioi}}}, at_least: 0.4}\n", 7, 21, "claims.c.course.of: 'seeds' is itself about a series; allowed: jaccard,"),
    "two properties inside": (HEAD + "  c: {course: {of: {reuse: {task: ioi}, jaccard: {}}}, at_least: 0.4}\n", 7, 20, "claims.c.course.of: must be one property with its parameters, such as {reuse: {task: addition}}, got a mapping"),
    "text inside": (HEAD + "  c: {course: {of: reuse}, at_least: 0.4}\n", 7, 20, "claims.c.course.of: must be one property"),
    "nothing inside": (HEAD + "  c: {course: {of: []}, at_least: 0.4}\n", 7, 20, "claims.c.course.of: an empty list makes no test"),
    "no parameters inside": (HEAD + "  c: {course: {of: {reuse: ioi}}, at_least: 0.4}\n", 7, 28, "claims.c.course.of.reuse: must be a mapping of parameters, got 'ioi'"),
    "a missing property": (HEAD + "  c: {course: {}, at_least: 0.4}\n", 7, 7, "claims.c.course: the parameter 'of' is missing"),
    "a bad value inside": (HEAD + "  c: {course: {of: {reuse: {task: ioi, p: 3}}}, at_least: 0.4}\n", 7, 43, "claims.c.course.of.reuse.p: must be above 0 and at most 1, got 3"),
    "a bad value in a list inside": (HEAD + "  c: {course: {of: [{reuse: {task: ioi, p: [1, 3]}}]}, at_least: 0.4}\n", 7, 48, "claims.c.course.of[0].reuse.p[1]: must be above 0"),
    "an unknown parameter inside": (HEAD + "  c: {course: {of: {reuse: {task: ioi, q: 3}}}, at_least: 0.4}\n", 7, 40, "claims.c.course.of.reuse: unknown parameter 'q'"),
    "an unknown task inside": (HEAD + "  c: {course: {of: {reuse: {task: iol}}}, at_least: 0.4}\n", 7, 35, "claims.c.course.of.reuse.task: unknown task 'iol'; did you mean 'ioi'"),
    "a confidence inside": (HEAD + "  c: {course: {of: {reuse: {task: ioi, confidence: 0.9}}}, at_least: 0.4}\n", 7, 40, "claims.c.course.of.reuse: 'confidence' belongs to the property of the claim"),
    "a bound that every value inside meets": (HEAD + "  c: {course: {of: {reuse: {task: ioi}}}, at_least: 0}\n", 7, 53, "claims.c.at_least: a vacuous bound on course: every value is at least 0"),
    "too many tests inside": (HEAD + "  c: {course: {of: {reuse: {task: ioi, split_seed: [" + ", ".join(map(str, range(101))) + "]}}, strict: ["
                              + ", ".join(map(str, range(100))) + "]}, at_least: 0.4}\n", 7, 20, "the lists of this claim make 10100 tests; at most 10000"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_reported_once_at_its_place(case: str, write: Write, folders: Path) -> None:
    """With what is wrong; what the short example lacks besides is no matter."""
    text, line, column, phrase = MISTAKES[case]
    with pytest.raises(SpecErrors) as caught:
        load_suite(write(text))
    errors = [error for error in caught.value.errors if "is missing; a spec needs" not in str(error)]
    assert [(error.line, error.column) for error in errors] == [(line, column)], list(map(str, errors))
    assert phrase in str(errors[0])


def test_mistakes_inside_and_outside_are_reported_together(write: Write, folders: Path) -> None:
    """One does not hide the other."""
    path = write(HEAD + "  c: {course: {of: {reuse: {task: ioi, p: 3}}, shape: x}, at_least: 0.4}\n")
    with pytest.raises(SpecErrors) as caught:
        load_suite(path)
    assert [(error.column, error.problem.partition(":")[0]) for error in caught.value.errors] == [
        (43, "claims.c.course.of.reuse.p"),
        (55, "claims.c.course.shape"),
    ]


def test_a_wrong_entry_hides_no_mistake_of_claims_and_makes_none(write: Write) -> None:
    """Its checkpoints are not known, so nothing is said of them."""
    path = write(
        spec(
            "{checkpoints: nowhere/*}",
            "claims:\n  c: {reuse: {task: ioi}, at_least: 0.4, model: m@step-1}\n  d: {seeds: {task: iol}, at_least: 0.4}\n",
        )
    )
    with pytest.raises(SpecErrors) as caught:
        load_suite(path)
    assert [error.problem.partition(":")[0] for error in caught.value.errors] == ["models.m.checkpoints", "claims.d.seeds.task"]


def test_patterns_are_resolved_without_heavy_imports(write: Write, folders: Path) -> None:
    """The real trajectory among them."""
    write(
        f"version: 1\nmodels: {{a: {{checkpoints: run/step-*}}}}\n{TASKS}"
        "claims: {c: {trajectory: {of: {reuse: {task: ioi}}, shape: no_drop}, at_most: 0.1}, d: {role_stability: {task: ioi}, at_least: 0.1}}\n"
    )
    code = (
        "import sys; from pytest_circuits.spec.load import load_suite; s = load_suite('s.circuits.yaml');"
        "print([c.ids for c in s.claims], [m for m in ('torch', 'transformers', 'numpy', 'scipy', 'huggingface_hub') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[('a', 'ioi'), ('a', 'ioi')] []"


def test_the_schema_knows_series_and_what_is_inside(catalogue: Any) -> None:
    """Checkpoints instead of, or beside, a path; single properties, without what the outer one decides."""
    schema = json_schema()

    def resolved(part: Any) -> Any:
        return resolved(schema["$defs"][part["$ref"].removeprefix("#/$defs/")]) if "$ref" in part else part

    inside = resolved(schema["$defs"]["course"]["properties"]["of"])
    course = resolved(inside["anyOf"][0])
    assert list(course["properties"]) == ["jaccard", "necessity", "neuron_faithfulness", "reuse"]
    assert course["properties"]["reuse"]["allOf"][0] == {"$ref": "#/$defs/reuse"}
    assert inside["description"] == "another property"
    assert "course.Inner" not in schema["$defs"] and '"circuits"' not in json.dumps(schema)
    assert set(schema["properties"]["models"]["additionalProperties"]["properties"]) >= {"path", "checkpoints"}
