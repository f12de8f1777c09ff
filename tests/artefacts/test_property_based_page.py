"""What docs/how-to/property-based-checks.md shows, run."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from tests.paths import ROOT
from tests.waiting import HANG

pytestmark = pytest.mark.extensive

PAGE = (ROOT / "docs" / "how-to" / "property-based-checks.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The page's files, run once in a folder with the reference models."""
    folder = tmp_path_factory.mktemp("page")
    for language, text in re.findall(r"```(python|yaml)\n(.*?)```", PAGE, re.S):
        name = re.match(r"# (\S+)\n", text)
        assert name, f"a {language} block without its file name"
        (folder / name[1]).write_text(text, encoding="utf-8")
    (folder / "models").symlink_to(ROOT / "models")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    files = ["search.circuits.yaml", "test_search.py"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *files, "--circuits-json=out.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG)
    return done, json.loads((folder / "out.json").read_text(encoding="utf-8"))["claims"]


def test_everything_on_the_page_passes(run):
    done, claims = run
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout and len(claims) == 6


def test_the_counterexample_that_the_page_quotes_is_what_is_found(run):
    _, claims = run
    [record] = [claim for claim in claims if claim["claim"] == "no-head-alone-flips-a-name"]
    shown = re.search(r"counterexample among \d+ examples: ('.*?' → '.*?': remove: \{.*?\})", PAGE)[1]
    assert shown in record["reason"] and record["verdict"] == "refuted"


def test_the_share_that_a_hundred_examples_allow_for_is_the_one_on_the_page(run):
    _, claims = run
    assert f"{100 * (1 - 0.05 ** (1 / 100)):.0f}% do" in PAGE
    holding = [claim for claim in claims if claim["estimate"] == 1 and claim["n"] == 100]
    assert holding and all("at most 2.95% of independent draws fail" in claim["reason"] for claim in holding)
