"""YAML's syntax errors in plain words, marked where a reader has to look."""

from __future__ import annotations

import re
from typing import NamedTuple

from yaml.error import MarkedYAMLError

_CLOSING = {"[": "]", "{": "}"}
_WORDS = (
    (r"found character '\\t'", "a tab between two values; use spaces"),
    (r"found character '(.)' that cannot start", "{0!r} cannot start a value; write the value in quotes"),
    (r"mapping values are not allowed", "unexpected ':'; quote a value that holds ': ', or check the indentation"),
    (r"could not find expected ':'", "this line is neither 'key: value' nor part of the line above; check the indentation"),
    (r"expected <block end>, but found '<block (?:mapping|sequence) start>'", "the indentation fits none of the lines above"),
    (r"expected <block end>, but found '<scalar>'", "unexpected text after a value; quote the value as a whole, or check the indentation"),
    (r"expected <block end>, but found '(.+)'", "unexpected {0!r}; check the indentation"),
    (r"expected ',' or '(.)'", "expected ',' or '{0}'; quote a value that holds ': ', or close the bracket"),
    (r"(?:block sequence|sequence) entries are not allowed", "unexpected '-'; a list starts on its own line"),
    (r"mapping keys are not allowed", "unexpected '?'; quote text that starts with it"),
    (r"expected the node content, but found '<stream end>'", "the file ends where a value is expected"),
    (r"expected the node content, but found '(.+)'", "unexpected {0!r} where a value is expected"),
    (r"expected '<document start>', but found '(.+)'", "unexpected {0!r} after the end of the document"),
    (r"unknown escape character '(.+)'", "unknown escape '\\{0}' in double quotes; write '\\\\' for a backslash, or use single quotes"),
    (r"undefined tag handle|found undefined tag", "YAML tags are not allowed; write plain values without tags"),
    (r"incompatible YAML document", "only YAML 1.x is read"),
)


class Refusal(NamedTuple):
    """Where the file is wrong, counted from 1, and what is wrong there."""

    line: int
    column: int
    problem: str


def explain(problem: Exception, brackets: list[tuple[str, int, int]], at: tuple[int, int]) -> Refusal:
    """A PyYAML error in the user's words.

    `brackets` are those still open, each with its place counted from 0; `at` is where reading stopped. An
    unclosed bracket or quotation mark is reported where it was opened: PyYAML notices it only at some later place.
    """
    if not isinstance(problem, MarkedYAMLError):
        return Refusal(at[0] + 1, at[1] + 1, f"not valid YAML: {problem}")
    text, context = str(problem.problem or ""), str(problem.context or "")
    mark = problem.problem_mark or problem.context_mark
    line, column = (mark.line, mark.column) if mark is not None else at
    if "quoted scalar" in context and ("end of stream" in text or "document separator" in text) and problem.context_mark is not None:
        quote = problem.context_mark
        return Refusal(quote.line + 1, quote.column + 1, "the quotation mark that opens here is never closed")
    opened = [("[" if "sequence" in context else "{", m.line, m.column) for m in [problem.context_mark] if m and "flow" in context]
    second_colon = "got ':'" in text and bool(opened) and opened[0][1] == line
    specific = second_colon or "cannot start" in text or "escape" in text or " tag" in text
    if (opened or brackets) and not specific:
        opener, line_opened, column_opened = (opened or brackets)[-1]
        wanted = f"expected ',' or {_CLOSING[opener]!r} at line {line + 1}, column {column + 1}"
        return Refusal(line_opened + 1, column_opened + 1, f"{opener!r} is not closed: {wanted}")
    if "could not find expected ':'" in text and problem.context_mark is not None:
        line, column = problem.context_mark.line, problem.context_mark.column
    return Refusal(line + 1, column + 1, _words(text, context))


def _words(text: str, context: str) -> str:
    for pattern, words in _WORDS:
        match = re.search(pattern, text)
        if match:
            return words.format(*match.groups())
    return f"not valid YAML: {', '.join(part for part in (context, text) if part)}"
