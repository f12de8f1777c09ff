"""A search for counterexamples that measures in batches.

hypothesis calls a test once for each example and needs its outcome immediately, but a model is only fast on many prompts. So a pass of
hypothesis looks outcomes up: an example that was not measured yet is collected and counts as passing. The collected examples are measured
in one batch, and the pass is repeated with the same seed until nothing is collected. In the last pass every outcome is known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, given, reject, seed, settings
from hypothesis.database import ExampleDatabase, InMemoryExampleDatabase, choices_from_bytes, choices_to_bytes
from hypothesis.errors import FailedHealthCheck, Unsatisfiable

from ..errors import Invalid, ReasonCode
from ..tasks.base import PromptPair
from ..tasks.grammar.draws import Draws, Independent
from .choices import ReplayedChoices, StaleError, strategy

KEY = b"pytest-circuits"
PATIENCE = 50  # draws for each accepted example before a grammar counts as making no pairs


@dataclass(frozen=True)
class Example:
    """A prompt pair and, if sets are drawn too, the components; `choices` are the choices that it was drawn by."""

    pair: PromptPair
    units: tuple[str, ...] | None = None
    choices: tuple[int | bool, ...] = field(default=(), compare=False)

    @property
    def size(self) -> tuple[int, tuple[int, ...]]:
        """The order of hypothesis: fewer choices first, then smaller ones."""
        return len(self.choices), tuple(map(int, self.choices))


Make = Callable[[Draws], Example | None]
Known = Mapping[Example, bool | None]  # holds, fails, or is not eligible


@dataclass(frozen=True)
class Effort:
    """The effort of a search: hypothesis' settings and the seed."""

    base: settings
    seed: int | str
    forced: bool  # whether --hypothesis-seed gives the seed, which also switches the database off, as in other tests

    @classmethod
    def of_profile(cls, examples: int | None, default_seed: str) -> Effort:
        """The effort of the profile in force, with `examples` instead of its max_examples."""
        forced = getattr(hypothesis.core, "global_force_seed", None)
        base = settings.default
        assert base is not None
        if examples is not None:
            base = settings(base, max_examples=examples)
        return cls(base, default_seed if forced is None else forced, forced is not None)

    @property
    def examples(self) -> int:
        """The number of examples."""
        return self.base.max_examples

    @property
    def database(self) -> ExampleDatabase | None:
        """The user's database of failing examples."""
        return None if self.forced else self.base.database

    @property
    def profile(self) -> str:
        """The profile's name."""
        return str(settings.get_current_profile_name())

    def allows(self, phase: Phase) -> bool:
        """Whether the profile has this phase."""
        return phase in self.base.phases


def draw_example(make: Make, draws: Draws) -> Example | None:
    """Draw an example, and keep its choices."""
    example = make(draws)
    return None if example is None else replace(example, choices=tuple(draws.record))  # type: ignore[attr-defined]


def independent_draws(make: Make, n: int, source: int | str) -> list[Example]:
    """`n` examples drawn independently of each other, from the same description that hypothesis draws from.

    Raises `Invalid` if hardly any draw makes an example.
    """
    random, examples, drawn = Random(f"independent {source}"), list[Example](), 0
    while len(examples) < n:
        drawn += 1
        example = draw_example(make, Independent(random))
        if example is not None:
            examples.append(example)
        elif drawn >= PATIENCE * (len(examples) + 20):
            raise Invalid(
                f"only {len(examples)} of {drawn} draws made a prompt pair: in the others the corruption changes nothing, or a "
                "foil is the answer",
                {"drawn": drawn, "pairs": len(examples)},
                code=ReasonCode.NO_PROMPTS_TO_DRAW,
            )
    return examples


@dataclass
class Pass:
    """The result of one pass of hypothesis: examples without an outcome, and the smallest that fails."""

    unknown: dict[Example, None] = field(default_factory=dict)
    failing: Example | None = None


def generate(make: Make, known: Known, effort: Effort) -> Pass:
    """A pass that generates examples and stops at the first that fails. Raises `Invalid` if a health check fails."""
    run_settings = settings(effort.base, phases=(Phase.generate,), database=None, **_QUIET)
    return _run_pass(make, known, effort, run_settings, None)


def shrink(make: Make, known: Known, effort: Effort, start: Example) -> Pass:
    """A pass that shrinks a failing example, as far as outcomes are known."""
    if not effort.allows(Phase.shrink):
        return Pass(failing=start)
    database = InMemoryExampleDatabase()
    database.save(KEY + b".secondary", choices_to_bytes(start.choices))  # primary examples count as shrunk already
    run_settings = settings(
        effort.base, phases=(Phase.reuse, Phase.shrink), database=database, suppress_health_check=list(HealthCheck), **_QUIET
    )
    shrunk = _run_pass(make, known, effort, run_settings, KEY)
    return shrunk if shrunk.failing is not None else replace(shrunk, failing=start)


_QUIET: dict[str, Any] = {
    "deadline": None, "derandomize": False, "print_blob": False, "report_multiple_bugs": False, "verbosity": Verbosity.quiet
}  # fmt: skip


class _FailsError(Exception):
    pass


def _run_pass(make: Make, known: Known, effort: Effort, run_settings: settings, key: bytes | None) -> Pass:
    result = Pass()

    def draw(draws: Draws) -> Example | None:
        return draw_example(make, draws)

    @given(strategy(draw))
    def examples(example: Example) -> None:
        if example not in known:
            result.unknown[example] = None
            return
        holds = known[example]
        if holds is None:
            reject()
        if not holds:
            result.failing = example  # the last one that hypothesis shows is the smallest
            raise _FailsError

    run: Any = run_settings(seed(effort.seed)(examples))
    if key is not None:
        run._hypothesis_internal_database_key = key  # as `hypothesis.find` does: under --hypothesis-seed tests have no key
    try:
        with suppress(_FailsError):
            run()
    except FailedHealthCheck as problem:
        raise Invalid(f"hypothesis' health check failed: {problem}", {"profile": effort.profile}, code=ReasonCode.NO_SEARCH) from None
    except Unsatisfiable as problem:
        raise Invalid(
            f"hypothesis found no example that could be tested: {problem}", {"profile": effort.profile}, code=ReasonCode.NO_SEARCH
        ) from None
    return result


def saved_examples(make: Make, effort: Effort, key: bytes) -> list[Example]:
    """Examples that failed in earlier runs, smallest first; those that the grammar no longer makes are removed from the database."""
    database = effort.database
    if database is None or not effort.allows(Phase.reuse):
        return []
    examples = []
    for entry in list(database.fetch(key)):
        choices = choices_from_bytes(entry)
        example = None
        with suppress(StaleError):
            example = None if choices is None else draw_example(make, ReplayedChoices(choices))
        if example is None or choices_to_bytes(example.choices) != entry:  # or the entry was made by a grammar with more choices
            database.delete(key, entry)
        if example is not None:
            database.save(key, choices_to_bytes(example.choices))
            examples.append(example)
    return sorted(examples, key=lambda example: example.size)


def save_examples(effort: Effort, key: bytes, smallest: Example | None, earlier: Sequence[Example], known: Known) -> None:
    """Save the smallest failing example for the next run, and delete those that no longer fail."""
    database = effort.database
    if database is None:
        return
    for example in earlier:
        if known.get(example) is not False:
            database.delete(key, choices_to_bytes(example.choices))
    if smallest is not None and smallest.choices:
        database.save(key, choices_to_bytes(smallest.choices))


__all__ = [
    "Effort", "Example", "Pass", "draw_example", "generate", "independent_draws", "save_examples", "saved_examples", "shrink",
]  # fmt: skip
