"""Mutation testing: mutants with the claims that caught them, survivors explained, claims that caught none, the score."""

from __future__ import annotations

from collections.abc import Iterator

from ..messages import mutation as messages
from ..model import MutationReport, Report, SpecMutation
from . import RunContext, Section

FACTS = {"purpose": "summary"}


class MutationRenderer:
    """The section `circuits mutation`."""

    def sections(self, report: Report, context: RunContext) -> Iterator[Section]:
        """One section; none without mutants."""
        if report.mutation is not None:
            yield Section("circuits mutation", tuple(lines(report.mutation)))


def lines(report: MutationReport) -> list[str]:
    """Spec by spec, then notes and the score."""
    return [*(line for spec in report.specs for line in _spec_lines(spec)), *report.notes, *messages.totals(report)]


def _spec_lines(spec: SpecMutation) -> Iterator[str]:
    yield messages.spec_heading(spec)
    yield from (f"  {line}" for line in _spec_body(spec))


def _spec_body(spec: SpecMutation) -> Iterator[str]:
    if spec.problem:
        yield messages.no_mutants(spec.problem)
    names = {claim.nodeid: claim.claim for claim in spec.claims}
    tested = [mutant for mutant in spec.mutants if mutant.status in ("noticed", "survived", "equivalent")]
    rows = [(mutant.name, str(mutant.status), messages.caught_by(mutant.caught_by, names)) for mutant in tested]
    if rows:
        name_width, status_width = (max(len(row[i]) for row in [("mutant", "", ""), *rows]) for i in (0, 1))
        for name, status, caught in [("mutant", "", "noticed by"), *rows]:
            yield f"{name.ljust(name_width)}  {status.ljust(status_width)}  {caught}".rstrip()
    for mutant in tested:
        if mutant.status != "noticed":
            yield from messages.survivor(mutant)
    for mutant in spec.mutants:
        if mutant.status in ("not made", "not measured"):
            yield messages.not_made(mutant)
    idle = [claim for claim in spec.claims if not claim.caught]
    if idle and rows:
        yield messages.idle_claims([claim.claim for claim in idle if not claim.study])
        studies = [claim.claim for claim in idle if claim.study]
        if studies:
            yield messages.idle_studies(studies)
    for reason in dict.fromkeys(claim.reason for claim in spec.left_out):
        yield messages.excluded(reason, [claim.claim for claim in spec.left_out if claim.reason == reason])
    if spec.score is not None:
        yield messages.spec_score(spec.noticed, spec.counted, spec.score)
