"""Keeping only the strongest units of each example: the same as keeping all and looking, without the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from pytest_circuits import open_model
from pytest_circuits.attribution.method import AttributeOptions, AttributionMethod, attribute
from pytest_circuits.attribution.top_k import strongest
from pytest_circuits.core.results import Attribution
from pytest_circuits.errors import MeasurementError, OptionError
from pytest_circuits.measurement.codec import pack, unpack
from tests.fakes import tiny

MODELS = {name: open_model(tiny.model(name, dtype=torch.float32)) for name in ("llama", "gpt_neox")}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=7, max_size=7), min_size=1, max_size=5), st.integers(1, 7))
def test_the_strongest_are_those_of_a_stable_sort(rows, k):
    """Ties go to the earlier column."""
    scores = torch.tensor(rows, dtype=torch.float32)
    values, columns = strongest(scores, k)
    for row, mine, where in zip(rows, values.tolist(), columns.tolist(), strict=True):
        expected = sorted(range(7), key=lambda i, r=row: (-abs(r[i]), i))[:k]
        assert where == expected and mine == [row[i] for i in expected]


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize(
    ("method", "level"),
    [
        ("atp", "neuron"),
        ("relp", "neuron"),
        ("atp", "component"),
        ("exact", "component"),
        ("eap", "edge"),
        ("weight_gradient", "component"),
    ],
)
def test_top_units_are_those_of_the_whole_run(name, method, level):
    """Values, columns, densified scores and every circuit that fits."""
    subject, task = MODELS[name], tiny.task(n=5)
    whole = subject.attribute(task, method, level)
    found = subject.attribute(task, method, level, top=9, batch_size=2)
    assert found.indices.dtype == np.int32 and found.values.dtype == np.float32 and found.indices.shape == found.values.shape == (5, 9)
    assert found.units == whole.units and found.scores.shape == whole.scores.shape and found.scores.dtype == np.float32
    order = np.argsort(-np.abs(whole.scores), axis=1, kind="stable")[:, :9]
    near = {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_allclose(np.abs(found.values), np.abs(np.take_along_axis(whole.scores, order, 1)), **near)
    np.testing.assert_allclose(found.scores, np.where(found.scores != 0, whole.scores, 0), **near)
    assert (np.diff(np.abs(found.values), axis=1) <= 0).all() and np.array_equal(np.sort(found.blocks), np.sort(whole.blocks))
    same = subject.attribute(task, method, level, top=9)
    for size in (1, 5, 9):
        assert np.array_equal(same.circuits(size).members, whole.circuits(size).members)


def test_circuits_larger_than_what_was_kept_are_refused():
    """With what to do; a share is of all units."""
    found = MODELS["llama"].attribute(tiny.task(n=3), "atp", "neuron", top=12)
    assert found.circuits("10%").members.sum() == 3 * 12  # 12 of 120 neurons
    with pytest.raises(OptionError, match=r"circuits of 13 of 120 units.*only the 12 strongest.*top=13"):
        found.circuits(13)
    with pytest.raises(OptionError, match="top=24"):
        found.circuits("20%")


def test_more_than_there_are_keeps_all():
    """And units with a score of zero are never members."""
    subject, task = MODELS["llama"], tiny.task(n=2)
    found, whole = (subject.attribute(task, "atp", top=t) for t in (99, None))
    assert found.values.shape == (2, 15) and np.array_equal(found.scores, whole.scores)
    zero = Attribution(np.array([[2.0, 0.0]], np.float32), ("a", "b", "c"), "m", "l", "x", indices=np.array([[2, 0]], np.int32))
    assert zero.circuits(2).members.tolist() == [[False, False, True]] and zero.scores.tolist() == [[0, 0, 2]]


@pytest.mark.parametrize("top", [0, -1, True, 2.0, "3"])
def test_what_is_no_count_is_refused(top):
    """A whole number of at least 1."""
    with pytest.raises(OptionError, match="top must be a whole number"):
        MODELS["llama"].attribute(tiny.task(n=2), "atp", top=top)


def test_top_and_mean_exclude_each_other():
    """One row has no examples to keep units of."""
    with pytest.raises(OptionError, match="give only one of them"):
        MODELS["llama"].attribute(tiny.task(n=2), "atp", top=3, reduce="mean")


def test_the_lab_stores_it():
    """Packed and unpacked, it is sparse still and gives the same circuits."""
    found = MODELS["llama"].attribute(tiny.task(n=3), "atp", "neuron", top=4)
    document, arrays = pack(found)
    assert max(a.size for a in arrays.values()) == 3 * 4
    back = unpack(document, arrays)
    assert type(back) is Attribution and back.units == found.units and back.indices.dtype == np.int32
    assert np.array_equal(back.scores, found.scores) and np.array_equal(back.circuits(4).members, found.circuits(4).members)


@dataclass(frozen=True)
class Wide(AttributionMethod):
    """A made-up method whose scores of the rows in `bad` are not numbers."""

    name: ClassVar[str] = "wide"
    levels: ClassVar[tuple[str, ...]] = ("neuron",)
    bad: ClassVar[tuple[int, ...]] = ()

    def scores(self, job, batch):
        out = torch.arange(job.columns, dtype=torch.float32).repeat(len(batch), 1)
        for i, row in enumerate(batch.rows.tolist()):
            if row in self.bad:
                out[i, row] = [torch.nan, torch.inf][row % 2]
        return out


def test_scores_that_are_no_numbers_are_never_dropped():
    """They count as strongest, so that the run is refused and not quietly cleaned."""

    class Bad(Wide):
        bad: ClassVar[tuple[int, ...]] = (1, 2)

    subject = MODELS["llama"]
    with pytest.raises(MeasurementError, match="not finite on 2 of 5 examples"):
        attribute(subject._runner, subject.encode(tiny.task(n=5)), Bad, AttributeOptions(level="neuron", top=1))


class Largest(TorchDispatchMode):
    """The largest tensor that any operation gives."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for x in out if isinstance(out, (tuple, list)) else [out]:
            if isinstance(x, torch.Tensor):
                self.size = max(self.size, x.numel())
        return out


def test_memory_is_bounded_by_one_batch_and_what_is_kept(monkeypatch):
    """No tensor and no array is as large as examples × units, and the largest is the same for twice as many examples."""
    subject, units, made, plain = MODELS["llama"], 120, [], np.zeros
    monkeypatch.setattr(np, "zeros", lambda shape, *a, **k: (made.append(int(np.prod(shape))), plain(shape, *a, **k))[1])

    def largest(n, top):
        made.clear()
        with Largest() as seen:
            found = subject.attribute(tiny.task(n=n, lengths=(4,)), "atp", "neuron", top=top, batch_size=2)
        return max([seen.size, *made]), found

    assert largest(40, None)[0] == 40 * units  # the tool sees what it is to see
    kept, found = largest(40, 3)
    assert kept == largest(80, 3)[0] < 40 * units / 3
    made.clear()
    members = found.circuits(3).members
    assert members.dtype == bool and members.shape == (40, units) and made == [40 * units]  # one byte a unit, and no floats
