"""One prompt pair under ablation, and the model's answer to it. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..core.sources import freeze
from ..errors import OptionError, UnitError, suggestion
from ..tasks.base import PromptPair, Task
from . import ABLATIONS

if TYPE_CHECKING:
    from ..core.results import Outcome


def single_prompt_kinds() -> list[str]:
    """The ablation kinds that need no other prompts than the pair itself."""
    return [name for name in ABLATIONS if ABLATIONS.fact(name, "values") in ("constant", "activation", "corrupt")]


@dataclass(frozen=True)
class TrialAnswer:
    """The model's answer to one prompt: whether it is right, the metric, and its log-probability in nats. `intact` is the answer of the
    intact model to the same prompt.
    """

    correct: bool
    metric: float
    log_prob: float
    intact: TrialAnswer | None = None

    @property
    def changed(self) -> bool:
        """Whether the intact model is right and the ablated one is not."""
        return self.intact is not None and self.intact.correct and not self.correct


@dataclass(frozen=True)
class Trial:
    """One prompt pair and an intervention: `units` are removed, or everything but them."""

    pair: PromptPair
    units: tuple[str, ...] = ()
    mode: Literal["remove", "keep"] = "remove"
    kind: str = "zero"
    options: str = "{}"
    metric: str = "logit_diff"
    scoring: Literal["choices", "argmax"] = "choices"
    stop: Literal["digits"] | None = None

    @property
    def batch_key(self) -> tuple[Any, ...]:
        """Trials with the same key can be measured in one batch."""
        return self.mode, self.kind, self.options, self.metric, self.scoring, self.stop


def trial_of(
    pair: PromptPair, remove: Sequence[str] | None, keep: Sequence[str] | None, kind: str, metric: str, options: Mapping[str, Any],
    like: Task | None,
) -> Trial:  # fmt: skip
    """A trial from a user's arguments: one of `remove` and `keep`, or neither for the intact model. Raises `OptionError`."""
    if remove is not None and keep is not None:
        raise OptionError("give one of remove=… and keep=…, or neither for the intact model")
    if kind not in single_prompt_kinds():
        raise OptionError(
            f"{kind} ablation takes values from other prompts, and a single prompt has none; {suggestion(kind, single_prompt_kinds())}"
        )
    units = remove if keep is None else keep
    if isinstance(units, str):
        raise UnitError(f"a set of components is a list of names, write [{units!r}]")
    scoring: Literal["choices", "argmax"] = "choices" if pair.foils else "argmax"
    stop = None
    if like is not None:
        scoring, stop = like.scoring, like.stop
    return Trial(pair, tuple(units or ()), "remove" if keep is None else "keep", kind, freeze(options), metric, scoring, stop)


def answer_of(outcome: Outcome, row: int = 0, intact: TrialAnswer | None = None) -> TrialAnswer:
    """One example of an outcome of one set."""
    return TrialAnswer(bool(outcome.correct[0, row]), float(outcome.metric[0, row]), float(outcome.log_prob[0, row]), intact)
