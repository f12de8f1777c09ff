"""Outcomes under ablation with a different set for every example, one row of a batch each."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..core.results import Outcome
from ..errors import OptionError
from ..model.batches import batches
from ..model.encoded_task import EncodedTask
from ..model.hooks import measuring
from ..model.intact_reference import with_intact
from ..model.runner import Runner
from .kind import Ablation, AblationContext
from .run import OutcomeLedger
from .sets import UnitSets, sets_of
from .stacked import edited_logits


def ablate_each(
    runner: Runner,
    task: EncodedTask,
    sets: Sequence[Sequence[str]],
    mode: str,
    kind: Ablation,
    level: str,
    metric: str,
    batch_size: int | None,
    examples: Sequence[int] | None,
    reference: Sequence[int] | None,
    site: str = "mlp_activation",
) -> Outcome:
    """Outcomes of the i-th set on the i-th chosen example; arrays [1, n_examples], for as many forwards as one set takes.

    Components or neurons, without positions. Raises `OptionError` unless there are as many sets as examples, and for edges and
    positions; `UnitError` for a name that the model does not have.
    """
    kind.check_level(level)
    n = task.n if examples is None else len(examples)
    if len(sets) != n:
        raise OptionError(f"each example needs exactly one set: {n} examples, {len(sets)} sets")
    chosen = sets_of(runner, task, sets, mode, level, site, examples)
    if not isinstance(chosen, UnitSets) or chosen.spots:
        raise OptionError("sets per example are of components or neurons, without positions")
    masks = ~chosen.masks if chosen.keep else chosen.masks
    context = AblationContext(runner, task, chosen.sites, examples, reference, batch_size)
    ledger = OutcomeLedger(1, n, metric)
    with measuring(runner.model):
        values = kind.prepare(context)
        places = kind.places(context)
        for plain in batches(task, context.size(examples), runner.device, runner.vocabulary, examples):
            batch = with_intact(runner, plain, metric, None)
            row_masks = masks[batch.rows].to(runner.device)[None, :, None]
            with torch.no_grad():
                logits = edited_logits(runner, batch, places, row_masks, values(batch))
            ledger.write([0], batch.rows, logits, batch.targets)
    return ledger.outcome()
