"""The baselines of a session: finds the file of a spec, compares claims with its entries, and updates it at the end."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ..errors import CircuitsError
from . import files
from .entries import Entry, changes, entry_of, hints, key_of, model_of, version_changes
from .weights import is_of_other_weights, mixtures, refusal, weights_of

if TYPE_CHECKING:
    from ..core.claim import BaselineReference
    from ..report.model import BaselineComparison
    from ..report.record import RecordedClaim

MODES = ("new", "changed", "all")
CI_VARIABLES = ("CI", "BUILD_NUMBER")  # those that pytest itself checks
OFF = "none"


class BaselineManager:
    """`root` is the folder that node ids are relative to. `location` replaces the files next to the specs: a file, a folder or OFF.

    `mode`: which entries to write at the end (see MODES), or None. `prune`: remove entries of tests that a spec no longer has.
    """

    def __init__(self, root: Path, location: Path | str | None, mode: str | None, prune: bool) -> None:
        self.root, self.mode, self.prune = root, mode, prune
        self.is_off = location == OFF
        self._location = None if location is None or self.is_off else Path(location)
        self._read: dict[Path, files.Entries | None] = {}
        self._entries: list[tuple[Path, str, Entry | None]] = []
        self.messages: list[str] = []
        self.problems: list[str] = []

    @property
    def writes(self) -> bool:
        """Whether the baselines are updated at the end of the session."""
        return self.mode is not None or self.prune

    def path(self, file: str) -> Path:
        """The baseline file of a spec, named as in node ids."""
        default = files.path_for(self.root / file)
        if self._location is None:
            return default
        return self._location / default.name if self._location.is_dir() or not self._location.suffix else self._location

    def entries(self, file: str) -> files.Entries | None:
        """The entries for a spec, read once; None if it has no baseline file. Raises `BaselineError`."""
        path = self.path(file)
        if path not in self._read:
            self._read[path] = files.read(path)
        return self._read[path]

    def reference(self, nodeid: str, shown: str, of: str, tokenizer: str | None, versions: Mapping[str, Any]) -> BaselineReference:
        """The reference of a claim about drift: its entry, or else the entry of the claim `of` (a node id without the file, or "").

        `shown` is its node id relative to the working directory, for commands in messages. Raises `BaselineError`.
        """
        from ..core.claim import BaselineReference

        if self.is_off:
            return BaselineReference(
                None, "--circuits-baseline=none disables the comparison that this claim needs; give a baseline, or leave the option out"
            )
        file, _, key = nodeid.partition("::")
        entries, where = self.entries(file), self._relative(self.path(file))
        place = "" if self._location is None else f" --circuits-baseline={quote(where)}"

        def command(mode: str, model: str = "") -> str:
            return f"pytest {quote(shown)}{place}{model} --circuits-update-baseline={mode}"

        entry, related_entry = (entries or {}).get(key), (entries or {}).get(of)
        overwrites = self.mode in ("changed", "all")
        model = model_of(key)
        weights = () if overwrites else tuple(weights_of(entries or {}, model))
        release_command = command("new", f" --circuits-model={quote(model)}=RELEASE")
        if entry is not None:
            other = version_changes(entry, versions)
            if other:
                return BaselineReference(None, other[0], command("all"), overwrites, when="again")
            return BaselineReference(entry, "", command("all"), overwrites, tuple(hints(entry, tokenizer)), when="again")
        once: dict[str, Any] = {
            "command": command("new"),
            "writes": self.mode is not None,
            "weights": weights,
            "release_command": release_command,
        }
        if related_entry is not None and not version_changes(related_entry, versions):
            return BaselineReference(
                None, "", hints=tuple(hints(related_entry, tokenizer)), related_entry=related_entry, related_claim=repr(of), **once
            )
        problem = "there is no baseline" if entries is None else "the baseline has no entry for this claim"
        return BaselineReference(None, f"{problem} ({where})", **once)

    def compare(self, recorded: RecordedClaim) -> BaselineComparison | None:
        """Compare a claim with its entry, and remember its new entry for `finish`. None if there is nothing to compare with."""
        record = recorded.record
        if recorded.payload is None or recorded.measured_on is None:  # a claim in Python, or one stopped by an unexpected exception
            return None
        now, path = entry_of(recorded), self.path(record.file)
        self._entries.append((path, record.nodeid, now))
        if self.is_off:
            return None
        try:
            entries = self.entries(record.file)
        except files.BaselineError as problem:
            if str(problem) not in self.problems:
                self.problems.append(str(problem))
            return None
        if not self.writes:
            self._warn_of_mixture(path, entries or {})
        if entries is None and self._location is None:
            return None
        from .compare import comparison

        then = (entries or {}).get(key_of(record.nodeid))
        try:
            return comparison(then, now, record.confidence, self._relative(path))
        except (CircuitsError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            self.problems.append(f"{self._relative(path)}: the entry of {record.nodeid} cannot be read ({problem}); restore the file")
            return None

    def finish(self, known: Mapping[str, Sequence[str]]) -> None:
        """Update the files as the options say. `known`: the node ids of all tests of each spec, for pruning."""
        if not self.writes or self.problems:
            return
        specs: dict[Path, set[str]] = {}
        for path, nodeid, _ in self._entries:
            specs.setdefault(path, set()).add(nodeid.partition("::")[0])
        for path, names in sorted(specs.items()):
            if len(names) > 1:
                self.problems.append(f"{path} would be the baseline of {' and '.join(sorted(names))}: run one at a time, or give a folder")
                continue
            (spec,) = names
            new_entries = {key_of(nodeid): entry for where, nodeid, entry in self._entries if where == path}
            try:
                self._update(path, new_entries, {key_of(nodeid) for nodeid in known[spec]} if spec in known else None)
            except (OSError, files.BaselineError) as problem:
                self.problems.append(f"the baseline {self._relative(path)} cannot be written: {problem}")

    def _update(self, path: Path, new_entries: Mapping[str, Entry | None], known: set[str] | None) -> None:
        counts: list[str] = []
        refused: list[str] = []
        after: files.Entries = {}

        def merge(entries: files.Entries) -> files.Entries:
            written, unchanged, unmeasured = 0, 0, 0
            known_weights = {model: weights_of(entries, model) for model in map(model_of, new_entries)}
            for key, entry in new_entries.items() if self.mode else ():
                if entry is None:
                    unmeasured += 1
                elif not self._is_wanted(entries.get(key), entry):
                    unchanged += 1
                elif self.mode == "new" and is_of_other_weights(entry, known_weights, model_of(key)):
                    refused.append(key)
                else:
                    entries[key] = entry
                    written += 1
            removed = sorted(set(entries) - known) if self.prune and known is not None else []
            for key in removed:
                del entries[key]
            if self.mode:
                others = [f", {n} {status}" for n, status in ((unmeasured, "not measured"), (len(refused), "not written")) if n]
                counts.append(f"{written} written, {unchanged} unchanged{''.join(others)}")
            if self.prune:
                counts.append(f"{len(removed)} removed" + (f": {', '.join(removed)}" if removed else ""))
            after.update(entries)
            return entries

        changed = files.change(path, merge)
        self.messages.append(f"baseline {self._relative(path)}: {'; '.join(counts)}{'' if changed else '; the file did not change'}")
        self._warn_of_mixture(path, after)
        for model in dict.fromkeys(map(model_of, refused)):
            keys = [key for key in refused if model_of(key) == model]
            message = refusal(keys, new_entries[keys[0]] or {}, weights_of(after, model))
            self.problems.append(f"baseline {self._relative(path)}: {message}")

    def _warn_of_mixture(self, path: Path, entries: files.Entries) -> None:
        for mixture in mixtures(entries):
            warning = f"WARNING: baseline {self._relative(path)} {mixture}"
            self.messages += [] if warning in self.messages else [warning]

    def _is_wanted(self, then: Entry | None, now: Entry) -> bool:
        return then is None or self.mode == "all" or (self.mode == "changed" and bool(changes(then, now)))

    def _relative(self, path: Path) -> str:
        try:
            return os.path.relpath(path)
        except ValueError:  # another drive
            return str(path)


def ci_variable(environ: Mapping[str, str]) -> str | None:
    """The environment variable that indicates continuous integration, or None."""
    return next((name for name in CI_VARIABLES if environ.get(name, "").strip().lower() not in ("", "0", "false", "no")), None)
