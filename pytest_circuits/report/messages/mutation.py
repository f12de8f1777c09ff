"""Mutation testing: which claims caught which mutant, why others survived, the score."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..model import MutantRecord, MutationReport, SpecMutation
from .verdicts import bound_text

SHOWN_CLAIMS = 8
VERDICT_ORDER = ("refuted", "certified", "invalid", "inconclusive")
Arguments = Mapping[str, Any]


def named(claims: Sequence[str]) -> str:
    """Names of claims, the first few of many."""
    rest = len(claims) - SHOWN_CLAIMS
    return ", ".join(claims[:SHOWN_CLAIMS]) + (f" and {rest} more" if rest > 0 else "")


def caught_by(caught: Mapping[str, str], names: Mapping[str, str]) -> str:
    """`refuted: a, b; invalid: c`, from the verdict of each node id and the claims' names by node id."""
    parts = []
    for verdict in VERDICT_ORDER:
        claims = [names[nodeid] for nodeid, how in caught.items() if how == verdict]
        if claims:
            parts.append(f"{verdict}: {named(claims)}")
    return "; ".join(parts)


def spec_heading(spec: SpecMutation) -> str:
    """The spec and the model."""
    return f"{spec.file}, model {spec.model}"


def no_mutants(problem: str) -> str:
    """Why a spec has no mutants."""
    return f"no mutants: {problem}"


def survivor(mutant: MutantRecord) -> list[str]:
    """Why a mutant was not noticed."""
    return [f"{mutant.name}: {reason}" for reason in mutant.reasons]


def not_made(mutant: MutantRecord) -> str:
    """Why a mutant was not made, or not measured."""
    return f"{mutant.name}: {mutant.status}, {mutant.reasons[0]}"


def idle_claims(claims: Sequence[str]) -> str:
    """Claims that never caught a mutant."""
    return f"never caught a mutant, so these may be unable to fail: {named(claims) or 'none'}"


def idle_studies(claims: Sequence[str]) -> str:
    """Studies among them."""
    return f"studies, which only notice what makes them invalid: {named(claims)}"


def excluded(reason: str, claims: Sequence[str]) -> str:
    """Claims that took no part."""
    return f"left out, {reason}: {named(claims)}"


def spec_score(noticed: int, counted: int, score: float) -> str:
    """The score of one spec."""
    return f"{noticed} of {counted} noticed = {score:.0%}"


def totals(report: MutationReport) -> list[str]:
    """The score, and whether it is high enough."""
    score, threshold = report.score, report.threshold
    if score is None:
        text = "mutation score: none, since no mutant counts"
    else:
        weak = ((report.inconclusive_only, "inconclusive"), (report.invalid_only, "invalid"))
        only = [f"{count} only by {verdict} claims" for count, verdict in weak if count]
        text = f"mutation score: {report.noticed} of {report.counted} mutants noticed = {score:.0%}"
        text += f" ({', '.join(only)})" if only else ""
    lines = [f"{text}; {report.seconds:.1f} s"]
    if threshold is not None and (score is None or score < threshold):
        lines.append(f"FAILED: --circuits-mutate-score asks for {threshold:.0%}")
    if report.unmeasured:
        were = "mutants were" if report.unmeasured > 1 else "mutant was"
        lines.append(f"FAILED: {report.unmeasured} {were} not measured, which --circuits-offline forbids; run once without it")
    return lines


def interrupted() -> str:
    """Why a run with `--circuits-mutate` has no result about mutants."""
    return "no result about mutants, because the run was stopped; run again: what was measured of them is kept"


def mutant_reason(code: str, arguments: Arguments) -> str:
    """Why a mutant survived, from the code and the arguments of `mutation.explain`."""
    return _REASONS[code](arguments)


def _behaviour(a: Arguments) -> str:
    if "task" not in a:
        return "no answers were measured"
    largest = "to a value that is not finite" if a["metric"] is None else f"{a['metric']:.2g}"
    return f"largest change of the metric {largest}; accuracy on {a['task']} {_accuracy(a['before'])} → {_accuracy(a['after'])}"


def _accuracy(value: float | None) -> str:
    return "nan" if value is None else f"{value:.3f}"


def _outside(a: Arguments) -> str:
    plural = "s" * (a["sets"] != 1)
    measured = f"set{plural} of components that the claims measured"
    shared = f"shared set{plural} of the tasks, as no claim has one"
    return f"{' and '.join(a['units'])} lies outside the {a['sets']} {measured if a['measured'] else shared}"


def _shift(a: Arguments) -> str:
    low, high = (float("nan") if end is None else end for end in a["interval"])
    return f"{a['before']:.3f} → {a['after']:.3f} [{low:.3f}, {high:.3f}], bound {bound_text(a['bound'])}"


_REASONS: dict[str, Callable[[Arguments], str]] = {
    "equivalent-by-design": lambda a: "equivalent: the same model under other names, which no claim should notice",
    "equivalent-here": lambda a: f"equivalent on these prompts: no answer changed by more than rounding ({_behaviour(a)})",
    "equivalent-and-noticed": lambda a: "equivalent, and noticed all the same: these claims depend on what heads are called, or on noise",
    "answers-changed": lambda a: f"answers changed: {_behaviour(a)}",
    "outside-the-sets": _outside,
    "no-number": lambda a: "no claim that expects a verdict has a number on both sides",
    "no-estimate-nearer": lambda a: f"no estimate came nearer to its bound; {a['claim']}: {_shift(a)}",
    "bound-too-far": lambda a: f"bounds too far away: {a['claim']} went {a['share']:.0%} of the way to its bound, {_shift(a)}",
    "seen-by-baseline": lambda a: f"a comparison with a baseline would flag it: {named(a['claims'])} moved by more than noise",
    "not-made": lambda a: str(a["message"]),
    "not-measured": lambda a: str(a["message"]),
}
