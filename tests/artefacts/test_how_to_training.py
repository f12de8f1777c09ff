"""The page about training runs: its spec runs on the shipped checkpoints, and its table names ways that are read."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from pytest_circuits.report.curves import curves
from pytest_circuits.report.renderers.json_file import read_report
from pytest_circuits.spec.load import load_suite
from tests.paths import ROOT
from tests.waiting import HANG

pytestmark = pytest.mark.extensive

PAGE = (ROOT / "docs/how-to/follow-training.md").read_text(encoding="utf-8")


@pytest.fixture
def spec(tmp_path):
    (text,) = re.findall(r"```yaml\n# training\.circuits\.yaml\n(.*?)```", PAGE, re.S)
    (tmp_path / "models").symlink_to(ROOT / "models")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "training.circuits.yaml").write_text(text, encoding="utf-8")
    return tmp_path / "training.circuits.yaml"


def test_the_spec_of_the_page_runs_as_it_says(spec):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--circuits-json=report.json"],
        cwd=spec.parent, capture_output=True, text=True, timeout=HANG, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((spec.parent / "report.json").read_text(encoding="utf-8"))
    assert [claim["nodeid"] for claim in content["claims"]][1] == "training.circuits.yaml::does-it::run@step-0050::sva"
    found = curves(read_report(spec.parent / "report.json").claims)
    assert [[point.at for point in curve.points] for curve in found] == [[25, 50, 100, 200, 300, 450, 650, 1000]] * 3


def test_every_way_of_the_table_is_read(spec):
    rows = [row.split("|")[1] for row in PAGE.splitlines() if row.startswith("| `")]
    ways = [way for row in rows for way in re.findall(r"`([^`]*)`", row) if way[:5] not in ("path:", "check")]
    assert len(ways) == 6
    for name in ("early", "late", "a", "b", "step-100", "step-650"):
        (spec.parent / "run" / name).mkdir(parents=True)
    text = spec.read_text(encoding="utf-8").replace("at: 100}", "at: 0}")
    for way in ways:
        path = "path: owner/name, " if "1000" in way else ""
        changed = re.sub(r"run: \{.*\}", lambda _, way=way, path=path: f"run: {{{path}checkpoints: {way.replace('../', '')}}}", text)
        assert len(load_suite(spec, content=changed.encode()).series["run"]) == 2, way
