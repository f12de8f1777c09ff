"""The results page of the gradient–causal gap: made from its stored report and the published figures, and of nothing else."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from docs.results import gradient_causal as paper
from docs.results import gradient_seeds as seeds
from docs.results.__main__ import FOLDER, render
from docs.results.claims import Report
from tests.paths import ROOT

SPECS = sorted((ROOT / "specs/gradient_causal").glob("*.circuits.yaml"))


def claim(name, prop, model, estimate, details=None, task="sorting", expect="measured", **parameters):
    """A claim record as reports have it, its interval a tenth around the estimate."""
    return {
        "nodeid": f"{name}::{model}::{sorted(parameters.items())}", "claim": name, "property": prop, "model": model, "tasks": [task],
        "parameters": {"task": task, **parameters}, "estimate": estimate,
        "interval": None if estimate is None else [estimate - 0.1, estimate + 0.1], "n": 9, "bound": {"at_most": 0.27},
        "verdict": "invalid" if estimate is None else "refuted", "reason": "below the gate: so it is", "passed": estimate is not None,
        "expect": expect, "description": "what it says", "details": details or {}, "cost": {},
    }  # fmt: skip


def agreement(seed, estimate, **other):
    """ρ of a sorting seed, with what the page reads from its details."""
    details = {
        "accuracy": 0.625,
        "noise_ceiling": {"largest": 0.875},
        "share_at_floor_or_ceiling": 0.35,
        "layer_profile": {"gradient": [3.0, 1.0], "causal": [1.0, 4.0]},
    }
    given = {"gradient": "weight_gradient", "ablation": "mean", "effect": "loss", "gradient_options": seeds.options()} | other
    return claim("sorting", "gradient_ablation_agreement", f"sort@seed-{seed:02}", estimate, details, **given)


def shown(*claims):
    """The page of these claims."""
    return paper.page(Report(claims, {}))


def row(text, *start):
    """The cells of the only table row that starts with these."""
    head = "| " + " | ".join(start) + " |"
    (found,) = [line for line in text.splitlines() if line.startswith(head)]
    return [one.strip() for one in found.strip("|").split("|")]


def test_seeds_are_summed_up_by_mean_students_interval_and_range():
    """0.2, 0.4, 0.6: mean 0.4, deviation 0.2, and 4.303 · 0.2 / √3 = 0.50 on two degrees of freedom."""
    assert seeds.over_seeds([0.2, 0.4, 0.6]) == "0.40 ± 0.50 (0.20 to 0.60, 3 seeds)"
    assert seeds.over_seeds([0.2, None, 0.4, 0.6]) == "0.40 ± 0.50 (0.20 to 0.60, 3 seeds), 1 of 4 invalid"
    assert seeds.over_seeds([0.25]) == "0.25"
    assert seeds.over_seeds([None]) == "— (invalid)"
    assert seeds.over_seeds([]) == ""


def test_agreement_stands_by_seed_and_in_the_mean_heads_before_the_hook():
    """Each number in the column of its ablation and normalisation."""
    text = shown(
        *(agreement(i, v) for i, v in enumerate((0.2, 0.4, 0.6))),
        *(agreement(i, v, ablation="residual_slice") for i, v in enumerate((-0.1, 0.1, 0.3))),
        agreement(0, 0.77, gradient_options=seeds.options("none")),
    )
    assert row(text, "sorting", "loss", "√parameters")[3:] == [
        "0.40 ± 0.50 (0.20 to 0.60, 3 seeds)",
        "",
        "0.10 ± 0.50 (-0.10 to 0.30, 3 seeds)",
    ]
    assert row(text, "sorting", "loss", "none")[3:] == ["0.77", "", ""]
    first, second = row(text, "seed-00"), row(text, "seed-01")
    assert first[1:] == ["0.62", "0.20 [0.10, 0.30]", "0.77 [0.67, 0.87]", "", "", "-0.10 [-0.20, 0.00]", ""]
    assert second[2:4] == ["0.40 [0.30, 0.50]", ""]
    assert "| sorting | 0.88 ± 0.00 (0.88 to 0.88, 3 seeds) |" in text, "noise ceiling"
    assert "| sorting | 0.35 ± 0.00 (0.35 to 0.35, 3 seeds) |" in text, "ties by accuracy"


def test_two_claims_on_the_same_number_count_once():
    """A claim with another bound on the same measurement narrows no interval."""
    again = [{**agreement(i, v), "claim": "mine"} for i, v in enumerate((0.2, 0.4, 0.6))]
    text = shown(*(agreement(i, v) for i, v in enumerate((0.2, 0.4, 0.6))), *again)
    assert row(text, "sorting", "loss", "√parameters")[3] == "0.40 ± 0.50 (0.20 to 0.60, 3 seeds)"


def test_seeds_that_agree_are_told_by_ablation_and_normalisation():
    """And who has a role, with its probability."""
    told = {"counts": {"L3H3": 7, "L0H0": 0}, "chance_of_as_many": {"L3H3": 0.004, "L0H0": 1.0}, "expected_models": 2.625}
    roles = {"models": 10, "heroes": told, "bloats": told}
    how = {"ranking": "gap", "ablation": "mean"}
    text = shown(
        claim("a", "role_stability", "sort", 0.5, {"roles": roles}, gradient_options=seeds.options(), **how),
        claim("b", "role_stability", "sort", 0.75, gradient_options=seeds.options("none"), **how),
    )
    assert row(text, "sorting", "heads; √parameters")[2:] == ["", "0.50 [0.40, 0.60]", ""]
    assert row(text, "sorting", "heads; none")[2:] == ["", "0.75 [0.65, 0.85]", ""]
    assert row(text, "sorting", "heroes", "heads; √parameters")[3:] == ["L3H3 7 (p < 0.01)", "2.62", "10"]


def test_layers_are_shares_of_their_sum():
    """3 of 4 and 1 of 4; 1 of 5 and 4 of 5."""
    text = shown(agreement(0, 0.2))
    assert row(text, "sorting", "G")[2:] == ["75%", "25%"]
    assert row(text, "sorting", "C, heads")[2:] == ["20%", "80%"]


def test_roles_stand_beside_chance():
    """By the published rule with its probability, by the sound one with both ends; where they sit."""
    many = {"expected_by_chance": 5.25, "layer_profile": {"gradient": [1, 1], "causal": [1, 1]}}
    how = {"rule": "rank_gap", "effect": "loss", "ablation": "mean", "gradient_options": seeds.options()}
    text = shown(
        *(claim("h", "hidden_heroes", f"sort@seed-{i:02}", 4.0 + i, many | {"chance_of_as_many": p, "heroes": ["L1H3", *others]}, **how)
          for i, (p, others) in enumerate(((0.8, ["L0MLP", "L1H0"]), (0.01, [])))),
        claim("c", "hidden_heroes", "sort@seed-00", 1.0, {"heroes": ["L1H3"]}, rule="certified", effect="loss", ablation="mean"),
    )  # fmt: skip
    counts, members = [line for line in text.splitlines() if line.startswith("| sorting | heroes | loss |")]
    assert "| 4.50 ± " in counts and counts.endswith("| 5.25 | 1 of 2 / 0 of 0 |")
    assert "| 1 of 4 | L1H3 2, L0MLP 1, L1H0 1 |" in members
    assert row(text, "sorting", "heroes", "0.90")[3:] == ["1.10", "L1H3 1"]
    assert row(text, "sorting", "heroes", "heads; √parameters")[3:] == ["0.50", "1.50"]


def test_joint_drops_stand_beside_single_ones_with_doubtful_ratios_marked():
    """Together, in sum, in the mean, the difference, and the published ratio."""
    details = {
        "set": {"units": ["L0H1", "L0H2"]}, "joint": {"loss": 5.0, "accuracy": 0.5}, "sum_of_singles": {"loss": 3.0, "accuracy": 0.2},
        "mean_single": [1.5, -0.5, 3.5], "joint_over_mean_single": 3.25, "ratio_warning": "not clearly above 0",
    }  # fmt: skip
    text = shown(claim("s", "superadditivity", "sort@seed-04", 2.0, details, set="bloats", effect="loss", against="sum", ablation="mean"))
    found = row(text, "sorting", "bloats", "seed-04")
    assert found[3:] == ["L0H1, L0H2", "5.00", "3.00", "1.50", "2.00 [1.90, 2.10] ✗", "3.25 (denominator not clearly above 0)"]


def against_random():
    """Details of a joint ablation with a control."""
    return {
        "set": {"units": ["L0MLP"]},
        "drop": 0.75,
        "control": {"rule": "c3_any", "mean_drop": 0.35, "rank_p": 0.02, "sets": [["L1MLP"]]},
    }


def test_removed_sets_stand_beside_random_ones():
    """What each loses, and the difference."""
    text = shown(claim("r", "joint_ablation", "sort@seed-00", 0.4, against_random(), task="sorting-few", set="heroes", control="c3_any"))
    assert row(text, "sorting", "heroes", "seed-00")[3:] == ["L0MLP", "0.75", "0.35", "0.40 [0.30, 0.50] ✗"]


def test_sets_are_summed_up_over_seeds_with_those_without_one_counted():
    """Joint, single and the differences, each from its own claims."""
    how = {"set": "bloats", "ablation": "mean", "effect": "accuracy"}
    text = shown(
        claim("j", "joint_ablation", "sort@seed-00", 0.75, {"set": {"size": 3}}, control="none", **how),
        claim("j", "joint_ablation", "sort@seed-01", None, control="none", **how),
        claim("m", "superadditivity", "sort@seed-00", 0.6, {"mean_single": [0.15, 0.1, 0.2]}, against="mean", **how),
        claim("i", "superadditivity", "sort@seed-00", 0.33, against="independence", **how),
    )
    assert row(text, "sorting", "bloats", "heads")[3:] == [
        "3, 1 of 2 invalid", "0.75, 1 of 2 invalid", "0.15", "0.60", "", "0.33",
    ]  # fmt: skip


def test_own_claims_are_listed_with_what_was_expected_and_studies_are_not():
    """Passed ones over all of the claim."""
    text = shown(claim("mine", "reuse", "a", 0.3, expect="refuted"), claim("mine", "reuse", "b", None, expect="refuted"), agreement(0, 0.2))
    assert row(text, "mine")[1:] == ["what it says", "at most 0.27", "refuted", "0.30, 1 of 2 invalid", "1 of 2"]


def test_an_empty_report_gives_a_page_without_tables():
    """And without headings for what is not there."""
    assert "|---|" not in shown() and "## Seed by seed" not in shown()


def test_what_is_stored_gives_the_same_page():
    """Details that the page does not show are left out, and so is where claims stand; the page does not change."""
    claims = [
        agreement(0, 0.2),
        claim("r", "joint_ablation", "sort@seed-00", 0.4, against_random(), task="sorting-few", set="heroes", control="c3_any"),
        claim(
            "h",
            "hidden_heroes",
            "sort@seed-00",
            4.0,
            {"heroes": ["L1H3"], "secret": 1},
            rule="rank_gap",
            effect="loss",
            ablation="mean",
            gradient_options=seeds.options(),
        ),
    ]
    stored = [paper.kept({**one, "file": "a.circuits.yaml"}) for one in claims]
    assert "file" not in stored[0] and "sets" not in stored[1]["details"]["control"]
    assert "secret" not in stored[2]["details"] and stored[2]["details"]["heroes"] == ["L1H3"]
    assert shown(*stored) == shown(*claims)


def test_the_shipped_page_is_what_its_stored_report_gives():
    """`python -m docs.results` would change nothing."""
    assert (FOLDER / "gradient-causal.md").read_text(encoding="utf-8") == render("gradient_causal")


@pytest.fixture(scope="module")
def stored():
    """The report beside the page."""
    return Report.read(FOLDER / "gradient_causal.json")


def test_every_published_figure_is_answered_by_claims_on_heads_and_with_the_hook(stored):
    """Each with a number, and all of them in the specs as they are."""
    names = {name for path in SPECS for name in yaml.safe_load(path.read_text(encoding="utf-8"))["claims"]}
    for figure in paper.published()["figures"]:
        for hook in seeds.HOOKS:
            found = list(stored.select(**figure["claims"], ablation=hook))
            assert found and {one["claim"] for one in found} <= names, figure["figure"]
            assert re.match(r"-?\d", paper.answer(stored, figure, hook)), figure["figure"]
        assert figure["published"] and figure["why"] and figure["source"]


def test_the_stored_report_has_ten_seeds_of_each_task_and_no_surprise(stored):
    """Every claim went as its spec expects, and both tasks have ten models at the full n."""
    assert [one["nodeid"] for one in stored.claims if not one["passed"]] == []
    for task in seeds.TASKS:
        found = seeds.rho(stored, task, effect="loss", ablation="mean", gradient_options=seeds.options())
        assert len({one["model"] for one in found}) == 10 and {one["n"] for one in found} == {1000}
    assert len(json.dumps(stored.claims)) < 3_000_000


def test_numbers_of_the_page_are_in_no_other_file_by_hand():
    """The published figures file has no intervals, and no number of ours can hide in a sentence as ± or brackets."""
    text = paper.PUBLISHED.read_text(encoding="utf-8")
    assert "[0." not in text and "[-0." not in text
