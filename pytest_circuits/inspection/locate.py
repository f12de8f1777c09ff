"""The anatomy of a model: of its known architecture, or probed by structure."""

from __future__ import annotations

from torch import nn

from ..errors import ModelError
from ..model.architectures import FAMILIES
from ..model.layout import Anatomy, assemble
from .probe import probe


def anatomy_of(model: nn.Module) -> Anatomy:
    """The anatomy of a Hugging Face causal LM.

    Known architectures are looked up in `FAMILIES`; unknown ones are probed by structure and verified numerically. Raises `ModelError`
    naming the part that is missing or does not fit.
    """
    kind = getattr(getattr(model, "config", None), "model_type", None)
    if kind is None:
        raise ModelError(f"{type(model).__name__} has no config with a model_type: only Hugging Face causal LMs are supported")
    return assemble(model, FAMILIES[kind]) if kind in FAMILIES else probe(model)
