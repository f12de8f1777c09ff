"""Controls from the neighbourhood of a set: in the same layers, and of the nearest activation norm.

A member's counterpart is of its own type and, where its layer has any outside the set, of its own layer; otherwise of the nearest layer
that has one left (the lower of two equally near). An MLP is alone in its layer, so its counterpart is always from another one.
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
"""Candidates for each member where the nearest are chosen: with one, there would be a single control set, and nothing random about it."""

FACTS = {"c3_typed_layer": {"counterparts": True}, "c3_matched": {"counterparts": True, "norms": True}}
NEEDS_NORMS = "control 'c3_matched' needs the activation norm of every component; make the rule with control_rule('c3_matched', norms)"


@dataclass(frozen=True)
class Near:
    """A control rule: counterparts in the same layers; with `norms` [n_components] the nearest in norm.

    Heads: of a layer with k members, k are drawn outside the set, all others of the layer being equally likely; where fewer than k are left
    the rest comes from the nearest layers. With norms, only the nearest in |difference of norm| are candidates, two for each member.
    MLPs: as many as the set has, among the nearest outside it, two for each member: by layer, with norms by norm whatever the layer.
    `avoid`: further components that are left out as long as enough others of the type remain.
    """

    norms: tuple[float, ...] | None = None
    avoid: Collection[int] = ()

    def __call__(self, shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
        """The strata, pools disjoint; one that is too small where a type has not enough components outside the set."""
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
        for layer, meant in sorted(_places([i // row for i in members], {x: len(found) for x, found in by_layer.items()}).items()):
            targets = [members[j] for j in meant]
            pool = by_layer[layer] if self.norms is None else _nearest(targets, by_layer[layer], self.norms)
            strata.append(Stratum(f"heads of layer {layer}", len(targets), tuple(pool), universe.heads, True))
        return strata

    def _mlps(self, members: list[int], free: list[int], universe: Universe) -> list[Stratum]:
        pool = _nearest(members, free, self.norms if self.norms is not None else range(universe.components))
        return [Stratum("MLPs", len(members), tuple(pool), universe.layers, True)]


def c3_typed_layer(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
    """As many heads per layer, outside the shared set, as far as a layer has them; MLPs, and what it lacks, from the nearest layers."""
    return Near()(shared, universe)


def c3_matched(shared: tuple[int, ...], universe: Universe, norms: ArrayLike | None = None) -> list[Stratum]:
    """As `c3_typed_layer`, and of the nearest mean activation norm: two candidates for each member. `norms` [n_components]."""
    if norms is None:
        raise OptionError(NEEDS_NORMS)
    return Near(_norms(norms))(shared, universe)


def control_rule(name: str, norms: ArrayLike | None = None, avoid: Sequence[str] = ()) -> Rule:
    """The registered control of this name as a rule for `draw_controls`, with all that it needs.

    norms: activation norms [n_components], for `c3_matched`. avoid: components that are left out of each pool that draws outside the
    set and has enough others. Raises `OptionError` for an unknown control, and for `c3_matched` without norms.
    """
    from . import CONTROLS

    made: Rule = CONTROLS.get(name)
    if made is c3_typed_layer or made is c3_matched:
        if made is c3_matched and norms is None:
            raise OptionError(NEEDS_NORMS)
        bound = None if made is c3_typed_layer else _norms(norms)

        def near(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
            return Near(bound, tuple(universe.index(avoid)))(shared, universe)

        near.__name__ = name
        return near

    def narrowed(shared: tuple[int, ...], universe: Universe) -> list[Stratum]:
        gone = set(universe.index(avoid))
        return [_without(stratum, gone) for stratum in made(shared, universe)]

    narrowed.__name__ = name
    return narrowed


def same_layer(shared: Sequence[str], universe: Universe, strata: Sequence[Stratum]) -> int:
    """How many members of the set have a counterpart of their own type and layer in every draw."""
    row = universe.heads + 1
    places = [(i // row, i % row == universe.heads) for i in universe.index(shared)]
    total = 0
    for stratum in strata:
        where = {(i // row, i % row == universe.heads) for i in stratum.pool}
        if len(where) == 1:
            total += min(stratum.take, places.count(where.pop()))
    return total


def _norms(norms: ArrayLike | None) -> tuple[float, ...]:
    values = finite(norms if norms is not None else [], "activation norms")
    if values.ndim != 1 or (values < 0).any():
        raise Invalid(f"activation norms are one number ≥ 0 for each component, got shape {values.shape}, smallest {values.min():g}")
    return tuple(float(v) for v in values)


def _without(stratum: Stratum, gone: set[int]) -> Stratum:
    rest = tuple(i for i in stratum.pool if i not in gone)
    enough = stratum.outside and len(rest) >= stratum.take
    return Stratum(stratum.what, stratum.take, rest, stratum.of, True) if enough else stratum


def _places(wanted: list[int], left: dict[int, int]) -> dict[int, list[int]]:
    """Each member's layer or, where that has none left, the nearest that has: layer → numbers of the members it stands in for."""
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
    """The candidates for these components: each in turn takes the nearest that is left, `NEAREST` times; in universe order."""
    chosen: list[int] = []
    for _ in range(NEAREST):
        for target in targets:
            rest = [i for i in free if i not in chosen]
            if rest:
                chosen.append(min(rest, key=lambda i: (abs(position[i] - position[target]), i)))
    return sorted(chosen)
