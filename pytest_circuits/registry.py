"""Named things (attribution methods, ablation kinds, properties, tasks) that are imported only when used.

A registry knows the names of its built-in entries without importing them, so that a spec can be checked
without torch. Third parties add entries with `add` (usually as a decorator) or through an entry point of
the registry's group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, TypeVar

from .errors import OptionError, suggestion

T = TypeVar("T")


@dataclass
class Registry:
    """Names → objects; `builtin` maps a name to `"module:attribute"`, `facts` holds what is known before the import."""

    what: str
    group: str
    builtin: dict[str, str]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    _loaded: dict[str, Any] = field(default_factory=dict)
    _scanned: bool = False

    def add(self, name: str, thing: Any = None, **facts: Any) -> Any:
        """Register `thing` under `name`; without `thing`, a decorator. A taken name is refused."""
        if thing is None:
            return lambda later: self.add(name, later, **facts)
        if name in self.builtin or (name in self._loaded and self._loaded[name] is not thing):
            raise OptionError(f"{self.what} {name!r} is already registered; choose another name")
        self._loaded[name] = thing
        self.facts[name] = facts
        return thing

    def names(self) -> list[str]:
        """All names, built-in and third-party, sorted."""
        self._scan()
        return sorted({*self.builtin, *self._loaded})

    def fact(self, name: str, key: str, default: Any = None) -> Any:
        """Something known of an entry without importing it, e.g. the levels an attribution method works at."""
        return self.facts.get(name, {}).get(key, default)

    def __contains__(self, name: object) -> bool:
        return name in self.builtin or name in self._loaded or name in self.names()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def get(self, name: str) -> Any:
        """The object itself, imported now if need be. Raises `OptionError` with a suggestion for unknown names."""
        if name not in self._loaded:
            if name in self.builtin:
                module, _, attribute = self.builtin[name].partition(":")
                self._loaded[name] = getattr(import_module(module), attribute)
            elif name not in self.names():
                raise OptionError(f"unknown {self.what} {name!r}; {suggestion(name, self.names())}")
        return self._loaded[name]

    def _scan(self) -> None:
        if self._scanned:
            return
        self._scanned = True
        from importlib.metadata import entry_points  # late: costs 30 ms, and most runs name only built-in entries

        for point in entry_points(group=self.group):
            if point.name not in self.builtin and point.name not in self._loaded:
                thing = point.load()
                if point.name not in self._loaded:  # loading may itself have called `add`
                    self.add(point.name, thing)


def load_object(reference: str) -> Callable[..., Any]:
    """The object behind `"package.module:attribute"`; `OptionError` says which half is missing."""
    module, colon, attribute = reference.partition(":")
    if not (module and colon and attribute):
        raise OptionError(f"{reference!r} is no reference of the form 'package.module:function'")
    try:
        found: Any = import_module(module)
    except ImportError as problem:
        raise OptionError(f"cannot import {module!r} of {reference!r}: {problem}") from problem
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise OptionError(f"{reference!r}: {module!r} has no {attribute!r}")
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


def with_options(kind: type[T], options: Mapping[str, Any]) -> T:
    """An instance of a registered dataclass with its options. Raises `OptionError` for an option that it does not have."""
    allowed = list(getattr(kind, "__dataclass_fields__", {}))
    for name in options:
        if name not in allowed:
            raise OptionError(f"{getattr(kind, 'name', kind.__name__)} has no option {name!r}; {suggestion(name, allowed)}")
    return kind(**options)
