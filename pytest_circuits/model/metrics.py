"""Metrics: from the logits at the answer positions to one number per example.

Shapes: logits [rows, answer tokens (+1 where the end of a number is scored), vocabulary] in float32 or wider;
answer [rows, tokens]; foils [rows, foils, tokens] with -1 where a foil has no token.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import OptionError, TaskError, suggestion


@dataclass(frozen=True)
class Targets:
    """The targets that logits are compared with. `stop` is a bool mask [vocabulary] of tokens that must not follow, or None.

    `intact`: log-probabilities of the intact model [rows, tokens, vocabulary], for metrics that compare with it.
    """

    answer: Tensor
    foils: Tensor
    scoring: str
    stop: Tensor | None = None
    intact: Tensor | None = None

    def repeat(self, times: int) -> Targets:
        """The same rows, repeated `times` times (stacked ablations)."""
        intact = None if self.intact is None else self.intact.repeat(times, 1, 1)
        return Targets(self.answer.repeat(times, 1), self.foils.repeat(times, 1, 1), self.scoring, self.stop, intact)


def _answer_logits(logits: Tensor, targets: Targets) -> Tensor:
    return logits[:, : targets.answer.shape[1]].gather(2, targets.answer[..., None]).squeeze(2)


def _foil_logits(logits: Tensor, targets: Targets) -> Tensor:
    """[rows, foils, tokens]; meaningless where the foil has no token."""
    spread = logits[:, None, : targets.foils.shape[2]].expand(-1, targets.foils.shape[1], -1, -1)
    return spread.gather(3, targets.foils.clamp(min=0)[..., None]).squeeze(3)


def logit_diff(logits: Tensor, targets: Targets) -> Tensor:
    """Answer logit minus foil logit, summed over the tokens that both have (teacher-forced), then the mean over the foils; [rows].

    Raises `TaskError` when an example has no foil.
    """
    has_foil = (targets.foils >= 0).any(2)
    if targets.foils.shape[1] == 0 or not bool(has_foil.any(1).all()):
        raise TaskError("the metric logit_diff needs a foil for each example; give foils, or use metric: log_prob")
    gap = _answer_logits(logits, targets)[:, None, : targets.foils.shape[2]] - _foil_logits(logits, targets)
    per_foil = torch.where(targets.foils >= 0, gap, 0.0).sum(2)
    return torch.where(has_foil, per_foil, 0.0).sum(1) / has_foil.sum(1)


def log_prob(logits: Tensor, targets: Targets) -> Tensor:
    """Log-probability of the answer in nats, summed over its tokens (teacher-forced); [rows]."""
    shown = logits[:, : targets.answer.shape[1]]
    return (_answer_logits(logits, targets) - shown.logsumexp(2)).sum(1)


def prob(logits: Tensor, targets: Targets) -> Tensor:
    """Probability of the whole answer; [rows]."""
    return log_prob(logits, targets).exp()


def kl(logits: Tensor, targets: Targets) -> Tensor:
    """KL(intact ‖ these logits) over the vocabulary in nats, summed over the answer's positions (teacher-forced); [rows]."""
    assert targets.intact is not None, "the metric kl needs the intact model's log-probabilities"
    log_probs = logits[:, : targets.answer.shape[1]].log_softmax(2)
    return (targets.intact.exp() * (targets.intact - log_probs)).sum((1, 2))


def foil_prob(logits: Tensor, targets: Targets) -> Tensor:
    """Probability that the answer begins like one of the foils: summed over their different first tokens; [rows].

    To be read next to `prob`; it does not measure how well the task is done. Raises `TaskError` when an example has no foil.
    """
    if targets.foils.numel() == 0 or not bool((targets.foils[:, :, 0] >= 0).any(1).all()):
        raise TaskError("the metric foil_prob needs a foil for each example; give foils, or use metric: prob")
    first = targets.foils[:, :, 0]
    is_foil = torch.zeros_like(logits[:, 0], dtype=torch.bool)
    is_foil.scatter_(1, torch.where(first >= 0, first, first.amax(1, keepdim=True)), True)
    return torch.where(is_foil, logits[:, 0].softmax(1), 0.0).sum(1)


FUNCTIONS: dict[str, Callable[[Tensor, Targets], Tensor]] = {
    "logit_diff": logit_diff,
    "log_prob": log_prob,
    "prob": prob,
    "kl": kl,
    "foil_prob": foil_prob,
}


def metric_function(name: str) -> Callable[[Tensor, Targets], Tensor]:
    """The metric of that name. Raises `OptionError`."""
    if name not in FUNCTIONS:
        raise OptionError(f"unknown metric {name!r}; {suggestion(name, FUNCTIONS)}")
    return FUNCTIONS[name]


def correct(logits: Tensor, targets: Targets) -> Tensor:
    """Whether the model gives the answer; bool [rows].

    `choices`: at every answer token the answer's logit is above each foil's, wherever the two differ; an example
    without foils is scored as `argmax`.
    `argmax`: every answer token is the most likely one; with `stop`, the next token does not continue it.
    """
    tokens = targets.answer.shape[1]
    is_correct = (logits[:, :tokens].argmax(2) == targets.answer).all(1)
    if targets.scoring == "choices" and targets.foils.shape[1]:
        shared = min(tokens, targets.foils.shape[2])
        gap = _answer_logits(logits, targets)[:, None, :shared] - _foil_logits(logits, targets)[:, :, :shared]
        foils = targets.foils[:, :, :shared]
        differs = (foils >= 0) & (foils != targets.answer[:, None, :shared])
        above_foils = ((gap > 0) | ~differs).all(2).all(1)
        is_correct = torch.where((targets.foils >= 0).any(2).any(1), above_foils, is_correct)
    if targets.stop is not None:
        is_correct = is_correct & ~targets.stop[logits[:, tokens].argmax(1)]
    return is_correct
