"""Import paths that the documentation of the previous release named."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import pytest_circuits
from pytest_circuits.core.former_paths import FORMER

IMPORTS = (
    "from pytest_circuits.properties.base import Method, Parameters, TaskName",
    "from pytest_circuits.properties.measured import examples, intact",
    "from pytest_circuits.properties.own import claimable",
    "from pytest_circuits.requests import Attribute",
    "from pytest_circuits.units import Span, Universe, split_position",
    "from pytest_circuits.anatomy import Family, register_family",
)


@pytest.mark.parametrize("line", IMPORTS)
def test_former_imports_work_and_say_where_the_name_is_now(line):
    with pytest.warns(DeprecationWarning, match=r"has moved to pytest_circuits\.[a-z.]+"):
        exec(line, {})


@pytest.mark.parametrize("former", FORMER)
def test_no_former_module_exists_and_every_name_leads_somewhere(former):
    for name, place in FORMER[former].items():
        module, _, attribute = place.partition(":")
        found = importlib.import_module(f"pytest_circuits.{module}")
        assert name == "*" or hasattr(found, attribute)
    assert importlib.util.find_spec(f"pytest_circuits.{former}").origin is None


def test_a_former_name_is_the_very_object():
    with pytest.warns(DeprecationWarning):
        from pytest_circuits.properties.own import claimable
    assert claimable is pytest_circuits.claimable is pytest_circuits.register_property


def test_unknown_modules_and_names_are_still_unknown():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("pytest_circuits.nothing")
    with pytest.raises(ImportError):
        exec("from pytest_circuits.units import Nothing", {})


def test_the_package_itself_still_imports_nothing_heavy():
    code = "import sys, pytest_circuits; assert not {'torch', 'numpy', 'pydantic', 'yaml'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0
