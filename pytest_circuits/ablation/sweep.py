"""The exact effect of every component, with the part of the forward before it computed once."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..core.results import SweepOutcome
from ..model.batches import batches
from ..model.encoded_task import EncodedTask
from ..model.hooks import measuring
from ..model.intact_reference import with_intact
from ..model.runner import Runner
from ..model.sites import sites_of
from .kind import Ablation, AblationContext
from .run import OutcomeLedger
from .stacked import edited_logits


def sweep(
    runner: Runner,
    task: EncodedTask,
    kind: Ablation,
    metric: str,
    batch_size: int | None,
    examples: Sequence[int] | None,
    reference: Sequence[int] | None,
) -> SweepOutcome:
    """Each component ablated by itself; arrays [n_examples, n_components], `baseline` the intact model [n_examples].

    The residual stream before the ablated layer is that of the intact run, so only the layers from there on run,
    for all components of a layer in one batch.
    """
    kind.check_level("component")
    sites, universe = sites_of(runner.anatomy)
    context = AblationContext(runner, task, sites, examples, reference, batch_size)
    n = task.n if examples is None else len(examples)
    ledger, intact = OutcomeLedger(universe.components, n, metric), OutcomeLedger(1, n, metric)
    step = runner.anatomy.heads + 1
    size = context.size(examples)
    with measuring(runner.model):
        values, places = kind.prepare(context), kind.places(context)
        one_each = torch.eye(universe.components, dtype=torch.bool, device=runner.device)
        reuse = runner.can_skip
        for plain in batches(task, size, runner.device, runner.vocabulary, examples):
            streams, logits = runner.residuals(plain.clean, plain.tail)
            batch = with_intact(runner, plain, metric, logits)
            intact.write([0], batch.rows, logits, batch.targets)
            replacements = values(batch)
            stack = max(1, size // len(batch))
            for layer in range(universe.layers):
                numbers = [i for i, site in enumerate(sites) if site.layer == layer]
                columns = list(range(layer * step, (layer + 1) * step))
                for begin in range(0, step, stack):
                    stacked = columns[begin : begin + stack]
                    stream = streams[layer - 1] if reuse and layer else None
                    out = edited_logits(
                        runner, batch, [places[i] for i in numbers], one_each[stacked], [replacements[i] for i in numbers], layer, stream
                    )
                    ledger.write(stacked, batch.rows, out, batch.targets)
    whole, base = ledger.outcome(), intact.outcome()
    baseline = type(base)(base.correct[0], base.metric[0], base.log_prob[0])
    return SweepOutcome(whole.correct.T, whole.metric.T, whole.log_prob.T, baseline, universe.component_names)
