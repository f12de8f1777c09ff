"""Baseline files: where they are, how they are read and written."""

from __future__ import annotations

import json
import os
import tempfile
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
    """A baseline file cannot be read or written. Remedy: restore it from version control, or write it anew with the command given."""


def beside(spec: Path) -> Path:
    """The baseline file of a spec: `core.circuits.yaml` has `core.circuits.baseline.json` in the same folder."""
    return spec.with_name(spec.name.removesuffix(SUFFIX) + ENDING)


def read(path: Path) -> Entries | None:
    """The entries by node id below the file; None where there is no file. Raises `BaselineError` for anything that is no baseline."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as problem:
        raise BaselineError(f"the baseline {path} cannot be read: {problem}") from None
    try:
        content = json.loads(text, parse_constant=_no_number, object_pairs_hook=_each_once)
    except ValueError as problem:
        conflict = "; it has the marks of a merge conflict" if "<<<<<<<" in text else ""
        raise BaselineError(f"the baseline {path} is not valid JSON ({problem}){conflict}: restore it from version control") from None
    if not isinstance(content, dict) or content.get("schema") != SCHEMA or not isinstance(content.get("claims"), dict):
        schema = content.get("schema") if isinstance(content, dict) else None
        found = "it is no JSON object" if not isinstance(content, dict) else f"its schema is {schema!r}; {SCHEMA} is needed"
        found = "it has no mapping 'claims'" if schema == SCHEMA else found
        raise BaselineError(f"{path} is no baseline that this version can read ({found}); restore it from version control")
    for name, entry in content["claims"].items():
        wrong = _fault(entry) or (None if "::" in name else "is not called as a test is, CLAIM::MODEL::…")
        if wrong:
            raise BaselineError(f"the baseline {path} is damaged: claim {name!r} {wrong}; restore it from version control")
    found_entries: Entries = content["claims"]
    return found_entries


def write(path: Path, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Write a file whole or not at all; the same entries give the same bytes. Raises `OSError`."""
    write_atomic(path, text_of({"schema": SCHEMA, "claims": entries}))


def change(path: Path, make: Callable[[Entries], Entries]) -> bool:
    """Replace the entries by `make(entries)` while no other process does the same. Whether the file's content changed."""
    with _locked(path):
        before = read(path)
        after = make(dict(before or {}))
        if after == (before or {}):
            return False
        write(path, after)
        return True


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; the lock is not left beside the spec."""
    from filelock import FileLock

    place = Path(tempfile.gettempdir(), f"pytest-circuits-{sha256(os.fsencode(path.resolve())).hexdigest()[:24]}.lock")
    with FileLock(place):
        yield


def text_of(content: Any) -> str:
    """JSON with sorted keys, a line for each claim's field: short lists and mappings stay on one line, so that a diff reads well."""
    return _lines(content, 0) + "\n"


def _lines(value: Any, depth: int) -> str:
    flat = json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
    if not isinstance(value, (dict, list)) or not value or (depth > 2 and len(flat) + depth <= _WIDE):
        return flat
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict):
        items = [f"{json.dumps(key, ensure_ascii=False)}: {_lines(value[key], depth + 1)}" for key in sorted(value)]
    else:
        items = [_lines(one, depth + 1) for one in value]
    inner = f",\n{pad}".join(items)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{pad}{inner}\n{end}{closing}"


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping; a merge that kept both sides has a key twice, and one of them would be lost."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, _ in pairs if [one for one, _ in pairs].count(key) > 1)
        raise ValueError(f"{twice!r} stands twice")
    return found


def _fault(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "is no mapping"
    missing = [key for key, kind in _FIELDS.items() if not isinstance(entry.get(key), kind)]
    if missing:
        return f"has no {missing[0]!r} that makes sense"
    numbers = [entry.get("estimate"), *entry["interval"]]
    if len(numbers) != 3 or not all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in numbers):
        return "has no estimate with an interval"
    if not all(isinstance(units, list) and all(isinstance(unit, str) for unit in units) for units in entry["circuits"].values()):
        return "has no 'circuits' that makes sense"
    return None
