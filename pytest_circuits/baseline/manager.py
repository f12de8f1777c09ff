"""The baselines of a session: which file belongs to a spec, what it holds of a claim, and writing at the end. One for each process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from ..errors import CircuitsError
from . import files
from . import releases as mixing
from .entries import Entry, changes, entry_of, hints, key_of, model_of, version_changes

if TYPE_CHECKING:
    from ..core.claim import BaselineReference
    from ..report.model import BaselineComparison
    from ..report.record import RecordedClaim

MODES = ("new", "changed", "all")
CI = ("CI", "BUILD_NUMBER")  # as pytest tells that it runs under continuous integration
OFF = "none"


class BaselineManager:
    """`root` is the folder that node ids are relative to; `given` the file or folder in place of the files beside the specs, or OFF.

    `mode` says which entries are written at the end, None: none are. `prune`: entries of tests that a spec no longer has go.
    """

    def __init__(self, root: Path, given: Path | str | None, mode: str | None, prune: bool) -> None:
        self.root, self.mode, self.prune = root, mode, prune
        self.off = given == OFF
        self._given = None if given is None or self.off else Path(given)
        self._read: dict[Path, files.Entries | None] = {}
        self._entries: list[tuple[Path, str, Entry | None]] = []
        self.messages: list[str] = []
        self.problems: list[str] = []

    @property
    def writes(self) -> bool:
        """Whether baselines are changed at the end."""
        return self.mode is not None or self.prune

    def path(self, file: str) -> Path:
        """The baseline file of a spec, named as in node ids."""
        own = files.beside(self.root / file)
        if self._given is None:
            return own
        return self._given / own.name if self._given.is_dir() or not self._given.suffix else self._given

    def entries(self, file: str) -> files.Entries | None:
        """The entries for a spec, read once; None where there is no file. Raises `BaselineError`."""
        path = self.path(file)
        if path not in self._read:
            self._read[path] = files.read(path)
        return self._read[path]

    def recorded(self, nodeid: str, shown: str, of: str, tokenizer: str | None, versions: Mapping[str, Any]) -> BaselineReference:
        """What a claim about drift is compared with: its entry, or else that of the claim in `of` (a node id without the file, or "").

        `shown` is its node id as it has to be typed. Raises `BaselineError`.
        """
        from ..core.claim import BaselineReference

        if self.off:
            return BaselineReference(
                None, "--circuits-baseline=none leaves nothing to compare with; give a baseline, or leave the option out"
            )
        file, _, key = nodeid.partition("::")
        found, where = self.entries(file), self._shown(self.path(file))
        place = "" if self._given is None else f" --circuits-baseline={quote(where)}"

        def command(mode: str, model: str = "") -> str:
            return f"pytest {quote(shown)}{place}{model} --circuits-update-baseline={mode}"

        entry, lent = (found or {}).get(key), (found or {}).get(of)
        anew = self.mode in ("changed", "all")
        model = model_of(key)
        weights = () if anew else tuple(mixing.weights_of(found or {}, model))
        elsewhere = command("new", f" --circuits-model={quote(model)}=RELEASE")
        if entry is not None:
            other = version_changes(entry, versions)
            if other:
                return BaselineReference(None, other[0], command("all"), anew, again="anew")
            return BaselineReference(entry, "", command("all"), anew, tuple(hints(entry, tokenizer)), again="anew")
        once: dict[str, Any] = {"command": command("new"), "writes": self.mode is not None, "weights": weights, "elsewhere": elsewhere}
        if lent is not None and not version_changes(lent, versions):
            return BaselineReference(None, "", hints=tuple(hints(lent, tokenizer)), lent=lent, lender=repr(of), **once)
        what = "there is no baseline" if found is None else "the baseline has no entry for this claim"
        return BaselineReference(None, f"{what} ({where})", **once)

    def compare(self, recorded: RecordedClaim) -> BaselineComparison | None:
        """The comparison of a claim with its entry, which is also remembered for writing; None where there is nothing to compare with."""
        record = recorded.record
        if recorded.payload is None or recorded.measured_on is None:  # a claim in Python, or one that an unexpected exception stopped
            return None
        now, path = entry_of(recorded), self.path(record.file)
        self._entries.append((path, record.nodeid, now))
        if self.off:
            return None
        try:
            entries = self.entries(record.file)
        except files.BaselineError as problem:
            if str(problem) not in self.problems:
                self.problems.append(str(problem))
            return None
        if not self.writes:
            self._warn_of_mixture(path, entries or {})
        if entries is None and self._given is None:
            return None
        from .compare import comparison

        then = (entries or {}).get(key_of(record.nodeid))
        try:
            return comparison(then, now, record.confidence, self._shown(path))
        except (CircuitsError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            self.problems.append(f"{self._shown(path)}: the entry of {record.nodeid} cannot be read ({problem}); restore the file")
            return None

    def finish(self, known: Mapping[str, Sequence[str]]) -> None:
        """Write what the options ask for. `known` are, by spec, the node ids of all its tests, for pruning."""
        if not self.writes or self.problems:
            return
        specs: dict[Path, set[str]] = {}
        for path, nodeid, _ in self._entries:
            specs.setdefault(path, set()).add(nodeid.partition("::")[0])
        for path, of in sorted(specs.items()):
            if len(of) > 1:
                self.problems.append(f"{path} would be the baseline of {' and '.join(sorted(of))}: run one at a time, or give a folder")
                continue
            (spec,) = of
            made = {key_of(nodeid): entry for where, nodeid, entry in self._entries if where == path}
            try:
                self._change(path, made, {key_of(one) for one in known[spec]} if spec in known else None)
            except (OSError, files.BaselineError) as problem:
                self.problems.append(f"the baseline {self._shown(path)} cannot be written: {problem}")

    def _change(self, path: Path, made: Mapping[str, Entry | None], known: set[str] | None) -> None:
        counts: list[str] = []
        refused: list[str] = []
        after: files.Entries = {}

        def merged(entries: files.Entries) -> files.Entries:
            written, kept, unmeasured = 0, 0, 0
            known_weights = {model: mixing.weights_of(entries, model) for model in map(model_of, made)}
            for key, entry in made.items() if self.mode else ():
                if entry is None:
                    unmeasured += 1
                elif not self._wanted(entries.get(key), entry):
                    kept += 1
                elif self.mode == "new" and mixing.of_another(entry, known_weights, model_of(key)):
                    refused.append(key)
                else:
                    entries[key] = entry
                    written += 1
            gone = sorted(set(entries) - known) if self.prune and known is not None else []
            for key in gone:
                del entries[key]
            if self.mode:
                more = [f", {n} {what}" for n, what in ((unmeasured, "not measured"), (len(refused), "not written")) if n]
                counts.append(f"{written} written, {kept} left as they are{''.join(more)}")
            if self.prune:
                counts.append(f"{len(gone)} removed" + (f": {', '.join(gone)}" if gone else ""))
            after.update(entries)
            return entries

        changed = files.change(path, merged)
        self.messages.append(f"baseline {self._shown(path)}: {'; '.join(counts)}{'' if changed else '; the file is as it was'}")
        self._warn_of_mixture(path, after)
        for model in dict.fromkeys(map(model_of, refused)):
            keys = [key for key in refused if model_of(key) == model]
            refusal = mixing.refusal(keys, made[keys[0]] or {}, mixing.weights_of(after, model))
            self.problems.append(f"baseline {self._shown(path)}: {refusal}")

    def _warn_of_mixture(self, path: Path, entries: files.Entries) -> None:
        for mixture in mixing.mixtures(entries):
            warning = f"WARNING: baseline {self._shown(path)} {mixture}"
            self.messages += [] if warning in self.messages else [warning]

    def _wanted(self, then: Entry | None, now: Entry) -> bool:
        return then is None or self.mode == "all" or (self.mode == "changed" and bool(changes(then, now)))

    def _shown(self, path: Path) -> str:
        try:
            return os.path.relpath(path)
        except ValueError:  # another drive
            return str(path)


def under_ci(environ: Mapping[str, str]) -> str | None:
    """The variable that says that this is a run of continuous integration, or None."""
    return next((name for name in CI if environ.get(name, "").strip().lower() not in ("", "0", "false", "no")), None)
