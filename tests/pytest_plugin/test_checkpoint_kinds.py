"""Ways to name checkpoints, run on real models: directories, a pattern, a range, and revisions of a downloaded hub id say the same."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.fakes.project import DEFAULTS, header, save_tokenizer, tiny_llama, write_pairs
from tests.waiting import HANG

CLAIMS = """claims:
  each:
    reuse: {task: swap, p: 0.3}
    at_most: 0.9
    expect: measured
  course:
    trajectory: {of: {reuse: {task: swap, p: 0.3}}, shape: spread}
    at_most: 0.9
    expect: measured
"""
WAYS = {
    "list": "checkpoints: [run/step-10, run/step-20]",
    "pattern": "checkpoints: 'run/step-[12]0'",
    "range": "checkpoints: {pattern: run/step-*, first: 10, last: 20}",
    "places": "path: run, checkpoints: [{path: step-10, at: 10}, {path: step-20, at: 20}]",
    "revisions": "path: org/tiny, checkpoints: [step-10, step-20]",
    "named revisions": "path: org/tiny, checkpoints: {revisions: [step-10, step-20]}",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory, torch_side):
    """Three checkpoints in a folder, and as revisions in a hub cache."""
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "pytest.ini").write_text("[pytest]\n")
    write_pairs(folder / "pairs.jsonl", 80)
    hub = folder / "hub" / "models--org--tiny"
    (hub / "refs").mkdir(parents=True)
    for step in (10, 20, 900):
        place = folder / "run" / f"step-{step}"
        tiny_llama(step).save_pretrained(place)
        save_tokenizer(place)
        commit = f"{step:040x}"
        shutil.copytree(place, hub / "snapshots" / commit)
        (hub / "refs" / f"step-{step}").write_text(commit)
    return folder


def report(project, way, *options):
    (project / "s.circuits.yaml").write_text(header(f"run: {{{WAYS[way]}}}", more=DEFAULTS) + CLAIMS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--circuits-json=report.json", *options],
        cwd=project, capture_output=True, text=True, timeout=HANG,
        env={**os.environ, "HF_HUB_CACHE": str(project / "hub"), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((project / "report.json").read_text(encoding="utf-8"))


def essence(content):
    """What was found of which checkpoint; the first run measures, and later ones may read that."""
    kept = ("nodeid", "estimate", "interval", "n", "verdict", "checkpoint", "series")
    return [{key: claim.get(key) for key in kept} for claim in content["claims"]]


@pytest.mark.extensive
def test_all_ways_to_name_checkpoints_say_the_same(project):
    listed = report(project, "list")
    wanted = essence(listed)
    assert [one["nodeid"].split("::", 1)[1] for one in wanted] == [
        "each::run@step-10::swap",
        "each::run@step-20::swap",
        "course::run::swap",
    ]
    assert wanted[0]["estimate"] != wanted[1]["estimate"] and wanted[2]["series"][1] == {"model": "run@step-20", "at": 20.0}
    for way in ("pattern", "range", "places"):
        assert essence(report(project, way, "--circuits-offline")) == wanted, way
    for way in ("revisions", "named revisions"):
        found = report(project, way)
        assert essence(found) == wanted, way
    assert found["suite"]["cost"]["forwards"] == 0, "a commit is a commit, however it is written"
