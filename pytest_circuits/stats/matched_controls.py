"""Controls that match the layers of a set, or its activation norms.

A member's counterpart has the member's type and, where its layer has any outside the set, its layer; otherwise it is from the nearest
layer that has one left (the lower of two equally near). A layer has one MLP, so the counterpart of an MLP is always from another layer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike

from ..core.units import Universe, is_mlp
from ..errors import Invalid, OptionError
from .controls import Rule, Stratum
from .groups import finite

NEAREST = 2
"""Candidates for each member where the nearest are chosen. With one candidate each there would be a single, fixed control set."""

FACTS = {"c3_typed_layer": {"counterparts": True}, "c3_matched": {"counterparts": True, "norms": True}}
NEEDS_NORMS = "control 'c3_matched' needs the activation norm of every component; make the rule with control_rule('c3_matched', norms)"


@dataclass(frozen=True)
class MatchedControl:
    """A control rule: counterparts in the same layers; with `norms` [n_components] the nearest in norm.

    Heads: for a layer with k members, k others of the layer are drawn, all equally likely; where it has fewer than k others,
    the rest comes from the nearest layers. With norms, only the nearest by |difference of norm| are candidates, two per member.
    MLPs: as many as the set has, from the nearest outside it, two per member: nearest by layer, or with norms by norm in any layer.
    `avoid`: further components that are left out as long as enough others of the type remain.
    """

    norms: tuple[float, ...] | None = None
    avoid: Collection[int] = ()

    def __call__(self, shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
        """The strata, with disjoint pools. A pool is too small where a type has not enough components outside the set."""
        if self.norms is not None and len(self.norms) != universe.components:
            raise OptionError(f"{len(self.norms)} norms for {universe.components} components: each needs exactly one")
        strata: list[Stratum] = []
        for mlps in (False, True):
            kind = [i for i, name in enumerate(universe.component_names) if is_mlp(name) == mlps]
            members = [i for i in kind if i in set(shared)]
            free = [i for i in kind if i not in set(shared)]
            others = [i for i in free if i not in set(self.avoid)]
            pool = others if len(others) >= len(members) else free
            if len(pool) < len(members):
                strata.append(Stratum("MLPs" if mlps else "heads", len(members), tuple(pool), len(kind), True))
            elif members:
                strata += self._mlps(members, pool, universe) if mlps else self._heads(members, pool, universe)
        return strata

    def _heads(self, members: list[int], free: list[int], universe: Universe) -> list[Stratum]:
        row = universe.heads + 1
        by_layer: dict[int, list[int]] = {}
        for i in free:
            by_layer.setdefault(i // row, []).append(i)
        strata = []
        for layer, numbers in sorted(_places([i // row for i in members], {x: len(heads) for x, heads in by_layer.items()}).items()):
            targets = [members[j] for j in numbers]
            pool = by_layer[layer] if self.norms is None else _nearest(targets, by_layer[layer], self.norms)
            strata.append(Stratum(f"heads of layer {layer}", len(targets), tuple(pool), universe.heads, True))
        return strata

    def _mlps(self, members: list[int], free: list[int], universe: Universe) -> list[Stratum]:
        pool = _nearest(members, free, self.norms if self.norms is not None else range(universe.components))
        return [Stratum("MLPs", len(members), tuple(pool), universe.layers, True)]


def c3_typed_layer(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
    """As many heads per layer as the shared set, outside it; MLPs, and heads that a layer lacks, from the nearest layers."""
    return MatchedControl()(shared, universe)


def c3_matched(shared: tuple[int, ...], universe: Universe, norms: ArrayLike | None = None) -> list[Stratum]:
    """As `c3_typed_layer`, from the two candidates per member with the nearest mean activation norm. `norms` [n_components]."""
    if norms is None:
        raise OptionError(NEEDS_NORMS)
    return MatchedControl(_norms(norms))(shared, universe)


def control_rule(name: str, norms: ArrayLike | None = None, avoid: Sequence[str] = ()) -> Rule:
    """The registered control of this name as a rule for `draw_controls`.

    norms: activation norms [n_components], for `c3_matched`. avoid: components that are left out of each pool that draws outside the
    set and has enough others. Raises `OptionError` for an unknown control, and for `c3_matched` without norms.
    """
    from . import CONTROLS

    rule: Rule = CONTROLS.get(name)
    if rule is c3_typed_layer or rule is c3_matched:
        if rule is c3_matched and norms is None:
            raise OptionError(NEEDS_NORMS)
        known_norms = None if rule is c3_typed_layer else _norms(norms)

        def matched(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
            return MatchedControl(known_norms, tuple(universe.index(avoid)))(shared, universe)

        matched.__name__ = name
        return matched

    def narrowed(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
        avoided = set(universe.index(avoid))
        return [_without(stratum, avoided) for stratum in rule(shared, universe)]

    narrowed.__name__ = name
    return narrowed


def same_layer(shared: Sequence[str], universe: Universe, strata: Sequence[Stratum]) -> int:
    """How many members of the set have a counterpart of the same type and layer in every draw."""
    row = universe.heads + 1
    places = [(i // row, i % row == universe.heads) for i in universe.index(shared)]
    total = 0
    for stratum in strata:
        pool_places = {(i // row, i % row == universe.heads) for i in stratum.pool}
        if len(pool_places) == 1:
            total += min(stratum.take, places.count(pool_places.pop()))
    return total


def _norms(norms: ArrayLike | None) -> tuple[float, ...]:
    values = finite(norms if norms is not None else [], "activation norms")
    if values.ndim != 1 or (values < 0).any():
        raise Invalid(f"activation norms are one number ≥ 0 for each component, got shape {values.shape}, smallest {values.min():g}")
    return tuple(float(v) for v in values)


def _without(stratum: Stratum, avoided: set[int]) -> Stratum:
    rest = tuple(i for i in stratum.pool if i not in avoided)
    enough = stratum.outside and len(rest) >= stratum.take
    return Stratum(stratum.what, stratum.take, rest, stratum.of, True) if enough else stratum


def _places(wanted: list[int], left: dict[int, int]) -> dict[int, list[int]]:
    """Layer → numbers of the members whose counterparts it provides: each member's layer, or the nearest that has one left."""
    places: dict[int, list[int]] = {}
    pending = list(range(len(wanted)))
    for distance in range(max([*left, *wanted], default=0) + 1):
        for j in list(pending):
            for layer in dict.fromkeys((wanted[j] - distance, wanted[j] + distance)):
                if j in pending and left.get(layer, 0) > 0:
                    left[layer] -= 1
                    places.setdefault(layer, []).append(j)
                    pending.remove(j)
    return places


def _nearest(targets: list[int], free: list[int], position: Sequence[float]) -> list[int]:
    """The candidates for the target components: each in turn takes the nearest that is left, `NEAREST` times; in universe order."""
    chosen: list[int] = []
    for _ in range(NEAREST):
        for target in targets:
            rest = [i for i in free if i not in chosen]
            if rest:
                chosen.append(min(rest, key=lambda i: (abs(position[i] - position[target]), i)))
    return sorted(chosen)
