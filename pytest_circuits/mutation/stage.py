"""The part of a run after its tests: mutants of every model, asked about every claim. One process does it all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..errors import CircuitsError, OptionError
from ..lab.judge import Judgement
from ..lab.lab import Lab
from ..lab.question import Question
from ..sources import ModelSource
from ..verdict import Bound
from .asked import Asked
from .circuit import circuit_of
from .judging import Tried, attempt
from .recipes import NotMade, Recipe, mutations, recipes
from .report import Group, content

Tell = Callable[[str], object]


class Stage:
    """`--circuits-mutate` of one session. Raises `OptionError` for mutants that there are not, and a threshold outside [0, 1].

    `asked` are the claims that ran, in their order; `result` is the document's `mutation`, once all is done.
    """

    def __init__(self, wanted: str, threshold: float | None) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise OptionError(f"--circuits-mutate-score is a share from 0 to 1, got {threshold:g}")
        self.wanted, self.threshold = wanted, threshold
        self.recipes: list[Recipe] = recipes(wanted)
        self.asked: dict[str, Asked] = {}
        self.result: dict[str, Any] | None = None

    def keep(self, nodeid: str, name: str, question: Question, bound: Bound, expect: str, judgement: Judgement, entry: str) -> None:
        """Remember a claim that was judged; a rerun of its test replaces it."""
        self.asked[f"{nodeid} {name}"] = Asked(nodeid, name, question, bound, expect, judgement, entry)

    @property
    def passed(self) -> bool:
        """False where the threshold was not reached, or something could not be measured."""
        return self.result is None or bool(self.result["passed"])

    def run(self, lab: Lab, lenient: bool, tell: Tell, notes: Sequence[str] = ()) -> None:
        """Make and judge all mutants; `tell` hears a line about each. Interrupted, it leaves no result, and what was measured is kept."""
        started, groups = time.perf_counter(), []
        for file, model, claims, left_out in grouped(self.asked.values(), lab):
            groups.append(self._group(lab, file, model, claims, left_out, lenient, tell))
        self.result = content(groups, self.wanted, self.threshold, time.perf_counter() - started, notes)

    def _group(
        self, lab: Lab, file: str, model: ModelSource, claims: list[Asked], left_out: list[tuple[Asked, str]], lenient: bool, tell: Tell
    ) -> Group:  # fmt: skip
        if not claims:
            return Group(file, model.name, claims, None, [], left_out, "no claim is as expected on the intact model")
        try:
            circuit = circuit_of(lab, model, claims)
        except CircuitsError as problem:
            return Group(file, model.name, claims, None, [], left_out, str(problem))
        found: list[Tried | NotMade] = []
        made = mutations(self.recipes, circuit, donor_of(model, self.asked.values()))
        for i, one in enumerate(made):
            tried = one if isinstance(one, NotMade) else attempt(lab, model, claims, one, lenient)
            found.append(tried)
            tell(f"mutant {i + 1} of {len(made)} of {model.name} ({file}): {one.name}: {_told(tried)}")
        return Group(file, model.name, claims, circuit, found, left_out)


def _told(one: Tried | NotMade) -> str:
    if isinstance(one, NotMade) or one.problem:
        return "not measured" if isinstance(one, Tried) and one.unmeasured else "not made"
    caught = [answer.asked.name for answer in one.answers if answer.how]
    return f"noticed by {len(caught)} of {len(one.answers)} claims" if caught else "equivalent" if one.equivalent else "survived"


Grouped = tuple[str, ModelSource, list[Asked], list[tuple[Asked, str]]]


def grouped(asked: Iterable[Asked], lab: Lab) -> Iterator[Grouped]:
    """Claims by spec and model; of a series, those about its last checkpoint that ran. With each group the claims that take no part."""
    every = list(asked)
    for file in dict.fromkeys(one.file for one in every):
        here = [one for one in every if one.file == file]
        for entry in dict.fromkeys(one.entry for one in here):
            about = [one for one in here if one.entry == entry]
            last = max(about, key=lambda one: (_place(one.model), one.nodeid)).model
            model = next(one.model for one in about if one.model == last)
            found: list[Asked] = []
            out: list[tuple[Asked, str]] = []
            for one in about:
                reason = one.excluded
                if one.model != model:
                    reason = f"about an earlier checkpoint than {model.name}"
                elif lab.models.is_ready_made(model):
                    reason = "the model was handed over by a fixture or as a module, which is not touched after its test"
                if reason is None:
                    found.append(one)
                else:
                    out.append((one, reason))
            yield file, model, found, out


def _place(model: ModelSource) -> float:
    return float("-inf") if model.at is None else model.at


def donor_of(model: ModelSource, asked: Iterable[Asked]) -> ModelSource | None:
    """The first checkpoint of the model's series that claims of the run are about; None where it is the model itself, or no series."""
    if model.at is None:
        return None
    known: set[ModelSource] = set()
    for one in asked:
        several = one.question.series or (one.question.model,)
        if any(m == model for m in several) or one.entry in {a.entry for a in asked if a.model == model}:
            known |= {m for m in several if m.at is not None and m.fixture is None}
    first = min((m for m in known if m.mutation is None), key=_place, default=None)
    return None if first is None or _place(first) >= _place(model) else first
