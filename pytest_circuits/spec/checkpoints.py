"""Series of models: `checkpoints:` of a model entry, or a glob on the command line, to one source for each."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.sources import ModelSource
from ..core.unique_names import unique_names
from .document import CheckpointEntry, ModelEntry, Range, Revisions
from .problems import Problems
from .spelling import show
from .yaml_reader import Where

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_WILD = re.compile(r"[*?\[]")
_UNSAFE = re.compile(r"[\s\[\]/\\:=]+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_MARKED = re.compile(r"(?:step|checkpoint|ckpt|iteration|iter|epoch|seed)s?[-_. =]?(\d+(?:\.\d+)?)", re.IGNORECASE)


@dataclass(frozen=True)
class CheckpointMatch:
    """One checkpoint: a directory or hub id, its revision, what it is called, and the place in the file that names it."""

    path: str
    name: str
    where: Where = ()
    revision: str | None = None
    at: float | None = None


def model_path(folder: Path, written: str) -> str:
    """A directory relative to `folder`; what does not exist and looks like a hub id (`org/name`) stays as it is."""
    path = absolute(folder, written)
    return written if _HUB_ID.fullmatch(written) and not os.path.exists(path) else path


def absolute(folder: Path | str, written: str) -> str:
    """The path without `~` and `..`, relative to `folder` unless it is absolute."""
    return os.path.abspath(os.path.join(folder, os.path.expanduser(written)))


def is_glob(folder: Path | str, written: str) -> bool:
    """Whether a text has wildcards, and is not itself a path that exists."""
    return _WILD.search(written) is not None and not os.path.exists(absolute(folder, written))


def directories(folder: Path | str, pattern: str) -> list[str]:
    """The directories that a pattern matches, relative to `folder`, as absolute paths in natural order: step-9 before step-10."""
    if not is_glob(folder, pattern):
        return [path] if os.path.isdir(path := absolute(folder, pattern)) else []
    matches = glob.glob(os.path.expanduser(pattern), root_dir=folder, recursive=True)
    return sorted({path for match in matches if os.path.isdir(path := absolute(folder, match))}, key=_natural)


def series(name: str, matches: Sequence[CheckpointMatch], like: ModelSource) -> tuple[ModelSource, ...]:
    """Sources called `NAME@LABEL`, with the options of `like`, in the order of their `at`.

    `at` is as given, else a number of the name, else the place. Raises `ValueError` where some are given and others unknown.
    """
    ats = _ats(matches)
    order = sorted(range(len(matches)), key=lambda i: ats[i])
    labels = _labels(matches)
    return tuple(
        replace(like, name=f"{name}@{labels[i]}", path=matches[i].path, revision=matches[i].revision, loader=None, fixture=None, at=ats[i])
        for i in order
    )


def read_series(
    problems: Problems, folder: Path, name: str, entry: ModelEntry, like: ModelSource, *, replaced: bool = False
) -> tuple[ModelSource, ...] | None:
    """The checkpoints of an entry. None, with the mistakes reported, if one is wrong; a `replaced` entry may match nothing."""
    where: Where = ("models", name, "checkpoints")
    reader = _Reader(problems, folder, None if entry.path is None else model_path(folder, entry.path), replaced)
    matches = [match for match in reader.read(entry, where) if match is not None]
    known: dict[tuple[str, str | None], Where] = {}
    for match in matches:
        if (match.path, match.revision) in known:
            problems.at_value(match.where, f"{_shown(match)} is given twice")
            reader.wrong = True
        known[match.path, match.revision] = match.where
    if reader.wrong:
        return None
    if not matches:  # only where the command line has another series in its place
        return (replace(like, path=absolute(folder, entry.path or name)),)
    try:
        return series(name, matches, like)
    except ValueError as problem:
        problems.at_value(where, str(problem))
        return None


@dataclass
class _Reader:
    problems: Problems
    folder: Path
    path: str | None  # of the entry: a directory, or a hub id
    lenient: bool
    wrong: bool = False

    @property
    def hub(self) -> bool:
        return self.path is not None and not os.path.isabs(self.path)

    def refuse(self, where: Where, text: str) -> None:
        self.wrong = True
        self.problems.at_value(where, text)

    def read(self, entry: ModelEntry, where: Where) -> Iterator[CheckpointMatch | None]:
        written = entry.checkpoints
        if isinstance(written, Revisions):
            for i, revision in enumerate(written.revisions):
                yield self.revision(revision, (*where, "revisions", i), None)
        elif isinstance(written, Range):
            yield from self.between(written, where)
        elif isinstance(written, str):
            if self.hub:
                self.refuse(where, f"the checkpoints of a hub id are its revisions, as a list: [{written}, …]")
            else:
                yield from self.matching(written, where)
        else:
            for i, checkpoint in enumerate(written or ()):
                yield from self.listed(checkpoint, (*where, i))

    def listed(self, checkpoint: str | CheckpointEntry, where: Where) -> Iterator[CheckpointMatch | None]:
        if isinstance(checkpoint, str):
            if self.hub:
                yield self.revision(checkpoint, where, None)
            elif is_glob(self.path or self.folder, checkpoint):
                yield from self.matching(checkpoint, where)
            else:
                yield self.directory(checkpoint, where, None, None)
        elif checkpoint.path is not None:
            if self.hub:
                self.refuse((*where, "path"), f"the checkpoints of the hub id {self.path!r} are its revisions: give 'revision' here")
            else:
                yield self.directory(checkpoint.path, where, checkpoint.revision, checkpoint.at)
        elif checkpoint.revision is not None:
            yield self.revision(checkpoint.revision, where, checkpoint.at)
        else:
            self.refuse(where, "a checkpoint needs a path, or the revision of a hub id")

    def matching(self, pattern: str, where: Where) -> Iterator[CheckpointMatch]:
        folder = self.path or self.folder
        paths = directories(folder, pattern)
        if not paths and not self.lenient:
            self.refuse(where, f"no directory matches {show(pattern)} (looked for {absolute(folder, pattern)})")
        yield from (CheckpointMatch(path, os.path.basename(path), where) for path in paths)

    def between(self, wanted: Range, where: Where) -> Iterator[CheckpointMatch]:
        """Those that a pattern matches with a number from `first` to `last`."""
        if self.hub:
            self.refuse(where, f"the checkpoints of the hub id {self.path!r} are its revisions, as a list: [{wanted.pattern}, …]")
            return
        matches = list(self.matching(wanted.pattern, where))
        ats = numbers([match.name for match in matches])
        if ats is None:
            if matches:
                self.refuse((*where, "pattern"), f"{show(matches[0].name)} and the others have no number that tells them apart; list them")
            return
        low, high = (-float("inf") if wanted.first is None else wanted.first), (float("inf") if wanted.last is None else wanted.last)
        inside = [replace(match, at=at) for match, at in zip(matches, ats, strict=True) if low <= at <= high]
        if not inside:
            known = ", ".join(f"{at:.12g}" for at in sorted(ats))
            self.refuse(where, f"no directory of {show(wanted.pattern)} lies from {low:g} to {high:g}: they are at {known}")
        yield from inside

    def directory(self, written: str, where: Where, revision: str | None, at: float | None) -> CheckpointMatch | None:
        path = model_path(self.folder, written) if self.path is None else absolute(self.path, written)
        if revision is not None and os.path.isabs(path):
            self.refuse((*where, "revision"), f"{written} is a directory, which has no revisions")
            return None
        return CheckpointMatch(path, revision or os.path.basename(path), where, revision, at)

    def revision(self, revision: str, where: Where, at: float | None) -> CheckpointMatch | None:
        if not self.hub:
            what = "a revision needs 'path', a hub id such as org/name, in the model's entry"
            self.refuse(where, what if self.path is None else f"{self.path} is a directory, which has no revisions; {what}")
            return None
        return CheckpointMatch(str(self.path), revision, where, revision, at)


def _natural(path: str) -> list[tuple[int, float, str]]:
    parts = re.split(r"(\d+)", path)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def _labels(matches: Sequence[CheckpointMatch]) -> list[str]:
    return unique_names("".join(c for c in _UNSAFE.sub("-", match.name) if c.isprintable()) or "checkpoint" for match in matches)


def _ats(matches: Sequence[CheckpointMatch]) -> list[float]:
    unknown = [match for match in matches if match.at is None]
    read = numbers([match.name for match in unknown])
    if len(unknown) == len(matches):
        return [float(i) for i in range(len(matches))] if read is None else read
    if read is None and unknown:
        raise ValueError(f"'at' is given for some checkpoints, and the name of {_shown(unknown[0])} has no number for it; give it for all")
    rest = iter(read or ())
    ats = [float(next(rest) if match.at is None else match.at) for match in matches]
    twice = next((at for at in ats if ats.count(at) > 1), None)
    if twice is not None:
        raise ValueError(f"two checkpoints are at {twice:.12g}; each needs a place of its own")
    return ats


def numbers(names: Sequence[str]) -> list[float] | None:
    """A number for each name, all different: that after `step`, `checkpoint`, `epoch`, `seed` …, else the only one that varies; or None."""
    if not names:
        return None
    marked = [_MARKED.search(name) for name in names]
    if all(marked):
        values = [float(match[1]) for match in marked if match]
        if len(set(values)) == len(values):
            return values
    rows = [[float(number) for number in _NUMBER.findall(name)] for name in names]
    if len({len(row) for row in rows}) != 1:
        return None
    columns = [list(column) for column in zip(*rows, strict=True)]
    varying = columns if len(names) == 1 else [column for column in columns if len(set(column)) > 1]
    return varying[0] if len(varying) == 1 and len(set(varying[0])) == len(names) else None


def _shown(match: CheckpointMatch) -> str:
    return repr(match.revision or match.path)
