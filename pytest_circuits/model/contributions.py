"""The size of the contributions that components write to the residual stream."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..core.results import ComponentNorms
from ..errors import MeasurementError
from .batches import batches
from .encoded_task import EncodedTask
from .hooks import measuring
from .precision import upcast
from .projections import in_out
from .runner import Runner
from .sites import Site, sites_of


def contribution_norms(runner: Runner, task: EncodedTask, batch_size: int | None, examples: Sequence[int] | None) -> ComponentNorms:
    """Mean L2 norm of what each component writes, over every position of every clean prompt, each position counting once.

    A head writes its slice of the output projection's input through its rows of that projection, without the bias that all heads
    share; an MLP the output of its down projection, bias included; both before any post-norm and before the layer's residual
    factor. Norms are taken in float32 or wider and summed in float64. Raises `MeasurementError` for one that is not finite.
    """
    sites, universe = sites_of(runner.anatomy)
    chosen = range(task.n) if examples is None else examples
    size = runner.batch_size(batch_size, max(len(task.clean[int(i)]) for i in chosen))
    with measuring(runner.model):
        totals, positions = torch.zeros(universe.components, dtype=torch.float64), 0
        for batch in batches(task, size, runner.device, runner.vocabulary, examples):
            activations = runner.activations(batch.clean, sites)
            for site, x in zip(sites, activations, strict=True):
                totals[site.columns] += _norms(site, x).double().sum((0, 1)).cpu()
            positions += batch.clean.numel()
        values = (totals / positions).to(torch.float32).numpy()
    bad = [name for name, value in zip(universe.component_names, values.tolist(), strict=True) if value - value != 0]
    if bad:
        raise MeasurementError(
            f"the contributions of {len(bad)} of {len(values)} components have no finite norm, for instance {bad[0]}; "
            "try dtype: float32, and check the checkpoint for NaN weights"
        )
    return ComponentNorms(values, universe.component_names)


def _norms(site: Site, x: Tensor) -> Tensor:
    """[batch, T, units, width] → [batch, T, units]; one head at a time, since each writes a vector of the stream's width."""
    if site.kind == "mlp":
        return _length(x)
    weight = upcast(in_out(site.module).detach()).view(site.units, site.width, -1)
    return torch.stack([_length(upcast(x[:, :, head]) @ weight[head].to(x.device)) for head in range(site.units)], dim=-1)


def _length(x: Tensor) -> Tensor:
    length: Tensor = torch.linalg.vector_norm(upcast(x), dim=-1)
    return length
