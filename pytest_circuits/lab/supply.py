"""Where the examples of an open claim come from, and how many more there are."""

from __future__ import annotations

from ..errors import CircuitsError
from ..requests import Encode, Part
from ..verdict import Supply
from .lab import Lab
from .parts import examples_of
from .question import Question


def supply_of(lab: Lab, question: Question) -> Supply | None:
    """The examples behind the estimate, of the task with the fewest groups; None where this is not known. Measures nothing.

    Of estimates that are made of discovery examples alone, those count; of others, evaluation examples.
    """
    prop, claim = question.claim()
    split = getattr(claim.parameters, "split", None)
    if split is None or not claim.tasks:
        return None
    side = Part("evaluation" if prop.grows else "discovery", None if split == "in_sample" else float(split), claim.parameters.split_seed)
    found: list[Supply] = []
    for name, source in claim.tasks.items():
        try:
            encoded = lab.stored(Encode(claim.model, source))
            if encoded is None:
                return None
            rows = examples_of(side, encoded)
            most = lab.task(source).most_groups
        except CircuitsError:
            return None
        names = encoded.groups if rows is None else [encoded.groups[int(i)] for i in rows]
        groups, every = len(set(names)), len(set(encoded.groups))
        found.append(Supply(name, groups, len(names), None if most is None else max(groups, groups * most // every)))
    return min(found, key=lambda one: one.groups)
