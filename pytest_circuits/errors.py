"""Errors. Each message says what is wrong, where, and what to do about it.

Everything that pytest-circuits raises on purpose derives from `CircuitsError`. Such an error makes the claim that is being
evaluated *invalid*; the other claims go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any


class CircuitsError(Exception):
    """Base of all errors raised on purpose."""


class SpecError(CircuitsError):
    """A mistake in a spec file. Remedy: correct the file at the line and column in the message."""

    def __init__(self, path: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{path}:{line}:{column}: {problem}")
        self.path, self.line, self.column, self.problem = path, line, column, problem


class ModelError(CircuitsError):
    """A model cannot be opened or is not supported."""


class TaskError(CircuitsError):
    """A task's data cannot be read, or does not fit the model's tokenizer."""


class UnitError(CircuitsError, ValueError):
    """A component, neuron or set name that does not exist in the model."""


class OptionError(CircuitsError, ValueError):
    """A parameter of a library call has a value that is not allowed."""


class MeasurementError(CircuitsError):
    """A measurement ran, but its result cannot be trusted (a hook did not fire, values are not finite …)."""


class MutationError(CircuitsError):
    """A mutant cannot be built: its operator does not fit the model or the task. The other mutants go on."""


class Offline(CircuitsError):  # noqa: N818
    """A measurement is not in the cache and `--circuits-offline` forbids making it."""


class Invalid(CircuitsError):  # noqa: N818
    """A claim cannot be evaluated: there is nothing to measure, or the measurement would mean nothing.

    `details` go into the report, so that a reader sees the numbers behind the reason.
    """

    def __init__(self, reason: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason)
        self.details: dict[str, Any] = dict(details or {})


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """`did you mean 'x'?` followed by what is allowed, for the end of an error message."""
    options = sorted(str(a) for a in allowed)
    near = get_close_matches(str(word), options, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}allowed: {', '.join(options)}" if options else "nothing is allowed here"
