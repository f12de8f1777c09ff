"""Does a task's circuit match one that is known from elsewhere?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from ...core.shares import Size, exact
from ...core.units import is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid
from ...measurement.requests import Steps
from ..parameters import CircuitParameters, Share, TaskName
from ..payload import frequencies
from ..protocol import Claim, Property
from ..steps.examples import chosen, empty_set, set_details
from ..steps.known_units import check_names, known_mask, read_names
from ..steps.shared_sets import DiscoveredCircuits, discovered, unsettled

if TYPE_CHECKING:
    import numpy as np

    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Floats = np.ndarray[Any, np.dtype[np.float64]]


class CircuitMatch(CircuitParameters):
    """The circuit C found on the discovery examples against a known circuit R: recall = |C∩R|/|R| by default.

    C is the shared set S_P, or with `circuit: mean` the top-K components by mean |score| (`p` plays no part then). R is given as `known`
    or as a `file` (a JSON list, or one name a line; relative to the spec, in Python to the working directory). `measure`: `recall`,
    `precision` = |C∩R|/|C|, `jaccard` = |C∩R|/|C∪R|; `contains` is 1 when all of R is in C, else 0; `excludes` is 1 when none is. Range
    [0, 1]. Reported beside what a random set with as many heads and MLPs scores. Invalid: a component that the model does not have, an
    empty C, an R of all components or of more than C can have (`contains`), an accuracy below the gate.
    Interval: bias-corrected bootstrap over groups, C recomputed; approximate. `contains` and `excludes` are yes or no, so their interval
    is [1, 1], [0, 0] or, not known, [0, 1]. For S_P: by a betting interval of each unit's frequency against P, exact; for the mean
    circuit: by whether 97.5% of the resamples (at confidence 0.95) agree, approximate.
    """

    task: TaskName
    known: Annotated[list[str] | None, Field(description="the known circuit's components: [L0H1, L1MLP]")] = None
    file: Annotated[str | None, Field(description="a file of component names, relative to the spec, in place of known")] = None
    measure: Annotated[
        Literal["recall", "precision", "jaccard", "contains", "excludes"], Field(description="how the two circuits are compared")
    ] = "recall"
    circuit: Annotated[Literal["shared", "mean"], Field(description="the shared set S_P, or the top-K by mean |score|")] = "shared"
    p: Annotated[Share, Field(description="share of examples whose circuit a component must be in")] = 0.95
    resamples: Annotated[int, Field(ge=200, description="bootstrap resamples")] = 2000

    @field_validator("known")
    @classmethod
    def _written_right(cls, names: list[str] | None) -> list[str] | None:
        return None if names is None else list(check_names(names))

    _read: tuple[str, ...] = PrivateAttr(())  # what stood in the file when the claim was read

    @field_validator("file")
    @classmethod
    def _readable(cls, path: str | None, info: ValidationInfo) -> str | None:
        if path is not None:
            read_names(path, _folder(info))
        return path

    @model_validator(mode="after")
    def _one_source(self, info: ValidationInfo) -> CircuitMatch:
        if (self.known is None) == (self.file is None):
            raise ValueError("give the known circuit as one of known ([L0H1, L1MLP]) and file")
        if self.file is not None:
            self._read = read_names(self.file, _folder(info))
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The known circuit."""
        return self._read if self.known is None else tuple(self.known)


def _folder(info: ValidationInfo) -> Path | None:
    """Of the spec that is read; None for Python."""
    return (info.context or {}).get("folder")


@dataclass(frozen=True)
class _Found:
    """The circuit as a mask [N], and how resamples of the groups give it: counts [B, G] → masks [B, N]."""

    mask: Bools
    again: Callable[[Any], Bools]
    groups: int


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the circuit on discovery examples; compare it, and its resamples, with the known one."""
    from ...stats.membership import random_match

    p: CircuitMatch = claim.parameters
    names = p.names
    found = yield from discovered(claim, p.task)
    known = known_mask(names, found.universe)
    units = found.circuits.units
    _check_room(p, len(names), found)
    circuit = _mean(p, found) if p.circuit == "mean" else _shared(p, found)
    labels = ["mlp" if is_mlp(unit) else "head" for unit in units]
    chance = random_match(circuit.mask, known, labels)
    value, interval, kind, parts = _answer(p, found, circuit, known)
    inside = [u for u, a, b in zip(units, circuit.mask, known, strict=True) if a and b]
    details = {
        "circuit": p.circuit,
        "found": set_details([u for u, a in zip(units, circuit.mask, strict=True) if a], found.universe),
        "known": set_details([u for u, b in zip(units, known, strict=True) if b], found.universe),
        "both": inside,
        "missing": [u for u, a, b in zip(units, circuit.mask, known, strict=True) if b and not a],
        "extra": [u for u, a, b in zip(units, circuit.mask, known, strict=True) if a and not b],
        "measures": {name: float(make(circuit.mask[None], known)[0]) for name, make in MEASURES.items()},
        "chance": chance,
        "frequency_of_known": {u: round(float(f), 4) for u, f, b in zip(units, found.circuits.members.mean(0), known, strict=True) if b},
        "interval_parts": parts,
        **found.common,
    }
    details["notes"] = _told(p, details)
    loose = p.circuit == "shared" and p.measure not in YES_OR_NO
    return Estimate(
        value, interval, len(found.circuits), p.confidence, kind, "circuit_match", details,
        unsettled(p.p, len(found.circuits), "a match with it") if loose else None,
        frequencies(found.circuits, found.groups) if p.circuit == "shared" else {}, shrinks=p.measure not in YES_OR_NO,
    )  # fmt: skip


def _check_room(p: CircuitMatch, wanted: int, found: DiscoveredCircuits) -> None:
    """Whether a circuit of this size could contain that many units at all."""
    if p.measure != "contains" or p.threshold is not None:
        return
    k = Size.parse(p.size).of(found.universe.components, p.rounding)
    room = k if p.circuit == "mean" else int(k / exact(p.p))
    if wanted > room:
        why = f"circuits have {k} components" + ("" if p.circuit == "mean" else f", so at most {room} can be in {p.p:g} of them")
        raise Invalid(f"the known circuit has {wanted} components, and {why}: it cannot be contained; raise size", {"k": k, "room": room})


def _shared(p: CircuitMatch, found: DiscoveredCircuits) -> _Found:
    from ...stats.overlap import group_tallies, shared_rows

    mask = found.circuits.shared_mask(p.p)
    if not mask.any():
        raise empty_set(p, p.task, int(found.circuits.counts.max()), len(found.circuits))
    tallies, sizes = group_tallies(found.circuits.members, found.groups)
    return _Found(mask, lambda counts: shared_rows(counts, tallies, sizes, p.p), len(sizes))


def _mean(p: CircuitMatch, found: DiscoveredCircuits) -> _Found:
    import numpy as np

    from ...stats.bootstrap import weighted_means
    from ...stats.groups import group_sums

    scores = found.scores.values.astype(np.float64)
    sums, sizes = group_sums(scores if p.contrast else np.abs(scores), found.groups)

    def again(counts: Any) -> Bools:
        means = weighted_means(counts, sums, sizes).astype(np.float32)
        members: Bools = chosen(replace(found.scores, values=means), p).members
        return members

    mask = again(np.ones((1, len(sizes)), np.int64))[0]
    if not mask.any():
        raise Invalid(f"the mean circuit of task {p.task!r} is empty: no component has {p.threshold or 0:g} of the mean scores' sum")
    return _Found(mask, again, len(sizes))


def _answer(
    p: CircuitMatch, found: DiscoveredCircuits, circuit: _Found, known: Bools
) -> tuple[float, tuple[float, float], str, dict[str, Any]]:
    from ...stats import bootstrap, membership

    measure = MEASURES[p.measure]
    if p.measure not in YES_OR_NO:
        value, interval, parts = bootstrap.bootstrap_interval(
            lambda counts: measure(circuit.again(counts), known), [circuit.groups], p.confidence, 0, p.resamples, 0.0, 1.0
        )
        return value, interval, "bias-corrected bootstrap over groups; approximate", parts
    value = float(measure(circuit.mask[None], known)[0])
    if p.circuit == "mean":
        between, yes = membership.support(
            lambda counts: measure(circuit.again(counts), known) == 1, circuit.groups, p.confidence, 0, p.resamples
        )
        parts, kind = {"share_of_resamples": yes}, "share of bootstrap resamples; approximate"
    else:
        between, rows = membership.frequent(
            found.circuits.members[:, known], found.groups, p.p, p.confidence, inside=p.measure == "contains"
        )
        names = [u for u, b in zip(found.circuits.units, known, strict=True) if b]
        parts = {"frequencies": {u: [round(float(x), 4) for x in row] for u, row in zip(names, rows, strict=True)}}
        kind = "betting interval of each unit's frequency over groups"
    return value, (min(value, between[0]), max(value, between[1])), kind, parts


def _recall(rows: Bools, known: Bools) -> Floats:
    shares: Floats = (rows & known).sum(1) / known.sum()
    return shares


def _precision(rows: Bools, known: Bools) -> Floats:
    """NaN for an empty circuit, which is neither right nor wrong."""
    import numpy as np

    size = rows.sum(1)
    shares: Floats = np.where(size > 0, (rows & known).sum(1) / np.maximum(size, 1), np.nan)
    return shares


def _jaccard(rows: Bools, known: Bools) -> Floats:
    shares: Floats = (rows & known).sum(1) / (rows | known).sum(1)
    return shares


def _contains(rows: Bools, known: Bools) -> Floats:
    return rows[:, known].all(1).astype(float)


def _excludes(rows: Bools, known: Bools) -> Floats:
    return (~rows[:, known].any(1)).astype(float)


MEASURES = {"recall": _recall, "precision": _precision, "jaccard": _jaccard, "contains": _contains, "excludes": _excludes}
YES_OR_NO = ("contains", "excludes")


def _told(p: CircuitMatch, details: dict[str, Any]) -> list[str]:
    found, known, chance = details["found"], details["known"], details["chance"]
    what = f"shared set (P = {p.p:g})" if p.circuit == "shared" else "mean circuit"
    lines = [
        f"{what} of {found['size']} components ({found['heads']} heads, {found['mlps']} MLPs) has {len(details['both'])} of the "
        f"{known['size']} known ones; random sets with as many heads and MLPs: {chance['overlap']:.2f} on average, "
        f"as many or more with probability {chance['p_at_least']:.3g}",
    ]
    rest = [f"{name}: {', '.join(details[name][:12])}{' …' * (len(details[name]) > 12)}" for name in ("missing", "extra") if details[name]]
    return [*lines, *(["; ".join(rest)] if rest else [])]


CIRCUIT_MATCH = Property(
    "circuit_match", CircuitMatch, estimate, 0.0, 1.0, "the circuit matches one that is known from elsewhere", "share of components",
    grows=False,
)  # fmt: skip
