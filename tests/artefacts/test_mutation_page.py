"""The how-to page: its example runs as shown, and its table is what the code has."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

import pytest

from pytest_circuits.core.summaries import summary
from pytest_circuits.mutants import OPERATORS, target_of
from pytest_circuits.mutation.recipes import DEFAULT, recipes
from tests.paths import ROOT
from tests.waiting import HANG

pytestmark = pytest.mark.extensive

PAGE = (ROOT / "docs/how-to/mutation-testing.md").read_text(encoding="utf-8")


def test_the_example_runs_as_shown(tmp_path):
    """L0H2 cut out is noticed, L1H0 is equivalent, and the mutant of the page's own is made."""
    for language, text in re.findall(r"```(python|yaml)\n(.*?)```", PAGE, re.S):
        name = re.match(r"# (\S+)\n", text)
        assert name, f"a {language} block without its file name"
        (tmp_path / name[1]).write_text(text, encoding="utf-8")
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (command,) = re.findall(r"```console\n\$ (.*?)\n```", PAGE)
    started, *arguments = shlex.split(command)
    assert started == "pytest"
    whole = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments, "--circuits-json=out.json"]
    done = subprocess.run(whole, cwd=tmp_path, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stdout + done.stderr
    (spec,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["mutation"]["specs"]
    found = {m["name"]: m for m in spec["mutants"]}
    assert {name: m["status"] for name, m in found.items() if name.startswith("zero")} == {
        "zero-head:L0H2": "noticed", "zero-head:L1H0": "equivalent",
    }  # fmt: skip
    assert found["halve-head:L0H2:factor=0.5"]["fingerprint"] not in (None, found["zero-head:L0H2"]["fingerprint"])


def test_the_table_has_every_operator_and_no_other():
    table = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", PAGE, re.M))
    assert set(table) == set(OPERATORS.builtin)
    for name, row in table.items():
        assert ("in, out, each" in row) == (target_of(name) in ("head", "mlp", "layer")), name
        for option, value in OPERATORS.fact(name, "options").items():
            assert f"`{option}` bits ({value})" in row or f"`{option}` ({value})" in row
        assert summary(OPERATORS, name, imports=False).endswith(".")


def test_the_number_of_default_mutants_is_the_one_told():
    assert len(DEFAULT) == 14 and f"\n{len(DEFAULT)} that" in PAGE


@pytest.mark.parametrize("text", re.findall(r"\(`(zero-head:in)`, `(round:bits=4)`, `(noise:sigma=0.3:seed=7)`\)", PAGE)[0])
def test_names_that_the_page_gives_are_understood(text):
    (one,) = recipes(text)
    assert one.name == text
