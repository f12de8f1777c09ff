"""What a request would cost, in batched calls of the model. An estimate: prompts of several lengths make more and smaller batches,
and the default batch depends on the model.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import ceil
from typing import Any

from ..ablation import ABLATIONS
from ..attribution import METHODS
from ..core.metric_names import COMPARISONS
from ..core.units import Universe
from .requests import Ablate, AnyRequest, Attribute, Conserve, MeasureNorms, Sweep

ASSUMED_BATCH = 128  # examples a call, where no batch size is given
USUAL = (2, 1)  # forwards and backwards a batch of a method that does not state its own


def passes(request: AnyRequest, universe: Universe, n: int, reference: int, batch_size: int | None) -> tuple[int, int]:
    """(forwards, backwards) for a request on `n` examples, with `reference` examples behind a mean; a partial forward counts as one.

    `Sweep`: the intact model and each component, side by side while the batch has room. `Ablate`: the intact model once
    and each other set. `Attribute`: the `passes` that the method states in the registry (see `pytest_circuits.attribution`).
    """
    size = batch_size or ASSUMED_BATCH
    batches = ceil(n / size)
    stack = max(1, size * batches // max(1, n))
    values = ABLATIONS.fact(request.kind, "values") if isinstance(request, (Ablate, Sweep)) else None
    means = ceil(reference / size) if values == "reference" else 0
    compared = batches if getattr(request, "metric", "") in COMPARISONS else 0  # the intact model to compare with
    corrupt = batches if values in ("corrupt", "donor") else 0
    each = batches * (1 + universe.layers * ceil((universe.heads + 1) / stack))
    if isinstance(request, Sweep):
        return each + means + corrupt, 0
    if isinstance(request, Ablate):
        if json.loads(request.options).get("each"):
            return batches + compared + means + corrupt, 0
        changed = len(request.sets) if request.mode == "keep" else sum(map(bool, request.sets))
        intact = len(request.sets) > changed
        return batches * (intact + ceil(changed / stack)) + (0 if intact else compared) + (means + corrupt) * bool(changed), 0
    if isinstance(request, MeasureNorms):
        return batches, 0
    if isinstance(request, Conserve):
        return batches, batches
    if isinstance(request, Attribute):
        forwards, backwards = _attribution_passes(request, universe, batches, each)
        return forwards + (compared if backwards else 0), backwards
    return 0, 0


def _attribution_passes(request: Attribute, universe: Universe, batches: int, sweep: int) -> tuple[int, int]:
    stated = METHODS.fact(request.method, "passes", USUAL)
    costs = stated if isinstance(stated, Mapping) else {"batch": stated}
    options = {**_defaults(request.method), **json.loads(request.options)}
    times = {
        "batch": batches,
        "step": batches * int(options.get("steps", 1)),
        "sublayer": batches * universe.layers * (2 if request.level == "component" else 1),
        "sweep": sweep,
    }
    forwards = sum(times[unit] * cost[0] for unit, cost in costs.items())
    return forwards, sum(times[unit] * cost[1] for unit, cost in costs.items())


def _defaults(method: str) -> dict[str, Any]:
    options = METHODS.fact(method, "options")
    return dict(options) if isinstance(options, Mapping) else {}
