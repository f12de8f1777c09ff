"""The one gradient pass behind atp, gradient, relp and integrated gradients: unit by unit, reduced while it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .batches import Batch
from .metrics import metric_function
from .runner import Runner
from .sites import Site
from .taps import Taps

Rules = Callable[[Taps], None]


def wide(x: Tensor) -> Tensor:
    """float32, or float64 where it already is: what scores are accumulated in."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def gradient_scores(
    runner: Runner,
    batch: Batch,
    metric: str,
    sites: Sequence[Site],
    baseline: Sequence[Tensor] | None,
    units: int,
    rules: Rules | None = None,
) -> Tensor:
    """Σ over positions and width of (baseline − clean)·∂m/∂a, for each unit; [batch, units].

    `baseline` are the replaced values at each site (None: zero). `rules` adds hooks that change derivatives
    (RelP); they run before the sites are read, so that a site's gradient is the one under the rules.
    """
    scores = torch.zeros(len(batch), units, dtype=torch.float32, device=batch.clean.device)
    if runner.dtype == torch.float64:
        scores = scores.double()

    def watch(site: Site, other: Tensor | None) -> Callable[[Tensor], Tensor]:
        def edit(x: Tensor) -> Tensor:
            # where no earlier tensor carries a gradient, the graph starts here
            x = x if x.requires_grad else x.detach().requires_grad_()
            change = -wide(x.detach()) if other is None else wide(other) - wide(x.detach())

            def reduce(g: Tensor) -> None:
                scores[:, site.columns] = (change * wide(g)).sum((1, 3))

            x.register_hook(reduce)  # type: ignore[no-untyped-call]
            return x

        return edit

    with torch.enable_grad(), Taps() as taps:
        if rules is not None:
            rules(taps)
        for i, site in enumerate(sites):
            site.tap(taps, watch(site, None if baseline is None else baseline[i]))
        value = metric_function(metric)(runner.logits(batch.clean, batch.tail), batch.targets).sum()
        runner.backward(value)
    return scores
