"""Answers to trials within a hypothesis test: trials are collected while examples are generated, and measured together."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..ablation.trial import Trial, TrialAnswer
from ..core.sources import ModelSource
from ..errors import CircuitsError, TaskError
from .driver import drive
from .trials import Answers, measure_trials

if TYPE_CHECKING:
    from .executor import Executor


class PendingAnswer(Exception):  # noqa: N818
    """The answer to a trial is not known yet; the trial was collected and will be measured with others."""


class TrialLedger:
    """Answers of the models of a session.

    While `collecting`, unknown trials are collected instead of measured. `failed`: an example has failed meanwhile; `shrinking`: trials are
    collected for shrinking it.
    """

    def __init__(self) -> None:
        self.collecting = self.shrinking = self.failed = False
        self._answers: dict[ModelSource, Answers] = {}
        self._collected: dict[ModelSource, tuple[Executor, dict[Trial, None]]] = {}

    def answer(self, executor: Executor, model: ModelSource, trial: Trial) -> TrialAnswer | None:
        """The answer; None for a pair that does not fit. Raises `PendingAnswer` while collecting, and otherwise what measuring raises."""
        answers = self._answers.setdefault(model, {})
        if trial not in answers:
            if self.collecting:
                self._collected.setdefault(model, (executor, {}))[1][trial] = None
                raise PendingAnswer
            self._measure(executor, model, [trial])
        return answers[trial]

    def measure_collected(self) -> bool:
        """Measure the collected trials, in one batch for each model. Returns whether there were any."""
        collected, self._collected = self._collected, {}
        for model, (executor, trials) in collected.items():
            self._measure(executor, model, list(trials))
        return bool(collected)

    def _measure(self, executor: Executor, model: ModelSource, trials: list[Trial]) -> None:
        answers = self._answers.setdefault(model, {})
        fitting = next((trial for trial, answer in answers.items() if answer is not None), None)
        answers |= drive(measure_trials(model, trials, fitting), executor.result)


LEDGER: ContextVar[TrialLedger | None] = ContextVar("ledger", default=None)
"""The ledger of the `for_all` test that is running."""


def answer_trial(executor: Executor, model: ModelSource, trial: Trial) -> TrialAnswer:
    """The answer to one trial, from the ledger of the running `for_all` test if there is one.

    A pair that does not fit the tokenizer is rejected inside a hypothesis test, and raises `TaskError` elsewhere.
    """
    ledger, answer, error = LEDGER.get(), None, None
    try:
        answer = (TrialLedger() if ledger is None else ledger).answer(executor, model, trial)
    except CircuitsError as problem:
        error = problem
    if error is not None and not (isinstance(error, TaskError) and (ledger is not None or _is_in_hypothesis())):
        raise error.with_traceback(None)  # always from this line: hypothesis tells failures apart by where they are raised
    if answer is None:
        _reject()
    assert answer is not None
    return answer


def _is_in_hypothesis() -> bool:
    return "hypothesis" in sys.modules and bool(sys.modules["hypothesis"].currently_in_test_context())


def _reject() -> None:
    from hypothesis import reject

    reject()
