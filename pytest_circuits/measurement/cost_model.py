"""What a request would cost, in batched calls of the model. An estimate: prompts of several lengths make more and smaller batches,
and the default batch depends on the model.
"""

from __future__ import annotations

import json
from math import ceil

from ..attribution import METHODS
from ..core.metric_names import COMPARISONS
from ..core.units import Universe
from .requests import Ablate, AnyRequest, Attribute, Conserve, MeasureNorms, Sweep

ASSUMED_BATCH = 128  # examples a call, where no batch size is given
_GRADIENT = {"eap": (2, 1), "atp": (2, 1), "relp": (2, 1), "gradient": (1, 1), "weight_gradient": (1, 1)}


def passes(request: AnyRequest, universe: Universe, n: int, reference: int, batch_size: int | None) -> tuple[int, int]:
    """(forwards, backwards) for a request on `n` examples, with `reference` examples behind a mean; a partial forward counts as one.

    `exact` and `Sweep`: the intact model and each component, side by side while the batch has room. `Ablate`: the intact model once
    and each other set. Integrated gradients: a clean and a corrupt pass, and a pass for each step (`eap_ig`) or each sublayer
    (`ig_activations`). A method from outside may state its own in the registry, `passes=(forwards, backwards)` a batch; else that of `eap`.
    """
    size = batch_size or ASSUMED_BATCH
    batches = ceil(n / size)
    stack = max(1, size * batches // max(1, n))
    means = ceil(reference / size) if isinstance(request, (Ablate, Sweep)) and request.kind in ("mean", "residual_slice") else 0
    compared = batches if getattr(request, "metric", "") in COMPARISONS else 0  # the intact model to compare with
    corrupt = batches if isinstance(request, (Ablate, Sweep)) and request.kind in ("counterfactual", "resample") else 0
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
        if request.method == "exact":
            return each + batches, 0
        forwards, backwards = _gradient_passes(request, universe)
        return batches * forwards + compared, batches * backwards
    return 0, 0


def _gradient_passes(request: Attribute, universe: Universe) -> tuple[int, int]:
    options = json.loads(request.options)
    if request.method == "eap_ig":
        steps = int(options.get("steps", 5))
        return 4 + steps, steps
    if request.method == "ig_activations":
        sublayers = universe.layers * (2 if request.level == "component" else 1)
        return 3 + sublayers, sublayers
    forwards, backwards = METHODS.fact(request.method, "passes", _GRADIENT.get(request.method, _GRADIENT["eap"]))
    return int(forwards), int(backwards)
