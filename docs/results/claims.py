"""Claims of a JSON report, as the pages want to look them up."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LONGEST = 200  # items of a list or mapping inside `details` that a stored report keeps; longer ones are left out
Claim = Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """One report: `claims` in the order of the specs, `models` by name."""

    claims: tuple[Claim, ...]
    models: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> Report:
        """From a JSON document."""
        content = json.loads(path.read_text(encoding="utf-8"))
        return cls(tuple(content["claims"]), content["models"])

    def select(self, **wanted: Any) -> Iterator[Claim]:
        """Claims whose fields, first task (`task`) or parameters have these values; a tuple means any of them."""
        for claim in self.claims:
            if all(_fits(claim, key, value) for key, value in wanted.items()):
                yield claim

    def one(self, **wanted: Any) -> Claim | None:
        """The only such claim; None when there is none. Raises `LookupError` when there are several."""
        found = list(self.select(**wanted))
        if len(found) > 1:
            raise LookupError(f"{len(found)} claims fit {wanted}: {', '.join(c['nodeid'] for c in found[:3])} …")
        return found[0] if found else None

    def values(self, key: str, **wanted: Any) -> list[Any]:
        """The different values of a key or parameter among the selected claims, in order of appearance."""
        seen: list[Any] = []
        for claim in self.select(**wanted):
            value = lookup(claim, key)
            if value not in seen:
                seen.append(value)
        return seen


def lookup(claim: Claim, key: str) -> Any:
    """A field of the claim, `task` (its first task), or a parameter; None where it has none."""
    if key == "task":
        return next(iter(claim["tasks"]), None)
    return claim[key] if key in claim else claim["parameters"].get(key)


def _fits(claim: Claim, key: str, value: Any) -> bool:
    found = lookup(claim, key)
    return found in value if isinstance(value, tuple) else found == value


def shortened(content: Mapping[str, Any]) -> dict[str, Any]:
    """The report as it is stored next to its page: without times, and without long lists in details."""
    suite = {key: value for key, value in content["suite"].items() if key != "seconds"}
    claims = [
        {**claim, "details": _short(claim["details"]), "cost": {k: v for k, v in claim["cost"].items() if k != "seconds"}}
        for claim in content["claims"]
    ]
    return {**content, "suite": suite, "claims": claims}


def _short(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _short(v) for k, v in value.items() if not _long(v)}
    if isinstance(value, list):
        return [_short(v) for v in value if not _long(v)]
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float) -> float:
    """Six decimals, or six significant digits of what is small: rounding errors are measured too."""
    return round(value, 6) if abs(value) >= 0.1 else float(f"{value:.6g}")


def _long(value: Any) -> bool:
    return isinstance(value, (list, Mapping)) and len(value) > LONGEST
