"""Baseline files: their location and format, reading and writing."""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from ..core.atomic import write_atomic
from ..core.spec_files import SUFFIX
from ..errors import CircuitsError

SCHEMA = 1
ENDING = ".circuits.baseline.json"
_WIDE = 132  # characters of a line that holds a whole list or mapping
_FIELDS = {"property": str, "parameters": dict, "bound": dict, "verdict": str, "interval": list, "n": int, "fingerprints": dict,
           "versions": dict, "circuits": dict, "kept": dict}  # fmt: skip

Entries = dict[str, dict[str, Any]]


class BaselineError(CircuitsError):
    """A baseline file cannot be read or written. Restore it from version control, or write it again with the command given."""


def path_for(spec: Path) -> Path:
    """The baseline file of a spec: for `core.circuits.yaml`, `core.circuits.baseline.json` in the same folder."""
    return spec.with_name(spec.name.removesuffix(SUFFIX) + ENDING)


def read(path: Path) -> Entries | None:
    """The entries by node id without the file; None if the file does not exist. Raises `BaselineError` for any other content."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise BaselineError(f"the baseline {path} cannot be read: {problem}") from None
    try:
        content = json.loads(text, parse_constant=_reject_constant, object_pairs_hook=_reject_duplicates)
    except ValueError as problem:
        conflict = "; it contains merge conflict markers" if "<<<<<<<" in text else ""
        raise BaselineError(f"the baseline {path} is not valid JSON ({problem}){conflict}: restore it from version control") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("claims"), dict):
        schema = content.get("schema") if isinstance(content, dict) else None
        fault = "it is not a JSON object" if not isinstance(content, dict) else f"its schema is {schema!r}; {SCHEMA} is needed"
        fault = "it has no mapping 'claims'" if schema == SCHEMA else fault
        raise BaselineError(f"{path} is not a baseline that this version can read ({fault}); restore it from version control")
    for name, entry in content["claims"].items():
        entry_fault = _find_fault(entry) or (None if "::" in name else "is not named like a test, CLAIM::MODEL::…")
        if entry_fault:
            raise BaselineError(f"the baseline {path} is damaged: claim {name!r} {entry_fault}; restore it from version control")
    entries: Entries = content["claims"]
    return entries


def write(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a file atomically; the same entries give the same bytes. Raises `OSError`."""
    write_atomic(path, text_of({"schema": SCHEMA, "claims": entries}))


def change(path: Path, update: Callable[[Entries], Entries]) -> bool:
    """Replace the entries by `update(entries)`, under a lock. Returns whether the file's content changed."""
    with _lock(path):
        before = read(path)
        after = update(dict(before or {}))
        if after == (before or {}):
            return False
        write(path, after)
        return True


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Held by one process at a time; the lock file is in the temporary folder, not next to the spec."""
    from filelock import FileLock

    place = Path(tempfile.gettempdir(), f"pytest-circuits-{sha256(os.fsencode(path.resolve())).hexdigest()[:24]}.lock")
    with FileLock(place):
        yield


def text_of(content: Any) -> str:
    """JSON with sorted keys and one line per field of a claim: short lists and mappings stay on one line, for readable diffs."""
    return _lines(content, 0) + "\n"


def _lines(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value or (depth > 2 and len(flat) + depth <= _WIDE):
        return flat
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict):
        items = [f"{json.dumps(key, ensure_ascii=False)}: {_lines(value[key], depth + 1)}" for key in sorted(value)]
    else:
        items = [_lines(item, depth + 1) for item in value]
    inner = f",\n{pad}".join(items)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{pad}{inner}\n{end}{closing}"


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping. A merge that keeps both sides repeats a key, and one of the two values would be lost."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        duplicate = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"duplicate key {duplicate!r}")
    return mapping


def _find_fault(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "is not a mapping"
    missing = [key for key, kind in _FIELDS.items() if not isinstance(entry.get(key), kind)]
    if missing:
        return f"has no valid {missing[0]!r}"
    numbers = [entry.get("estimate"), *entry["interval"]]
    if len(numbers) != 3 or not all(isinstance(number, (int, float)) and not isinstance(number, bool) for number in numbers):
        return "has no estimate with an interval"
    if not all(isinstance(units, list) and all(isinstance(unit, str) for unit in units) for units in entry["circuits"].values()):
        return "has no valid 'circuits'"
    return None
