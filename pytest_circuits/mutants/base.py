"""One mutant: an operator, its units and options. Plain values; their text is part of a model's or task's source."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from ..core.sources import ModelSource, TaskSource
from ..errors import CircuitsError, MutationError, OptionError
from . import OPERATORS, target_of

VERSION = 1
"""Increased whenever a built-in operator gives different mutants; it is part of the cache keys of mutants."""


@dataclass(frozen=True)
class Mutation:
    """`units` are component names (a layer: `L3`), `options` those of the operator that differ from its defaults, with `seed` (0).

    `donor` is the earlier checkpoint that weights come from, if any.
    """

    operator: str
    units: tuple[str, ...] = ()
    options: str = "{}"
    donor: ModelSource | None = None

    @classmethod
    def make(
        cls, operator: str, units: tuple[str, ...] = (), options: Mapping[str, Any] | None = None, donor: ModelSource | None = None
    ) -> Mutation:
        """With options as a mapping; those equal to their default are left out."""
        defaults = {"seed": 0, **(OPERATORS.fact(operator, "options") or {})}
        changed = {key: value for key, value in (options or {}).items() if defaults.get(key) != value}
        return cls(operator, units, json.dumps(changed, sort_keys=True), donor)

    @property
    def text(self) -> str:
        """The mutation as canonical JSON."""
        donor = None if self.donor is None else {key: getattr(self.donor, key) for key in _SOURCE}
        return json.dumps([self.operator, list(self.units), json.loads(self.options), donor], sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Mutation:
        """The mutation that `text` came from."""
        operator, units, options, donor = json.loads(text)
        return cls(operator, tuple(units), json.dumps(options, sort_keys=True), None if donor is None else ModelSource(**donor))

    @property
    def name(self) -> str:
        """As `--circuits-mutate` takes it: `zero-head:L0H5`, `round:bits=4`, `swap-heads:L0H5+L2H1`."""
        options = [f"{key}={value}" for key, value in {**self.defaults, **json.loads(self.options)}.items()]
        return ":".join([self.operator, *(["+".join(self.units)] if self.units else []), *options])

    @property
    def defaults(self) -> dict[str, Any]:
        """The operator's options with their default values."""
        return dict(OPERATORS.fact(self.operator, "options") or {})

    @property
    def arguments(self) -> dict[str, Any]:
        """The options that the operator is called with."""
        return {key: value for key, value in {**self.defaults, **json.loads(self.options)}.items() if key != "seed"}

    @property
    def of_labels(self) -> bool:
        """Whether the operator changes the task, not the model."""
        return target_of(self.operator) == "labels"

    @property
    def equivalent(self) -> bool:
        """Whether the operator promises to change no answer."""
        return bool(OPERATORS.fact(self.operator, "equivalent", False))

    @property
    def seed(self) -> int:
        """The seed of its random numbers: a digest of operator, units and options, so that mutants draw independently."""
        text = replace(self, donor=None).text
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")

    def random(self) -> random.Random:
        """Random numbers that need no torch."""
        return random.Random(self.seed)


def applied(mutation: Mutation, *arguments: Any) -> Any:
    """Call the operator with its target and options. Any exception becomes a `MutationError`; the other mutants go on."""
    try:
        return OPERATORS.get(mutation.operator)(*arguments, **mutation.arguments)
    except CircuitsError:
        raise
    except Exception as problem:
        raise MutationError(f"{mutation.name}: the operator raised {type(problem).__name__}: {problem}") from problem


_SOURCE = ("name", "path", "revision", "dtype", "device", "loader")


def intact(source: ModelSource) -> ModelSource:
    """The model that a mutant was made of."""
    return source if source.mutation is None else replace(source, mutation=None)


def intact_task(source: TaskSource) -> TaskSource:
    """The task that a relabelled one was made of."""
    return source if source.mutation is None else replace(source, mutation=None)


def check_options(operator: str, options: Mapping[str, Any]) -> None:
    """Raise `OptionError` for an unknown option, and for a value of another type than the default."""
    from ..errors import suggestion

    defaults = {**(OPERATORS.fact(operator, "options") or {}), "seed": 0}
    for key, value in options.items():
        if key not in defaults:
            raise OptionError(f"mutant {operator!r} has no option {key!r}; {suggestion(key, defaults)}")
        kind = type(defaults[key])
        if kind in _KINDS and not _KINDS[kind][1](value):
            raise OptionError(f"mutant {operator!r}: {key} is {_KINDS[kind][0]}, such as {defaults[key]}, got {value!r}")


_KINDS: dict[type, tuple[str, Callable[[Any], bool]]] = {
    int: ("a whole number", lambda value: type(value) is int),
    float: ("a finite number", lambda value: type(value) in (int, float) and isfinite(value)),
    bool: ("true or false", lambda value: type(value) is bool),
}
