"""Mean ablation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import Tensor

from ..errors import OptionError
from ..model.batches import batches
from ..model.precision import upcast
from .kind import Ablation, AblationContext, Replace

FACTS: dict[str, Any] = {"options": {"prompts": "clean", "positions": "pooled"}, "values": "reference"}


@dataclass(frozen=True)
class Mean(Ablation):
    """Units are replaced with their mean over the reference examples.

    prompts: means over `clean` or `corrupt` prompts. positions: `pooled` takes one mean over all positions of all
    examples, `each` one mean for each position (the ablated prompts must then have a length that occurs in the
    reference).
    """

    prompts: Literal["clean", "corrupt"] = "clean"
    positions: Literal["pooled", "each"] = "pooled"
    name: ClassVar[str] = "mean"

    def prepare(self, context: AblationContext) -> Replace:
        """Means, taken once."""
        for name, value, allowed in (("prompts", self.prompts, ("clean", "corrupt")), ("positions", self.positions, ("pooled", "each"))):
            if value not in allowed:
                raise OptionError(f"mean ablation: {name} must be one of {', '.join(allowed)}, got {value!r}")
        runner = context.runner
        sums: dict[int, list[Tensor]] = {}
        counts: dict[int, int] = {}
        size = context.size(context.reference)
        for batch in batches(context.task, size, runner.device, runner.vocabulary, context.reference):
            ids = getattr(batch, self.prompts)
            length = ids.shape[1] if self.positions == "each" else 0
            totals = [upcast(a).double().sum(0, keepdim=True) for a in runner.activations(ids, context.sites)]
            if self.positions == "pooled":
                totals = [t.sum(1, keepdim=True) for t in totals]
            sums[length] = [a + b for a, b in zip(sums[length], totals, strict=True)] if length in sums else totals
            counts[length] = counts.get(length, 0) + len(batch) * (1 if length else ids.shape[1])
        if not counts:
            raise OptionError("mean ablation needs at least one reference example")
        dtype = runner.dtype
        means = {length: [(t / counts[length]).to(dtype) for t in totals] for length, totals in sums.items()}

        def values(batch: object) -> list[Tensor]:
            length = batch.clean.shape[1] if self.positions == "each" else 0  # type: ignore[attr-defined]
            if length not in means:
                known = ", ".join(map(str, sorted(means)))
                raise OptionError(f"no means for {length} positions: the reference has prompts of {known} tokens; use positions: pooled")
            return means[length]

        return values
