"""`--circuits-model NAME=PATH`: other models in the place of those of a spec."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..core.sources import ModelSource
from ..errors import OptionError
from .checkpoints import CheckpointMatch, absolute, directories, is_glob, model_path, series
from .document import REFERENCE

LOADER = "loader:"
Models = Mapping[str, tuple[ModelSource, ...]]


def replace_models(models: Models, paths: Mapping[str, str]) -> tuple[dict[str, tuple[ModelSource, ...]], frozenset[str]]:
    """The models with those of `paths` replaced, and the names that were.

    NAME is an entry, all of whose checkpoints give way, or one checkpoint, NAME@LABEL, which keeps its name and place. PATH is a
    directory (relative to the working directory) or a hub id, `loader:pkg.mod:function`, or, for an entry, a pattern such as
    `run/step-*`, which makes it a series of the directories that match. A replaced model keeps dtype and device, and loses revision,
    loader and fixture. Raises `OptionError` for a pattern that matches nothing, several directories in the place of one checkpoint, and
    a reference that is none or lacks its prefix.
    """
    replaced = {name: _entry(name, sources[0], paths[name]) if name in paths else sources for name, sources in models.items()}
    for name, sources in replaced.items():
        replaced[name] = tuple(
            _single(source, source.name, paths[source.name]) if source.name != name and source.name in paths else source
            for source in sources
        )
    known = {*replaced, *(source.name for sources in replaced.values() for source in sources)}
    return replaced, frozenset(known & set(paths))


def _entry(name: str, like: ModelSource, path: str) -> tuple[ModelSource, ...]:
    like = replace(like, name=name, at=None)
    if not is_glob(Path.cwd(), path):
        return (_single(like, name, path),)
    matched = _matching(name, path)
    return series(name, [CheckpointMatch(directory, os.path.basename(directory)) for directory in matched], like)


def _single(source: ModelSource, name: str, path: str) -> ModelSource:
    loader = None if os.path.exists(absolute(Path.cwd(), path)) else _reference(name, path)
    if loader is not None:
        return replace(source, path=None, revision=None, loader=loader, fixture=None)
    if is_glob(Path.cwd(), path):
        matched = _matching(name, path)
        if len(matched) > 1:
            raise OptionError(f"--circuits-model {name}={path}: {len(matched)} directories match, and {name!r} is a single checkpoint")
        path = matched[0]
    return replace(source, path=model_path(Path.cwd(), path), revision=None, loader=None, fixture=None)


def _reference(name: str, written: str) -> str | None:
    """What is written after `loader:`; None for a path."""
    prefixed = written.startswith(LOADER)
    reference = written.removeprefix(LOADER)
    if re.fullmatch(REFERENCE, reference):
        if prefixed:
            return reference
        raise OptionError(
            f"--circuits-model {name}={written}: there is no directory {absolute(Path.cwd(), written)}; if a Python function that returns "
            f"the model is meant, write {name}={LOADER}{written}"
        )
    if prefixed:
        raise OptionError(f"--circuits-model {name}={written}: a loader is written {LOADER}package.module:function")
    return None


def _matching(name: str, pattern: str) -> list[str]:
    matches = directories(Path.cwd(), pattern)
    if not matches:
        raise OptionError(f"--circuits-model {name}={pattern}: no directory matches (looked for {absolute(Path.cwd(), pattern)})")
    return matches
