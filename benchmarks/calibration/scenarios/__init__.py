"""The scenarios, by family."""

from __future__ import annotations

from ..simulate import Scenario


def scenarios() -> list[Scenario]:
    """All of them."""
    from . import circuits, curves, effects, gradients, series

    return [one for family in (circuits, effects, gradients, curves, series) for one in family.scenarios()]
