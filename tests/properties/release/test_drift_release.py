"""Which release a claim about drift is compared with, and what is written of it: never a mixture of two models."""

from __future__ import annotations

import shlex

import pytest

from pytest_circuits.baseline import files
from pytest_circuits.errors import Invalid
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.protocol import BaselineReference
from tests.fakes.scored import SCORED
from tests.fakes.torch_side import fake_model
from tests.fakes.two_models import baseline, drift, world

CORE = """
core:
  scored: {task: swap}
  at_least: 0.3
"""
DRIFT = "moved:\n  drift: {of: core, within: 0.15}"
INLINE = "moved:\n  drift: {of: {scored: {task: swap}}, within: 0.15}"
NEW, CHANGED, ALL = (f"--circuits-update-baseline={mode}" for mode in ("new", "changed", "all"))
OTHER = "--circuits-model=tiny=other"
KEYS = ("core::tiny::swap", "moved::tiny::swap")


@pytest.fixture
def released(box, register):
    """The release is measured on the claim alone; a claim about drift comes later, and another model."""
    register(PROPERTIES, "scored", SCORED)
    fake_model(box.path / "other", b"other weights")
    box.spec(CORE)
    box.run(NEW).assert_outcomes(passed=1)
    box.spec(CORE + DRIFT)
    return box


def held(box):
    return files.read(box.path / "s.circuits.baseline.json")


def weights(box):
    return {key: entry["fingerprints"]["weights"] for key, entry in held(box).items()}


def judged(box):
    return {key: box.claims["moved"][key] for key in ("estimate", "interval", "n", "verdict")}


def test_a_drift_claim_added_after_the_release_is_compared_with_the_entry_of_the_claim_it_is_about(released):
    released.run(OTHER).assert_outcomes(passed=1, failed=1)
    claim = released.claims["moved"]
    assert (claim["estimate"], claim["verdict"]) == (-0.25, "refuted")
    assert claim["details"]["paired"] and claim["details"]["groups_compared"] == 200
    assert claim["details"]["release"] == "baseline, the entry of 'core::tiny::swap'"
    assert not claim["details"]["compared_with_itself"]


def test_updating_with_new_on_another_model_does_not_make_it_the_release(released):
    before = held(released)
    result = released.run(OTHER, NEW)
    assert released.claims["moved"]["estimate"] == -0.25 and released.claims["moved"]["verdict"] == "refuted"
    assert held(released) == before, "the file holds one release"
    result.stdout.fnmatch_lines(
        [
            "baseline s.circuits.baseline.json: 0 written, 1 unchanged, 1 not written; the file did not change",
            "ERROR: baseline s.circuits.baseline.json: moved::tiny::swap not written: the entries of 'tiny' were measured on "
            "weights weights of m*, and this run measured weights of o*. Measure the release, "
            "with --circuits-model=tiny=RELEASE, or make this model the release*",
        ]
    )
    released.run(NEW).assert_outcomes(passed=2)
    assert set(weights(released)) == set(KEYS) and set(weights(released).values()) == {"weights of model"}
    released.run(OTHER)
    assert released.claims["moved"]["details"]["release"] == "baseline", "an entry of its own goes first"
    assert released.claims["moved"]["estimate"] == -0.25


def test_entries_of_another_model_alone_are_an_error_of_the_run_when_its_tests_pass(released):
    released.spec(CORE + "more:\n  scored: {task: swap, keeps: false}\n  at_least: 0.3")
    assert released.run(OTHER, NEW).ret == pytest.ExitCode.USAGE_ERROR
    assert list(weights(released)) == ["core::tiny::swap"]
    assert released.run(NEW).ret == 0


def test_without_an_entry_to_compare_with_the_command_and_the_checkpoint_are_named(released):
    released.spec(CORE + INLINE)
    for more in ((), (NEW,)):
        released.run(OTHER, *more)
        claim = released.claims["moved"]
        assert claim["verdict"] == "invalid", "not the release of itself"
        assert "(its entries are of weights weights of m, and this model has weights of o)" in claim["reason"]
        command = shlex.split(claim["reason"].rpartition(", with pytest ")[2])
        assert command == ["s.circuits.yaml::moved::tiny::swap", "--circuits-model=tiny=RELEASE", NEW]
    released.run(*(one.replace("RELEASE", "model") for one in command)).assert_outcomes(passed=1)
    assert set(weights(released)) == set(KEYS) and set(weights(released).values()) == {"weights of model"}
    released.run(OTHER)
    assert released.claims["moved"]["estimate"] == -0.25


def test_the_claim_in_of_may_have_several_tests_and_each_has_its_own_entry(released):
    released.spec(CORE.replace("swap", "[swap, other]") + DRIFT.replace("core,", "core, confidence: 0.9,"))
    released.run(NEW, "-k", "core")
    released.run(OTHER, "-k", "moved")
    found = {claim["nodeid"].rpartition("::")[2]: claim["details"]["release"] for claim in released.report["claims"]}
    assert found == {task: f"baseline, the entry of 'core::tiny::{task}'" for task in ("swap", "other")}


def test_an_entry_without_values_and_of_too_low_a_confidence_is_not_enough(released):
    released.spec((CORE + DRIFT).replace("task: swap", "task: swap, keeps: false"))
    released.run(ALL, "-k", "core")
    released.run(OTHER)
    reason = released.claims["moved"]["reason"]
    assert "has no per-example values on the same examples, and its interval has confidence 0.95 where 0.975 is needed" in reason
    assert "measure the release for this claim once, on its own checkpoint" in reason
    released.spec((CORE + DRIFT).replace("task: swap", "task: swap, keeps: false, confidence: 0.99"))
    released.run(ALL, "-k", "core")
    released.run(OTHER)
    assert released.claims["moved"]["estimate"] == -0.25 and not released.claims["moved"]["details"]["paired"]


def test_changed_and_all_make_the_new_model_the_release_after_it_was_judged_against_the_old_one(released):
    released.run(OTHER, CHANGED)
    assert released.claims["moved"]["estimate"] == -0.25
    assert set(weights(released).values()) == {"weights of other"}
    released.run(OTHER).assert_outcomes(passed=2)
    assert released.claims["moved"]["estimate"] == 0.0


@pytest.mark.parametrize("mode", [CHANGED, ALL])
def test_a_baseline_that_comes_to_hold_two_models_is_warned_of_when_written_and_ever_after(released, mode):
    released.run(NEW)
    message = (
        "WARNING: baseline s.circuits.baseline.json mixes weights of 'tiny': 1 of weights of m*, 1 of weights of o* "
        "(core::tiny::swap). Measure all of its claims on the release, with --circuits-update-baseline=all"
    ).replace("(", "[(]")
    released.run(OTHER, mode, "-k", "core").stdout.fnmatch_lines([message])
    released.run("-k", "moved").stdout.fnmatch_lines([message])
    assert "WARNING" not in released.run(ALL).stdout.str()
    assert "WARNING" not in released.run().stdout.str()


@pytest.mark.parametrize(("margin", "verdict"), [(0.15, "certified"), (0.001, "inconclusive")])
@pytest.mark.parametrize("keeps", ["true", "false"])
def test_the_run_that_writes_a_baseline_and_an_identical_rerun_agree(released, margin, verdict, keeps):
    """Whatever comes of it: that nothing moved can be certified only where there are examples enough."""
    (released.path / "s.circuits.baseline.json").unlink()
    verdict = "inconclusive" if keeps == "false" else verdict
    released.spec((CORE + DRIFT).replace("0.15", str(margin)).replace("task: swap", f"task: swap, keeps: {keeps}"))
    released.run(NEW)
    first, details = judged(released), released.claims["moved"]["details"]
    assert details["compared_with_itself"] and "since this run writes its baseline (there is no baseline" in details["notes"][-1]
    assert "measure the release" not in details["notes"][-1], "which this run does"
    assert first["verdict"] == verdict
    assert first["interval"][0] < first["estimate"] == 0.0 < first["interval"][1]
    for more in ((), ("--circuits-no-cache",), (NEW,)):
        released.run(*more)
        assert judged(released) == first
        assert not released.claims["moved"]["details"]["compared_with_itself"]


def test_a_run_that_writes_what_is_missing_does_not_ask_for_it_to_be_written(released):
    hint = "1 claim is not in the baseline; --circuits-update-baseline=new adds it"
    released.run().stdout.fnmatch_lines([hint])
    result = released.run(NEW)
    result.stdout.no_fnmatch_line(hint)
    result.stdout.fnmatch_lines(["1 claim was not in the baseline before this run", "baseline *: 1 written, 1 unchanged"])


REUSE = {"reuse": {"task": "t", "p": 0.8, "size": 3}}
SIZE = {"shared_size": {"task": "t", "p": 0.8, "size": 3}}


@pytest.mark.parametrize(
    "how",
    [{}, {"of": SIZE}, {"overlap": "jaccard"}, {"overlap": "jaccard", "match": "function"}],
    ids=["values", "intervals", "circuits by name", "circuits by function"],
)
def test_comparing_with_itself_is_comparing_with_what_would_be_read_back(how):
    fresh = drift(world(), BaselineReference(None, "no baseline", writes=True), **how)
    again = drift(world(), baseline(world(), **how), **how)
    assert (fresh.value, fresh.interval, fresh.n, fresh.kind, fresh.unsettled) == (
        again.value, again.interval, again.n, again.kind, again.unsettled
    )  # fmt: skip
    assert fresh.value == 0 and fresh.payload == again.payload


def lent(made, **changes):
    """The entry of the claim in `of`, from that of a claim about drift."""
    kept = dict(made.entry["kept"]["of"])
    numbers = {key: kept.pop(key) for key in ("estimate", "interval", "n")}
    about = {"circuits": kept.pop("sets"), "fingerprints": {"data": made.entry["kept"]["data"]}}
    parameters = {"p": 0.8, "size": 3, "confidence": kept.pop("confidence")}
    kept.pop("unsettled")
    entry = {"property": "reuse", "parameters": parameters, "kept": kept, **numbers, **about, **changes}
    return BaselineReference(
        None, command="pytest again", related_entry=entry, related_claim="'core'", weights=("old",), release_command="pytest there"
    )


def test_an_entry_lent_compares_as_the_claims_own_does():
    now, then = world(("L0H1", "L1H0")), world(("L0H1", "L1MLP"))
    own, found = drift(now, baseline(then)), drift(now, lent(baseline(then)))
    assert (found.value, found.interval, found.n) == (own.value, own.interval, own.n)
    assert found.details["sets"] == own.details["sets"]
    assert "(baseline, the entry of 'core')" in found.details["notes"][0]


@pytest.mark.parametrize(
    ("changes", "how", "message"),
    [
        ({"parameters": {"p": 0.9, "confidence": 0.95}}, {}, "the entry of 'core' is of another claim: p was 0.9 and is 0.8"),
        ({"property": "accuracy"}, {}, "accuracy then, reuse now"),
        ({}, {"overlap": "jaccard"}, "the entry of 'core' has no circuits of single examples, which an overlap needs"),
        ({"fingerprints": {"data": {"t": "another"}}}, {}, "the encoded prompts of task 't' are not those of the release"),
    ],
)
def test_an_entry_that_does_not_hold_what_drift_needs_is_refused_with_what_to_run_where(changes, how, message):
    against = lent(baseline(world()), **changes)
    with pytest.raises(Invalid) as caught:
        drift(world(), against, **how)
    assert message in str(caught.value)
    assert str(caught.value).endswith(
        "on its own checkpoint (its entries are of weights old, and this model has weights), with pytest there"
    )


def test_an_estimate_edited_by_hand_is_no_release():
    against = lent(baseline(world()), estimate=0.61)
    with pytest.raises(
        Invalid, match=r"the baseline's entry of 'core' contradicts itself: it says 0\.61, and the values .* have mean 0\.\d+"
    ):
        drift(world(), against)
    own = baseline(world())
    own.entry["kept"]["of"]["estimate"] += 0.01
    with pytest.raises(Invalid, match=r"the baseline's entry contradicts itself: .* Was the file edited\?"):
        drift(world(), own)
