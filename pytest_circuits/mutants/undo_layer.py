"""A layer's training is undone."""

from __future__ import annotations

from ..core.units import layer_of
from .surgery import Surgery

FACTS = {"of": "layer", "options": {}, "donor": True}


def undo_layer(surgery: Surgery, layer: str) -> None:
    """Give a layer the weights that it had in the first checkpoint of the model's series, or, without one, new initial ones."""
    block = surgery.anatomy.blocks[layer_of(layer)]
    if surgery.donor is None:
        surgery.reinitialise(block.module)
    else:
        surgery.transplant(block.index)
