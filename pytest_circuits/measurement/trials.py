"""What a model answers to single prompt pairs under ablation, measured many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from ..ablation.trial import Trial, TrialAnswer, answer_of
from ..core.sources import ModelSource
from ..errors import CircuitsError, TaskError
from ..tasks.grammar.listed_pairs import drawn_source
from .driver import drive
from .requests import Ablate, Encode, Steps, ask, ask_all, freeze

DRAWN = "drawn prompts"
Answers = dict[Trial, TrialAnswer | None]


def measured(model: ModelSource, trials: Sequence[Trial], fitting: Trial | None = None) -> Steps[Answers]:
    """Steps that measure trials: one batch for the intact model and one for the changed one, whatever their number.

    None for a pair that does not fit the tokenizer. `fitting` is a trial that does: measured along, since a task has to have one pair.
    Raises `TaskError` where no pair fits.
    """
    found: Answers = {}
    for alike in dict.fromkeys(one.alike for one in trials):
        these = [one for one in trials if one.alike == alike]
        if fitting is not None:
            these.insert(0, fitting if fitting.alike == alike else replace(these[0], pair=fitting.pair))
        found |= yield from _together(model, list(dict.fromkeys(these)))
    return found


def _together(model: ModelSource, trials: Sequence[Trial]) -> Steps[Answers]:
    first = trials[0]
    task = drawn_source(DRAWN, [one.pair for one in trials], first.scoring, first.stop)
    encoded = yield from ask(Encode(model, task))
    fit = [trials[i] for i in encoded.kept] if encoded.kept else list(trials)
    intact, changed = yield from ask_all([Ablate(model, task, ((),), metric=first.metric), _changed(model, task, fit)])
    found: Answers = dict.fromkeys(trials)
    return found | {one: answer_of(changed, i, answer_of(intact, i)) for i, one in enumerate(fit)}


def _changed(model: ModelSource, task: Any, fit: Sequence[Trial]) -> Ablate:
    first, sets = fit[0], tuple(one.units for one in fit)
    same = len(set(sets)) == 1
    options = first.options if same else freeze({**_options(first.options), "each": True})
    return Ablate(model, task, sets[:1] if same else sets, first.mode, first.kind, "component", first.metric, options=options)


def _options(text: str) -> dict[str, Any]:
    import json

    return json.loads(text)  # type: ignore[no-any-return]


class Pending(Exception):  # noqa: N818
    """An answer that is not known yet; it was noted, and will be measured with others."""


class TrialLedger:
    """Answers of the models of a session. While it is `noting`, an unknown one is noted instead of measured; `failed` says whether an
    example has failed meanwhile, and `shrinking` whether that is what is noted for.
    """

    def __init__(self) -> None:
        self.noting = self.shrinking = self.failed = False
        self._known: dict[ModelSource, Answers] = {}
        self._noted: dict[ModelSource, tuple[Any, dict[Trial, None]]] = {}

    def answer(self, lab: Any, model: ModelSource, trial: Trial) -> TrialAnswer | None:
        """The answer; None for a pair that does not fit. Raises `Pending` while noting, and what measuring raises otherwise."""
        known = self._known.setdefault(model, {})
        if trial not in known:
            if self.noting:
                self._noted.setdefault(model, (lab, {}))[1][trial] = None
                raise Pending
            self._measure(lab, model, [trial])
        return known[trial]

    def settle(self) -> bool:
        """Measure what was noted, in one go for each model. Whether there was anything."""
        noted, self._noted = self._noted, {}
        for model, (lab, trials) in noted.items():
            self._measure(lab, model, list(trials))
        return bool(noted)

    def _measure(self, lab: Any, model: ModelSource, trials: list[Trial]) -> None:
        known = self._known.setdefault(model, {})
        anchor = next((one for one, answer in known.items() if answer is not None), None)
        known |= run(lab, measured(model, trials, anchor))


LEDGER: ContextVar[TrialLedger | None] = ContextVar("ledger", default=None)


def run(lab: Any, steps: Steps[Answers]) -> Answers:
    """The result of steps that measure, from an executor."""
    return drive(steps, lab.result)


def answered(lab: Any, model: ModelSource, trial: Trial) -> TrialAnswer:
    """The answer to one trial, from the ledger of a `for_all` test where one runs.

    A pair that does not fit the tokenizer is no example of a hypothesis test, and elsewhere a `TaskError`.
    """
    ledger, found, problem = LEDGER.get(), None, None
    try:
        found = run(lab, measured(model, [trial]))[trial] if ledger is None else ledger.answer(lab, model, trial)
    except CircuitsError as caught:
        problem = caught
    if problem is not None and not (isinstance(problem, TaskError) and (ledger is not None or _in_hypothesis())):
        raise problem.with_traceback(None)  # from here each time: hypothesis takes one from elsewhere for another failure
    if found is None:
        _reject()
    assert found is not None
    return found


def _in_hypothesis() -> bool:
    import sys

    return "hypothesis" in sys.modules and bool(sys.modules["hypothesis"].currently_in_test_context())


def _reject() -> None:
    from hypothesis import reject

    reject()
