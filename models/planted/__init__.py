"""Planted circuits: real Hugging Face models whose weights are set by hand, so that the causal parts are known.

`plant("copy_head")` builds one in memory; `python -m models.planted [OUT_DIR]` writes all of them as checkpoints, by
default to models/planted-circuits, where they are shipped.

All share one construction. The residual stream holds named features, one coordinate each. Ballast coordinates, which no
other part writes, are so much larger than everything else (2^14 against at most a few) that a norm divides by the same
number whatever the features are; the norm's weight multiplies by that number again and hides the ballast. Norms thus hand
features on unchanged, to about 1e-7. Attention scores differ by hundreds and activations are read at arguments of at
least 16 in size, where softmax is one-hot and SiLU and GELU equal ReLU in float32. What a part does can therefore be
computed on paper; parts that are not planted have random inputs (they are busy) and zero output weights (they are dead).
"""

from __future__ import annotations

from .registry import CIRCUITS, plant
from .truth import Planted, Truth

__all__ = ["CIRCUITS", "Planted", "Truth", "plant"]
