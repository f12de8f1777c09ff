"""Registries: facts without imports, entries that come and go."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from importlib import import_module

import pytest

from pytest_circuits.ablation import ABLATIONS
from pytest_circuits.attribution import METHODS
from pytest_circuits.errors import OptionError
from pytest_circuits.mutants import OPERATORS
from pytest_circuits.registry import Registry, load_object, with_options
from pytest_circuits.stats import CONTROLS

WITH_FACTS = [(registry, name) for registry in (METHODS, ABLATIONS, OPERATORS, CONTROLS) for name in registry.builtin]


@pytest.mark.parametrize(("registry", "name"), WITH_FACTS, ids=[name for _, name in WITH_FACTS])
def test_the_facts_that_are_read_as_source_are_those_of_the_module(registry, name):
    module, _, attribute = registry.builtin[name].partition(":")
    facts = getattr(import_module(module), "FACTS", {})
    facts = facts.get(attribute, facts)
    assert facts or registry is CONTROLS
    for key, value in facts.items():
        assert registry.fact(name, key) == value


@pytest.mark.parametrize("registry", [METHODS, ABLATIONS], ids=lambda registry: registry.what)
def test_facts_agree_with_the_class(registry):
    for name in registry.builtin:
        kind = registry.get(name)
        options = {field.name: field.default for field in fields(kind)}
        assert registry.fact(name, "options") == options
        assert tuple(kind.levels) == registry.fact(name, "levels", ("component", "neuron", "edge"))
        assert kind.name == name


def test_options_of_mutants_are_keyword_parameters():
    for name in OPERATORS.builtin:
        parameters = inspect.signature(OPERATORS.get(name)).parameters.values()
        assert OPERATORS.fact(name, "options") == {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def test_facts_import_no_torch():
    code = (
        "import sys; from pytest_circuits.attribution import METHODS; from pytest_circuits.ablation import ABLATIONS; "
        "from pytest_circuits.mutants import OPERATORS; from pytest_circuits.stats import CONTROLS; "
        "[r.fact(name, 'options') for r in (METHODS, ABLATIONS, OPERATORS, CONTROLS) for name in r.builtin]; "
        "assert not {'torch', 'numpy'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""


@pytest.fixture
def registry():
    return Registry("thing", "pytest_circuits.no_such_group", {"eap": METHODS.builtin["eap"]})


def test_a_third_party_entry_has_the_facts_that_it_was_added_with_until_it_is_removed(registry):
    @registry.add("mine", None, levels=("edge",))
    class Mine:
        pass

    assert registry.get("mine") is Mine
    assert (registry.fact("mine", "levels"), registry.fact("mine", "other", 3)) == (("edge",), 3)
    assert list(registry) == ["eap", "mine"]
    registry.remove("mine")
    assert list(registry) == ["eap"]
    assert registry.fact("mine", "levels") is None
    with pytest.raises(OptionError, match="unknown thing 'mine'"):
        registry.get("mine")
    registry.add("mine", object())


def test_taken_names_are_refused_and_the_same_thing_may_be_added_twice(registry):
    thing = object()
    assert registry.add("mine", thing) is registry.add("mine", thing) is thing
    for name in ("mine", "eap"):
        with pytest.raises(OptionError, match=f"thing '{name}' is already registered"):
            registry.add(name, object())


def test_only_third_party_entries_can_be_removed(registry):
    with pytest.raises(OptionError, match="thing 'eap' is built in"):
        registry.remove("eap")
    with pytest.raises(OptionError, match=r"unknown thing 'epa'; did you mean 'eap'\?"):
        registry.remove("epa")


@pytest.mark.parametrize(("reference", "problem"), [
    ("json.dumps", "is not a reference of the form 'package.module:function'"),
    ("no_such_module_here:f", "cannot import 'no_such_module_here'"),
    ("json:nothing", "'json' has no 'nothing'"),
])  # fmt: skip
def test_references_that_lead_nowhere_say_which_half_is_wrong(reference, problem):
    with pytest.raises(OptionError, match=problem):
        load_object(reference)


def test_an_option_that_an_entry_does_not_have_is_refused():
    assert with_options(METHODS.get("eap_ig"), {"steps": 2}).steps == 2
    with pytest.raises(OptionError, match=r"eap_ig has no option 'step'; did you mean 'steps'\?"):
        with_options(METHODS.get("eap_ig"), {"step": 2})
