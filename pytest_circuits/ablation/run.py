"""Outcomes under ablation: many sets stacked in one batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ..core.results import Outcome
from ..errors import MeasurementError
from ..model.batches import batches
from ..model.encoded_task import EncodedTask
from ..model.hooks import measuring
from ..model.intact_reference import with_intact
from ..model.metrics import Targets, correct, log_prob, metric_function
from ..model.runner import Runner
from .kind import Ablation, AblationContext
from .sets import sets_of


class OutcomeLedger:
    """Collects outcomes: arrays [n_sets, n_examples]."""

    def __init__(self, sets: int, examples: int, metric: str) -> None:
        self.metric_name = metric
        self.correct = np.zeros((sets, examples), bool)
        self.metric = np.full((sets, examples), np.nan, np.float32)
        self.log_prob = np.full((sets, examples), np.nan, np.float32)

    def write(self, sets: Sequence[int], rows: Tensor, logits: Tensor, targets: Targets) -> None:
        """Score logits [sets·examples, …] (sets outermost)."""
        cells = np.ix_(np.asarray(sets), rows.numpy())
        repeated = targets.repeat(len(sets))
        for name, function in (("metric", metric_function(self.metric_name)), ("log_prob", log_prob), ("correct", correct)):
            values = function(logits, repeated).view(len(sets), -1).cpu().numpy()
            getattr(self, name)[cells] = values

    def outcome(self, baseline: Outcome | None = None) -> Outcome:
        """The collected arrays. Raises `MeasurementError` when a value is missing or not finite."""
        bad = int((~np.isfinite(self.metric) | ~np.isfinite(self.log_prob)).sum())
        if bad:
            raise MeasurementError(
                f"{bad} of {self.metric.size} outcomes are not finite numbers; try dtype: float32, and check the checkpoint for NaN weights"
            )
        return Outcome(self.correct, self.metric, self.log_prob, baseline)


def ablate(
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
    """Outcomes of several sets of unit names; arrays [n_sets, n_examples].

    A set that replaces nothing is the intact model itself, bit for bit. At neuron level the universe is the MLP neurons:
    attention stays live. Names of components and neurons may have a position: then only that position is replaced, on
    examples that have it. Raises `UnitError` for a name that the model does not have.
    """
    kind.check_level(level)
    chosen = sets_of(runner, task, sets, mode, level, site, examples)
    touched = chosen.touched()
    intact, changed = ([i for i, hit in enumerate(touched) if hit is wanted] for wanted in (False, True))
    context = AblationContext(runner, task, chosen.sites, examples, reference, batch_size)
    ledger = OutcomeLedger(len(sets), task.n if examples is None else len(examples), metric)
    size = context.size(examples)
    with measuring(runner.model):
        values = kind.prepare(context) if changed else None
        chosen.sites = kind.places(context)
        for plain in batches(task, size, runner.device, runner.vocabulary, examples):
            logits = None
            if intact:
                with torch.no_grad():
                    logits = runner.logits(plain.clean, plain.tail)
            batch = with_intact(runner, plain, metric, logits)
            if logits is not None:
                ledger.write(intact, batch.rows, logits.repeat(len(intact), 1, 1), batch.targets)
            if values is not None:
                replacements = values(batch)
                stack = chosen.rows(size, batch)
                for begin in range(0, len(changed), stack):
                    stacked = changed[begin : begin + stack]
                    ledger.write(stacked, batch.rows, chosen.logits(batch, stacked, replacements), batch.targets)
    return ledger.outcome()
