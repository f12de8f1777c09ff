"""The key of a measurement: a digest of everything that its numbers depend on, and of nothing else.

Names that a spec gives to models and tasks are no part of it; neither are P, K, bounds or confidence, which are applied to
stored scores.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import secrets
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ablation import ABLATIONS
from ..attribution import METHODS
from ..mutants import OPERATORS
from ..mutants.base import VERSION as MUTANTS_VERSION
from ..mutants.base import Mutation
from ..registry import Registry
from .requests import Ablate, AnyRequest, Attribute, Conserve, Describe, Encode, MeasureNorms, Part, Sweep
from .version import MEASUREMENT_VERSION, libraries

_ELSEWHERE = {"model", "task", "part", "reference"}  # fields that the key holds as fingerprints and digests
_SESSION = secrets.token_hex(16)


def key_of(request: AnyRequest, circumstances: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of the request's own fields, the circumstances (fingerprints, digests, precision …) and the versions."""
    content = {
        "measurement": MEASUREMENT_VERSION,
        "libraries": libraries(),
        "request": own_fields(request),
        "third_party": third_party(request),
        **circumstances,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def own_fields(request: AnyRequest) -> dict[str, Any]:
    """The fields of a request that are neither model, task nor examples; sets keep their order."""
    own = {f.name: getattr(request, f.name) for f in fields(request) if f.name not in _ELSEWHERE}
    if "options" in own:
        own["options"] = json.loads(own["options"])
    return {"kind": type(request).__name__, **own}


def index_digest(indices: NDArray[np.int64] | None) -> str | None:
    """Digest of example numbers in order; None stands for all examples."""
    return None if indices is None else hashlib.sha256(np.asarray(indices, "<i8").tobytes()).hexdigest()


def third_party(request: AnyRequest) -> str | None:
    """For a method or ablation kind from outside the package: a digest of the file that defines it, so that a change there is noticed."""
    if isinstance(request, Attribute):
        return outside(METHODS, request.method)
    if isinstance(request, (Ablate, Sweep)):
        return outside(ABLATIONS, request.kind)
    return None


def outside(registry: Registry, name: str) -> str | None:
    """A digest of the file that defines a third party's entry of a registry; None for built-in ones."""
    return None if name in registry.builtin else _source_digest(registry.get(name))


def _source_digest(thing: Any) -> str:
    """What is typed at a prompt has no file: it is told apart by session, and its measurements are not used again later."""
    try:
        path = inspect.getsourcefile(thing if inspect.isclass(thing) or inspect.isroutine(thing) else type(thing))
        return hashlib.sha256(Path(path or "").read_bytes()).hexdigest()
    except (OSError, TypeError):
        return f"{_SESSION}-{id(thing)}"


def mutation_digest(mutation: Mutation, donor: str | None) -> str:
    """What a key says of a mutant beside the model that it is made of; `donor` is the identity of the checkpoint that weights come from."""
    content = [MUTANTS_VERSION, replace(mutation, donor=None).text, donor, outside(OPERATORS, mutation.operator)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]


def in_words(request: AnyRequest) -> str:
    """The request as a reader would say it; for messages, never for keys."""
    on = f"on model {request.model.describe()}"
    if isinstance(request, Describe):
        return f"the description of model {request.model.describe()}"
    of = f"task {request.task.name!r}"
    if isinstance(request, Encode):
        return f"the encoding of {of} {on}"
    of += _which(request.part)
    if isinstance(request, MeasureNorms):
        return f"the size of every component's contribution on {of} {on}"
    if isinstance(request, Conserve):
        how = "of the plain gradient" if request.rules == "none" else f"under the {request.rules} rules"
        return f"conservation of relevance {how} ({request.metric}) on {of} {on}"
    if isinstance(request, Attribute):
        mean = "mean " if request.reduce else ""
        return f"{mean}{request.method} attribution ({request.level}, {request.metric}) of {of} {on}"
    if isinstance(request, Sweep):
        return f"{request.kind} ablation of every component on {of} {on}"
    verb = {"remove": "without", "keep": "with only"}.get(request.mode, request.mode)
    if request.sets == ((),) and request.mode == "remove":
        return f"the intact model on {of} {on}"
    how_many = "one set" if len(request.sets) == 1 else f"each of {len(request.sets)} sets"
    return f"{request.kind} ablation, {verb} {how_many} of units ({request.level}), on {of} {on}"


def _which(part: Part) -> str:
    return "" if part.which == "all" or part.split is None else f" ({part.which} examples)"
