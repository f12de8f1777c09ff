"""Node scores as central finite differences in float64, written with plain hooks."""

from __future__ import annotations

import numpy as np
import torch

from tests.fakes.plain_hooks import Parts, as_ids, edits, metric, prompts, record

STEP = 1e-5


def unit_places(parts: Parts, level: str):
    """(kind, layer, slice of the activation) of every unit, in the order of the universe."""
    for layer in range(parts.L):
        if level == "component":
            yield from (("z", layer, slice(h * parts.hd, (h + 1) * parts.hd)) for h in range(parts.H))
            yield "mlp", layer, slice(0, parts.d)
        elif level == "neuron":
            yield from (("n", layer, slice(i, i + 1)) for i in range(parts.dff))
        else:
            yield from (("mlp", layer, slice(i, i + 1)) for i in range(parts.d))


def slopes(model, pair, which: str, level: str, change, only=None) -> np.ndarray:
    """d/dε m(a + ε·Δ) at ε = 0 for every unit (or some), `change` {(kind, layer): Δ}; both signs of every unit in one batch."""
    parts, clean = Parts(model), as_ids(prompts(pair)[0])
    places = list(unit_places(parts, level))
    chosen = range(len(places)) if only is None else only
    rows = [(u, sign) for u in chosen for sign in (1, -1)]
    moved = {}
    for row, (u, sign) in enumerate(rows):
        kind, layer, where = places[u]
        if (kind, layer) not in moved:
            moved[kind, layer] = torch.zeros(len(rows), *change[kind, layer].shape[1:], dtype=torch.float64)
        moved[kind, layer][row][..., where] = sign * STEP * change[kind, layer][0][..., where]
    hooks = {key: (lambda x, d=d: x + d) for key, d in moved.items()}
    with torch.no_grad(), edits(model, hooks):
        logits = model(input_ids=clean.repeat(len(rows), 1), use_cache=False).logits
    m = np.array([float(metric(which, logits[i], pair)) for i in range(len(rows))]).reshape(-1, 2)
    return (m[:, 0] - m[:, 1]) / (2 * STEP)


def paired(model, pair):
    clean, corrupt, _ = prompts(pair)
    a, c = record(model, clean), record(model, corrupt)
    return {key: c[key] - a[key] for key in a}
