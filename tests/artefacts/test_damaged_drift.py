"""The damaged releases of the reference model against its baseline: the drift report says of each what was done to it."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from models.damaged import LOADERS, retraining
from tests.paths import ROOT

pytestmark = pytest.mark.extensive

SPEC = f"""\
version: 1
models:
  candidate: {{path: {ROOT / "models" / "multitask-llama"}, dtype: float32}}
tasks:
  addition: {{builtin: addition, digits: 2, n: 128, seed: 0}}
defaults: {{attribution: eap, size: 20%, min_accuracy: 0.0}}
claims:
  does-the-task: {{accuracy: {{task: addition}}, at_least: 0.8}}
  recurs: {{reuse: {{task: addition, p: 0.75}}, at_least: 0.3}}
  has-the-head: {{circuit_match: {{task: addition, known: [L0H5], measure: contains, p: 0.75}}, at_least: 0.5, expect: measured}}
  as-accurate: {{drift: {{of: does-the-task, no_worse_by: 0.12}}}}
  recurs-as-much: {{drift: {{of: recurs, within: 0.15}}}}
  same-by-name: {{drift: {{of: recurs, overlap: jaccard, no_worse_by: 0.1}}}}
  same-by-function: {{drift: {{of: recurs, overlap: jaccard, match: function, no_worse_by: 0.1}}}}
"""
DRIFT = ("as-accurate", "recurs-as-much", "same-by-name", "same-by-function")


def run(folder: Path, *options: str) -> tuple[str, dict[str, Any]]:
    """pytest in this process, since importing torch again for every release would take longer than the rest."""
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.chdir(folder)
        for name in ("CI", "BUILD_NUMBER", "GITHUB_ACTIONS"):
            patch.delenv(name, raising=False)
        patch.setenv("COLUMNS", "200")
        code = pytest.main(["core.circuits.yaml", "-p", "no:cacheprovider", "--circuits-json=out.json", *options])
    assert code in (0, 1), printed.getvalue()
    return printed.getvalue(), json.loads((folder / "out.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release's baseline, in a folder of its own."""
    folder = tmp_path_factory.mktemp("drift")
    (folder / "core.circuits.yaml").write_text(SPEC, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    printed, content = run(folder, "--circuits-update-baseline=new")
    assert content["suite"]["verdicts"]["certified"] == 6, printed
    (folder / "out.json").rename(folder / "written.json")
    return folder


@pytest.fixture(scope="module")
def reports(project: Path) -> dict[str, tuple[str, dict[str, Any]]]:
    found = {}
    for name, load in LOADERS.items():
        folder = retraining.OUTPUT if name == "fine-tuned" else project / name
        if name != "fine-tuned":
            model, tokenizer = load()
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
        found[name] = run(project, f"--circuits-model=candidate={folder}")
    return found


def claims(reports, name):
    return {claim["claim"]: claim for claim in reports[name][1]["claims"]}


def verdicts(reports, name):
    return tuple(claims(reports, name)[claim]["verdict"] for claim in DRIFT)


def test_the_release_itself_has_not_moved(project):
    printed, content = run(project)
    found = {claim["claim"]: claim for claim in content["claims"]}
    assert [found[claim]["verdict"] for claim in DRIFT] == ["certified"] * 4
    assert [found[claim]["estimate"] for claim in DRIFT] == [0.0] * 4
    assert not any(claim["baseline"]["inconsistent"] for claim in found.values())
    written = json.loads((project / "written.json").read_text(encoding="utf-8"))["claims"]
    same = ("claim", "estimate", "interval", "n", "verdict")
    assert [[one[key] for key in same] for one in written] == [[one[key] for key in same] for one in content["claims"]], "as it was written"
    assert content["suite"]["drift"]["same_model"]
    assert "0 moved by more than noise" in printed


def test_rounding_to_int8_is_equivalent(reports):
    assert verdicts(reports, "int8") == ("certified",) * 4
    drift = reports["int8"][1]["suite"]["drift"]
    assert (drift["beyond_noise"], drift["verdict_changed"], drift["same_model"]) == ([], [], False)


def test_permuted_heads_are_equivalent_by_function_only(reports):
    found = claims(reports, "permuted")
    assert verdicts(reports, "permuted")[:2] == ("certified", "certified"), "values do not depend on what heads are called"
    assert found["same-by-name"]["verdict"] != "certified" and found["same-by-name"]["estimate"] < -0.1
    matched = found["same-by-function"]
    assert (matched["verdict"], matched["details"]["entered"], matched["details"]["left"]) == ("certified", [], [])
    assert len(matched["details"]["became"]) >= 24, "no key-value group, of two heads each, stayed where it was"
    assert matched["details"]["mean_match_quality"] > 0.95
    assert any("not by name" in line for line in matched["details"]["notes"])
    assert "heads are defined up to a permutation" in found["same-by-name"]["details"]["notes"][-1]
    assert not any("up to a permutation" in line for line in matched["details"]["notes"])


def test_every_head_of_the_permuted_release_is_found_again(reports):
    """Against the permutation that was made; heads that were not moved are not named."""
    from models.damaged import damaged, permutation

    places = damaged("permuted")[2]
    names = [f"L{layer}H{head}" for layer, heads in enumerate(places["heads"]) for head in range(len(heads))]
    truth = {old: permutation.new_name(old, places) for old in names}
    became = claims(reports, "permuted")["same-by-function"]["details"]["became"]
    right = sum(became.get(old, old) == new for old, new in truth.items())
    assert right == len(truth), {old: (became.get(old, old), new) for old, new in truth.items() if became.get(old, old) != new}


def test_a_zeroed_head_breaks_accuracy_and_circuit_and_is_named(reports):
    printed = reports["zeroed-head"][0]
    found = claims(reports, "zeroed-head")
    assert verdicts(reports, "zeroed-head")[:2] == ("refuted", "refuted")
    assert found["same-by-name"]["estimate"] < -0.1 and found["same-by-name"]["verdict"] != "certified"
    recurs = found["recurs"]["baseline"]
    assert "L0H5" in recurs["circuits"]["shared_set"]["left"] and "L0H5" in recurs["circuits"]["shared_set"]["beyond_noise"]
    assert recurs["difference"]["beyond_noise"] and recurs["difference"]["how"] == "paired"
    assert "does-the-task::candidate::addition: accuracy 1.000 → 0.0" in printed and "certified → refuted" in printed
    assert "larger than noise (same examples)" in printed and "L0H5 (" in printed


def test_a_number_that_cannot_tell_does_not_hide_a_head_that_is_gone(reports):
    """A yes that became a no: an interval from 0 to 1 on the release leaves the difference within noise, and the head is gone for sure."""
    kept = claims(reports, "zeroed-head")["has-the-head"]["baseline"]
    assert (kept["then"]["estimate"], kept["difference"]["value"], kept["difference"]["beyond_noise"]) == (1.0, -1.0, False)
    assert kept["circuits"]["found"]["shares"]["L0H5"][1] == 0 and "L0H5" in kept["circuits"]["found"]["beyond_noise"]
    (line,) = [one for one in reports["zeroed-head"][0].splitlines() if "difference -1.000" in one]
    assert "within noise (from both intervals), but the circuit moved by more than noise: " in line
    assert "L0H5" in line and line.endswith(" left")


def test_fine_tuning_moved_the_circuit_of_addition_and_not_its_accuracy(reports):
    found = claims(reports, "fine-tuned")
    assert abs(found["as-accurate"]["estimate"]) < 0.05 and not found["does-the-task"]["baseline"]["difference"]["beyond_noise"]
    for claim in ("same-by-name", "same-by-function"):
        assert found[claim]["verdict"] != "certified" and found[claim]["estimate"] < -0.1
    moved = found["recurs"]["baseline"]["circuits"]["shared_set"]
    assert moved["entered"] and moved["left"] and set(moved["beyond_noise"]) & {*moved["left"]}


@pytest.mark.parametrize("name", ["zeroed-head", "permuted", "int8"])
def test_claims_about_drift_that_were_added_after_the_release_say_the_same(project, reports, name):
    """From the entries of the claims that they are about; what needs circuits of single examples says what to run on which checkpoint."""
    folder = project / "later"
    folder.mkdir(exist_ok=True)
    content = json.loads((project / "core.circuits.baseline.json").read_text(encoding="utf-8"))
    content["claims"] = {key: entry for key, entry in content["claims"].items() if entry["property"] != "drift"}
    (folder / "core.circuits.baseline.json").write_text(json.dumps(content), encoding="utf-8")
    report = run(project, f"--circuits-model=candidate={project / name}", "--circuits-baseline=later")[1]
    found = {one["claim"]: one for one in report["claims"]}
    own = claims(reports, name)
    for claim in ("as-accurate", "recurs-as-much"):
        assert all(found[claim][key] == own[claim][key] for key in ("estimate", "interval", "n", "verdict"))
        assert found[claim]["details"]["release"].startswith("baseline, the entry of '")
    for claim in ("same-by-name", "same-by-function"):
        assert "has no circuits of single examples" in found[claim]["reason"]
        assert "--circuits-model=candidate=RELEASE --circuits-update-baseline=new" in found[claim]["reason"]
