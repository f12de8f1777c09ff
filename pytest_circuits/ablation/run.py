"""Outcomes under ablation: many sets stacked in one batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from ..engine.batches import Batch, batches
from ..engine.encode import EncodedTask
from ..engine.metrics import Targets, correct, log_prob, metric_function
from ..engine.runner import Runner
from ..engine.sites import Site, sites_of
from ..engine.taps import Taps, measuring
from ..errors import MeasurementError, OptionError, suggestion
from ..results import Outcome
from .base import Kind, Setting


class Ledger:
    """Collects outcomes: arrays [n_sets, n_examples]."""

    def __init__(self, sets: int, examples: int, metric: str) -> None:
        self.metric_name = metric
        self.correct = np.zeros((sets, examples), bool)
        self.metric = np.full((sets, examples), np.nan, np.float32)
        self.log_prob = np.full((sets, examples), np.nan, np.float32)

    def write(self, sets: Sequence[int], rows: Tensor, logits: Tensor, targets: Targets) -> None:
        """Score logits [sets·examples, …] (sets outermost)."""
        where = np.ix_(np.asarray(sets), rows.numpy())
        many = targets.repeat(len(sets))
        for name, function in (("metric", metric_function(self.metric_name)), ("log_prob", log_prob), ("correct", correct)):
            values = function(logits, many).view(len(sets), -1).cpu().numpy()
            getattr(self, name)[where] = values

    def outcome(self, baseline: Outcome | None = None) -> Outcome:
        """The collected arrays. Raises `MeasurementError` when a value is missing or not finite."""
        bad = int((~np.isfinite(self.metric) | ~np.isfinite(self.log_prob)).sum())
        if bad:
            raise MeasurementError(
                f"{bad} of {self.metric.size} outcomes are not finite numbers; try dtype: float32, and check the checkpoint for NaN weights"
            )
        return Outcome(self.correct, self.metric, self.log_prob, baseline)


def edited_logits(
    runner: Runner,
    batch: Batch,
    sites: Sequence[Site],
    masks: Tensor,
    values: Sequence[Tensor],
    layer: int = 0,
    residual: Tensor | None = None,
) -> Tensor:
    """Logits of a batch under each of several replacement masks [sets, units]; rows are sets × examples, sets outermost.

    Layers below `layer` are left out and `residual` [batch, T, d_model] taken as the stream before it.
    """
    sets = len(masks)

    def put(mask: Tensor, value: Tensor) -> Callable[[Tensor], Tensor]:
        def edit(x: Tensor) -> Tensor:
            stacked = x.view(sets, len(batch), *x.shape[1:])
            return torch.where(mask[:, None, None, :, None], value.to(x.dtype), stacked).flatten(0, 1)

        return edit

    prefix = runner.starting_at(layer, residual.repeat(sets, 1, 1)) if residual is not None else nullcontext()
    with torch.no_grad(), prefix, Taps() as taps:
        for site, value in zip(sites, values, strict=True):
            mask = masks[:, site.columns]
            if bool(mask.any()):
                site.tap(taps, put(mask, value))
        return runner.logits(batch.clean.repeat(sets, 1), batch.tail)


def replaced_masks(sets: Sequence[Sequence[int]], mode: str, units: int) -> Tensor:
    """Which units each set has replaced: its own (`remove`), or all but its own (`keep`); bool [sets, units]."""
    if mode not in ("remove", "keep"):
        raise OptionError(f"unknown mode {mode!r}; {suggestion(mode, ('remove', 'keep'))}")
    masks = torch.zeros(len(sets), units, dtype=torch.bool)
    for row, members in enumerate(sets):
        masks[row, list(members)] = True
    return masks if mode == "remove" else ~masks


def ablate(
    runner: Runner,
    task: EncodedTask,
    sets: Sequence[Sequence[str]],
    mode: str,
    kind: Kind,
    level: str,
    metric: str,
    batch_size: int | None,
    examples: Sequence[int] | None,
    reference: Sequence[int] | None,
    site: str = "mlp_activation",
) -> Outcome:
    """Outcomes of several sets of unit names; arrays [n_sets, n_examples].

    A set that replaces nothing is the intact model itself, bit for bit. At neuron level the universe is the MLP neurons:
    attention stays live. Raises `UnitError` for a name that the model does not have.
    """
    sites, universe = sites_of(runner.anatomy, level, site)
    masks = replaced_masks([universe.index(names, level) for names in sets], mode, universe.size(level))
    setting = Setting(runner, task, sites, examples, reference, batch_size)
    ledger = Ledger(len(sets), task.n if examples is None else len(examples), metric)
    intact = [i for i in range(len(sets)) if not bool(masks[i].any())]
    changed = [i for i in range(len(sets)) if bool(masks[i].any())]
    size = setting.size(examples)
    with measuring(runner.model):
        values = kind.prepare(setting) if changed else None
        masks = masks.to(runner.device)
        for batch in batches(task, size, runner.device, runner.vocabulary, examples):
            if intact:
                with torch.no_grad():
                    logits = runner.logits(batch.clean, batch.tail)
                ledger.write(intact, batch.rows, logits.repeat(len(intact), 1, 1), batch.targets)
            if values is not None:
                replacements = values(batch)
                stack = max(1, size // len(batch))
                for begin in range(0, len(changed), stack):
                    these = changed[begin : begin + stack]
                    ledger.write(these, batch.rows, edited_logits(runner, batch, sites, masks[these], replacements), batch.targets)
    return ledger.outcome()
