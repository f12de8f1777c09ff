"""Tasks made of published records: each record offers one or several pairs, and those not used replace what a tokenizer refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ...errors import TaskError
from ..base import PromptPair, Task

Offers = Sequence[PromptPair]


def usable(offers: Offers) -> list[PromptPair]:
    """The pairs that measure something: clean and corrupt differ, the answer is not among its foils."""
    return [pair for pair in offers if pair.clean != pair.corrupt and pair.answer not in pair.foils]


def assembled(
    name: str,
    what: str,
    offers: Sequence[Offers],
    n: int | None,
    scoring: Literal["choices", "argmax"],
    stop: Literal["digits"] | None,
    provenance: Mapping[str, Any],
) -> Task:
    """The first n records that offer a pair, each with its first one; all by default.

    Records that offer nothing usable are left out and counted in `Task.dropped`. `Task.more` has the further pairs of the chosen
    records, then those of the others. `provenance` must tell the data apart. Raises `TaskError`, beginning with `what`, when no
    record is usable, or fewer than n are.
    """
    good = [found for found in map(usable, offers) if found]
    if not good:
        raise TaskError(f"{what}: none of {len(offers)} records can be used: clean and corrupt, or answer and foil, are always the same")
    if n is not None and n > len(good):
        left_out = f" ({len(offers) - len(good)} more offer no usable pair)" if len(good) < len(offers) else ""
        raise TaskError(f"{what}: n={n} asks for more than the {len(good)} pairs in it{left_out}; lower n or leave it out")
    chosen, others = good[:n], good[len(good) if n is None else n :]

    def more() -> Iterator[PromptPair]:
        for found in chosen:
            yield from found[1:]
        for found in others:
            yield from found

    pairs = tuple(found[0] for found in chosen)
    return Task(name, pairs, scoring, stop, more, dict(provenance), dropped=len(offers) - len(good))
