"""An MLP is initialised anew."""

from __future__ import annotations

from ..core.units import layer_of
from .surgery import Surgery

FACTS = {"of": "mlp", "options": {}}


def reinit_mlp(surgery: Surgery, mlp: str) -> None:
    """Initialise an MLP anew, as its architecture does before training, including all experts and the router of a mixture of experts."""
    block = surgery.anatomy.blocks[layer_of(mlp)]
    inside = block.down is None or any(module is block.down for module in block.mlp.modules())
    surgery.reinitialise(block.mlp, *(() if inside or block.down is None else (block.down,)))
