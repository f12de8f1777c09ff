"""A release that lost one head: the columns of the output projection that read it are zero.

The head is the one that most tasks share: of all heads the one that is in the shared sets S_P of the most tasks (per-example
circuits by EAP, K = 20%, P = 80%, `load_task(task, n=256)`); among equals the one whose single zero ablation costs some task the
most accuracy. `python -m models.damaged.compare` measures that, and the test of this folder measures it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .original import columns, place

HEAD = "L0H5"


def damage(model: Any) -> dict[str, Any]:
    """Zero the head's output weights in place."""
    layer, head = place(HEAD)
    assert head is not None
    model.model.layers[layer].self_attn.o_proj.weight.detach()[:, columns(model, head)] = 0
    return {"head": HEAD}


def most_shared(sets: Mapping[str, Sequence[str]], cost: Mapping[str, Mapping[str, float]]) -> str:
    """The head by the rule above, from S_P by task, and by task the accuracy that each head's ablation costs."""
    heads = {unit for shared in sets.values() for unit in shared if "H" in unit}
    return max(sorted(heads), key=lambda head: (sum(head in shared for shared in sets.values()), max(cost[task][head] for task in sets)))
