"""The part of a run after its tests: mutants of every model, asked about every claim. One process does it all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..claims.evaluation import Judgement
from ..claims.question import Question
from ..core.sources import ModelSource
from ..core.verdict import Bound
from ..errors import CircuitsError, OptionError
from ..measurement.executor import Executor
from .circuit import circuit_of
from .detection import MutantResult, attempt
from .judged_claim import JudgedClaim
from .recipes import NotMade, Recipe, mutations, recipes
from .report import Group, content

Tell = Callable[[str], object]


class MutationRun:
    """`--circuits-mutate` of one session. Raises `OptionError` for mutants that there are not, and a threshold outside [0, 1].

    `asked` are the claims that ran, in their order; `result` is the document's `mutation`, once all is done.
    """

    def __init__(self, wanted: str, threshold: float | None) -> None:
        if threshold is not None and not 0 <= threshold <= 1:
            raise OptionError(f"--circuits-mutate-score is a share from 0 to 1, got {threshold:g}")
        self.wanted, self.threshold = wanted, threshold
        self.recipes: list[Recipe] = recipes(wanted)
        self.asked: list[JudgedClaim] = []
        self.result: dict[str, Any] | None = None

    def keep(self, nodeid: str, name: str, question: Question, bound: Bound, expect: str, judgement: Judgement, entry: str) -> None:
        """Remember a claim that was judged; a rerun of its test replaces it."""
        these = [one for one in self.asked if one.nodeid == nodeid]
        same = next((one for one in these if (one.name, one.question, one.bound, one.expect) == (name, question, bound, expect)), None)
        made = JudgedClaim(nodeid, name, question, bound, expect, judgement, entry, same.number if same else len(these) + 1)
        self.asked = [made if one is same else one for one in self.asked] + ([] if same else [made])

    @property
    def passed(self) -> bool:
        """False where the threshold was not reached, or something could not be measured."""
        return self.result is None or bool(self.result["passed"])

    def run(self, lab: Executor, lenient: bool, tell: Tell, notes: Sequence[str] = ()) -> None:
        """Make and judge all mutants; `tell` hears a line about each. Interrupted, it leaves no result, and what was measured is kept."""
        started, groups = time.perf_counter(), []
        for one in grouped(self.asked, lab):
            groups.append(self._group(lab, one, lenient, tell))
        self.result = content(groups, self.wanted, self.threshold, time.perf_counter() - started, notes)

    def _group(self, lab: Executor, these: ClaimGroup, lenient: bool, tell: Tell) -> Group:
        file, model, claims = these.file, these.model, these.claims
        if not claims:
            return Group(file, model.name, claims, None, [], these.left_out, "no claim is as expected on the intact model")
        if all(one.study for one in claims):
            return Group(file, model.name, claims, None, [], these.left_out, "all claims are studies, which expect no verdict")
        try:
            circuit = circuit_of(lab, model, claims)
        except CircuitsError as problem:
            return Group(file, model.name, claims, None, [], these.left_out, str(problem))
        found: list[MutantResult | NotMade] = []
        made = mutations(self.recipes, circuit, these.donor)
        for i, one in enumerate(made):
            tried = one if isinstance(one, NotMade) else attempt(lab, model, claims, one, lenient)
            found.append(tried)
            tell(f"mutant {i + 1} of {len(made)} of {model.name} ({file}): {one.name}: {_told(tried)}")
        return Group(file, model.name, claims, circuit, found, these.left_out)


def _told(one: MutantResult | NotMade) -> str:
    if isinstance(one, NotMade) or one.problem:
        return "not measured" if isinstance(one, MutantResult) and one.unmeasured else "not made"
    caught = [answer.asked.name for answer in one.answers if answer.how]
    return f"noticed by {len(caught)} of {len(one.answers)} claims" if caught else "equivalent" if one.equivalent else "survived"


@dataclass(frozen=True)
class ClaimGroup:
    """The claims of one spec about one model. `left_out` take no part, each with the reason; `donor` is an earlier checkpoint, if any."""

    file: str
    model: ModelSource
    claims: list[JudgedClaim]
    left_out: list[tuple[JudgedClaim, str]]
    donor: ModelSource | None


def grouped(asked: Iterable[JudgedClaim], lab: Executor) -> Iterator[ClaimGroup]:
    """Claims by spec and model; of a series, those about its last checkpoint that ran, the donor being its first."""
    groups: dict[tuple[str, str, ModelSource | None], list[JudgedClaim]] = {}
    for one in asked:
        single = one.model if one.model.at is None else None
        groups.setdefault((one.file, one.entry, single), []).append(one)
    for (file, _, _), about in groups.items():
        model = max((one.model for one in about), key=_place)
        every = {m for one in about for m in (one.question.series or (one.model,))}
        first = min(every, key=_place)
        found: list[JudgedClaim] = []
        out: list[tuple[JudgedClaim, str]] = []
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
        yield ClaimGroup(file, model, found, out, first if _place(first) < _place(model) and first.fixture is None else None)


def _place(model: ModelSource) -> float:
    return float("-inf") if model.at is None else model.at
