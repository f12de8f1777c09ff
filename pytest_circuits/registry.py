"""Named things (attribution methods, ablation kinds, properties, tasks …) that are imported only when used.

A registry knows the names of its built-in entries without importing them, so that a spec can be checked without torch. Third parties
add entries with `add` (usually as a decorator) or through an entry point of the registry's group.

Facts about an entry, such as the levels that an attribution method works at, are known without importing it. Those of a built-in entry
are the literal `FACTS = {…}` of its module, which is read as source; third parties pass theirs to `add`.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from .errors import OptionError, suggestion

T = TypeVar("T")
_ROOT = Path(__file__).parent.parent


@dataclass
class Registry:
    """Names → objects. `what` is one entry in words; `builtin` maps the name of a built-in entry to `"module:attribute"`."""

    what: str
    group: str
    builtin: dict[str, str]
    _facts: dict[str, Mapping[str, Any]] = field(default_factory=dict, init=False)
    _loaded: dict[str, Any] = field(default_factory=dict, init=False)
    _scanned: bool = field(default=False, init=False)

    def add(self, name: str, thing: Any = None, **facts: Any) -> Any:
        """Register `thing` under `name`; without `thing`, a decorator. Raises `OptionError` for a name that is taken."""
        if thing is None:
            return lambda decorated: self.add(name, decorated, **facts)
        if name in self.builtin or (name in self._loaded and self._loaded[name] is not thing):
            raise OptionError(f"{self.what} {name!r} is already registered; choose another name")
        self._loaded[name] = thing
        self._facts[name] = facts
        return thing

    def remove(self, name: str) -> None:
        """Unregister a third-party entry. Raises `OptionError` for a built-in or unknown one."""
        if name in self.builtin:
            raise OptionError(f"{self.what} {name!r} is built in and cannot be removed")
        self.get(name)
        del self._loaded[name]
        self._facts.pop(name, None)

    @property
    def third_party(self) -> set[str]:
        """The names of entries that were added so far and are not built in."""
        return set(self._loaded) - set(self.builtin)

    def names(self) -> list[str]:
        """All names, built-in and third-party, sorted."""
        self._scan()
        return sorted({*self.builtin, *self._loaded})

    def fact(self, name: str, key: str, default: Any = None) -> Any:
        """A fact about an entry, known without importing it; `default` where the entry does not state it."""
        if name not in self._facts and name in self.builtin:
            self._facts[name] = _facts_in_source(*self.builtin[name].split(":"))
        return self._facts.get(name, {}).get(key, default)

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


def _facts_in_source(module: str, attribute: str) -> Mapping[str, Any]:
    """The literal `FACTS` of a module of this package, without importing it: of `attribute`, where it holds facts by name."""
    source = _ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
    _, separator, rest = source.partition("\nFACTS")
    if not separator:
        return {}
    text = rest.partition("= ")[2]
    first = text.partition("\n")[0]
    facts: Mapping[str, Any] = literal_eval(first if first.endswith("}") else text.partition("\n}")[0] + "\n}")
    of_attribute: Mapping[str, Any] = facts.get(attribute, facts)
    return of_attribute


def load_object(reference: str) -> Callable[..., Any]:
    """The object behind `"package.module:attribute"`. Raises `OptionError` for a reference that does not lead to one."""
    module, colon, attribute = reference.partition(":")
    if not (module and colon and attribute):
        raise OptionError(f"{reference!r} is not a reference of the form 'package.module:function'")
    try:
        target: Any = import_module(module)
    except ImportError as problem:
        raise OptionError(f"cannot import {module!r} of {reference!r}: {problem}") from problem
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise OptionError(f"{reference!r}: {module!r} has no {attribute!r}")
        target = getattr(target, part)
    return target  # type: ignore[no-any-return]


def with_options(kind: type[T], options: Mapping[str, Any]) -> T:
    """An instance of a registered dataclass with its options. Raises `OptionError` for an option that it does not have."""
    allowed = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    for name in options:
        if name not in allowed:
            raise OptionError(f"{getattr(kind, 'name', kind.__name__)} has no option {name!r}; {suggestion(name, allowed)}")
    return kind(**options)
