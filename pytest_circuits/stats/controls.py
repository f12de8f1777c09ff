"""Random control sets of the same size as a set of components, and the rank of an observation among them.

A control rule says how many components are drawn from which pools (`Stratum`). Drawing, counting and the expected overlap follow from
that, so a new rule is one function and one line in `CONTROLS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, prod

import numpy as np
from numpy.typing import ArrayLike

from ..core.units import Universe, is_mlp
from ..errors import Invalid, OptionError, ReasonCode
from . import CONTROLS
from .groups import finite

FACTS: dict[str, dict[str, bool]] = {"c3": {"counterparts": True}, "c3_parity": {}, "c3_any": {}}


@dataclass(frozen=True)
class Stratum:
    """Draw `take` of the components numbered `pool`. `what` names them in messages ("MLPs"); the model has `of` of them."""

    what: str
    take: int
    pool: tuple[int, ...]
    of: int
    outside: bool


Rule = Callable[[tuple[int, ...], Universe], list[Stratum]]


def c3(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
    """As many heads and as many MLPs, drawn outside the shared set."""
    return _typed(shared, universe, outside=True)


def c3_parity(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
    """As many heads and as many MLPs, drawn from all of them; overlaps with the shared set by chance."""
    return _typed(shared, universe, outside=False)


def c3_any(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
    """As many components of any type, outside the shared set: mostly heads, so a set with many MLPs beats it easily."""
    taken = set(shared)
    pool = tuple(i for i in range(universe.components) if i not in taken)
    return [Stratum("components", len(taken), pool, universe.components, True)]


def draw_controls(shared: Sequence[str], universe: Universe, rule: str | Rule, draws: int, seed: int = 0) -> list[tuple[str, ...]]:
    """`draws` control sets for the components `shared`, each a tuple of names in universe order.

    Each draw is uniform over all sets that the rule allows and independent of the others, so a set can come up twice when
    few are possible (`distinct`). The first m sets do not depend on `draws`, nor any on hash order or on the order of `shared`.
    Raises `Invalid` when the shared set is empty or a pool is too small, with the numbers and the remedies.
    """
    if draws < 1:
        raise OptionError(f"at least 1 control must be drawn, got {draws}")
    strata = strata_of(shared, universe, rule)
    rng = np.random.default_rng(seed)
    controls = []
    for _ in range(draws):
        picked = [s.pool[i] for s in strata if s.take for i in rng.permutation(len(s.pool))[: s.take]]
        controls.append(tuple(universe.component_names[i] for i in sorted(picked)))
    return controls


def distinct(shared: Sequence[str], universe: Universe, rule: str | Rule) -> int:
    """How many different control sets the rule allows. With 1 every draw is the same set, which controls for nothing."""
    return prod(comb(len(s.pool), s.take) for s in strata_of(shared, universe, rule))


def expected_overlap(shared: Sequence[str], universe: Universe, rule: str | Rule, within: Sequence[str] | None = None) -> float:
    """The expected share of a control's members that belong to the shared set, or to `within`: 0 for rules that draw outside it."""
    inside = set(universe.index(shared if within is None else within))
    strata = strata_of(shared, universe, rule)
    hits = sum(s.take * len(inside.intersection(s.pool)) / len(s.pool) for s in strata if s.take)
    return hits / sum(s.take for s in strata)


def monte_carlo_p(observed: float, draws: ArrayLike, side: str = "greater") -> float:
    """Rank p-value (b+1)/(m+1), b being how many of the m draws are at least as extreme as `observed`; ties count against it.

    side: `greater` (draws ≥ observed), `less` (draws ≤ observed), `two-sided` (twice the smaller, at most 1). Valid, and never below
    1/(m+1): with 20 draws it is at least .048. Raises `Invalid` without draws, or for NaN.
    """
    values = finite(draws, "control draws")
    value = float(finite([observed], "observed values")[0])
    above, below = ((int(np.sum(extreme)) + 1) / (values.size + 1) for extreme in (values >= value, values <= value))
    sides = {"greater": above, "less": below, "two-sided": min(1.0, 2 * min(above, below))}
    if side not in sides:
        raise OptionError(f"unknown side {side!r}; allowed: {', '.join(sides)}")
    return sides[side]


def _typed(shared: tuple[int, ...], universe: Universe, outside: bool) -> list[Stratum]:
    taken = set(shared)
    strata = []
    for what, mlps in (("heads", False), ("MLPs", True)):
        kind = [i for i, name in enumerate(universe.component_names) if is_mlp(name) == mlps]
        pool = tuple(i for i in kind if not (outside and i in taken))
        strata.append(Stratum(what, len(taken.intersection(kind)), pool, len(kind), outside))
    return strata


def strata_of(shared: Sequence[str], universe: Universe, rule: str | Rule) -> list[Stratum]:
    """The strata that the rule draws from for this set. Raises `Invalid` as `draw_controls` does."""
    members = tuple(sorted(set(universe.index(shared))))
    if not members:
        raise Invalid("the shared set is empty, so there is nothing to control for", {"shared": 0}, code=ReasonCode.EMPTY_SET)
    strata: list[Stratum] = (CONTROLS.get(rule) if isinstance(rule, str) else rule)(members, universe)
    for s in strata:
        if s.take > len(s.pool):
            raise Invalid(
                _shortage(s, rule),
                {"needed": s.take, "available": len(s.pool), "of": s.of, "what": s.what},
                code=ReasonCode.CONTROL_CANNOT_BE_DRAWN,
            )
    return strata


def _shortage(stratum: Stratum, rule: str | Rule) -> str:
    """The message for a pool that is too small, with remedies."""
    location = ("lies" if len(stratum.pool) == 1 else "lie") + (" outside the shared set" if stratum.outside else " in the pool")
    name = rule if isinstance(rule, str) else getattr(rule, "__name__", "")
    parity = "control: c3_parity (members of the shared set allowed)"
    typed = f"{parity}, control: c3_any (any type)"
    remedies = {"c3": typed, "c3_typed_layer": typed, "c3_matched": typed, "c3_any": parity}.get(name, "another control")
    return (
        f"{stratum.take} {stratum.what} are needed but only {len(stratum.pool)} of {stratum.of} {location}; "
        f"use {remedies}, or a smaller circuit size"
    )
