"""Consistency: do the same components recur over a task's prompts?"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ..verdict import Estimate
from .base import CircuitParameters, Claim, Property, Share, Steps, TaskName
from .measured import check_share, circuits, describe, examples, intact, set_details


class Reuse(CircuitParameters):
    """reuse@P = mean over evaluation examples of |C_i ∩ S_P| / |C_i|.

    C_i is the top-K circuit of example i, S_P the components in at least a share P of the discovery examples'
    circuits. `definition: size` is min(|S_P|, k)/k, as in the paper's code; at P = 1 in sample the two agree. Range
    [0, 1]; 0 when S_P is empty. Invalid below the accuracy gate, and when all attribution scores are zero. Source:
    arXiv 2605.08348. Interval: betting, over groups.
    """

    task: TaskName
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    definition: Annotated[Literal["coverage", "size"], Field(description="coverage: |C∩S|/|C|; size: min(|S|,k)/k")] = "coverage"


def judge(claim: Claim) -> Steps:
    """Ask for the attribution of all examples and the intact model's answers; compare the two sides of the split."""
    from ..stats.betting import grouped_mean_interval

    p: Reuse = claim.parameters
    found = yield from examples(claim, p.task)
    outcome = yield from intact(claim, p.task, found)
    universe = yield from describe(claim)
    every = yield from circuits(claim, p.task)
    discovery, evaluation = every.take(found.discovery), every.take(found.evaluation)
    check_share(p.p, len(discovery))
    shared = discovery.shared_mask(p.p)
    names = [u for u, inside in zip(every.units, shared, strict=True) if inside]
    coverage = evaluation.coverage(shared, p.definition)
    value, interval, groups = grouped_mean_interval(coverage, found.groups(found.evaluation), p.confidence)
    frequency = discovery.counts / len(discovery)
    order = sorted(range(len(every.units)), key=lambda i: (-frequency[i], i))[:10]
    details = {
        "shared_set": set_details(names, universe),
        "empty_shared_set": not names,
        "most_frequent": {every.units[i]: round(float(frequency[i]), 4) for i in order},
        "circuit_size": int(every.members.sum(1).max()),
        "universe": universe.components,
        "examples_without_circuit": int((~every.members.any(1)).sum()),
        "accuracy": outcome.accuracy,
        "groups_evaluated": groups,
        **found.as_dict(),
    }
    return Estimate(value, interval, len(coverage), p.confidence, "betting interval over groups", "reuse", details)


REUSE = Property("reuse", Reuse, judge, 0.0, 1.0, "the same components recur over a task's prompts (reuse@P)", "share of a circuit")
