"""A search for counterexamples that measures in batches.

hypothesis calls a test once for each example and wants its outcome at once; a model is fast only on many prompts. So a pass of hypothesis
looks outcomes up: an example that was not measured yet is noted and, for this pass, taken to hold. What was noted is measured in one go,
and the pass is made again, with the same seed, until nothing is noted. The last pass then is one in which every outcome was known.
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
from .choices import Drawing, Replay, StaleError, strategy

KEY = b"pytest-circuits"
PATIENCE = 50  # draws an accepted one, before a grammar counts as making no pairs


@dataclass(frozen=True)
class Example:
    """What is drawn: a prompt pair and, where sets are drawn too, the components; `choices` are those that it was made of."""

    pair: PromptPair
    units: tuple[str, ...] | None = None
    choices: tuple[int | bool, ...] = field(default=(), compare=False)

    @property
    def size(self) -> tuple[int, tuple[int, ...]]:
        """By which hypothesis orders examples: fewer choices first, then smaller ones."""
        return len(self.choices), tuple(map(int, self.choices))


Make = Callable[[Draws], Example | None]
Known = Mapping[Example, bool | None]  # holds, fails, or is not to be judged


@dataclass(frozen=True)
class Effort:
    """How hypothesis is to search: its settings now, and the seed."""

    base: settings
    seed: int | str
    forced: bool  # by --hypothesis-seed, which also switches the database off, as it does for other tests

    @classmethod
    def now(cls, examples: int | None, own_seed: str) -> Effort:
        """By the profile in force, with `examples` in place of its max_examples."""
        forced = getattr(hypothesis.core, "global_force_seed", None)
        base = settings.default
        assert base is not None
        if examples is not None:
            base = settings(base, max_examples=examples)
        return cls(base, own_seed if forced is None else forced, forced is not None)

    @property
    def examples(self) -> int:
        """How many examples to look at."""
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


def record(make: Make, draws: Draws) -> Example | None:
    """An example with its choices."""
    found = make(draws)
    return None if found is None else replace(found, choices=tuple(draws.record))  # type: ignore[attr-defined]


def independent(make: Make, n: int, source: int | str) -> list[Example]:
    """As many examples drawn independently of each other, by the very description that hypothesis draws by.

    Raises `Invalid` where hardly any choices make an example.
    """
    random, found, drawn = Random(f"independent {source}"), list[Example](), 0
    while len(found) < n:
        drawn += 1
        example = record(make, Independent(random))
        if example is not None:
            found.append(example)
        elif drawn >= PATIENCE * (len(found) + 20):
            raise Invalid(
                f"only {len(found)} of {drawn} draws made a prompt pair: in the others the corruption changes nothing, or a "
                "foil is the answer",
                {"drawn": drawn, "pairs": len(found)},
                code=ReasonCode.NO_PROMPTS_TO_DRAW,
            )
    return found


@dataclass
class Pass:
    """What one pass of hypothesis saw: examples without an outcome, and the smallest that fails."""

    unknown: dict[Example, None] = field(default_factory=dict)
    failing: Example | None = None


def generate(make: Make, known: Known, effort: Effort) -> Pass:
    """A pass that generates examples and stops at the first that fails. Raises `Invalid` for a health check that fails."""
    chosen = settings(effort.base, phases=(Phase.generate,), database=None, **_QUIET)
    return _run(make, known, effort, chosen, None)


def shrink(make: Make, known: Known, effort: Effort, start: Example) -> Pass:
    """A pass that shrinks a failing example as far as outcomes are known."""
    if not effort.allows(Phase.shrink):
        return Pass(failing=start)
    database = InMemoryExampleDatabase()
    database.save(KEY + b".secondary", choices_to_bytes(start.choices))  # the primary ones count as shrunk
    chosen = settings(effort.base, phases=(Phase.reuse, Phase.shrink), database=database, suppress_health_check=list(HealthCheck), **_QUIET)
    found = _run(make, known, effort, chosen, KEY)
    return found if found.failing is not None else replace(found, failing=start)


_QUIET: dict[str, Any] = {
    "deadline": None, "derandomize": False, "print_blob": False, "report_multiple_bugs": False, "verbosity": Verbosity.quiet
}  # fmt: skip


class _FailsError(Exception):
    pass


def _run(make: Make, known: Known, effort: Effort, chosen: settings, key: bytes | None) -> Pass:
    found = Pass()

    def made(draws: Draws) -> Example | None:
        return record(make, draws)

    @given(strategy(made))
    def examples(example: Example) -> None:
        if example not in known:
            found.unknown[example] = None
            return
        holds = known[example]
        if holds is None:
            reject()
        if not holds:
            found.failing = example  # the last one that hypothesis shows is the smallest
            raise _FailsError

    run: Any = chosen(seed(effort.seed)(examples))
    if key is not None:
        run._hypothesis_internal_database_key = key  # as `hypothesis.find` does: under --hypothesis-seed tests have no key
    try:
        with suppress(_FailsError):
            run()
    except FailedHealthCheck as problem:
        raise Invalid(f"hypothesis' health check failed: {problem}", {"profile": effort.profile}, code=ReasonCode.NO_SEARCH) from None
    except Unsatisfiable as problem:
        raise Invalid(
            f"hypothesis found no example that could be judged: {problem}", {"profile": effort.profile}, code=ReasonCode.NO_SEARCH
        ) from None
    return found


def saved(make: Make, effort: Effort, key: bytes) -> list[Example]:
    """Examples that failed in earlier runs, smallest first; those that the grammar does not make any more are removed."""
    database = effort.database
    if database is None or not effort.allows(Phase.reuse):
        return []
    found = []
    for kept in list(database.fetch(key)):
        choices = choices_from_bytes(kept)
        example = None
        with suppress(StaleError):
            example = None if choices is None else record(make, Replay(choices))
        if example is None or choices_to_bytes(example.choices) != kept:  # the latter made by a grammar with more choices
            database.delete(key, kept)
        if example is not None:
            database.save(key, choices_to_bytes(example.choices))
            found.append(example)
    return sorted(found, key=lambda example: example.size)


def save(effort: Effort, key: bytes, smallest: Example | None, before: Sequence[Example], known: Known) -> None:
    """Keep the smallest failing example for the next run, and forget those that do not fail any more."""
    database = effort.database
    if database is None:
        return
    for example in before:
        if known.get(example) is not False:
            database.delete(key, choices_to_bytes(example.choices))
    if smallest is not None and smallest.choices:
        database.save(key, choices_to_bytes(smallest.choices))


__all__ = ["Drawing", "Effort", "Example", "Pass", "generate", "independent", "record", "save", "saved", "shrink"]
