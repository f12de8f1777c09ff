"""The key of a measurement: a digest of everything that its numbers depend on, and of nothing else.

Names that a spec gives to models and tasks are not part of it; neither are P, K, bounds or confidence, which are applied to
stored scores.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..mutants import OPERATORS
from ..mutants.base import VERSION as MUTANTS_VERSION
from ..mutants.base import Mutation
from .definitions import entry_digest
from .requests.base import MeasuredRequest
from .version import MEASUREMENT_VERSION, libraries


def key_of(request: MeasuredRequest[Any], facts: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of the request's own fields, the facts (fingerprints, digests, precision …) and the versions."""
    content = {
        "measurement": MEASUREMENT_VERSION,
        "libraries": libraries(),
        "request": request.key_fields(),
        "third_party": request.third_party_digest(),
        **facts,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def mutation_digest(mutation: Mutation, donor: str | None) -> str:
    """What a key says of a mutant besides the model that it is made from; `donor` is the identity of the checkpoint that lends weights."""
    content = [MUTANTS_VERSION, replace(mutation, donor=None).text, donor, entry_digest(OPERATORS, mutation.operator)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]
