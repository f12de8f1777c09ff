"""Whatever a report holds becomes strict JSON."""

from __future__ import annotations

import json
from enum import Enum, IntEnum
from fractions import Fraction
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.core.json_values import plain


class Word(str, Enum):  # noqa: UP042 (StrEnum prints otherwise)
    ONE = "one"


class Number(IntEnum):
    TWO = 2


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
    | st.sampled_from([Word.ONE, Number.TWO, Fraction(1, 3), Path("a/b")])
    | st.floats(width=32).map(np.float32) | st.integers(-5, 5).map(np.int64) | st.booleans().map(np.bool_),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner) | st.sets(st.integers()),
    max_leaves=20,
)  # fmt: skip


@given(json_like)
def test_whatever_goes_in_comes_out_as_strict_json_of_plain_types(value):
    """Records also travel between processes, which carries no subclasses."""

    def check(inner):
        assert type(inner) in (dict, list, str, int, float, bool, type(None)), type(inner)
        for part in inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ():
            check(part)

    converted = plain(value)
    check(converted)
    assert json.loads(json.dumps(converted, allow_nan=False, ensure_ascii=False).encode("utf-8")) == converted


def test_numbers_that_are_not_finite_become_null_and_arrays_lists():
    values = {"a": np.array([1.5, np.nan]), "b": float("inf"), 3: (1, {2}), "c": Word.ONE, "d": np.float64(0.5)}
    assert plain(values) == {"a": [1.5, None], "b": None, "3": [1, [2]], "c": "one", "d": 0.5}
