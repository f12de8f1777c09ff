"""The JSON document that every report is made from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core.atomic import write_atomic
from ..core.unique_names import unique_name
from .evidence import tiers
from .multiplicity import corrected

SCHEMA = 1
UNKNOWN = {"fingerprint": None, "architecture": None, "parameters": None}  # of a model that could not be opened


def plain(value: Any) -> Any:
    """Values that JSON can hold: numpy scalars and arrays become numbers and lists, numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {plain(str(k)): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)  # no subclasses: not every channel can carry them
    return (str.__str__(value) if isinstance(value, str) else str(value)).encode("utf-8", "replace").decode()


def document(
    records: Iterable[Mapping[str, Any]], seconds: float, errors: Iterable[Mapping[str, Any]] = (), alpha: float = 0.05, seed: int = 0
) -> dict[str, Any]:
    """The whole report: suite, models and claims.

    `records` are claim records, each with its `model_info`; `errors` mistakes in spec files, because of which claims may be missing.
    Refutations are corrected for their number at level `alpha` (Holm): `survives_holm` of a refuted claim, null for any other.
    Certified claims need no correction where all of them must hold. `circuits` says how well each circuit is supported (`tiers`), `seed` is
    that of `--circuits-seed`.
    """
    claims: list[dict[str, Any]] = []
    models: dict[str, dict[str, Any] | None] = {}
    cost = {"forwards": 0, "backwards": 0, "cached": 0}
    for record in records:
        claim = dict(record)
        info = claim.pop("model_info")
        claim["model"] = _name(models, claim["model"], info)
        models[claim["model"]] = models.get(claim["model"]) or info
        for key in ("forwards", "backwards"):
            cost[key] += claim["cost"][key]
        cost["cached"] += claim["cost"]["hits"]
        claims.append(claim)
    survives, holm = corrected(claims, alpha)
    for claim, survived in zip(claims, survives, strict=True):
        claim["survives_holm"] = survived
    suite = {
        "alpha": alpha,
        "seconds": round(seconds, 3),
        "seed": seed,
        "cost": cost,
        "verdicts": tally(claims),
        "holm": holm,
        "errors": list(errors),
    }
    return {
        "schema": SCHEMA,
        "suite": suite,
        "models": {name: UNKNOWN if info is None else info for name, info in models.items()},
        "claims": claims,
        "circuits": tiers(claims),
    }


def _name(models: Mapping[str, Any], name: str, info: Any) -> str:
    """The model's name; made longer where two spec files use one name for two models. What could not be opened keeps its name."""
    return unique_name(name, lambda label: info is not None and (models.get(label) or info) != info)


def tally(claims: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many claims got each verdict."""
    counts = dict.fromkeys(("certified", "refuted", "inconclusive", "invalid"), 0)
    for claim in claims:
        counts[claim["verdict"]] += 1
    return counts


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write the document, whole or not at all; folders are made."""
    write_atomic(path, json.dumps(plain(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
