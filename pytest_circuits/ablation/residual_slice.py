"""Overwriting slices of the residual stream: a published hook that is not head ablation, for replication only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..errors import OptionError
from ..model.sites import Site
from .kind import Ablation, AblationContext, Replace
from .mean import Mean

FACTS: dict[str, Any] = {"options": {}, "levels": ("component",), "values": "reference"}


@dataclass(frozen=True)
class ResidualSlice(Ablation):
    """For replication only; this is not head ablation, use `mean` for that. Source: the code of The Gradient-Causal Gap.

    For head h, dimensions h·d_head … (h+1)·d_head of the attention's output, *after* the output projection, are overwritten with the
    mean of head h's slice *before* it (over the reference examples' clean prompts and positions). The projection mixes all heads into
    every dimension, so this removes a part of what every head writes and inserts numbers of another basis; what head h writes
    elsewhere stays. Such effects correlate with those of the head only by accident. MLPs get an ordinary mean ablation. Requires
    heads · d_head = d_model.
    """

    name: ClassVar[str] = "residual_slice"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]

    def prepare(self, context: AblationContext) -> Replace:
        """Means of heads and MLPs. Raises `OptionError` where the slices would not fill the stream."""
        anatomy = context.runner.anatomy
        if anatomy.heads * anatomy.head_dim != anatomy.width:
            raise OptionError(
                f"residual_slice overwrites d_model dimensions with heads · d_head of them, and this {anatomy.architecture} model has "
                f"d_model {anatomy.width} but {anatomy.heads} · {anatomy.head_dim} = {anatomy.heads * anatomy.head_dim}; use mean, "
                "which ablates the head itself"
            )
        return Mean().prepare(context)

    def places(self, context: AblationContext) -> list[Site]:
        """For heads, after the output projection."""
        return [replace(site, kind="slices") if site.kind == "heads" else site for site in context.sites]
