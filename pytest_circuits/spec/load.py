"""Loads a spec file: bytes → YAML with places → a typed, validated `Suite`; all mistakes are reported together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..core.claim import Claim
from ..core.sources import ModelSource
from ..errors import OptionError, SpecError, suggestion
from . import drift
from .claims import SpecContext, expand_claim, properties_of
from .document import TOP_LEVEL, VERSION
from .parameters import check_defaults
from .problems import Problems, SpecErrors
from .replace import replace_models
from .sections import read_model, read_task, section
from .spelling import show
from .suite import Suite
from .yaml_reader import Document, read_yaml

__all__ = ["Claim", "SpecErrors", "Suite", "load_suite"]


def load_suite(
    path: str | os.PathLike[str], *, models: Mapping[str, str] | None = None, unknown: str = "refuse", content: bytes | None = None
) -> Suite:
    """Read and validate a spec file, or what is to become one (`content`); nothing is measured and no model is opened.

    `models` replaces models by name (`--circuits-model NAME=PATH`, see `replace.replace_models`; `Suite.replaced` says which).
    Raises `SpecErrors` with all mistakes of the file, `OptionError` for a replaced model that the file does not have (not with
    `unknown="ignore"`: it may be in another file) and for a pattern that matches nothing.
    """
    path = Path(path)
    shown = _shown(path)
    try:
        document = read_yaml(path.read_bytes() if content is None else content, shown)
    except OSError as problem:
        raise SpecErrors([SpecError(shown, 1, 1, f"cannot be read: {problem.strerror or problem}")]) from None
    except SpecError as problem:
        raise SpecErrors([problem]) from None
    problems = Problems(document)
    suite = _suite(document, problems, path, models or {})
    problems.raise_if_any()
    missing = [name for name in models or {} if name not in suite.replaced]
    if missing and unknown == "refuse":
        names = dict.fromkeys([*suite.series, *suite.models])
        raise OptionError(f"{shown} has no model {missing[0]!r} to be replaced by --circuits-model; {suggestion(missing[0], names)}")
    return suite


def _suite(document: Document, problems: Problems, path: Path, replacements: Mapping[str, str]) -> Suite:
    data = document.data
    _version(problems, data)
    for key in data:
        if key not in TOP_LEVEL:
            problems.at_key((key,), f"unknown key {key!r}; {suggestion(key, TOP_LEVEL)}", about=())
    for key in ("models", "claims"):
        if key not in data:
            problems.at_key((), f"the key {key!r} is missing; a spec needs version, models and claims")
        elif not data[key]:
            problems.at_key((key,), f"is empty; a spec needs at least one entry under {key!r}")
    for key in ("tasks", "defaults"):
        if key in data and data[key] is None:
            problems.at_key((key,), "is empty; write an entry, or leave the key out")
    present = {key: value for key, value in data.items() if value is not None}
    document = replace(document, data=present)
    problems.document = document
    models = section(problems, "models", partial(read_model, problems, path.parent, replacements))
    _check_names(problems, models)
    models, replaced = replace_models(models, replacements)
    tasks = section(problems, "tasks", partial(read_task, problems, path.parent))
    claims = present.get("claims", {})
    if not isinstance(claims, dict):
        problems.at_value(("claims",), f"must be a mapping from names to claims, got {show(claims)}")
        claims = {}
    claims, about = drift.written_out(problems, claims, tuple(models))
    used = {name for claim in claims.values() for name in properties_of(claim)}
    names = _names(present, "models"), _names(present, "tasks")
    context = SpecContext(problems, models, names[0], tasks, names[1], check_defaults(problems, used), replaced)
    expanded = [test for name, claim in claims.items() for test in expand_claim(context, name, claim)]
    expanded = drift.resolved(problems, expanded, models, about)
    every = {source.name: source for sources in models.values() for source in sources}
    series = {name: sources for name, sources in models.items() if name not in every}
    return Suite(path, every, tasks, tuple(expanded), series, replaced)


def _version(problems: Problems, data: Mapping[str, Any]) -> None:
    version = data.get("version")
    if "version" not in data:
        problems.at_key((), f"the key 'version' is missing; write 'version: {VERSION}'")
    elif type(version) is not int or version != VERSION:
        problems.at_value(("version",), f"must be {VERSION}, the only version that there is, got {show(version)}")
        problems.raise_if_any()  # another version may have another grammar: further complaints would mislead


def _names(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    return tuple(data[key]) if isinstance(data.get(key), dict) else ()


def _check_names(problems: Problems, models: Mapping[str, tuple[ModelSource, ...]]) -> None:
    """Refuse an entry that is called like a checkpoint of another."""
    for name, sources in models.items():
        for source in sources:
            if source.name != name and source.name in models:
                text = f"{source.name!r} is also what a checkpoint of {name!r} is called"
                problems.at_key(("models", source.name), text, about=("models",))


def _shown(path: Path) -> str:
    """As the user would write it: relative to the working directory where the file lies below it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
