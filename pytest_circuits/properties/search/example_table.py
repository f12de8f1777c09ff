"""The examples of a search: what the model answers to each, and whether the claim holds for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...ablation.trial import Trial, TrialAnswer
from ...core.units import Universe
from ...measurement.requests import Steps, freeze
from ...measurement.trials import measure_trials
from ..protocol import Claim
from .for_all_parameters import ForAll

if TYPE_CHECKING:
    from ...strategies.search import Example
    from ...tasks.grammar.spaces import Space


@dataclass
class ExampleTable:
    """The answer to each measured example, and whether the claim holds for it (`known`; None: the example is not eligible).

    `fixed` are the components that are removed or kept where no sets are drawn; `fitting` is a trial whose prompts fit the tokenizer.
    """

    claim: Claim
    space: Space
    universe: Universe
    fixed: tuple[str, ...] | None
    answers: dict[Example, TrialAnswer | None]
    known: dict[Example, bool | None]
    fitting: Trial | None = None

    def trial(self, example: Example) -> Trial:
        """What is measured of an example."""
        p: ForAll = self.claim.parameters
        units = self.fixed if example.units is None else example.units
        assert units is not None
        return Trial(
            example.pair, units, p.mode, p.ablation, freeze(p.ablation_options), p.metric, self.space.scoring, self.space.stop
        )  # fmt: skip

    def measure(self, examples: Iterable[Example]) -> Steps[None]:
        """Measure those of the examples that are not known yet, in one batch."""
        new = [example for example in dict.fromkeys(examples) if example not in self.known]
        if not new:
            return
        trials = [self.trial(example) for example in new]
        answers = yield from measure_trials(self.claim.model, trials, self.fitting)
        for example, trial in zip(new, trials, strict=True):
            answer = answers[trial]
            self.answers[example], self.known[example] = answer, holds(self.claim.parameters, answer)
            if answer is not None and self.fitting is None:
                self.fitting = trial

    def failing(self) -> list[Example]:
        """Examples for which the claim fails, smallest first."""
        return sorted((example for example, held in self.known.items() if held is False), key=lambda example: example.size)

    @property
    def eligible(self) -> list[Example]:
        """Examples that fit the tokenizer and that the intact model answers correctly."""
        return [example for example, held in self.known.items() if held is not None]


def holds(p: ForAll, answer: TrialAnswer | None) -> bool | None:
    """Whether the claim holds for an example; None if the prompts do not fit the tokenizer or the intact model is wrong."""
    if answer is None or answer.intact is None or not answer.intact.correct:
        return None
    if p.check == "answer_changes":
        return not answer.correct
    if p.check == "answer_stays":
        return answer.correct
    if answer.intact.metric <= 0:
        return None
    return answer.metric >= float(p.share or 0) * answer.intact.metric
