"""Positions: which of them count in a score, and replacing a unit at one of them only."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from pytest_circuits import open_model
from pytest_circuits.errors import OptionError, UnitError
from tests.fakes import tiny
from tests.fakes.node_oracle import unit_places
from tests.fakes.plain_hooks import NAMES, Parts, as_ids, edits, metric, prompts, record

METHODS = ("atp", "relp", "gradient", "ig_activations")
STEP = 1e-5
QUICK = (Phase.explicit, Phase.reuse, Phase.generate)  # shrinking would run the model for minutes
few = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICK)


@cache
def opened(name: str):
    return open_model(tiny.model(name))


def mixed(seed: int = 0, tokens: int = 2, n: int = 4, **changes):
    """Prompts of 4 and 6 tokens with several answer tokens."""
    return tiny.task(n=n, seed=seed, lengths=(4, 6), tokens=tokens, **changes)


def at(units, name: str) -> int:
    return units.index(name)


@few
@given(
    st.sampled_from(["llama", "gpt2", "gpt_neox", "gemma2"]),
    st.sampled_from(METHODS),
    st.sampled_from(["component", "neuron"]),
    st.integers(0, 999),
)
def test_positions_add_up_and_can_be_picked(name, method, level, seed):
    """The sum over `each` is `all`; `last` is @-1; `answer` is @-1, @0 … of teacher-forced answers; missing positions are 0."""
    subject, task = opened(name), mixed(seed, tokens=3)
    options = {"steps": 2} if method == "ig_activations" else {}
    found = {which: subject.attribute(task, method, level, positions=which, **options) for which in ("all", "each", "last", "answer")}
    whole = subject.attribute(task, method, level, **options)
    units, wanted = whole.units, [f"@{p}" for p in (-6, -5, -4, -3, -2, -1, 0, 1)]
    assert list(found["each"].units) == [unit + p for unit in units for p in wanted]
    assert all(found[which].units == units for which in ("all", "last", "answer"))
    each = found["each"].scores.reshape(4, len(units), 8)
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_array_equal(found["all"].scores, whole.scores)
    np.testing.assert_allclose(each.sum(2), whole.scores, **close)
    np.testing.assert_allclose(each[:, :, 5], found["last"].scores, **close)
    np.testing.assert_allclose(each[:, :, 5:].sum(2), found["answer"].scores, **close)
    assert (each[[0, 2], :, :2] == 0).all() and (each[[1, 3], :, 5:] != 0).any()
    assert method != "gradient" or (each[[1, 3], :, :2] != 0).any()  # clean and corrupt may begin alike


@pytest.mark.parametrize("name", NAMES)
def test_a_positions_score_is_the_derivative_at_that_position(name):
    """Finite differences in float64 of every component at every position, prompts of two lengths."""
    subject, task = opened(name), mixed(3, n=2)
    parts, found = Parts(subject.model), subject.attribute(task, "atp", positions="each", metric="log_prob")
    for row, pair in enumerate(task):
        clean, corrupt, start = prompts(pair)
        a, c = record(subject.model, clean), record(subject.model, corrupt)
        for unit, (kind, layer, where) in zip(parts.names, unit_places(parts, "component"), strict=True):
            if unit not in ("L0H1", "L1MLP", "L2H3"):
                continue
            moved = torch.zeros(2 * len(clean), *a[kind, layer].shape[1:], dtype=torch.float64)
            for t in range(len(clean)):
                change = (c[kind, layer] - a[kind, layer])[0, t, where]
                moved[2 * t, t, where], moved[2 * t + 1, t, where] = STEP * change, -STEP * change
            with torch.no_grad(), edits(subject.model, {(kind, layer): lambda x, m=moved: x + m}):
                logits = subject.model(input_ids=as_ids(clean).repeat(len(moved), 1), use_cache=False).logits
            values = [float(metric("log_prob", x, pair)) for x in logits]
            for t in range(len(clean)):
                mine = found.scores[row, at(found.units, f"{unit}@{t - start - 1}")]
                assert mine == pytest.approx((values[2 * t] - values[2 * t + 1]) / (2 * STEP), rel=1e-5, abs=1e-6)


def test_positions_behind_the_scored_ones_score_exactly_zero():
    """Where the end of a number counts, its last token is fed back: it changes what follows, and no score of the metric."""
    subject = opened("llama")
    task = mixed(tokens=2, foils=0, scoring="argmax", stop=None)
    encoded = subject.encode(task)
    longer = type(encoded)(
        **{**vars(encoded), "clean": tuple((*c, 3) for c in encoded.clean), "corrupt": tuple((*c, 5) for c in encoded.corrupt)}
    )
    subject._encoded[task.fingerprint] = longer
    try:
        found = subject.attribute(task, "atp", positions="each", metric="log_prob")
    finally:
        del subject._encoded[task.fingerprint]
    scores = found.scores.reshape(4, 15, -1)
    assert found.units[-1] == "L2MLP@1" and (scores[:, :, -1] == 0).all() and (scores[:, :, -2] != 0).any()


def replaced_at(model, ids, unit: str, positions, values) -> torch.Tensor:
    """Logits with one component or neuron set to `values` {(kind, layer): activation} at some positions, by plain hooks."""
    parts, layer, tail = Parts(model), int(unit[1]), unit[2:]
    kind = "mlp" if tail == "MLP" else "z" if tail[0] == "H" else "n"
    first = 0 if tail == "MLP" else int(tail[1:]) * (parts.hd if kind == "z" else 1)
    where = slice(first, first + (parts.d if kind == "mlp" else parts.hd if kind == "z" else 1))

    def edit(x):
        x = x.clone()
        for t in positions:
            x[:, t, where] = values[kind, layer].expand_as(x)[:, t, where]
        return x

    with torch.no_grad(), edits(model, {(kind, layer): edit}):
        return model(input_ids=as_ids(ids), use_cache=False).logits[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["zero", "counterfactual"])
def test_only_the_named_position_is_replaced(name, kind):
    """Heads, MLPs and neurons; an example without the position is left as it is, bit for bit."""
    subject, task = opened(name), mixed(1)
    for unit, offset in (("L1H2", -1), ("L0MLP", -5), ("L1N7", 0), ("L0H0", -4)):
        found = subject.ablate(task, remove=[f"{unit}@{offset}"], kind=kind)
        for row, pair in enumerate(task):
            clean, corrupt, start = prompts(pair)
            t = start + 1 + offset
            values = record(subject.model, corrupt)
            if kind == "zero":
                values = {key: torch.zeros_like(x) for key, x in values.items()}
            expected = replaced_at(subject.model, clean, unit, [t] if t >= 0 else [], values)
            assert found.metric[row] == pytest.approx(float(metric("logit_diff", expected, pair)), rel=1e-5, abs=1e-6)
        missing = [row for row, pair in enumerate(task) if len(pair.clean) + offset < 0]
        assert (offset == -5) == bool(missing)
        np.testing.assert_allclose(found.metric[missing], found.baseline.metric[missing], rtol=1e-12)


@few
@given(st.sampled_from(["llama", "gpt2", "gpt_neox"]), st.sampled_from(["zero", "counterfactual", "mean"]), st.booleans(), st.data())
def test_all_positions_of_a_unit_are_the_unit(name, kind, neurons, data):
    """Named one by one or without a position, removed or kept, stacked with sets of either sort."""
    subject, task = opened(name), mixed(5)
    universe = [f"L{layer}N{i}" for layer in range(3) for i in range(40)] if neurons else Parts(subject.model).names
    units = data.draw(st.lists(st.sampled_from(universe), min_size=1, max_size=4, unique=True))
    spelt = [f"{unit}@{p}" for unit in units for p in range(-6, 1)]
    mode = data.draw(st.sampled_from(["remove", "keep"]))
    found = subject.ablate_many(task, [units, spelt, [units[0], *spelt]], mode, kind, level="neuron" if neurons else "component")
    np.testing.assert_array_equal(found.metric[1], found.metric[2])
    np.testing.assert_allclose(found.metric[0], found.metric[1], rtol=1e-6, atol=1e-6)


def test_keeping_positions_replaces_all_others():
    """keep(u@-1) is remove(every other unit, and u at every other position)."""
    subject, task = opened("llama"), mixed(2)
    others = [u for u in Parts(subject.model).names if u != "L1H2"]
    rest = [f"L1H2@{p}" for p in range(-6, 1) if p != -1]
    one = subject.ablate(task, keep=["L1H2@-1"], kind="counterfactual")
    other = subject.ablate(task, remove=[*others, *rest], kind="counterfactual")
    assert one.metric.tolist() == other.metric.tolist()


def test_positional_scores_can_be_ablated_as_they_are_named():
    """From scores to a shared set to an outcome."""
    subject, task = opened("gpt2"), mixed(0)
    found = subject.attribute(task, "atp", "neuron", positions="each", top=30)
    shared = found.circuits(30).shared(0.25)
    assert all("@" in unit for unit in shared)
    outcome = subject.ablate(task, remove=shared, kind="counterfactual")
    assert np.isfinite(outcome.metric).all() and not np.allclose(outcome.metric, outcome.baseline.metric)


def test_the_layout_of_positions_is_that_of_the_task():
    """Some of the examples have the same columns as all of them; one signed mean over prompts of both lengths."""
    subject, task = opened("llama"), mixed(0)
    whole, part = (subject.attribute(task, "atp", positions="each", examples=e) for e in (None, [2, 0]))
    assert whole.units == part.units
    np.testing.assert_allclose(part.scores, whole.scores[[2, 0]], rtol=2e-5, atol=2e-6)
    mean = subject.attribute(task, "atp", positions="each", reduce="mean")
    np.testing.assert_allclose(mean.scores[0], whole.scores.mean(0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        ("L1H2@-7", r"no example has position -7.*@-6 … @0"),
        ("L1H2@1", "no example has position 1"),
        ("L1H2@-0", "a position is written"),
        ("L1H2@", "a position is written"),
        ("L1H2@last", "a position is written"),
        ("L1H9@-1", r"'L1H9' does not exist"),
        ("L1H2@-1@-1", "a position is written"),
    ],
)
def test_wrong_positions_are_refused(unit, message):
    """What is wrong, and what there is."""
    with pytest.raises(UnitError, match=message):
        opened("llama").ablate(mixed(), remove=[unit])


def test_a_position_must_exist_in_the_ablated_examples():
    """One that only other examples have is refused."""
    with pytest.raises(UnitError, match="no example has position -6"):
        opened("llama").ablate(mixed(), remove=["L1H2@-6"], examples=[0, 2])


def test_unknown_positions_are_refused():
    """And methods that have none."""
    with pytest.raises(OptionError, match="all, answer, each, last"):
        opened("llama").attribute(mixed(), "atp", positions="first")
    with pytest.raises(OptionError, match="no option 'positions'"):
        opened("llama").attribute(mixed(), "eap", positions="last")
