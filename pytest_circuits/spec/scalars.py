"""Plain scalars as the YAML 1.2 core schema reads them (https://yaml.org/spec/1.2.2/#1032-tag-resolution).

PyYAML's own rules are those of YAML 1.1, where `1e-3` is text, `no` is false, `1:30` is 90 and `010` is 8.
"""

from __future__ import annotations

import re

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INF = re.compile(r"[-+]?\.(inf|Inf|INF)")
_NAN = frozenset({".nan", ".NaN", ".NAN"})
LONGEST_NUMBER = 300


def plain(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar. Raises `ValueError` for a number of more than 300 characters."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "0123456789+-.":
        return text
    return _number(text)


def _number(text: str) -> str | int | float:
    for form, base in ((_INT, 10), (_OCTAL, 8), (_HEX, 16)):
        if form.fullmatch(text):
            _refuse_long(text)
            return int(text if base == 10 else text[2:], base)
    if _FLOAT.fullmatch(text):
        _refuse_long(text)
        return float(text)
    if _INF.fullmatch(text):
        return float("-inf") if text[0] == "-" else float("inf")
    return float("nan") if text in _NAN else text


def _refuse_long(text: str) -> None:
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} characters; at most {LONGEST_NUMBER} are allowed")
