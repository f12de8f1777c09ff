"""The documentation: pages made from the code are up to date, and what the pages show runs."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from docs import catalogue
from pytest_circuits.errors import OptionError
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import Parameters
from pytest_circuits.properties.registration import register_property
from tests.paths import ROOT
from tests.waiting import HANG


def test_the_catalogue_is_what_the_code_says():
    """If this fails: `python -m docs.catalogue`."""
    assert catalogue.PAGE.read_text(encoding="utf-8") == catalogue.page()


@pytest.mark.parametrize("name", list(PROPERTIES.builtin))
def test_every_property_says_how_it_is_made_and_when_it_is_invalid(name):
    text = catalogue.page().partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert "nvalid" in text and "nterval" in text and "Unit: none" not in text
    assert all(f"`{key}`" in text or key in Parameters.model_fields or key in catalogue.CircuitParameters.model_fields
               for key in PROPERTIES.get(name).parameters.model_fields)  # fmt: skip


@pytest.mark.extensive
def test_the_property_of_the_how_to_page_works_as_shown(tmp_path):
    page = (ROOT / "docs/how-to/write-a-property.md").read_text(encoding="utf-8")
    for language, text in re.findall(r"```(python|yaml)\n(.*?)```", page, re.S):
        name = re.match(r"# (\S+)\n", text)
        assert name, f"a {language} block without its file name"
        (tmp_path / name[1]).write_text(text, encoding="utf-8")
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "top_share.circuits.yaml", "--circuits-json=out.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    claims = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["claims"]
    assert [(c["property"], c["verdict"], c["parameters"]["attribution"]) for c in claims] == [
        ("top_share", "certified", "atp"), ("top_share", "certified", "relp"),
    ]  # fmt: skip
    assert all(1 / 36 < c["estimate"] < 0.9 and c["details"]["notes"][0].startswith("strongest on average: L") for c in claims)


def test_a_property_is_declared_once_and_by_a_generator():
    """Both mistakes are told when the property is declared, not when a claim is judged."""
    with pytest.raises(OptionError, match="must be a generator"):
        register_property("plain", parameters=Parameters)(lambda claim: None)
    with pytest.raises(OptionError, match="'reuse' is already registered"):

        @register_property("reuse", parameters=Parameters)
        def again(claim):
            yield None
