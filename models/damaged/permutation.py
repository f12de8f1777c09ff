"""A release with the same function and other indices: heads trade places within each layer, neurons within each MLP.

Key-value heads are permuted so that none stays, with their groups of query heads; query heads are permuted within their group.
What is computed is the same up to the rounding of sums in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import torch
from torch import Tensor

SEED = 0
Places = Mapping[str, Sequence[Sequence[int]]]


def drawn(layers: int, heads: int, groups: int, neurons: int, seed: int = SEED) -> dict[str, list[list[int]]]:
    """`groups`, `heads` and `neurons`, each by layer: entry i is the old index of what stands at index i afterwards."""
    random, size = Random(seed), heads // groups
    found: dict[str, list[list[int]]] = {"groups": [], "heads": [], "neurons": []}
    for _ in range(layers):
        order = _moved(groups, random)
        found["groups"].append(order)
        found["heads"].append([group * size + i for group in order for i in random.sample(range(size), size)])
        found["neurons"].append(random.sample(range(neurons), neurons))
    return found


def _moved(count: int, random: Random) -> list[int]:
    """An order in which nothing stays where it was; a single thing stays."""
    while True:
        order = random.sample(range(count), count)
        if count == 1 or all(i != old for i, old in enumerate(order)):
            return order


def damage(model: Any) -> dict[str, Any]:
    """Permute in place."""
    c = model.config
    places = drawn(c.num_hidden_layers, c.num_attention_heads, c.num_key_value_heads, c.intermediate_size)
    for block, groups, heads, neurons in zip(model.model.layers, *(places[key] for key in ("groups", "heads", "neurons")), strict=True):
        attention, mlp = block.self_attn, block.mlp
        for projection, order in ((attention.q_proj, heads), (attention.k_proj, groups), (attention.v_proj, groups)):
            _reorder(projection.weight, 0, order)
        _reorder(attention.o_proj.weight, 1, heads)
        for projection, axis in ((mlp.gate_proj, 0), (mlp.up_proj, 0), (mlp.down_proj, 1)):
            _reorder(projection.weight, axis, neurons)
    return {"seed": SEED, **places}


def _reorder(weight: Tensor, axis: int, order: Sequence[int]) -> None:
    """Reorder the blocks that an axis consists of, in place."""
    blocks = weight.detach().unflatten(axis, (len(order), -1))
    weight.detach().copy_(blocks.index_select(axis, torch.tensor(order)).flatten(axis, axis + 1))


def new_name(unit: str, places: Places) -> str:
    """What a head or neuron of the original is called in the permuted release; MLPs keep their names."""
    if unit.endswith("MLP"):
        return unit
    kind = "H" if "H" in unit else "N"
    layer, index = unit[1:].split(kind)
    order = places["heads" if kind == "H" else "neurons"][int(layer)]
    return f"L{layer}{kind}{list(order).index(int(index))}"
