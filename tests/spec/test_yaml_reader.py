from __future__ import annotations

import json
import math
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.errors import SpecError
from pytest_circuits.spec.yaml_reader import DEEPEST, MOST_ALIASED, Mark, read_yaml

BAD = {
    "a tab in the indentation": (b"a:\n\tb: 1\n", 2, 1, "indented with spaces"),
    "a tab after spaces": (b"a:\n  \tb: 1\n", 2, 3, "indented with spaces"),
    "a tab between values": (b"a: 1\nb:\t2\n", 2, 3, "use spaces"),
    "an unclosed bracket": (b"a: 1\nb: [1, 2\n", 2, 4, "'[' is not closed: expected ',' or ']'"),
    "an unclosed bracket before a key": (b"a: [1, 2\nb: 2\n", 1, 4, "'[' is not closed"),
    "an unclosed brace": (b"a:\n  b: {x: 1, y: 2\n  c: 3\n", 2, 6, "'{' is not closed"),
    "the inner of two unclosed brackets": (b"a: {b: [1, 2}\n", 1, 8, "'[' is not closed"),
    "an unclosed quotation mark": (b"a: 1\nb: 'x\nc: 2\n", 2, 4, "never closed"),
    "an unclosed double quotation mark": (b'a: 1\nb: "x\n', 2, 4, "never closed"),
    "a closing bracket too many": (b"a: 1]\nb: ]\n", 2, 4, "unexpected ']'"),
    "a second colon": (b"a: b: c\n", 1, 5, "quote a value"),
    "a second colon in braces": (b"a: {b: c: d}\n", 1, 9, "quote a value"),
    "text after a quoted value": (b"a: 'x' y\n", 1, 8, "quote the value as a whole"),
    "a line without a colon": (b"a: 1\nb\nc: 2\n", 2, 1, "neither 'key: value'"),
    "an indentation that fits nothing": (b"a:\n    b: 1\n  c: 2\n", 3, 3, "the indentation fits none"),
    "a reserved character": (b"a: @b\n", 1, 4, "write the value in quotes"),
    "a percent sign": (b"a: 1\nb: %c\n", 2, 4, "write the value in quotes"),
    "an unknown escape": (b'a: "\\q"\n', 1, 6, "unknown escape '\\q'"),
    "an escape beyond Unicode": (b'a: "\\UFFFFFFFF"\n', 1, 7, "not valid YAML"),
    "a duplicate key": (b"a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key 'a'; it is first on line 1"),
    "a duplicate key in braces": (b"x: {a: 1, b: 2, 'a': 3}\n", 1, 17, "duplicate key 'a'"),
    "a tag": (b"a: !foo 1\n", 1, 4, "tag '!foo' is not allowed; write plain values"),
    "a standard tag": (b"a: 1\nb: !!str 1\n", 2, 4, "tag '!!str' is not allowed"),
    "a Python tag": (b'a: !!python/object/apply:os.system ["true"]\n', 1, 4, "tag '!!python/object/apply:os.system' is not allowed"),
    "a tag on the root": (b"!x\na: 1\n", 1, 1, "tag '!x' is not allowed"),
    "a tag on a key": (b"!!str a: 1\n", 1, 1, "tag '!!str' is not allowed"),
    "an unspecific tag": (b"a: ! 1\n", 1, 4, "tag '!' is not allowed"),
    "an undeclared tag handle": (b"a: !e!x 1\n", 1, 4, "tags are not allowed"),
    "an unknown alias": (b"a: *x\n", 1, 4, "has no anchor '&x' above it"),
    "an alias inside its own value": (b"a: &x [1, *x]\n", 1, 11, "inside the value that it stands for"),
    "an anchor twice": (b"a: &x 1\nb: &x 2\n", 2, 4, "defined twice"),
    "a merge key": (b"a: &x {b: 1}\nc:\n  <<: *x\n", 3, 3, "merge keys ('<<') are not allowed"),
    "a number as key": (b"1: a\n", 1, 1, 'the key 1 is a number; keys are names: write it in quotes, such as "1"'),
    "null as key": (b"a:\n  null: 1\n", 2, 3, "the key null is no text"),
    "an empty key": (b"? \n: 1\n", 1, 2, "a key is missing"),
    "true as key": (b"true: 1\n", 1, 1, "keys are names"),
    "a list as key": (b"? [1]\n: 2\n", 1, 3, "a list cannot be a key"),
    "a second document": (b"a: 1\n---\nb: 2\n", 2, 1, "a second document starts here"),
    "an empty file": (b"", 1, 1, "the file is empty; a spec needs version, models and claims"),
    "only a comment": (b"# nothing\n\n", 1, 1, "the file is empty"),
    "only a document marker": (b"---\n", 1, 1, "the file is empty"),
    "a list": (b"# x\n- a\n", 2, 1, "a spec is a mapping with the keys version, models and claims"),
    "text": (b"hello\n", 1, 1, "a spec is a mapping"),
    "bytes that are not UTF-8": ("a: 1\nb: ä".encode("latin-1"), 2, 4, "byte 0xe4 is not UTF-8; save the file with the encoding UTF-8"),
    "bytes that are not UTF-8 after some that are": ("a: ä ".encode() + b"\xff", 1, 6, "byte 0xff is not UTF-8"),
    "UTF-16": ("a: 1".encode("utf-16"), 1, 1, "is not UTF-8"),
    "a control character": (b"a: 1\nb: x\x07\n", 2, 5, "U+0007 is not allowed"),
    "a Unicode line separator": ("a: 1\nb: x\u2028\n".encode(), 2, 5, "U+2028 is not allowed"),
    "NUL as an escape": (b'a: "x\\0"\n', 1, 4, "NUL"),
    "half a surrogate pair": (b'a: "\\ud800"\n', 1, 4, "surrogate"),
    "a very long number": (b"a: " + b"9" * 5000 + b"\n", 1, 4, "a number of 5000 characters"),
    "very deep nesting": (b"a: " + b"[" * 5000 + b"]" * 5000 + b"\n", 1, 4 + DEEPEST, f"nested more than {DEEPEST} levels deep"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_reported_at_its_place(case: str) -> None:
    """Line and column count from 1, and the message names the remedy."""
    content, line, column, phrase = BAD[case]
    with pytest.raises(SpecError) as caught:
        read_yaml(content, "s.yaml")
    assert (caught.value.line, caught.value.column) == (line, column), str(caught.value)
    assert phrase in str(caught.value)
    assert str(caught.value).startswith(f"s.yaml:{line}:{column}: ")
    assert "\n" not in str(caught.value)


SCALARS: dict[str, Any] = {
    "1e-3": 0.001, "1E3": 1000.0, "1.": 1.0, ".5": 0.5, "-.5e1": -5.0, "010": 10, "0o17": 15, "0x1F": 31, "+3": 3, "-0": 0,
    "no": "no", "yes": "yes", "on": "on", "off": "off", "y": "y", "true": True, "False": False, "~": None, "null": None, "": None,
    "1_000": "1_000", "1:30": "1:30", "2026-05-01": "2026-05-01", "0b1": "0b1", "1e": "1e", ".": ".", "+": "+", "0o8": "0o8",
    "10%": "10%", "L10H7": "L10H7", "nan": "nan", "=": "=", ".inf": math.inf, "-.Inf": -math.inf, "'1'": "1", '"true"': "true",
}  # fmt: skip


@pytest.mark.parametrize("written", SCALARS)
def test_scalars_have_their_yaml_1_2_meaning(written: str) -> None:
    """Where YAML 1.1 would read another number, a truth value, a date or a number in base 60."""
    found = read_yaml(f"a: {written}\n".encode(), "s").data["a"]
    assert (type(found), found) == (type(SCALARS[written]), SCALARS[written])


def test_nan_is_a_number() -> None:
    """`.nan`, which equals nothing, not even itself."""
    assert math.isnan(read_yaml(b"a: .nan", "s").data["a"])


def test_places_of_keys_and_values() -> None:
    """Each path has the place where a reader finds it, whether in block or flow style."""
    document = read_yaml(b"a:\n  - x\n  - {k: v, 'l': 2}\nb: 'ab'\n", "s")
    assert document.data == {"a": ["x", {"k": "v", "l": 2}], "b": "ab"}
    assert document.keys == {("a",): (1, 1), ("a", 1, "k"): (3, 6), ("a", 1, "l"): (3, 12), ("b",): (4, 1)}
    assert document.values == {
        (): (1, 1), ("a",): (2, 3), ("a", 0): (2, 5), ("a", 1): (3, 5), ("a", 1, "k"): (3, 9), ("a", 1, "l"): (3, 17), ("b",): (4, 4),
    }  # fmt: skip


def test_places_of_paths_that_are_not_in_the_file() -> None:
    """The nearest thing above them: a missing key is reported at the key that lacks it."""
    document = read_yaml(b"a: 1\nb: {c: [2]}\n", "s")
    assert document.value(("b", "d")) == Mark(2, 1)
    assert document.key(("b", "c", 0)) == Mark(2, 9)
    assert document.value(("x", "y")) == Mark(1, 1)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_endings_and_a_byte_order_mark_do_not_shift_places(newline: str) -> None:
    """As editors save files on all systems."""
    document = read_yaml(f"\ufeffä: 1{newline}b: ö".encode(), "s")
    assert document.data == {"ä": 1, "b": "ö"}
    assert document.keys == {("ä",): (1, 1), ("b",): (2, 1)}


def test_aliases_stand_for_values() -> None:
    """An alias repeats a whole value; mistakes in it are marked where it is written."""
    document = read_yaml(b"a: &x {k: [1, 2]}\nb: *x\n", "s")
    assert document.data["b"] == {"k": [1, 2]}
    assert document.data["b"] is not document.data["a"]
    assert document.values["b", "k", 1] == Mark(1, 15)


def test_an_alias_bomb_is_refused_before_it_is_written_out() -> None:
    """Nine levels of nine aliases stand for 387 million values."""
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    with pytest.raises(SpecError, match=f"stand for more than {MOST_ALIASED} values"):
        read_yaml("\n".join(levels).encode(), "s")


def test_json_escapes_of_one_character_are_one_character() -> None:
    """JSON writes U+1F600 as two escapes."""
    assert read_yaml(b'{"a": "\\ud83d\\ude00"}', "s").data == {"a": "\U0001f600"}


def test_pyyaml_itself_is_left_alone() -> None:
    """Other users of PyYAML in the process keep YAML 1.1, tags and all."""
    before = {name: dict(getattr(yaml.SafeLoader, name)) for name in ("yaml_constructors", "yaml_implicit_resolvers")}
    read_yaml(b"a: no", "s")
    assert yaml.safe_load("a: no") == {"a": False}
    assert {name: dict(getattr(yaml.SafeLoader, name)) for name in before} == before


def _reads_or_refuses(content: bytes) -> None:
    try:
        document = read_yaml(content, "s")
    except SpecError as problem:
        text = content.decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n")
        assert 1 <= problem.line <= text.count("\n") + 1
        assert problem.column >= 1
        assert "\n" not in problem.problem
    else:
        assert isinstance(document.data, dict)
        assert set(document.keys) <= set(document.values)


PIECES = st.sampled_from(
    [
        "a: ", "b: ", "version: 1", "claims:", "- ", "[", "]", "{", "}", ",", ": ", "\n", "\n  ", "\n    ", "\t", "'", '"', "&x ", "*x",
        "!t ", "!!int ", "!e!", "<<: *x", "|\n", ">-\n", "? ", "# c", "---\n", "...\n", "%YAML 1.2\n", "%TAG ! x\n", "1e-3", ".nan", "no",
        "\\u12", "\\Uffffffff", "@", "`", "~", "0o9", "\r", "\x85", "\u2028", "\ufeff", "ä", "😀", "\0", "=", "%YAML 1.999\n",
    ]
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_pieces_of_yaml_in_any_order_are_read_or_refused(text: str) -> None:
    """Never another exception than a `SpecError`, whose place lies in the file."""
    _reads_or_refuses(text.encode())


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    """A spec may be any file."""
    _reads_or_refuses(content)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("abä😀: #-'\"%", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abcä", min_size=1, max_size=3), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text("abcä", min_size=1, max_size=3), PLAIN, min_size=1, max_size=4), st.sampled_from([True, False, None]))
def test_json_is_read_as_itself(data: dict[str, Any], ascii_only: bool) -> None:
    """JSON is YAML 1.2: what another program writes as JSON means the same here."""
    assert read_yaml(json.dumps(data, ensure_ascii=bool(ascii_only)).encode(), "s").data == data
