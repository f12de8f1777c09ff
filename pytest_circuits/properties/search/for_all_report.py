"""What the report says of a search: the examples looked at, the counterexample, and the line that makes it an explicit example."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...tasks.grammar.listed_pairs import as_dict
from ..steps.shared_sets import format_set, set_details
from .counterexamples import SearchResult
from .example_table import ExampleTable
from .for_all_parameters import ForAll

if TYPE_CHECKING:
    from ...strategies.search import Example

FAILURES = {
    "answer_changes": "the answer stays right",
    "answer_stays": "the answer becomes wrong",
    "metric_kept": "less of the metric is kept",
}
"""What a failing example shows, by `check`."""


def report(p: ForAll, result: SearchResult, at_most: float) -> dict[str, Any]:
    """The estimate's details; `at_most` is the upper bound for the share of eligible examples that fail."""
    table, sets = result.table, result.sets
    details: dict[str, Any] = {
        "check": p.check,
        "mode": p.mode,
        "independent_draws": dict(result.counts),
        "examples_tried": len(table.eligible),
        "examples_failing": len(table.failing()),
        "from_the_database": len(result.earlier),
        "explicit": len(result.explicit),
        "fails_at_most": at_most,
        "profile": result.effort.profile,
        "seed": result.effort.seed,
        "counterexample": None if result.smallest is None else _counterexample(p, table, result.smallest),
    }
    if table.fixed is not None:
        details["components"] = set_details(table.fixed, table.universe)
    else:
        details["sets"] = {"of": len(sets.pool), "least": sets.least + len(sets.including), "most": sets.most + len(sets.including),
                           "including": list(sets.including)}  # fmt: skip
    details["notes"] = list(_notes(p, result, at_most))
    return details


def yaml_line(example: Example) -> str:
    """The example as a line of YAML under `for_all`."""
    entry = as_dict(example.pair) | ({} if example.units is None else {"units": list(example.units)})
    return f"explicit: [{json.dumps(entry, ensure_ascii=False)}]"


def describe_example(p: ForAll, table: ExampleTable, example: Example) -> str:
    """One line: the prompt, the answer, what was ablated and what happened."""
    answer, pair = table.answers[example], example.pair
    assert answer is not None and answer.intact is not None
    units = f" {p.mode}: {format_set(example.units)};" if example.units is not None else ""
    metric = f"{p.metric} {answer.intact.metric:.3g} intact, {answer.metric:.3g} ablated"
    return f"{pair.clean!r} → {pair.answer!r}:{units} {FAILURES[p.check]} ({metric})"


def _counterexample(p: ForAll, table: ExampleTable, example: Example) -> dict[str, Any]:
    answer = table.answers[example]
    assert answer is not None and answer.intact is not None
    return {
        **as_dict(example.pair),
        **({} if example.units is None else {"units": list(example.units)}),
        "metric": answer.metric,
        "metric_intact": answer.intact.metric,
        "correct": answer.correct,
        "in_words": describe_example(p, table, example),
        "yaml": yaml_line(example),
    }


def _notes(p: ForAll, result: SearchResult, at_most: float) -> Iterator[str]:
    table, sets, counts = result.table, result.sets, result.counts
    if result.smallest is not None:
        yield f"smallest failing example: {describe_example(p, table, result.smallest)}"
        yield f"to test it first in every run, add to for_all: {yaml_line(result.smallest)}"
    verb = "removed" if p.mode == "remove" else "kept"
    if table.fixed is not None:
        yield f"{verb}: {format_set(table.fixed)}"
    else:
        low, high = sets.least + len(sets.including), sets.most + len(sets.including)
        yield f"{verb}: any {low if low == high else f'{low} to {high}'} of {len(sets.pool) + len(sets.including)} components"
    yield (
        f"{len(table.eligible)} examples tested, {len(table.failing())} fail; of {counts['drawn']} independent draws {counts['unfit']} do "
        f"not fit the tokenizer and {counts['answered_wrongly']} are answered wrongly by the intact model; with {p.confidence:.0%} "
        f"confidence at most {at_most:.2%} of the others fail"
    )
    for i, example in enumerate(result.explicit, 1):
        if example.units is not None and example.units not in sets:
            yield f"explicit example {i} is not tested: the claim is not about the set {format_set(example.units)}"
        elif table.known[example] is None:
            yield f"explicit example {i} is not tested: it does not fit the tokenizer, or the intact model answers it wrongly"
