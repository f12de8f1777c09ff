"""How many examples an inconclusive claim rests on, and how many more there are."""

from __future__ import annotations

from ..core.claim import Claim
from ..core.verdict import SampleSize
from ..errors import CircuitsError
from ..measurement.example_selection import examples_of
from ..measurement.executor import Executor
from ..measurement.requests import Encode, Part
from ..properties.nested import Inner
from ..properties.parameters import AnyParameters
from .sequential import property_of


def _source_of(claim: Claim) -> tuple[str, AnyParameters]:
    """The side of the split that the estimate is made of, and the parameters that say how it is split: those of the innermost claim."""
    prop, parameters = property_of(claim), claim.parameters
    which = "evaluation" if prop.grows else "discovery"
    while isinstance(inner := getattr(parameters, "of", None), Inner):
        if getattr(parameters, "overlap", None) is not None or not inner.property.grows:
            which = "discovery"
        parameters = inner.parameters
    return which, parameters


def sample_size_of(executor: Executor, claim: Claim) -> SampleSize | None:
    """The examples behind the estimate, of the task with the fewest groups; None if unknown. Measures nothing.

    Counts discovery examples for estimates made of those alone, evaluation examples for others. A claim about another claim, such as
    drift, has that claim's examples.
    """
    which, parameters = _source_of(claim)
    split = getattr(parameters, "split", None)
    if split is None or not claim.tasks:
        return None
    side = Part(which, None if split == "in_sample" else float(split), getattr(parameters, "split_seed", 0))
    sizes: list[SampleSize] = []
    for name, source in claim.tasks.items():
        try:
            encoded = executor.stored(Encode(claim.model, source))
            if encoded is None:
                return None
            rows = examples_of(side, encoded)
            most = executor.task(source).most_groups
        except CircuitsError:
            return None
        names = encoded.groups if rows is None else [encoded.groups[int(i)] for i in rows]
        groups, every = len(set(names)), len(set(encoded.groups))
        sizes.append(SampleSize(name, groups, len(names), None if most is None else max(groups, groups * most // every)))
    return min(sizes, key=lambda size: size.groups)
