"""Every mistake of a spec gives one line with its place, what is wrong and what is allowed."""

# ruff: noqa: E501 (tables: one mistake a line)

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_circuits.errors import SpecError
from pytest_circuits.spec.load import SpecErrors, load_suite

pytestmark = pytest.mark.usefixtures("catalogue")
Write = Callable[..., Path]

HEAD = """\
version: 1
models: {candidate: {path: m}, other: {path: n}}
tasks: {addition: {builtin: addition}, ioi: {builtin: ioi}}
claims:
  core:
"""  # the claim's own lines start on line 6

CLAIMS = {
    "P of 0": ("    reuse: {task: ioi, p: 0}\n    at_least: 0.4\n", 6, 27, "claims.core.reuse.p: must be above 0 and at most 1, got 0"),
    "P above 1": ("    reuse: {task: ioi, p: 1.5}\n    at_least: 0.4\n", 6, 27, "must be above 0 and at most 1, got 1.5"),
    "P that is text": ("    reuse: {task: ioi, p: high}\n    at_least: 0.4\n", 6, 27, "must be a number above 0 and at most 1, got 'high'"),
    "P that is quoted": ("    reuse: {task: ioi, p: '0.5'}\n    at_least: 0.4\n", 6, 27, "must be a number above 0 and at most 1, got '0.5'"),
    "P that is true": ("    reuse: {task: ioi, p: true}\n    at_least: 0.4\n", 6, 27, "must be a number above 0 and at most 1, got true"),
    "P without a value": ("    reuse: {task: ioi, p: }\n    at_least: 0.4\n", 6, 26, "got nothing"),
    "P that is nan": ("    reuse: {task: ioi, p: .nan}\n    at_least: 0.4\n", 6, 27, "must be above 0 and at most 1, got nan"),
    "one bad P in a list": ("    reuse:\n      task: ioi\n      p: [0.5, 2]\n    at_least: 0.4\n", 8, 16, "claims.core.reuse.p[1]: must be above 0"),
    "an empty list": ("    reuse: {task: [], p: 0.5}\n    at_least: 0.4\n", 6, 19, "an empty list makes no test"),
    "a value twice in a list": ("    reuse: {task: [ioi, ioi]}\n    at_least: 0.4\n", 6, 25, "'ioi' is given twice"),
    "K of 0": ("    reuse: {task: ioi, size: 0}\n    at_least: 0.4\n", 6, 30, "claims.core.reuse.size: a circuit size is a percentage above 0%"),
    "K of 0%": ("    reuse: {task: ioi, size: 0%}\n    at_least: 0.4\n", 6, 30, "got '0%'"),
    "an unknown property": ("    reuze: {task: ioi}\n    at_least: 0.4\n", 6, 5, "claims.core: unknown property 'reuze'; did you mean 'reuse'? allowed: jaccard,"),
    "no property": ("    at_least: 0.4\n", 5, 3, "a claim needs one property; allowed: jaccard, necessity"),
    "two properties": ("    reuse: {task: ioi}\n    jaccard: {tasks: [ioi, addition]}\n    at_least: 0.4\n", 7, 5, "a claim has one property, and 'reuse' is here"),
    "an unknown key": ("    reuse: {task: ioi}\n    at_leest: 0.4\n    at_most: 0.6\n", 7, 5, "unknown key 'at_leest'; did you mean 'at_least'?"),
    "a property that is no mapping": ("    reuse: ioi\n    at_least: 0.4\n", 6, 12, "must be a mapping of parameters, got 'ioi'"),
    "a property without a value": ("    reuse:\n    at_least: 0.4\n", 6, 11, "must be a mapping of parameters, got nothing"),
    "an unknown parameter": ("    reuse: {task: ioi, q: 1}\n    at_least: 0.4\n", 6, 24, "claims.core.reuse: unknown parameter 'q'; allowed: attribution,"),
    "a misspelt parameter": ("    reuse: {task: ioi, sise: 3}\n    at_least: 0.4\n", 6, 24, "did you mean 'size'?"),
    "a missing parameter": ("    reuse: {p: 0.5}\n    at_least: 0.4\n", 6, 5, "claims.core.reuse: the parameter 'task' is missing"),
    "an unknown task": ("    reuse: {task: iol}\n    at_least: 0.4\n", 6, 19, "claims.core.reuse.task: unknown task 'iol'; did you mean 'ioi'? allowed: addition, ioi"),
    "an unknown task in a list": ("    reuse: {task: [ioi, x]}\n    at_least: 0.4\n", 6, 25, "claims.core.reuse.task[1]: unknown task 'x'"),
    "an unknown task of several": ("    jaccard: {tasks: [ioi, x]}\n    at_most: 0.4\n", 6, 28, "claims.core.jaccard.tasks[1]: unknown task 'x'"),
    "an unknown task in a circuit": ("    necessity: {task: ioi, circuit: {task: x}}\n    at_least: 0.4\n", 6, 44, "claims.core.necessity.circuit.task: unknown task 'x'"),
    "an unknown key in a circuit": ("    necessity: {task: ioi, circuit: {task: ioi, tsk: x}}\n    at_least: 0.4\n", 6, 49, "unknown parameter 'tsk'; did you mean 'task'?"),
    "a task that is a number": ("    reuse: {task: 5}\n    at_least: 0.4\n", 6, 19, "must be text, got 5; put it in quotes"),
    "too few tasks": ("    jaccard: {tasks: [ioi]}\n    at_most: 0.4\n", 6, 22, "must be a list of at least 2, each text, got a list of 1"),
    "an unknown attribution": ("    reuse: {task: ioi, attribution: epa}\n    at_least: 0.4\n", 6, 37, "unknown attribution method 'epa'; did you mean 'eap'? allowed: atp,"),
    "an unknown ablation": ("    necessity: {task: ioi, ablation: zeros}\n    at_least: 0.4\n", 6, 38, "unknown ablation 'zeros'; did you mean 'zero'? allowed: counterfactual,"),
    "an unknown metric": ("    reuse: {task: ioi, metric: logits}\n    at_least: 0.4\n", 6, 32, "unknown metric 'logits'; did you mean 'logit_diff'?"),
    "an unknown control": ("    necessity: {task: ioi, control: c4}\n    at_least: 0.4\n", 6, 37, "'c4' is not allowed; allowed: c3, c3_any, c3_parity"),
    "a split out of range": ("    reuse: {task: ioi, split: 3}\n    at_least: 0.4\n", 6, 31, "must be above 0 and below 1 or 'in_sample', got 3"),
    "draws that are no whole number": ("    necessity: {task: ioi, draws: 2.5}\n    at_least: 0.4\n", 6, 35, "must be a whole number of at least 1, got 2.5"),
    "an attribution at the wrong level": ("    neuron_faithfulness: {task: ioi, attribution: eap}\n    at_least: 0.4\n", 6, 5,
                                          "claims.core.neuron_faithfulness: attribution 'eap' does not work at neuron level"),
    "no bound": ("    reuse: {task: ioi}\n", 5, 3, "claims.core: a claim needs exactly one bound: at_least, at_most or within"),
    "two bounds": ("    reuse: {task: ioi}\n    at_least: 0.4\n    at_most: 0.6\n", 8, 5, "exactly one bound: at_least, at_most or within, got at_least and at_most"),
    "a bound that every value meets": ("    reuse: {task: ioi}\n    at_least: 0\n", 7, 15, "claims.core.at_least: a vacuous bound on reuse: every value is at least 0"),
    "a bound that no value meets": ("    reuse: {task: ioi}\n    at_least: 1.5\n", 7, 15, "no value can be at least 1.5: values lie in [0, 1]"),
    "a range that every value meets": ("    reuse: {task: ioi}\n    within: [0, 1]\n", 7, 13, "every value is within [0, 1]"),
    "a range upside down": ("    reuse: {task: ioi}\n    within: [0.6, 0.4]\n", 7, 13, "the lower end must be below the upper one, got [0.6, 0.4]"),
    "a range of one point": ("    reuse: {task: ioi}\n    within: [0.5, 0.5]\n", 7, 13, "the lower end must be below"),
    "a range of three numbers": ("    reuse: {task: ioi}\n    within: [0, 0.1, 0.2]\n", 7, 13, "must be a list of 2, each a number, got a list of 3"),
    "a range that is a number": ("    reuse: {task: ioi}\n    within: 0.5\n", 7, 13, "must be a list of 2, each a number, got 0.5"),
    "a bound of nan": ("    reuse: {task: ioi}\n    at_least: .nan\n", 7, 15, "claims.core.at_least: must be a finite number, got nan"),
    "a bound of infinity": ("    reuse: {task: ioi}\n    within: [0.5, .inf]\n", 7, 19, "claims.core.within[1]: must be a finite number, got inf"),
    "a bound that is text": ("    reuse: {task: ioi}\n    at_least: 1e\n", 7, 15, "must be a number, got '1e'"),
    "a bound without a value": ("    reuse: {task: ioi}\n    at_least:\n", 7, 5, "claims.core.at_least: has no value"),
    "an unknown verdict": ("    reuse: {task: ioi}\n    at_least: 0.4\n    expect: refused\n", 8, 13, "'refused' is not allowed; did you mean 'refuted'? allowed: certified,"),
    "marks that are no list": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: slow\n", 8, 12, "must be a list"),
    "a mark that is a number": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: [slow, 3]\n", 8, 19, "claims.core.marks[1]: must be text"),
    "a mark with a bare argument": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: [{xfail: flaky}]\n", 8, 21, "must be a mapping or a list, got 'flaky'"),
    "a mark with two keys": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: [{xfail: {}, skip: {}}]\n", 8, 13, "a mapping with one key, such as {xfail:"),
    "a mark that is no name": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: ['not slow']\n", 8, 13, "'not slow' is not the name of a pytest mark"),
    "a mark's argument that is no name": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: [{xfail: {a-b: 1}}]\n", 8, 22, "'a-b' is not a keyword argument"),
    "the mark parametrize": ("    reuse: {task: ioi}\n    at_least: 0.4\n    marks: [{parametrize: [p, [1]]}]\n", 8, 14, "give a parameter of the property as a list"),
    "an unknown model": ("    reuse: {task: ioi}\n    at_least: 0.4\n    model: candidat\n", 8, 12, "claims.core.model: unknown model 'candidat'; did you mean 'candidate'?"),
    "an unknown model of several": ("    reuse: {task: ioi}\n    at_least: 0.4\n    models: [other, x]\n", 8, 21, "claims.core.models[1]: unknown model 'x'; allowed: candidate, other"),
    "a model twice": ("    reuse: {task: ioi}\n    at_least: 0.4\n    models: [other, other]\n", 8, 21, "'other' is given twice"),
    "no models": ("    reuse: {task: ioi}\n    at_least: 0.4\n    models: []\n", 8, 13, "must be a list of at least 1"),
    "model and models": ("    reuse: {task: ioi}\n    at_least: 0.4\n    model: other\n    models: [candidate]\n", 9, 5, "one of model and models, not both"),
    "a description that is a number": ("    reuse: {task: ioi}\n    at_least: 0.4\n    description: 3\n", 8, 18, "must be text, got 3; put it in quotes"),
    "too many tests": ("    reuse:\n      task: ioi\n      split_seed: [" + ", ".join(map(str, range(200))) + "]\n      p: ["
                       + ", ".join(f"0.{i:03}" for i in range(1, 101)) + "]\n    at_least: 0.4\n", 8, 19, "make 20000 tests; at most 10000"),
}  # fmt: skip

FILES = {
    "a later version": ("version: 2\nmodels: 5\n", 1, 10, "version: must be 1, the only version that there is, got 2"),
    "a version that is text": ("version: '1'\n", 1, 10, "version: must be 1, the only version that there is, got '1'"),
    "a version that is a fraction": ("version: 1.0\n", 1, 10, "version: must be 1"),
    "a version that is true": ("version: true\n", 1, 10, "version: must be 1"),
    "no version": ("models: {a: {path: x}}\nclaims: {c: {reuse: {task: t}, at_least: 0.1}}\n", 1, 1, "the key 'version' is missing; write 'version: 1'"),
    "no models": ("version: 1\nclaims: {}\n", 1, 1, "the key 'models' is missing"),
    "no claims": ("version: 1\nmodels: {a: {path: x}}\n", 1, 1, "the key 'claims' is missing"),
    "empty claims": ("version: 1\nmodels: {a: {path: x}}\nclaims:\n", 3, 1, "claims: is empty"),
    "empty defaults": ("version: 1\nmodels: {a: {path: x}}\ndefaults:\nclaims: {}\n", 3, 1, "defaults: is empty"),
    "an unknown key": ("version: 1\nmodles: {}\n", 2, 1, "unknown key 'modles'; did you mean 'models'? allowed: claims, defaults, models, tasks, version"),
    "models that are a list": ("version: 1\nmodels: [a]\nclaims: {}\n", 2, 9, "models: must be a mapping from names to entries, got a list of 1"),
    "claims that are a list": ("version: 1\nmodels: {}\nclaims: [a]\n", 3, 9, "claims: must be a mapping from names to claims"),
    "a claim that is a list": ("version: 1\nmodels: {}\nclaims: {a: [1]}\n", 3, 13, "claims.a: must be a mapping with a property and a bound"),
    "a model that is text": ("version: 1\nmodels: {a: x}\n", 2, 13, "models.a: must be a mapping, got 'x'"),
    "a model without a source": ("version: 1\nmodels: {a: {dtype: float32}}\n", 2, 10, "models.a: a model needs exactly one of path, loader and fixture, got none of them"),
    "a model with two sources": ("version: 1\nmodels: {a: {path: x, loader: 'a:b'}}\n", 2, 10, "exactly one of path, loader and fixture, got path and loader"),
    "an unknown key of a model": ("version: 1\nmodels: {a: {path: x, dvice: cpu}}\n", 2, 23, "models.a: unknown key 'dvice'; did you mean 'device'?"),
    "an unknown dtype": ("version: 1\nmodels: {a: {path: x, dtype: float23}}\n", 2, 30, "'float23' is not allowed; did you mean 'float32'?"),
    "a revision that is a number": ("version: 1\nmodels: {a: {path: x, revision: 12}}\n", 2, 33, "models.a.revision: must be text that is not empty, got 12; put it in quotes"),
    "a path without a value": ("version: 1\nmodels: {a: {path: }}\n", 2, 14, "models.a.path: has no value"),
    "an empty path": ("version: 1\nmodels: {a: {path: ''}}\n", 2, 20, "must be text that is not empty, got ''"),
    "a loader that is no reference": ("version: 1\nmodels: {a: {loader: pkg.mod}}\n", 2, 22, "must have the form 'package.module:function', got 'pkg.mod'"),
    "a model's name with a bracket": ("version: 1\nmodels: {'a[0]': {path: x}}\n", 2, 10, "models: the name 'a[0]' is not allowed; names hold no whitespace, colons, slashes"),
    "a model's name with an equals sign": ("version: 1\nmodels: {a=b: {path: x}}\n", 2, 10, "a model's name holds no '='"),
    "a task's name with a slash": ("version: 1\ntasks: {a/b: {builtin: ioi}}\n", 2, 9, "tasks: the name 'a/b' is not allowed"),
    "a claim's name with two colons": ("version: 1\nclaims: {'a::b': {}}\n", 2, 10, "claims: the name 'a::b' is not allowed"),
    "a claim's name with a space": ("version: 1\nclaims: {a b: {}}\n", 2, 10, "the name 'a b' is not allowed"),
    "a claim without a name": ("version: 1\nclaims: {'': {}}\n", 2, 10, "claims: an empty name"),
    "a name that is a number": ("version: 1\nclaims: {1: {}}\n", 2, 10, "the key 1 is a number"),
    "an unknown built-in": ("version: 1\ntasks: {a: {builtin: additoin}}\n", 2, 22, "tasks.a.builtin: unknown built-in task 'additoin'; did you mean 'addition'? allowed: addition, ioi"),
    "a built-in that is a list": ("version: 1\ntasks: {a: {builtin: [ioi]}}\n", 2, 22, "unknown built-in task a list of 1; allowed: addition, ioi"),
    "no kind of task": ("version: 1\ntasks: {a: {buildin: ioi}}\n", 2, 9, "exactly one of builtin, file, loader and fixture; did you mean 'builtin'?"),
    "two kinds of task": ("version: 1\ntasks: {a: {builtin: ioi, file: x}}\n", 2, 9, "exactly one of builtin, file, loader and fixture, got builtin and file"),
    "a built-in without a value": ("version: 1\ntasks: {a: {builtin: }}\n", 2, 13, "tasks.a.builtin: has no value"),
    "a negative n": ("version: 1\ntasks: {a: {builtin: ioi, n: -1}}\n", 2, 30, "tasks.a.n: must be at least 1, got -1"),
    "an unknown parameter of a task": ("version: 1\ntasks: {a: {builtin: ioi, sed: 1}}\n", 2, 27, "tasks.a: unknown parameter 'sed'; did you mean 'seed'? allowed: n, seed"),
    "a negative n of a file": ("version: 1\ntasks: {a: {file: x, n: -1}}\n", 2, 25, "tasks.a.n: must be at least 1, got -1"),
    "an unknown scoring": ("version: 1\ntasks: {a: {file: x, scoring: choice}}\n", 2, 31, "'choice' is not allowed; did you mean 'choices'?"),
    "an unknown key of a file": ("version: 1\ntasks: {a: {file: x, sed: 0}}\n", 2, 22, "tasks.a: unknown key 'sed'; did you mean 'seed'? allowed: "),
    "a task's loader that is no reference": ("version: 1\ntasks: {a: {loader: 'a b:c'}}\n", 2, 21, "must have the form 'package.module:function'"),
    "an unknown default": ("version: 1\ndefaults: {atribution: eap}\n", 2, 12, "defaults: no property has a parameter 'atribution'; did you mean 'attribution'?"),
    "a bad default that no claim uses": ("version: 1\ndefaults: {neurons: 0}\n", 2, 21, "defaults.neurons: must be at least 1, got 0"),
    "a bad default in a list": ("version: 1\ndefaults: {p: [0.5, 2]}\n", 2, 21, "defaults.p[1]: must be above 0 and at most 1, got 2"),
    "defaults that are a list": ("version: 1\ndefaults: [p]\n", 2, 11, "defaults: must be a mapping from parameters to values"),
    "a default for an unknown task": ("version: 1\nmodels: {m: {path: x}}\ndefaults: {task: x}\nclaims: {c: {reuse: {}, at_least: 0.5}}\n", 3, 18, "defaults.task: unknown task 'x'"),
    "not YAML": ("version: 1\nmodels: {a: {path: x}\n", 2, 9, "'{' is not closed"),
    "empty": ("", 1, 1, "the file is empty"),
}  # fmt: skip


def _refused(path: Path) -> list[SpecError]:
    with pytest.raises(SpecErrors) as caught:
        load_suite(path)
    errors = list(caught.value.errors)
    assert str(caught.value).splitlines() == [str(error) for error in errors]
    for error in errors:
        assert "pydantic" not in str(error) and "https://" not in str(error)
    assert errors == sorted(errors, key=lambda error: (error.line, error.column))
    return errors


@pytest.mark.parametrize("case", CLAIMS)
def test_a_mistake_in_a_claim_is_the_only_thing_reported(case: str, write: Write) -> None:
    """One mistake, one line, at its place."""
    text, line, column, phrase = CLAIMS[case]
    errors = [(error.line, error.column, str(error)) for error in _refused(write(HEAD + text))]
    assert [error[:2] for error in errors] == [(line, column)], errors
    assert phrase in errors[0][2]
    assert errors[0][2].startswith(f"s.circuits.yaml:{line}:{column}: ")


@pytest.mark.parametrize("case", FILES)
def test_a_mistake_outside_claims_is_reported_at_its_place(case: str, write: Write) -> None:
    """Sections that the example leaves out are reported too; the mistake itself is reported once."""
    text, line, column, phrase = FILES[case]
    errors = _refused(write(text))
    found = [error for error in errors if phrase in str(error)]
    assert [(error.line, error.column) for error in found] == [(line, column)], list(map(str, errors))
    expected_too = ("is missing", "is empty", ": claims.")  # what the short example lacks besides
    assert [str(error) for error in errors if error not in found and not any(part in str(error) for part in expected_too)] == []


def test_all_mistakes_of_a_file_are_reported_together(write: Write) -> None:
    """In the file's order; an entry that is wrong itself is still known to those that refer to it."""
    path = write(
        "version: 1\n"
        "models: {candidate: {path: m, dtype: x}}\n"
        "tasks: {ioi: {builtin: ioi, n: 0}}\n"
        "defaults: {size: 0}\n"
        "claims:\n"
        "  a: {reuse: {task: ioi, p: 0}, at_least: 2, expect: x, model: candidate}\n"
        "  b: {reuse: {task: nope}, within: [1, 0]}\n"
    )
    assert [(error.line, error.column) for error in _refused(path)] == [
        (2, 38),
        (3, 32),
        (4, 18),
        (6, 29),
        (6, 43),
        (6, 54),
        (7, 21),
        (7, 36),
    ]


def test_a_version_that_is_not_known_hides_what_cannot_be_judged(write: Write) -> None:
    """Another version may have another grammar."""
    assert len(_refused(write("version: 7\nwhatever: 1\n"))) == 1


def test_a_mistake_in_an_aliased_value_is_marked_where_it_is_written(write: Write) -> None:
    """Once, although two claims share it."""
    text = HEAD + "    reuse: &r {task: ioi, p: 7}\n    at_least: 0.4\n  more:\n    reuse: *r\n    at_most: 0.9\n"
    errors = _refused(write(text))
    assert {(error.line, error.column) for error in errors} == {(6, 30)}


def test_a_default_that_does_not_fit_a_claims_property_is_marked_in_the_defaults(write: Write) -> None:
    """`draws: 0.5` fits no property; `ablation` is checked although only some properties have it."""
    text = HEAD.replace("claims:", "defaults: {ablation: nothing}\nclaims:") + "    reuse: {task: ioi}\n    at_least: 0.4\n"
    assert [(error.line, error.column) for error in _refused(write(text))] == [(4, 22)]


def test_a_file_that_cannot_be_read_is_one_line(write: Write, tmp_path: Path) -> None:
    """A missing file, and a folder."""
    for path in (Path("none.circuits.yaml"), tmp_path):
        assert [(error.line, error.column, "cannot be read" in str(error)) for error in _refused(path)] == [(1, 1, True)]


def test_paths_outside_the_working_directory_are_shown_in_full(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those below it are shown relative to it."""
    path = write("version: 3\n", "deep/s.circuits.yaml").absolute()
    assert _refused(path)[0].path == str(Path("deep/s.circuits.yaml"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert _refused(path)[0].path == str(path)
