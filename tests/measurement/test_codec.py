"""Results come back from bytes as they went in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pytest_circuits.core.results import Attribution, CircuitSet, ComponentNorms, Conservation, Description, Encoded, Outcome, SweepOutcome
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import MeasurementError
from pytest_circuits.measurement.codec import pack, unpack
from pytest_circuits.measurement.entry import dump, load

text = st.text(max_size=6)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
arrays = st.one_of(*(hnp.arrays(dtype, shapes) for dtype in (np.bool_, np.float32, np.float16, np.float64, np.int64, np.uint8)))
plain = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), text, arrays, st.floats(width=32).map(np.float32), st.just(np.bool_(True))
)
nested = st.recursive(
    plain,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(text, st.just("$array"), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)
names = st.lists(text, max_size=4).map(tuple)
floats = hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=4))
doubles = hnp.arrays(np.float64, hnp.array_shapes(max_dims=2, max_side=4))
bools = hnp.arrays(np.bool_, hnp.array_shapes(max_dims=2, max_side=4))
universes = st.builds(Universe, st.integers(1, 99), st.integers(1, 99), st.integers(0, 99))
outcomes = st.builds(Outcome, bools, floats, floats)
results = st.one_of(
    st.builds(Description, text, text, st.integers(0, 10**12), universes, text),
    st.builds(Encoded, st.integers(0, 99), names, text, st.integers(0, 9), names),
    st.builds(CircuitSet, bools, names),
    st.builds(Attribution, floats, names, text, text, text, hnp.arrays(np.int64, 3), st.dictionaries(text, nested, max_size=3)),
    st.builds(ComponentNorms, floats, names),
    st.builds(Conservation, names, doubles, doubles, st.none() | doubles),
    st.builds(Outcome, bools, floats, floats, outcomes),
    st.builds(SweepOutcome, bools, floats, floats, outcomes, names),
)


def same(a, b):
    """Equal, of the same types, NaN equal to NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if hasattr(a, "__dataclass_fields__"):
        return all(same(getattr(a, f), getattr(b, f)) for f in a.__dataclass_fields__)
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    return a == b or (a != a and b != b)


@settings(max_examples=150, deadline=None)
@given(st.one_of(results, nested.filter(lambda x: x is not None)))
@example({"$array": "0"})
@example({"$tuple": [1], "a": {"$type": ["Universe", {}]}})
def test_any_result_comes_back_equal(value):
    """Arrays bit for bit, strings, tuples, numpy scalars and odd dictionary keys with their types."""
    assert same(load(dump(value, key="k", kind="Any", request="r"), "k"), value)


def test_booleans_and_names_keep_their_types():
    """A bool array is a bool array and names are a tuple of strings, not lists or bytes."""
    found = load(dump(CircuitSet(np.array([[True, False]]), ("L0H0", "Lé\0")), key="k", kind="c", request="r"), "k")
    assert (found.members.dtype, found.units) == (np.dtype(bool), ("L0H0", "Lé\0"))


def test_arrays_in_fortran_order_and_slices_keep_their_values():
    """safetensors writes raw memory; what is not C-ordered must be put in order first."""
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    for odd in (np.asfortranarray(grid), grid.T, grid[:, ::2], grid.astype(">f4")):
        document, packed = pack(odd)
        assert unpack(document, packed).tolist() == odd.tolist()
        assert load(dump(odd, key="k", kind="c", request="r"), "k").tolist() == odd.tolist()


def test_results_are_read_only():
    """Several claims share one result; none may change it under the others."""
    found = load(dump(np.zeros(3), key="k", kind="c", request="r"), "k")
    with pytest.raises(ValueError, match="read-only"):
        found[0] = 1


@pytest.mark.parametrize(
    ("value", "where"), [({"a": [object()]}, r"result\['a'\]\[0\] is a builtins.object"), (np.array(["x"]), "array of <U1")]
)
def test_what_cannot_be_kept_is_refused_with_its_place(value, where):
    """No pickle, no silent conversion."""
    with pytest.raises(MeasurementError, match=where):
        pack(value)
