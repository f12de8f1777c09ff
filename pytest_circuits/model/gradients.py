"""The one gradient pass behind atp, gradient and relp."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .batches import Batch
from .hooks import Hooks
from .metrics import metric_function
from .precision import upcast
from .runner import Runner
from .sites import Site

Rules = Callable[[Hooks], None]


def gradient_scores(
    runner: Runner,
    batch: Batch,
    metric: str,
    sites: Sequence[Site],
    baseline: Sequence[Tensor] | None,
    pool: Callable[[Tensor], Tensor],
    rules: Rules | None = None,
) -> Tensor:
    """(baseline − clean)·∂m/∂a at each site, [batch, T, units, width], summed by `pool`: [batch, columns], sites concatenated.

    `baseline` are the replacement values at each site (None: zero). `rules` adds hooks that change derivatives
    (RelP); they run before the sites are read, so that a site's gradient is that under the rules.
    """
    activations: list[Tensor] = []

    def watch(x: Tensor) -> Tensor:
        # where no earlier tensor carries a gradient, the graph starts here
        activations.append(x if x.requires_grad else x.detach().requires_grad_())
        return activations[-1]

    with torch.enable_grad(), Hooks() as hooks:
        if rules is not None:
            rules(hooks)
        for site in sites:
            site.hook(hooks, watch)
        value = metric_function(metric)(runner.logits(batch.clean, batch.tail), batch.targets).sum()
        slopes = runner.gradients(value, activations)
    scores = []
    for i, slope in enumerate(slopes):
        change = -upcast(activations[i].detach()) if baseline is None else upcast(baseline[i]) - upcast(activations[i].detach())
        scores.append(pool(change * slope).to(batch.clean.device))
    return torch.cat(scores, 1)
