"""What a report says of a search: what was looked at, the counterexample, and the line that brings it back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...tasks.grammar.drawn import as_dict
from ..steps.examples import set_details
from ..steps.removal import shown

if TYPE_CHECKING:
    from ...strategies.search import Effort, Example
    from .for_all import Table
    from .for_all_parameters import ForAll

WHAT = {
    "answer_changes": "the answer stays right",
    "answer_stays": "the answer becomes wrong",
    "metric_kept": "less of the metric is kept",
}


def yaml_line(example: Example) -> str:
    """The example as a line of YAML under `for_all`."""
    written = as_dict(example.pair) | ({} if example.units is None else {"units": list(example.units)})
    return f"explicit: [{json.dumps(written, ensure_ascii=False)}]"


def report(
    p: ForAll, table: Table, counts: Mapping[str, int], explicit: Sequence[Example], before: Sequence[Example], smallest: Example | None,
    effort: Effort, sets: Any, at_most: float,
) -> dict[str, Any]:  # fmt: skip
    """The estimate's details."""
    details: dict[str, Any] = {
        "check": p.check,
        "mode": p.mode,
        "independent_draws": dict(counts),
        "examples_tried": len(table.judged),
        "examples_failing": len(table.failing()),
        "from_the_database": len(before),
        "explicit": len(explicit),
        "fails_at_most": at_most,
        "profile": effort.profile,
        "seed": effort.seed,
        "counterexample": None if smallest is None else _counterexample(p, table, smallest),
    }
    if table.fixed is not None:
        details["components"] = set_details(table.fixed, table.universe)
    else:
        details["sets"] = {"of": len(sets.pool), "least": sets.least + len(sets.including), "most": sets.most + len(sets.including),
                           "including": list(sets.including)}  # fmt: skip
    details["notes"] = list(_told(p, table, counts, explicit, smallest, sets, at_most))
    return details


def _counterexample(p: ForAll, table: Table, example: Example) -> dict[str, Any]:
    answer = table.answers[example]
    assert answer is not None and answer.intact is not None
    return {
        **as_dict(example.pair),
        **({} if example.units is None else {"units": list(example.units)}),
        "metric": answer.metric,
        "metric_intact": answer.intact.metric,
        "correct": answer.correct,
        "in_words": in_words(p, table, example),
        "yaml": yaml_line(example),
    }


def in_words(p: ForAll, table: Table, example: Example) -> str:
    """One line: the prompt, the answer, what was done, what came of it."""
    answer, pair = table.answers[example], example.pair
    assert answer is not None and answer.intact is not None
    units = f" {p.mode}: {shown(example.units)};" if example.units is not None else ""
    became = f"{p.metric} {answer.intact.metric:.3g} intact, {answer.metric:.3g} then"
    return f"{pair.clean!r} → {pair.answer!r}:{units} {WHAT[p.check]} ({became})"


def _told(
    p: ForAll, table: Table, counts: Mapping[str, int], explicit: Sequence[Example], smallest: Example | None, sets: Any, at_most: float
) -> Any:
    if smallest is not None:
        yield f"smallest failing example: {in_words(p, table, smallest)}"
        yield f"to look at it first, always, add to for_all: {yaml_line(smallest)}"
    what = "removed" if p.mode == "remove" else "kept"
    if table.fixed is not None:
        yield f"{what}: {shown(table.fixed)}"
    else:
        low, high = sets.least + len(sets.including), sets.most + len(sets.including)
        yield f"{what}: any {low if low == high else f'{low} to {high}'} of {len(sets.pool) + len(sets.including)} components"
    yield (
        f"{len(table.judged)} examples judged, {len(table.failing())} fail; of {counts['drawn']} independent draws {counts['unfit']} do "
        f"not fit the tokenizer, {counts['answered_wrongly']} are answered wrongly by the intact model, and with {p.confidence:.0%} "
        f"confidence at most {at_most:.2%} of those that can be judged fail"
    )
    for i, one in enumerate(explicit):
        if one.units is not None and one.units not in sets:
            yield f"explicit example {i + 1} is not judged: {shown(one.units)} is none of the sets that the claim is about"
        elif table.known[one] is None:
            yield f"explicit example {i + 1} is not judged: it does not fit the tokenizer, or the intact model answers it wrongly"
