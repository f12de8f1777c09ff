"""The positions of a prompt that scores of units are summed over."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from ..core.units import Span
from ..errors import OptionError, suggestion
from .encoded_task import EncodedTask

POSITIONS = ("all", "each", "last", "answer")


def check_positions(which: str) -> None:
    """Raise `OptionError` for an option that is not one of POSITIONS."""
    if which not in POSITIONS:
        raise OptionError(f"unknown positions {which!r}; {suggestion(which, POSITIONS)}")


def span_of(task: EncodedTask, examples: Sequence[int] | None = None) -> Span:
    """Every position that some example has: of the task, or of `examples`."""
    chosen = range(task.n) if examples is None else examples
    return Span(max(task.start[i] for i in chosen) + 1, max(len(task.clean[i]) - task.start[i] - 1 for i in chosen))


def pooled(x: Tensor, which: str, start: int, span: Span) -> Tensor:
    """[batch, T, units, width] → [batch, units], summed over width and over the positions that `which` selects.

    all; last: the last prompt token, at index `start`; answer: the positions whose logits are scored, from `start` on; each:
    not summed over positions, [batch, units × positions of the span], 0 where the prompt has no such position.
    """
    if which == "last":
        return x[:, start].sum(2)
    if which == "answer":
        return x[:, start:].sum((1, 3))
    if which == "all":
        return x.sum((1, 3))
    out = x.new_zeros(x.shape[0], x.shape[2], len(span))
    first = span.before - start - 1
    out[..., first : first + x.shape[1]] = x.sum(3).transpose(1, 2)
    return out.flatten(1)
