"""Tasks from published records: each record offers one or more pairs; the unused ones replace pairs that do not fit a tokenizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from ...errors import TaskError
from ..base import PromptPair, Task

Offers = Sequence[PromptPair]


def usable(offers: Offers) -> list[PromptPair]:
    """The pairs that are not degenerate: clean and corrupt differ, the answer is not among the foils."""
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
    """The first pair of each of the first n records that offer one; of all records by default.

    Records without a usable pair are left out and counted in `Task.dropped`. `Task.more` has the further pairs of the chosen
    records, then those of the others. `provenance` must identify the data. Raises `TaskError`, beginning with `what`, when fewer
    than n records are usable, or none.
    """
    usable_records = [pairs_of_record for pairs_of_record in map(usable, offers) if pairs_of_record]
    if not usable_records:
        raise TaskError(f"{what}: none of {len(offers)} records is usable: clean and corrupt, or answer and foil, are always the same")
    if n is not None and n > len(usable_records):
        left_out = f" ({len(offers) - len(usable_records)} more offer no usable pair)" if len(usable_records) < len(offers) else ""
        raise TaskError(f"{what}: n={n} is more than the {len(usable_records)} pairs in it{left_out}; lower n or leave it out")
    chosen, others = usable_records[:n], usable_records[len(usable_records) if n is None else n :]

    def more() -> Iterator[PromptPair]:
        for pairs_of_record in chosen:
            yield from pairs_of_record[1:]
        for pairs_of_record in others:
            yield from pairs_of_record

    pairs = tuple(pairs_of_record[0] for pairs_of_record in chosen)
    return Task(name, pairs, scoring, stop, more, dict(provenance), dropped=len(offers) - len(usable_records))
