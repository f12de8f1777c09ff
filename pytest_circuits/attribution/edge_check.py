"""A check of edge scores against plain gradients, for models with hooks between components and their readers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..errors import MeasurementError
from ..model.precision import upcast
from ..model.sites import Site

TOLERANCE = {torch.float64: 1e-3, torch.float32: 1e-3}  # of the largest sum of absolute edges; rounding only
HALF = 0.2


def check_row_sums(
    sites: Sequence[Site], corrupt: Sequence[Tensor], clean: Sequence[Tensor], slopes: Sequence[Tensor], edges: list[tuple[slice, Tensor]]
) -> None:
    """The signed edges of each component must add up to Σ (a(corrupt) − a(clean))·∂m/∂a, which autograd gives directly.

    `slopes` are ∂m/∂a at each site. Raises `MeasurementError` naming the component that fits least.
    """
    signed = torch.zeros(len(clean[0]), sum(s.units for s in sites), dtype=slopes[0].dtype, device=slopes[0].device)
    size = torch.zeros_like(signed)
    for columns, scores in edges:
        signed[:, columns] += scores.sum(2)
        size[:, columns] += scores.abs().sum(2)
    truth = torch.zeros_like(signed)
    for site, c, a, g in zip(sites, corrupt, clean, slopes, strict=True):
        truth[:, site.columns] = ((upcast(c) - upcast(a)) * g).sum((1, 3))
    error = (signed - truth).abs().amax(0)
    limit = TOLERANCE.get(clean[0].dtype, HALF) * float(size.max())
    if float(error.max()) > limit:
        worst = int(error.argmax())
        site = next(s for s in sites if s.columns.start <= worst < s.columns.stop)
        raise MeasurementError(
            f"eap cannot be used with the hooks in this model's layers: one of them changes the stream between the {site.kind} "
            f"of layer {site.layer} and their readers, which edge scores would miss. Remove the hook, or use atp"
        )
