"""`for_all`: a hypothesis test whose model calls are measured in batches."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from random import Random
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from ..errors import CircuitsError
from ..measurement.trial_ledger import LEDGER, PendingAnswer, TrialLedger

ROUNDS = 40  # passes that only collect trials; trials of later passes are measured one by one
Test = Callable[..., Any]


def for_all(**arguments: st.SearchStrategy[Any]) -> Callable[[Test], Test]:
    """`hypothesis.given` with batched model calls: `@for_all(pair=prompt_pairs("ioi"))`.

    The answers that the test requests from a model of the session (`circuits.model(…).answer(pair, remove=…)`) are collected for all
    examples that hypothesis generates, and measured together. Then hypothesis runs as usual and looks the answers up. A hundred examples
    cost a few forward passes, and shrinking a few more. The body can run several times for an example, and should only request answers and
    assert. `settings`, `seed`, `example`, profiles and the database work as for `given`. There is no deadline, since it would time model
    calls. Pairs that do not fit the model's tokenizer are filtered like a failed `assume`.
    """

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):
            return given(**arguments)(test)  # refuses it, or leaves it to a plugin that runs such tests

        @wraps(test)
        def body(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            ledger = LEDGER.get()
            if ledger is None or not ledger.collecting:
                return test(*args, **kwargs)  # hypothesis checks that it returns None
            try:
                test(*args, **kwargs)
            except PendingAnswer:
                pass
            except UnsatisfiedAssumption:
                raise
            except (Exception, pytest.fail.Exception):  # a failure, which the real run will show again
                ledger.failed = True
                if ledger.shrinking:
                    raise
            return None

        drawn: Any = given(**arguments)(body)
        if not hasattr(drawn, "_hypothesis_internal_use_settings"):  # wrong or missing arguments: the test fails with the reason
            return drawn  # type: ignore[no-any-return]

        @wraps(drawn)
        def run(*args: Any, **kwargs: Any) -> None:
            __tracebackhide__ = True
            for name, value in vars(run).items():  # set on the wrapper by settings, seed and example
                if name.startswith(("_hypothesis", "hypothesis_")):
                    setattr(drawn, name, value)
            _fix_seed(drawn)
            ledger = TrialLedger()
            token = LEDGER.set(ledger)
            try:
                _measure_examples(drawn, ledger, args, kwargs)
                drawn._hypothesis_internal_use_settings = settings(drawn._hypothesis_internal_use_settings, deadline=None)
                drawn(*args, **kwargs)
            finally:
                LEDGER.reset(token)

        run.__signature__ = inspect.signature(drawn)  # type: ignore[attr-defined]
        return run

    return decorate


def _fix_seed(drawn: Any) -> None:
    """Use one seed for all passes of this run, unless something else decides it."""
    test_settings = drawn._hypothesis_internal_use_settings
    if drawn._hypothesis_internal_use_seed is None and not test_settings.derandomize and hypothesis.core.global_force_seed is None:
        drawn._hypothesis_internal_use_seed = Random().getrandbits(64)


def _measure_examples(drawn: Any, ledger: TrialLedger, args: Any, kwargs: Any) -> None:
    """Passes that only collect trials and measure them, until all answers are known that the test requests: first for generated examples,
    then, if one fails, for those that shrinking tries.
    """
    test_settings = drawn._hypothesis_internal_use_settings
    if Phase.generate not in test_settings.phases:
        return
    ledger.collecting = True
    try:
        for shrinking in (False, True):
            ledger.shrinking = shrinking
            if shrinking and not (ledger.failed and Phase.shrink in test_settings.phases):
                break
            phases = {Phase.explicit, Phase.generate, *([Phase.shrink] if shrinking else [])}
            drawn._hypothesis_internal_use_settings = settings(
                test_settings, phases=[phase for phase in test_settings.phases if phase in phases], database=None, deadline=None,
                print_blob=False, verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            for _ in range(ROUNDS):
                with suppress(Exception, pytest.fail.Exception):  # a failure, or no example that fits; the real run reports it
                    drawn(*args, **kwargs)
                try:
                    if not ledger.measure_collected():
                        break
                except CircuitsError:  # the real run reports the example, since it measures each by itself
                    return
    finally:
        ledger.collecting = False
        drawn._hypothesis_internal_use_settings = test_settings
