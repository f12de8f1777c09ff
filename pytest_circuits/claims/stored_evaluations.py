"""Evaluations of claims that were made before, next to the measurements that they rest on.

An evaluation is found by everything that it depends on: the claim, the models and tasks by their content, the settings of the run, the code
of this package and the versions of the libraries. It counts only while its measurements are there. What is missing, damaged, or depends
on code or models that have no digest, is evaluated again. Nothing here imports numpy.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..ablation import ABLATIONS
from ..attribution import METHODS
from ..core.atomic import write_atomic
from ..core.claim import Claim
from ..core.descriptions import Description
from ..core.documents import decode, encode
from ..core.sources import ModelSource, TaskSource
from ..core.units import Universe
from ..core.verdict import Bound, Estimate, Search, Verdict
from ..errors import CircuitsError, MeasurementError
from ..measurement.cost import Cost
from ..measurement.entry_path import entry_path
from ..measurement.fingerprints import identify
from ..measurement.version import MEASUREMENT_VERSION, libraries, statistics_libraries
from ..properties import PROPERTIES
from ..properties.nested import Inner
from ..properties.protocol import Property
from ..registry import Registry
from ..stats import CONTROLS
from ..tasks import TASKS
from .outcome import Evaluation

if TYPE_CHECKING:
    from ..measurement.executor import Trace

SCHEMA = 1
_TYPES = {t.__name__: t for t in (Bound, Cost, Description, Estimate, Evaluation, Search, Universe, Verdict)}
_REGISTRIES: tuple[Registry, ...] = (ABLATIONS, CONTROLS, METHODS, PROPERTIES, TASKS)
_GENERATED = "pytest_circuits.tasks.builtin."
_PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class StoredEvaluations:
    """Evaluations in the folder of a store; `settings` are those of the run: device, precision, batch size, seed."""

    folder: Path
    settings: Mapping[str, Any]

    def key(self, claim: Claim) -> str | None:
        """A digest of everything that the evaluation depends on; None where something has no digest."""
        if claim.against is not None or claim.property not in PROPERTIES.builtin:
            return None
        parameters = claim.parameters.model_dump(mode="json")
        if not third_party_names().isdisjoint(_strings(parameters)):
            return None
        try:
            models = [self._model(model) for model in claim.series or (claim.model,)]
            tasks = [_task(task) for task in claim.tasks.values()]
        except (CircuitsError, OSError):
            return None
        external = _external(claim.property, claim.parameters)
        if None in models or None in tasks or external is None:
            return None
        content = {
            "schema": SCHEMA,
            "code": code_digest(),
            "measurement": MEASUREMENT_VERSION,
            "libraries": {**libraries(), **statistics_libraries()},
            "python": sys.version_info[:2],
            "settings": dict(self.settings),
            "claim": [claim.property, parameters, claim.name, claim.entry, claim.ids, claim.expect],
            "bound": None if claim.bound is None else asdict(claim.bound),
            "external": external,
            "models": models,
            "tasks": [list(claim.tasks), tasks],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def get(self, key: str | None) -> tuple[Evaluation, dict[str, Any]] | None:
        """The evaluation and what it was measured on, with the cost of reading it; None where it has to be made."""
        started = time.perf_counter()
        if key is None:
            return None
        try:
            stored = json.loads(self._path(key).read_text(encoding="utf-8"))
            if stored["sha256"] != _checksum(key, stored["document"]):
                return None
            content = decode(json.loads(stored["document"]), _TYPES.get)
            for measurement, size in content["entries"].items():
                if entry_path(self.folder, measurement).stat().st_size != size:
                    return None
            evaluation = cast(Evaluation, content["evaluation"])
            cost = evaluation.cost.as_read(time.perf_counter() - started)
            return replace(evaluation, cost=cost), content["measured_on"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def put(self, key: str | None, evaluation: Evaluation, measured_on: Mapping[str, Any], trace: Trace) -> None:
        """Store an evaluation with the measurements that it used; not one that an error of measuring ended."""
        if key is None or "error" in evaluation.details or not trace.is_stored:
            return
        try:
            entries = {measurement: entry_path(self.folder, measurement).stat().st_size for measurement in sorted(trace.keys)}
            content = {"evaluation": evaluation, "measured_on": dict(measured_on), "entries": entries}
            document = json.dumps(encode(content, _TYPES.get, "evaluation", _plain))
            write_atomic(self._path(key), json.dumps({"sha256": _checksum(key, document), "document": document}))
        except (OSError, MeasurementError):
            return

    def _path(self, key: str) -> Path:
        return self.folder / "evaluations" / key[:2] / f"{key}.json"

    def _model(self, model: ModelSource) -> list[Any] | None:
        identity = None if model.mutation is not None else identify(model, self.folder / "fingerprints")
        return None if identity is None else [asdict(model), identity.model, identity.tokenizer, identity.commit]


@cache
def code_digest() -> str:
    """A digest of this package's files, by name, size and time of change, as Python tells whether byte code is up to date."""
    return hashlib.sha256("\n".join(sorted(_files(os.fspath(_PACKAGE)))).encode("utf-8", "surrogateescape")).hexdigest()


def third_party_names() -> set[str]:
    """Names of registered properties, methods, tasks … that are not of this package, whose code may change without notice."""
    return set().union(*(registry.third_party for registry in _REGISTRIES))


def _external(name: str, parameters: Any) -> list[Any] | None:
    """What the estimate of a property depends on from outside, and of one inside it; None where that cannot be known."""
    prop: Property = PROPERTIES.get(name)
    value = [] if prop.external is None else prop.external(parameters)
    inner = getattr(parameters, "of", None)
    nested = _external(inner.name, inner.parameters) if isinstance(inner, Inner) else []
    return None if value is None or nested is None else [value, nested]


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                stat = entry.stat()
                yield f"{entry.path} {stat.st_size} {stat.st_mtime_ns}"


def _task(task: TaskSource) -> list[Any] | None:
    """Tasks that this package generates are known by their parameters, files by what is in them."""
    if task.mutation is not None:
        return None
    if task.kind == "builtin" and TASKS.builtin.get(task.target, "").startswith(_GENERATED):
        return [asdict(task)]
    if task.kind == "file" and "tokenizer" not in task.options:
        return [asdict(task), hashlib.sha256(Path(task.target).read_bytes()).hexdigest()]
    return None


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, Iterable):
        for item in value:
            yield from _strings(item)


def _plain(value: Any, where: str) -> Any:
    """Numpy's scalars as Python's."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 else None


def _checksum(key: str, document: str) -> str:
    return hashlib.sha256(f"{key}\n{document}".encode()).hexdigest()
