"""Sequential sampling: more examples until a claim is settled, the error spent over the looks."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from pytest_circuits.claims import sequential as looks
from pytest_circuits.claims.evaluation import evaluate_claim, measure
from pytest_circuits.core.claim import Claim
from pytest_circuits.core.results import Encoded
from pytest_circuits.core.sources import TaskSource
from pytest_circuits.core.verdict import Bound, Estimate
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.requests import Encode
from pytest_circuits.measurement.store import Store
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import Parameters
from pytest_circuits.properties.protocol import Property
from pytest_circuits.report.messages.verdicts import reason
from pytest_circuits.stats.betting import betting_interval
from tests.fakes.executor import FakeSubject, Opener

IOI = TaskSource.make("ioi", "builtin", "ioi", {"n": 16})
DATA: dict[str, Any] = {}  # what the property "drawn" finds: a value for each prompt


class Drawn(Parameters):
    """The mean of the first n values of `DATA`, with a normal interval of known variance, or a betting one."""

    betting: bool = False
    invalid_at: int = 0


def _judge(claim: Any) -> Any:
    p = claim.parameters
    encoded = yield Encode(claim.model, claim.tasks["ioi"])
    if encoded.n == p.invalid_at:
        raise Invalid("nothing there", {"n": encoded.n})
    x = DATA["values"][: encoded.n]
    if p.betting:
        return Estimate(float(x.mean()), betting_interval(x, p.confidence), len(x), p.confidence, "betting")
    half = NormalDist().inv_cdf((1 + p.confidence) / 2) / len(x) ** 0.5
    return Estimate(float(x.mean()), (float(x.mean() - half), float(x.mean() + half)), len(x), p.confidence, "normal")


class Subject(FakeSubject):
    def encode(self, task):
        self._called("encode", len(task))
        return Encoded(len(task), tuple(str(pair.group) for pair in task), task.fingerprint)


@pytest.fixture
def executor(tmp_path):
    made = Executor(Store(tmp_path / "cache"), opener=Opener(Subject))
    made.opener = made.models._opener
    return made


@pytest.fixture
def question(model, register):
    def make(grows=True, tasks=None, **parameters):
        register(PROPERTIES, "drawn", Property("drawn", Drawn, _judge, grows=grows))
        return Claim("drawn", Drawn(**parameters), model, tasks or {"ioi": IOI})

    return make


def test_examples_are_doubled_up_to_the_most():
    assert looks.look_sizes(16, 128) == [16, 32, 64, 128]
    assert looks.look_sizes(100, 450) == [100, 200, 400, 450]
    assert looks.look_sizes(100, 100) == looks.look_sizes(100, 7) == [100]


def test_tasks_grow_side_by_side_and_stop_at_the_most(question):
    other = TaskSource.make("boolean", "builtin", "boolean", {"n": 60})
    large = TaskSource.make("sva", "builtin", "sva", {"n": 500})
    asked = question(max_n=100, tasks={"ioi": IOI, "boolean": other, "sva": large})
    prop = looks.property_of(asked)
    planned = looks.tasks_of_looks(prop, asked.parameters, asked.tasks)
    assert [[one[name].grown for name in asked.tasks] for one in planned] == [
        [(), (), ()], [(32,), (100,), ()], [(32, 64), (100,), ()], [(32, 64, 100), (100,), ()],
    ]  # fmt: skip
    assert looks.confidence_per_look(0.9, 4) == pytest.approx(0.975)
    assert looks.confidence_per_look(0.9, 1) == 0.9


def test_without_max_n_there_is_one_look_and_nothing_is_told_of_it(executor, question):
    DATA["values"] = np.full(500, 0.5)
    made = evaluate_claim(executor, question().with_bound(Bound(at_least=0.4)))
    assert (made.verdict.kind, made.looks, made.planned, made.estimate.n, made.warnings) == ("inconclusive", (), 1, 16, ())
    assert made.estimate.kind == "normal"


def test_a_claim_is_looked_at_until_it_is_settled(executor, question):
    """Half widths of 1/√n with 98.75% normal quantile 2.498: .62, .44, .31, .22, so 0.3 above the bound is settled at the fourth."""
    DATA["values"] = np.full(500, 0.7)
    made = evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=0.4)))
    assert (made.verdict.kind, made.planned, made.estimate.n) == ("certified", 4, 128)
    assert [(one["prompts"], one["n"]) for one in made.looks] == [({"ioi": n}, n) for n in (16, 32, 64, 128)]
    assert [one["estimate"] for one in made.looks] == pytest.approx([0.7] * 4)
    for one in made.looks:
        half = NormalDist().inv_cdf(1 - 0.0125 / 2) / one["n"] ** 0.5
        assert one["interval"] == pytest.approx([0.7 - half, 0.7 + half])
    assert made.estimate.interval == tuple(made.looks[-1]["interval"])
    assert made.estimate.confidence == 0.95 and "95% interval" in reason(made.verdict)
    assert made.estimate.kind == "normal; for 4 looks, 0.9875 at each"
    early = evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=0.05)))
    assert (early.verdict.kind, early.estimate.n, len(early.looks)) == ("certified", 16, 1)
    open_ = evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=0.69)))
    assert (open_.verdict.kind, open_.estimate.n, len(open_.looks)) == ("inconclusive", 128, 4)


def test_how_strongly_it_is_refuted_counts_all_planned_looks(executor, question):
    DATA["values"] = np.full(500, 0.7)
    made = evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=1.1)))
    assert (made.verdict.kind, made.estimate.n) == ("refuted", 64)
    p = 4 * 2 * NormalDist().cdf(-0.4 * 8)  # four looks, two sides: .0055
    assert 0.005 < p < 0.01 and made.refuted_at == 0.01


def test_examples_are_measured_once_whichever_look_needs_them(executor, question):
    DATA["values"] = np.full(500, 0.7)
    evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=0.69)))
    evaluate_claim(executor, question(max_n=64).with_bound(Bound(at_least=0.69)))
    assert sorted(call[1] for call in executor.opener.calls if call[0] == "encode") == [16, 32, 64, 128]


def test_a_look_that_is_invalid_ends_it_and_says_which(executor, question):
    DATA["values"] = np.full(500, 0.7)
    made = evaluate_claim(executor, question(max_n=128, invalid_at=32).with_bound(Bound(at_least=0.69)))
    assert made.verdict.kind == "invalid"
    assert reason(made.verdict) == "at look 2 of 4 (32 prompts of 'ioi'): nothing there"
    assert made.details == {"n": 32}
    assert [one["n"] for one in made.looks] == [16]


def test_a_task_that_cannot_grow_so_far_makes_the_claim_invalid_at_once(executor, question):
    """Also where the first look would have settled it: whether a spec is right does not depend on the data."""
    DATA["values"] = np.full(500, 0.7)
    small = TaskSource.make("ioi", "builtin", "copycolors", {"n": 16, "options": 2})
    made = evaluate_claim(executor, question(max_n=6000, tasks={"ioi": small}).with_bound(Bound(at_least=0.01)))
    assert made.verdict.kind == "invalid" and "max_n is too large" in reason(made.verdict) and "5280" in reason(made.verdict)


def test_a_measurement_without_a_bound_is_the_first_look(executor, question):
    DATA["values"] = np.full(500, 0.7)
    found = measure(executor, question(max_n=128))
    assert found.outcome.n == 16 and found.outcome.confidence == pytest.approx(0.9875)
    made = evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=0.4)), found)
    assert made == evaluate_claim(executor, question(max_n=128).with_bound(Bound(at_least=0.4))) or made.looks[-1]["n"] == 128
    assert [one["n"] for one in made.looks] == [16, 32, 64, 128]


@pytest.mark.parametrize(("grows", "parameters", "task", "told"), [
    (False, {}, IOI, "drawn is estimated on discovery examples"),
    (True, {"split": "in_sample"}, IOI, "split: in_sample has no separate ones"),
    (True, {}, TaskSource.make("ioi", "file", "pairs.jsonl"), "'ioi' is from a file"),
    (True, {}, TaskSource.make("ioi", "loader", "a:b"), "'ioi' is from a loader"),
    (True, {}, TaskSource.make("ioi", "fixture", "pairs"), "'ioi' is handed over ready-made"),
])  # fmt: skip
def test_where_it_is_of_no_use_one_look_is_taken_and_the_reason_told(question, grows, parameters, task, told):
    asked = question(grows=grows, max_n=64, tasks={"ioi": task}, **parameters)
    prop = looks.property_of(asked)
    assert told in looks.problem_with_max_n(prop, asked.parameters, asked.tasks)
    assert looks.tasks_of_looks(prop, asked.parameters, asked.tasks) == [asked.tasks]
    without = replace(asked, parameters=asked.parameters.model_copy(update={"max_n": None}))
    assert looks.problem_with_max_n(prop, without.parameters, asked.tasks) is None


def test_the_reason_why_it_is_not_used_is_a_warning_of_the_judgement(executor, question):
    DATA["values"] = np.full(500, 0.7)
    made = evaluate_claim(executor, question(grows=False, max_n=64).with_bound(Bound(at_least=0.69)))
    assert made.warnings == (
        "max_n is not used: drawn is estimated on discovery examples, and max_n adds evaluation examples only: raise the tasks' own n",
    )
    assert (made.planned, made.estimate.n, made.estimate.kind) == (1, 16, "normal")


def settled(executor, asked, draw, edge, runs):
    """The share of populations for which a claim that just holds, or just fails, is certified, and that for which it is refuted."""
    kinds = []
    for seed in range(runs):
        DATA["values"] = draw(np.random.default_rng(seed))
        kinds.append(evaluate_claim(executor, asked.with_bound(Bound(at_least=edge))).verdict.kind)
    return kinds.count("certified") / runs, kinds.count("refuted") / runs


def test_looking_again_does_not_raise_the_error_rate(executor, question, monkeypatch):
    """The value lies on the bound: nothing is to be settled. Intervals are exact, so without spending the error it grows."""
    runs, asked = 600, question(max_n=256)

    def draw(rng):
        return rng.normal(size=256)

    certified, refuted = settled(executor, asked, draw, 0.0, runs)
    limit = 3 * (0.05 * 0.95 / runs) ** 0.5
    assert certified + refuted <= 0.05 + limit
    assert certified <= 0.025 + limit and refuted <= 0.025 + limit
    monkeypatch.setattr(looks, "confidence_per_look", lambda confidence, _: confidence)
    careless = sum(settled(executor, question(max_n=256), draw, 0.0, runs))  # as if each look were the only one
    assert careless > 0.09


def test_nor_does_it_with_the_betting_intervals_of_bounded_values(executor, question):
    asked = question(max_n=128, betting=True)
    certified, refuted = settled(executor, asked, lambda rng: (rng.random(128) < 0.6).astype(float), 0.6, 250)
    assert certified + refuted <= 0.05 + 3 * (0.05 * 0.95 / 250) ** 0.5
    above, _ = settled(executor, asked, lambda rng: (rng.random(128) < 0.9).astype(float), 0.6, 20)
    assert above > 0.9  # and where there is something to settle, it does
