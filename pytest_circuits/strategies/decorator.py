"""`for_all`: a hypothesis test whose model calls are made in batches."""

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
from ..measurement.trials import LEDGER, Pending, TrialLedger

ROUNDS = 40  # passes that only note what is asked for; what later ones would ask for is measured one by one
Test = Callable[..., Any]


def for_all(**arguments: st.SearchStrategy[Any]) -> Callable[[Test], Test]:
    """`hypothesis.given`, with batches behind it: `@for_all(pair=prompt_pairs("ioi"))`.

    Answers that the test asks of a model of the session (`circuits.model(…).answer(pair, remove=…)`) are first only noted, for all
    examples that hypothesis generates, then measured together; then hypothesis runs as ever, and looks them up. So a hundred examples
    cost a few forwards, and shrinking some more. The body may run several times for an example, and should do nothing
    but ask and assert. `settings`, `seed`, `example`, profiles and the database work as for `given`. There is no deadline, which would
    time model calls. Pairs that do not fit the model's tokenizer are filtered like a failed `assume`.
    """

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):
            return given(**arguments)(test)  # which refuses it, or leaves it to a plugin that runs such tests

        @wraps(test)
        def body(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            ledger = LEDGER.get()
            if ledger is None or not ledger.noting:
                return test(*args, **kwargs)  # what it returns should be None, and hypothesis looks
            try:
                test(*args, **kwargs)
            except Pending:
                pass
            except UnsatisfiedAssumption:
                raise
            except (Exception, pytest.fail.Exception):  # a failure that the real run will find again
                ledger.failed = True
                if ledger.shrinking:
                    raise
            return None

        drawn: Any = given(**arguments)(body)
        if not hasattr(
            drawn, "_hypothesis_internal_use_settings"
        ):  # arguments that the test does not have, or none: it fails with the reason
            return drawn  # type: ignore[no-any-return]

        @wraps(drawn)
        def run(*args: Any, **kwargs: Any) -> None:
            __tracebackhide__ = True
            for name, value in vars(run).items():  # what settings, seed and example have put on the outside
                if name.startswith(("_hypothesis", "hypothesis_")):
                    setattr(drawn, name, value)
            _seeded(drawn)
            ledger = TrialLedger()
            token = LEDGER.set(ledger)
            try:
                _noted(drawn, ledger, args, kwargs)
                drawn._hypothesis_internal_use_settings = settings(drawn._hypothesis_internal_use_settings, deadline=None)
                drawn(*args, **kwargs)
            finally:
                LEDGER.reset(token)

        run.__signature__ = inspect.signature(drawn)  # type: ignore[attr-defined]
        return run

    return decorate


def _seeded(drawn: Any) -> None:
    """One seed for all passes of this run, where nothing else decides it."""
    chosen = drawn._hypothesis_internal_use_settings
    if drawn._hypothesis_internal_use_seed is None and not chosen.derandomize and hypothesis.core.global_force_seed is None:
        drawn._hypothesis_internal_use_seed = Random().getrandbits(64)


def _noted(drawn: Any, ledger: TrialLedger, args: Any, kwargs: Any) -> None:
    """Passes that only note, until all is known that the test asks for: first of what is generated, then, where that fails, of what
    shrinking tries.
    """
    own = drawn._hypothesis_internal_use_settings
    if Phase.generate not in own.phases:
        return
    ledger.noting = True
    try:
        for shrinking in (False, True):
            ledger.shrinking = shrinking
            if shrinking and not (ledger.failed and Phase.shrink in own.phases):
                break
            wanted = {Phase.explicit, Phase.generate, *([Phase.shrink] if shrinking else [])}
            drawn._hypothesis_internal_use_settings = settings(
                own, phases=[phase for phase in own.phases if phase in wanted], database=None, deadline=None, print_blob=False,
                verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            for _ in range(ROUNDS):
                with suppress(Exception, pytest.fail.Exception):  # a failure, or no example that fits; the real run says so
                    drawn(*args, **kwargs)
                try:
                    if not ledger.settle():
                        break
                except CircuitsError:  # of which example, the real run tells, where each is measured by itself
                    return
    finally:
        ledger.noting = False
        drawn._hypothesis_internal_use_settings = own
