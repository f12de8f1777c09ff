"""The page on circuits of neurons: a small report by hand, the shipped report and page, and the published figures with their claims."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from docs.results import neuron_circuits as page
from docs.results import neuron_tables as tables
from docs.results.__main__ import FOLDER, render
from docs.results.claims import Report
from docs.results.markdown import MARKS
from tests.paths import ROOT

SPECS = sorted((ROOT / "specs" / "neuron_circuits").glob("*.circuits.yaml"))
MODELS = {"small": {"architecture": "llama", "parameters": 1112704, "layers": 4, "heads": 8, "neurons": 512, "dtype": "float32"}}


def claim(name: str, prop: str, estimate: float | None, task: str = "sva", **given) -> dict:
    """A claim record with what the page reads; `details`, `verdict`, `expect`, `interval`, `model` and `bound`, the rest parameters."""
    record = {
        "nodeid": f"x::{name}", "claim": name, "property": prop, "model": given.pop("model", "small"), "tasks": [task],
        "estimate": estimate, "verdict": given.pop("verdict", "invalid" if estimate is None else "certified"),
        "expect": given.pop("expect", "measured"), "passed": True, "reason": given.pop("reason", "why not: it is so"),
        "bound": given.pop("bound", {"at_least": 0.9}), "details": given.pop("details", {}),
    }  # fmt: skip
    record["interval"] = given.pop("interval", None if estimate is None else [estimate - 0.0625, estimate + 0.0625])
    return record | {"parameters": {"attribution": "relp", "attribution_options": {}, "ablation": "zero", **given}}


def curve_claim(neurons: int, estimate: float | None, **given) -> dict:
    """A claim of faithfulness."""
    details = {
        "universe": 2048, "accuracy_nothing": 0.8125, "completeness": 1 - (estimate or 0), "completeness_interval": [-0.25, 0.375],
        "attribution_passes": given.pop("passes", {"forwards": 2.0, "backwards": 1.0}),
    }  # fmt: skip
    known = {"site": "mlp_activation", "details": {} if estimate is None else details}
    return claim("faithful-over-size", "neuron_faithfulness", estimate, neurons=neurons, **known, **given)


def area_claim(prop: str, estimate: float, how: str, **given) -> dict:
    """A claim of CMD or CPR."""
    details = {"universe": 36, "lowest": 0.034, "grid": {"reachable": 0.965}, "chance": {"mean": 0.5625, "standard_deviation": 0.125}}
    return claim("components-by-cmd", prop, estimate, attribution=how, level="component", details=details, **given)


def report(*claims: dict) -> Report:
    return Report(claims, MODELS)


def row(text: str, *begins: str) -> list[str]:
    """The cells after these, of the only row that begins with them."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    (found,) = [cells for cells in rows if tuple(cells[: len(begins)]) == begins]
    return found[len(begins) :]


def test_faithfulness_stands_under_its_size_with_interval_and_verdict():
    made = report(
        curve_claim(200, 0.75, verdict="refuted"),
        curve_claim(25, 0.5, verdict="inconclusive"),
        curve_claim(50, None),
        curve_claim(50, 0.9375, attribution="ig_activations"),
    )
    text = tables.faithfulness(made)
    head = next(line for line in text.splitlines() if line.startswith("| model"))
    assert head.split("|")[-4:-1] == [" 25 ", " 50 ", " 200 "]
    assert row(text, "small", "RelP") == ["2048", "0.81", "0.50 [0.44, 0.56] ?", "— (why not)", "0.75 [0.69, 0.81] ✗"]
    assert row(text, "small", "integrated gradients") == ["2048", "0.81", "", "0.94 [0.88, 1.00] ✓", ""]
    assert "**sva, MLP activations**" in text


def test_unpaired_scores_and_other_ablations_stay_out_of_the_curves():
    made = report(
        curve_claim(25, 0.5), curve_claim(50, 0.25, ablation="mean"), curve_claim(100, 0.25, attribution_options={"unpaired": True})
    )
    assert row(tables.faithfulness(made), "small", "RelP") == ["2048", "0.81", "0.50 [0.44, 0.56] ✓"]


def test_completeness_comes_from_the_same_measurements():
    text = tables.completeness(report(curve_claim(25, 0.75)))
    assert row(text, "small", "RelP") == ["2048", "0.81", "0.25 [-0.25, 0.38]"]


def test_pairs_are_told_apart_by_baseline_and_ablation():
    made = [
        curve_claim(200, 0.5 + 0.125 * i + 0.25 * j, ablation=kind, attribution_options={"unpaired": baseline})
        for i, kind in enumerate(("zero", "counterfactual"))
        for j, baseline in enumerate((False, True))
    ]
    text = tables.pairs(report(*made))
    assert [c.split()[0] for c in row(text, "sva", "RelP")] == ["0.50", "0.62"]
    assert [c.split()[0] for c in row(text, "sva", "RelP, zero baseline")] == ["0.75", "0.88"]


def test_counts_are_whole_numbers_by_site_and_ablation():
    made = [
        claim("neurons", "neurons_to_reach", float(count), interval=[count - 3, count + 4], site=site, details={"universe": of})
        for site, count, of in (("mlp_activation", 26, 2048), ("mlp_output", 52, 512))
    ]
    text = tables.reach(report(*made))
    assert row(text, "small", "MLP activations", "2048", "RelP", "zero") == ["26 [23, 30] ✓"]
    assert row(text, "small", "MLP outputs", "512", "RelP", "zero") == ["52 [49, 56] ✓"]


def test_the_largest_possible_sparsity_is_all_outputs_over_the_activations_of_the_circuit():
    sides = {"mlp_activation": {"neurons": 26, "universe": 2048}, "mlp_output": {"neurons": 52, "universe": 512}, "ratio_of_shares": 8.0}
    text = tables.sparsity(report(claim("sparser", "sparsity_ratio", 2.0, details=sides, verdict="refuted")))
    assert row(text, "small", "sva", "RelP", "zero") == ["26 of 2048", "52 of 512", "2.00 [1.94, 2.06] ✗", "19.69", "8.00"]


def test_passes_are_compared_with_those_of_relp():
    slow = curve_claim(25, 0.5, attribution="ig_activations", passes={"forwards": 28.0, "backwards": 25.0})
    text = tables.cost(report(curve_claim(25, 0.5), slow))
    assert row(text, "small", "RelP")[:2] == ["2 + 1", "1 ×"]
    assert row(text, "small", "integrated gradients")[:2] == ["28 + 25", "17.7 ×"]


def test_areas_stand_beside_chance_and_what_the_grid_can_reach():
    text = tables.cmd(report(area_claim("cmd", 0.25, "eap"), area_claim("cmd", 0.3125, "relp"), area_claim("cmd", 0.5, "eap", task="ioi")))
    assert row(text, "EAP") == ["0.25 [0.19, 0.31] ✓", "0.50 [0.44, 0.56] ✓"]
    assert row(text, "RelP") == ["0.31 [0.25, 0.38] ✓", ""]
    assert row(text, "*random rankings*") == ["0.56 ± 0.12", "0.56 ± 0.12"]
    assert row(text, "*lowest possible*") == ["0.034", "0.034"]
    assert row(tables.cpr(report(area_claim("cpr", 0.75, "relp"))), "*1 at every size*") == ["0.965"]


def test_relp_is_ranked_among_the_methods_of_the_same_model_and_task():
    made = report(
        area_claim("cmd", 0.25, "eap"),
        area_claim("cmd", 0.3125, "relp"),
        area_claim("cmd", 0.5, "atp"),
        area_claim("cmd", 0.25, "relp", task="ioi"),
        area_claim("cmd", 0.5, "eap", task="ioi"),
        area_claim("cmd", 0.125, "relp", task="alone"),
    )
    assert row(tables.best(made), "small", "sva")[:3] == ["2 of 3", "0.31 [0.25, 0.38]", "EAP"]
    assert row(tables.best(made), "small", "ioi")[0] == "1 of 2"
    assert "alone" not in tables.best(made)
    assert page.headline(made, {"show": "rank"}) == ["small: best on 1 of 2 tasks, among up to 3 methods"]


def test_conservation_shows_the_largest_gap_of_any_task_at_each_boundary():
    made = [
        claim(
            "conserved", "conservation", max(errors), task=task, rules="relp", interval=[0.0, 2e-7],
            details={"boundaries": ["embeddings", "L0"], "errors": errors, "dtype": "float32"},
        )
        for task, errors in (("sva", [1e-7, 3e-8]), ("ioi", [2e-8, 5e-8]))
    ]  # fmt: skip
    text = tables.conservation(report(*made))
    assert row(text, "small", "relp", "float32") == ["1.00e-07", "5.00e-08"]
    assert row(text, "small", "relp", "1.00e-07 [0.00, 2.00e-07] ✓") == ["5.00e-08 [0.00, 2.00e-07] ✓"]


def steering_claim(factor: float, estimate: float, **given) -> dict:
    points = [{"factor": f, "accuracy": a, "answer": b, "foils": c, "watched": given.get("seen", b), "watched_control": 0.9375}
              for f, a, b, c in ((-4.0, 0.5, 0.25, 0.125), (1.0, 1.0, 0.875, 0.0625))]  # fmt: skip
    known = {"watch": "answer", "watch_task": None, "against": "intact", "neurons": 50, **{k: v for k, v in given.items() if k != "seen"}}
    details = {"curve": points, "cluster": {"size": 50, "per_layer": [20, 30]}}
    return claim("steering-the-answer", "steering", estimate, task="capitals", factor=factor, details=details, **known)


def test_steering_shows_the_curve_and_the_changes():
    text = tables.steering(report(steering_claim(-4.0, -0.625), steering_claim(-4.0, 0.25, watch_task="states", seen=0.6875)))
    assert "a cluster of 50 neurons (layer 0: 20, layer 1: 30)" in text
    assert row(text, "accuracy") == ["0.50", "1.00"]
    assert row(text, "the answer") == ["0.25", "0.88"]
    assert row(text, "other capitals") == ["0.12", "0.06"]
    assert row(text, "the state") == ["0.69", "0.69"]
    assert row(text, "the answer, a random cluster") == ["0.94", "0.94"]
    assert row(text, "small", "the answer", "50", "intact") == ["-0.62 [-0.69, -0.56] ✓"]


def test_the_whole_page_of_a_small_report_has_its_numbers_and_this_repositorys_claims():
    own = curve_claim(200, 0.4375, expect="refuted", verdict="refuted") | {"claim": "few-neurons-do-not-carry-capitals"}
    text = page.page(report(curve_claim(200, 0.9375), own))
    assert "1,112,704" in text and "| 4 | 36 | 2048 |" in text
    assert "small: 0.94 [0.88, 1.00] ✓" in text
    assert row(text, "few-neurons-do-not-carry-capitals") == [
        "small", "sva", "at least 0.9", "0.44 [0.38, 0.50]", "✗ refuted, as expected",
    ]  # fmt: skip


def test_lines_of_one_model_are_told_apart_by_what_differs():
    made = report(curve_claim(200, 0.5, ablation="zero"), curve_claim(200, 0.75, ablation="counterfactual"))
    assert page.headline(made, {"claim": "faithful-over-size"}) == [
        "small (zero ablation): 0.50 [0.44, 0.56] ✓", "small (counterfactual ablation): 0.75 [0.69, 0.81] ✓",
    ]  # fmt: skip


def test_the_stored_report_leaves_out_names_and_what_others_repeat_at_any_depth():
    side = {"neurons": 26, "strongest": ["L0N1"], "curve": [{"size": 1, "faithfulness": 0.5}]}
    ratio = claim("sparser", "sparsity_ratio", 2.0, details={"notes": ["x"], "mlp_output": side})
    reach = claim("neurons", "neurons_to_reach", 26.0, details=side)
    assert page.kept(ratio)["details"] == {"mlp_output": {"neurons": 26}}
    assert page.kept(reach)["details"] == {"neurons": 26, "curve": side["curve"]}
    assert {**page.kept(reach), "details": None} == {**reach, "details": None}


def test_rows_of_one_model_stand_together():
    made = report(*(curve_claim(25, 0.5, model=m, attribution=how) for how in ("relp", "atp") for m in ("b", "a")))
    lines = [line.split(" | ")[:2] for line in tables.faithfulness(made).splitlines() if line.startswith(("| a", "| b"))]
    assert lines == [["| b", "RelP"], ["| b", "attribution patching"], ["| a", "RelP"], ["| a", "attribution patching"]]


def test_lines_tell_paired_scores_from_unpaired_ones_and_chance_from_methods():
    made = report(*(curve_claim(200, 0.5, attribution_options={"unpaired": u}) for u in (False, True)), area_claim("cpr", 0.75, "relp"))
    assert page.headline(made, {"claim": "faithful-over-size"}) == [
        "small (RelP): 0.50 [0.44, 0.56] ✓", "small (RelP, zero baseline): 0.50 [0.44, 0.56] ✓",
    ]  # fmt: skip
    assert page.headline(made, {"property": "cpr", "show": "chance"}) == [
        "small: random rankings 0.56 ± 0.12, RelP 0.75 [0.69, 0.81] ✓",
    ]  # fmt: skip


def test_sections_say_the_bound_of_their_studies_where_they_show_verdicts():
    text = page.page(report(curve_claim(200, 0.9375)))
    assert "Verdicts are on this bound: at least 0.9 (`faithful-over-size`)." in text
    assert text.count("Verdicts are on this bound") == 1  # the section on cost is about the same claim, and shows none


def test_a_report_without_claims_makes_a_page_without_tables_of_ours():
    text = page.page(Report((), {}))
    assert "## Conservation of relevance" in text
    assert not any(mark in text.replace(page.LEGEND, "") for mark in MARKS.values() if mark not in "—?")


def test_a_model_that_could_not_be_opened_is_said_to():
    assert "could not be opened" in page.models(Report((), {"lost": {"architecture": None, "parameters": None}}))


SPEC_CLAIMS = {name: entry for path in SPECS for name, entry in yaml.safe_load(path.read_text(encoding="utf-8"))["claims"].items()}
FIGURES = {figure["title"]: figure for figure in page.published()["figures"]}


@pytest.mark.parametrize("title", FIGURES)
def test_every_published_figure_has_claims_in_the_specs_and_a_source(title):
    figure = FIGURES[title]
    assert figure["claims"] and set(figure["claims"]) <= set(SPEC_CLAIMS)
    assert figure["source"] in page.published()["sources"]
    assert figure["why"].strip() and figure["published"].strip()
    assert set(figure["tables"]) <= set(page.TABLES) and figure["tables"]


def test_every_claim_of_the_specs_belongs_to_a_figure():
    assert set(SPEC_CLAIMS) == {name for figure in FIGURES.values() for name in figure["claims"]}


def shipped() -> Report:
    return Report.read(FOLDER / "neuron_circuits.json")


def test_the_shipped_page_is_what_the_shipped_report_gives():
    assert (FOLDER / "neuron-circuits.md").read_text(encoding="utf-8") == render("neuron_circuits")


def test_the_shipped_report_is_of_these_specs_and_none_of_its_claims_failed():
    found = shipped()
    assert {c["claim"] for c in found.claims} == set(SPEC_CLAIMS)
    assert [c["nodeid"] for c in found.claims if not c["passed"] or c["verdict"] == "invalid"] == []
    assert (FOLDER / "neuron_circuits.json").stat().st_size < 1_500_000


def test_every_published_figure_stands_beside_a_number_of_ours():
    found = shipped()
    for figure in FIGURES.values():
        lines = page.headline(found, figure["headline"])
        assert lines and all(re.search(r": .*\d", line) for line in lines), figure["title"]
        assert any(c["estimate"] is not None for c in found.claims if c["claim"] in figure["claims"])


def test_no_table_of_the_shipped_page_has_rows_of_different_lengths():
    text = (FOLDER / "neuron-circuits.md").read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.strip().splitlines()}
        assert len(widths) == 1, block[:200]


def test_changing_a_number_of_the_stored_report_changes_the_page():
    content = json.loads((FOLDER / "neuron_circuits.json").read_text(encoding="utf-8"))
    for one in content["claims"]:
        if one["claim"] == "faithful-over-size" and one["parameters"]["neurons"] == 200:
            one["estimate"] = 7.25
    text = page.page(Report(tuple(content["claims"]), content["models"]))
    assert text.count("7.25 [") >= 4
    assert "7.25" not in (FOLDER / "neuron-circuits.md").read_text(encoding="utf-8")
