"""Error rates, small: simulated studies with the truth at the bound, untrained models, planted circuits. `make calibrate` is large."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.calibration import simulate
from benchmarks.calibration.page import page
from benchmarks.calibration.populations import Answers, Circuits, circuit_scores, controls
from benchmarks.calibration.scenarios import scenarios
from benchmarks.calibration.simulate import TAIL, Tally, run, verdicts
from pytest_circuits.core.verdict import Estimate
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.stats.binomial import binomial_lower
from tests.paths import ROOT

pytestmark = pytest.mark.extensive

PAGE = ROOT / "docs" / "explanation" / "calibration.md"
ALL = {one.name: one for one in scenarios()}
STUDIES = 24
SURE = 0.9999  # of some hundred rates none is expected to look too high by chance: 6 of 24 would have to miss on one side


@pytest.mark.parametrize("name", ALL)
def test_false_verdicts_are_no_more_frequent_than_nominal(name):
    """At the smallest n, on either side, beyond Monte-Carlo error; what is known to fall short says so where users read it."""
    scenario = ALL[name]
    if scenario.known:
        assert "overage" in inspect.getdoc(PROPERTIES.get(scenario.property).parameters)
        return
    tally = run(scenario, scenario.sizes[0], max(8, round(STUDIES / scenario.cost)))
    assert tally.judged >= tally.studies / 2, tally.reasons
    for misses in (tally.low_above, tally.high_below):
        assert binomial_lower(misses, tally.judged, SURE) <= TAIL, tally


def test_every_property_with_an_interval_of_its_own_is_simulated():
    """Drift's are those of its claim, or bootstraps of the same overlaps; a search's is that of independent draws, exact."""
    assert {one.property for one in ALL.values()} == set(PROPERTIES.builtin) - {"drift", "for_all"}


def test_a_verdict_is_false_on_the_side_on_which_the_interval_misses_the_truth():
    found = Estimate(0.3, (0.2, 0.4), 10)
    assert [verdicts(found, truth) for truth in (0.1, 0.2, 0.3, 0.4, 0.5)] == [
        (True, False), (False, False), (False, False), (False, False), (False, True)
    ]  # fmt: skip
    assert verdicts(replace(found, unsettled="few"), 0.1) == (False, False)
    assert verdicts(Estimate(0.0, (0.0, 0.0), 10), 0.0) == (False, False)  # no width, and right


def test_intervals_that_are_too_short_are_noticed(monkeypatch):
    """A quarter of the right width."""
    ask = simulate.ask

    def short(scenario, study, number):
        found = ask(scenario, study, number)
        low, high = (found.value + (end - found.value) / 4 for end in found.interval)
        return replace(found, interval=(low, high))

    monkeypatch.setattr(simulate, "ask", short)
    scenario = ALL["accuracy: independent prompts, 0.8 right"]
    assert run(scenario, 128, 60).exceeds


def test_intervals_about_another_number_are_noticed():
    scenario = ALL["necessity: damage spread over components"]
    shifted = replace(scenario, truth=lambda study, found: scenario.truth(study, found) - 0.25)
    tally = run(shifted, 128, 20)
    assert tally.exceeds and tally.low_above > 10 and tally.high_below == 0


def test_power_grows_with_n():
    scenario = ALL["necessity: damage spread over components"]
    few, many = run(scenario, 32, 20), run(scenario, 256, 20)
    assert few.rate(few.powerful) < 0.3 < 0.8 < many.rate(many.powerful)


def test_populations_are_what_they_say():
    rng = np.random.default_rng(0)
    population = Circuits({"eap": circuit_scores(rng, {1: 0.97, 6: 0.79})}, 4)
    frequency = population.members["eap"].mean(0)
    assert frequency[[1, 6]] == pytest.approx([0.97, 0.79], abs=1e-9) and (population.members["eap"].sum(1) == 4).all()
    assert np.flatnonzero(population.shared(0.8)).tolist() == [1]
    answers = Answers.make(rng, [0.5, 0.3, 0.2], 0.0, 2.0, able=1.0)
    assert answers.accuracy(1.0) == pytest.approx(0.5, abs=1e-4) and answers.without((0,)) == pytest.approx(0.25, abs=1e-4)
    assert len(controls((0, 4))) == 15 * 3  # one head of the 15 others, one MLP of the 3 others


@pytest.mark.parametrize("gate", [True, False])
def test_claims_about_behaviour_are_not_certified_of_untrained_models(gate):
    """With the gate all are refused; without it none of a few is certified."""
    from benchmarks.calibration.real import ABOUT_BEHAVIOUR, CORE, NO_GATE, Opened, random_task, untrained

    for seed in (0, 1) if gate else (1,):
        opened = Opened(untrained(seed), {"t": random_task(48, seed)})
        for name in CORE if gate else ABOUT_BEHAVIOUR:
            parameters, bound = CORE[name]
            kind, reason = opened.verdict(name, parameters if gate else {**parameters, **NO_GATE}, bound)
            assert kind != "certified" and (not gate or kind == "invalid"), (name, reason)


def test_shuffled_answers_are_those_of_other_prompts():
    from benchmarks.calibration.real import random_task, shuffled

    task = random_task(40, 0)
    dealt = shuffled(task, 1)
    assert [p.clean for p in dealt] == [p.clean for p in task] and sorted(p.answer for p in dealt) == sorted(p.answer for p in task)
    assert sum(a.answer == b.answer for a, b in zip(task, dealt, strict=True)) < 10


def test_true_claims_about_a_planted_circuit_are_certified_from_some_n_on():
    from benchmarks.calibration.real import Opened, variants
    from models.planted import plant
    from pytest_circuits import open_model
    from pytest_circuits.core.verdict import Bound

    case = plant("copy_head")
    subject = open_model(case.model, case.tokenizer)
    found = {}
    for n in (16, 32):
        prompts = variants(case.task, n, 0)
        assert len({pair.clean for pair in prompts}) == n
        found[n] = Opened(subject, {"t": prompts}).verdict("necessity", {"task": "t", "size": 1}, Bound(at_least=0.2))[0]
    assert found == {16: "inconclusive", 32: "certified"}


def measured():
    """What the command hands to the page, made up."""
    good = Tally("reuse", "clear | sets", 32, 100, low_above=2, high_below=1, powerful=80, width=20.0, truth=50.0, gap=0.2, kind="betting")
    bad = Tally("jaccard", "close sets", 64, 100, invalid=10, high_below=20, width=50.0, truth=60.0, reasons={"too few": 10})
    power = {"models": "copy_head", "claim": "necessity at least 0.2", "studies": 10}
    null = {"models": "untrained", "claim": "necessity at least 0.2", "n": 64, "studies": 40, "reason": "no behaviour", "error": True}
    return {
        "studies": 100, "models": 40, "repeats": 10, "confidence": 0.95, "tail": TAIL, "sure": 0.999, "seconds": 12, "machine": "",
        "simulated": [good.as_dict(), bad.as_dict()],
        "null": [{**null, "gate": True, "certified": 0, "invalid": 40, "interval": (0, 0.09)},
                 {**null, "gate": False, "certified": 1, "invalid": 0, "interval": (0.0, 0.13)}],
        "planted": [{**power, "n": 16, "certified": 0}, {**power, "n": 32, "certified": 10}],
    }  # fmt: skip


def test_the_page_shows_what_was_measured():
    text = page(measured())
    assert "| reuse | clear \\| sets | 32 | 100 | 2.0% | 1.0% | 97.0% ± " in text and "| 0.2 | 80% (0.2) |" in text
    assert "| jaccard | close sets | 64 | 90 | 0.0% | 22.2% ▲ | 77.8% ± " in text
    assert (
        "1 are above the nominal 2.5%" in text
        and "n = 64: coverage 77.8% (missing in" in text
        and "close sets, n 64: 10 of 100 (too few)" in text
    )
    assert "| untrained | necessity at least 0.2 | 64 | 40 | 0 | 1 (0%–13%) |" in text
    assert "| copy_head | necessity at least 0.2 | 0/10 | 10/10 |" in text


def test_the_stored_page_is_about_these_scenarios():
    """If this fails: `make calibrate`."""
    text = PAGE.read_text(encoding="utf-8")
    for scenario in ALL.values():
        for n in scenario.sizes:
            assert f"| {scenario.property} | {scenario.population} | {n} |" in text, scenario.name
