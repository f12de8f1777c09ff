"""The model's answers to single prompt pairs under ablation, measured in batches."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from ..ablation.trial import Trial, TrialAnswer, answer_of
from ..core.sources import ModelSource, TaskSource
from ..tasks.grammar.listed_pairs import drawn_source
from .requests import Ablate, Encode, Steps, ask, ask_all, freeze

DRAWN = "drawn prompts"
Answers = dict[Trial, TrialAnswer | None]
"""The answer to each trial; None for a pair that does not fit the tokenizer."""


def measure_trials(model: ModelSource, trials: Sequence[Trial], fitting: Trial | None = None) -> Steps[Answers]:
    """Measure trials: for those that share a `batch_key`, one batch on the intact model and one on the ablated model.

    `fitting` is a trial whose pair fits the tokenizer. It is measured too, since a task needs at least one such pair. Raises `TaskError` if
    no pair fits.
    """
    answers: Answers = {}
    for key in dict.fromkeys(trial.batch_key for trial in trials):
        batch = [trial for trial in trials if trial.batch_key == key]
        if fitting is not None:
            batch.insert(0, fitting if fitting.batch_key == key else replace(batch[0], pair=fitting.pair))
        answers |= yield from _measure_batch(model, list(dict.fromkeys(batch)))
    return answers


def _measure_batch(model: ModelSource, trials: Sequence[Trial]) -> Steps[Answers]:
    first = trials[0]
    task = drawn_source(DRAWN, [trial.pair for trial in trials], first.scoring, first.stop)
    encoded = yield from ask(Encode(model, task))
    fitting = [trials[i] for i in encoded.kept] if encoded.kept else list(trials)
    intact, ablated = yield from ask_all([Ablate(model, task, ((),), metric=first.metric), _ablation(model, task, fitting)])
    answers: Answers = dict.fromkeys(trials)
    return answers | {trial: answer_of(ablated, i, answer_of(intact, i)) for i, trial in enumerate(fitting)}


def _ablation(model: ModelSource, task: TaskSource, trials: Sequence[Trial]) -> Ablate:
    """One request for all trials: one set for all rows, or a set for each row."""
    first, sets = trials[0], tuple(trial.units for trial in trials)
    same = len(set(sets)) == 1
    options = first.options if same else freeze({**json.loads(first.options), "each": True})
    return Ablate(model, task, sets[:1] if same else sets, first.mode, first.kind, "component", first.metric, options=options)
