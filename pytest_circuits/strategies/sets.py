"""Strategies for sets of components, and for circuits of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hypothesis import strategies as st

from ..core.shares import Size
from ..core.units import Universe, is_mlp
from ..errors import OptionError, UnitError, suggestion
from ..tasks.grammar.draws import Draws, Picked
from .choices import strategy

if TYPE_CHECKING:
    from ..core.results import Attribution, CircuitSet

Of = Literal["any", "heads", "mlps"]
OF = ("any", "heads", "mlps")
Sizes = int | str | tuple[int | str, int | str]


@dataclass(frozen=True)
class SetSpace:
    """The sets that can be drawn: `least` to `most` units of `pool`, and all of `including`; in the order of `units`."""

    units: tuple[str, ...]
    pool: tuple[str, ...]
    least: int
    most: int
    including: tuple[str, ...] = ()

    def draw(self, random: Draws) -> tuple[str, ...]:
        """A set, in the order of `units`; the simplest has the fewest and first units."""
        members = {*self.including, *_subset(random, self.pool, self.least, self.most)}
        return tuple(unit for unit in self.units if unit in members)

    def __contains__(self, units: Collection[str]) -> bool:
        """Whether these units are a set that can be drawn."""
        more = set(units) - set(self.including)
        return len(units) == len(more) + len(self.including) and more <= set(self.pool) and self.least <= len(more) <= self.most


def set_space(
    units: Sequence[str],
    size: Sizes,
    inside: Iterable[str] | None = None,
    outside: Iterable[str] = (),
    including: Iterable[str] = (),
    of: Of = "any",
) -> SetSpace:
    """The sets of `size` components that lie `inside` one set and `outside` of another; `including` counts towards the size.

    Raises `UnitError` for a name that is not in `units`, `OptionError` if no set of that size can be drawn.
    """
    if of not in OF:
        raise OptionError(f"of says which components may be drawn; {suggestion(of, OF)}")
    known, excluded, included = set(units), _members(outside), _members(including)
    within = known if inside is None else _members(inside)
    for name in (*within, *excluded, *included):
        if name not in known:
            raise UnitError(f"{name!r} is not one of the {len(units)} components to draw from ({units[0]} … {units[-1]})")
    both = sorted(included & excluded)
    if both:
        raise OptionError(f"{both[0]} is in both including and outside")
    pool = tuple(
        u for u in units if u in within and u not in excluded and u not in included and of in ("any", "mlps" if is_mlp(u) else "heads")
    )
    least, most = _range(size, len(units))
    if not len(included) <= least <= most <= len(included) + len(pool):
        noun = {"any": "components", "heads": "heads", "mlps": "MLPs"}[of]
        available = f"there are {len(pool)} {noun} to choose from" + (f" besides the {len(included)} that are included" if included else "")
        raise OptionError(f"sets of {least if least == most else f'{least} to {most}'} components cannot be drawn: {available}")
    return SetSpace(tuple(units), pool, least - len(included), most - len(included), tuple(sorted(included)))


def _subset(random: Draws, pool: Sequence[str], least: int, most: int) -> list[str]:
    if isinstance(random, Picked):
        return random.subset(pool, least, most)
    return random.sample(pool, random.randint(least, most))


def _members(units: Iterable[str]) -> set[str]:
    if isinstance(units, str):
        raise UnitError(f"a set of components is a list of names, write [{units!r}]")
    return set(units)


def _range(size: Sizes, total: int) -> tuple[int, int]:
    ends = size if isinstance(size, (tuple, list)) else (size, size)
    if len(ends) != 2:
        raise OptionError(f"a range of sizes has two ends, such as (1, 3); got {size!r}")
    low, high = ends
    least, most = (Size.parse(end).of(max(total, end if isinstance(end, int) else 0)) for end in (low, high))
    if least > most:
        raise OptionError(f"the range of sizes from {low} to {high} is empty: the first must not be larger than the second")
    return least, most


def component_names(universe: Any) -> tuple[str, ...]:
    """The components of a `Universe`, of an object with one (a `Subject`, the result of `circuits.model`), or of a list of names."""
    anatomy = getattr(universe, "anatomy", universe)
    candidate = getattr(anatomy, "universe", anatomy)
    if isinstance(candidate, Universe):
        return candidate.component_names
    if isinstance(universe, (list, tuple)) and universe and all(isinstance(name, str) for name in universe):
        return tuple(universe)
    raise OptionError(f"components are drawn from a model, its universe or a list of names; got {type(universe).__name__}")


def component_sets(
    universe: Any,
    size: Sizes = 1,
    *,
    inside: Iterable[str] | None = None,
    outside: Iterable[str] = (),
    including: Iterable[str] = (),
    of: Of = "any",
) -> st.SearchStrategy[tuple[str, ...]]:
    """Sets of heads and MLPs, as tuples of names in order.

    `universe`: a `Subject`, a model of the session, a `Universe` or a list of names. `size`: a count, a share of all components ("10%"), or
    a range of either. `of`: any, heads or mlps. `including` are in every set, and count towards the size: `component_sets(model, (2, 4),
    including=circuit)` draws supersets, and `inside=circuit` draws subsets. Shrinks towards fewer components, then to the first names.
    Raises `OptionError` and `UnitError` if there is no such set.
    """
    return strategy(set_space(component_names(universe), size, inside, outside, including, of).draw)


def circuits(
    source: Attribution | CircuitSet,
    *,
    size: Sizes | None = None,
    p: float | Sequence[float] = 0.95,
    beyond: int | tuple[int, int] = 0,
    without: int | tuple[int, int] = 0,
) -> st.SearchStrategy[tuple[str, ...]]:
    """Shared sets S_P of measured circuits, for drawn sizes K and shares P, as tuples of names.

    `source`: attribution scores, from which circuits of `size` (a range) are cut; or circuits, without `size`. `p`: a share, or a list of
    shares. `beyond` adds components from outside S_P (supersets), `without` leaves some out (subsets). Empty sets are not drawn. Shrinks
    towards the smallest K, the first P and the smallest change. Raises `OptionError` for invalid sizes and shares.
    """
    cut = hasattr(source, "members")
    if cut != (size is None):
        raise OptionError("size cuts circuits from scores, and circuits are cut already: give size with scores, and no size with circuits")
    sizes = range(0, 1) if size is None else range(*(_range(size, len(source.units))[i] + i for i in (0, 1)))
    shares: list[float] = list(p) if isinstance(p, Sequence) else [p]
    changes = [_span(value, name) for value, name in ((beyond, "beyond"), (without, "without"))]

    def draw(random: Draws) -> tuple[str, ...] | None:
        k, share = random.choice(sizes), random.choice(shares)
        shared = (source if size is None else source.circuits(k)).shared(share)  # type: ignore[union-attr]
        others = [unit for unit in source.units if unit not in set(shared)]
        if changes[0][0] > len(others) or changes[1][0] > len(shared):
            return None
        more, fewer = (
            _subset(random, pool, low, min(high, len(pool))) for pool, (low, high) in zip((others, shared), changes, strict=True)
        )
        members = {*shared, *more} - set(fewer)
        return tuple(unit for unit in source.units if unit in members) or None

    return strategy(draw)


def _span(value: int | tuple[int, int], name: str) -> tuple[int, int]:
    low, high = value if isinstance(value, (tuple, list)) else (value, value)
    if not 0 <= low <= high:
        raise OptionError(f"{name} is a number of components, or a range such as (0, 2); got {value!r}")
    return low, high
