"""Does a task's circuit match one that is known from elsewhere?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from ...core.counted import counted
from ...core.shares import Size, exact
from ...core.units import is_mlp
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..parameters import BootstrapParameters, SharedSetParameters, TaskName
from ..payload import frequencies
from ..protocol import Claim, Property
from ..steps.circuits import cut_circuits
from ..steps.examples import competent_task, describe_model
from ..steps.known_units import check_names, known_mask, read_names
from ..steps.shared_sets import DiscoveredTask, discover_circuits, set_details, shared_units, unsettled_share

if TYPE_CHECKING:
    import numpy as np

    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Floats = np.ndarray[Any, np.dtype[np.float64]]


class CircuitMatch(BootstrapParameters, SharedSetParameters):
    """The circuit C of the discovery examples against a known circuit R: recall = |C∩R|/|R| by default.

    C is the shared set S_P, or with `circuit: mean` the top-K components by mean |score| (`p` is then ignored). R is given as `known`,
    or as a `file`: a JSON list, or one name a line; a path relative to the spec, in Python to the working directory. `measure`: `recall`;
    `precision` = |C∩R|/|C|; `jaccard` = |C∩R|/|C∪R|; `contains` is 1 if all of R is in C, else 0; `excludes` is 1 if none of R is in C,
    else 0. Range [0, 1]. The report adds what a random set with as many heads and MLPs would score. Invalid: a component that the model
    does not have, an empty C, an R of all components or (for `contains`) larger than C can be, an accuracy below the gate. Interval:
    bias-corrected bootstrap over groups, C recomputed; approximate. The interval of `contains` and `excludes` is [1, 1], [0, 0], or
    [0, 1] if undecided: for S_P by a betting interval of each unit's frequency against P (exact), for the mean circuit by whether 97.5%
    of the resamples (at confidence 0.95) agree (approximate).
    """

    task: TaskName
    known: Annotated[list[str] | None, Field(description="the known circuit's components: [L0H1, L1MLP]")] = None
    file: Annotated[str | None, Field(description="a file of component names, relative to the spec, in place of known")] = None
    measure: Annotated[
        Literal["recall", "precision", "jaccard", "contains", "excludes"], Field(description="how the two circuits are compared")
    ] = "recall"
    circuit: Annotated[Literal["shared", "mean"], Field(description="the shared set S_P, or the top-K by mean |score|")] = "shared"

    @field_validator("known")
    @classmethod
    def _well_written(cls, names: list[str] | None) -> list[str] | None:
        return None if names is None else list(check_names(names))

    _file_names: tuple[str, ...] = PrivateAttr(())  # what stood in the file when the claim was read

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
            self._file_names = read_names(self.file, _folder(info))
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The known circuit."""
        return self._file_names if self.known is None else tuple(self.known)


def _folder(info: ValidationInfo) -> Path | None:
    """The folder of the spec that is read; None in Python."""
    return (info.context or {}).get("folder")


@dataclass(frozen=True)
class _Circuit:
    """The circuit as a mask [N]; `resampled` gives that of resamples of the groups: counts [B, G] → masks [B, N]."""

    mask: Bools
    resampled: Callable[[Any], Bools]
    groups: int


def estimate(claim: Claim) -> Steps[Estimate]:
    """Find the circuit on discovery examples; compare it, and its resamples, with the known one."""
    from ...stats.membership import random_match

    parameters: CircuitMatch = claim.parameters
    names = parameters.names
    task = yield from competent_task(claim, parameters.task)
    universe = yield from describe_model(claim)
    discovered = yield from discover_circuits(claim, task)
    circuits, groups = discovered.discovery, discovered.discovery_groups
    known = known_mask(names, universe)
    units = circuits.units
    _check_room(parameters, len(names), universe.components)
    circuit = _mean_circuit(parameters, discovered) if parameters.circuit == "mean" else _shared_set(parameters, discovered)
    labels = ["mlp" if is_mlp(unit) else "head" for unit in units]
    chance = random_match(circuit.mask, known, labels)
    value, interval, kind, parts = _compare(parameters, discovered, circuit, known)
    pairs = list(zip(units, circuit.mask, known, strict=True))
    frequency = dict(zip(units, circuits.members.mean(0), strict=True))
    details = {
        "circuit": parameters.circuit,
        "found": set_details([unit for unit, present, _ in pairs if present], universe),
        "known": set_details([unit for unit, _, expected in pairs if expected], universe),
        "both": [unit for unit, present, expected in pairs if present and expected],
        "missing": [unit for unit, present, expected in pairs if expected and not present],
        "extra": [unit for unit, present, expected in pairs if present and not expected],
        "measures": {name: float(measure(circuit.mask[None], known)[0]) for name, measure in MEASURES.items()},
        "chance": chance,
        "frequency_of_known": {unit: round(float(frequency[unit]), 4) for unit, _, expected in pairs if expected},
        "interval_parts": parts,
        **discovered.details,
    }
    details["notes"] = _notes(parameters, details)
    is_binary = parameters.measure in BINARY_MEASURES
    n, unsettled, payload = len(circuits), None, {}
    if parameters.circuit == "shared":
        unsettled = None if is_binary else unsettled_share(parameters.p, n, "a match with it")
        payload = frequencies(circuits, groups)
    return Estimate(value, interval, n, parameters.confidence, kind, "circuit_match", details, unsettled, payload, shrinks=not is_binary)


def _check_room(parameters: CircuitMatch, known: int, components: int) -> None:
    """Raise `Invalid` where a circuit of the claim's size cannot contain that many known units."""
    if parameters.measure != "contains" or parameters.threshold is not None:
        return
    k = Size.parse(parameters.size).of(components, parameters.rounding)
    room = k if parameters.circuit == "mean" else int(k / exact(parameters.p))
    if known > room:
        why = f"circuits have {k} components" + (
            "" if parameters.circuit == "mean" else f", so at most {room} can be in {parameters.p:g} of them"
        )
        raise Invalid(
            f"the known circuit has {known} components, and {why}: it cannot be contained; raise size",
            {"k": k, "room": room},
            code=ReasonCode.TOO_FEW_UNITS,
        )


def _shared_set(parameters: CircuitMatch, discovered: DiscoveredTask) -> _Circuit:
    from ...stats.overlap import group_tallies, shared_rows

    circuits = discovered.discovery
    shared_units(circuits, parameters.p, parameters.task, parameters.threshold)  # refuses an empty set
    tallies, sizes = group_tallies(circuits.members, discovered.discovery_groups)
    return _Circuit(circuits.shared_mask(parameters.p), lambda counts: shared_rows(counts, tallies, sizes, parameters.p), len(sizes))


def _mean_circuit(parameters: CircuitMatch, discovered: DiscoveredTask) -> _Circuit:
    import numpy as np

    from ...stats.bootstrap import weighted_means
    from ...stats.groups import group_sums

    attribution = discovered.discovery_scores
    scores = attribution.values.astype(np.float64)
    sums, sizes = group_sums(scores if parameters.contrast else np.abs(scores), discovered.discovery_groups)

    def resampled(counts: Any) -> Bools:
        means = weighted_means(counts, sums, sizes).astype(np.float32)
        members: Bools = cut_circuits(replace(attribution, values=means), parameters).members
        return members

    mask = resampled(np.ones((1, len(sizes)), np.int64))[0]
    if not mask.any():
        raise Invalid(
            f"the mean circuit of task {parameters.task!r} is empty: no component has {parameters.threshold or 0:g} of the sum of "
            "mean scores",
            code=ReasonCode.NO_CIRCUIT,
        )
    return _Circuit(mask, resampled, len(sizes))


def _compare(
    parameters: CircuitMatch, discovered: DiscoveredTask, circuit: _Circuit, known: Bools
) -> tuple[float, tuple[float, float], str, dict[str, Any]]:
    from ...stats import bootstrap, membership

    circuits = discovered.discovery
    measure = MEASURES[parameters.measure]
    if parameters.measure not in BINARY_MEASURES:
        value, interval, parts = bootstrap.bootstrap_interval(
            lambda counts: measure(circuit.resampled(counts), known),
            [circuit.groups],
            parameters.confidence,
            0,
            parameters.resamples,
            0.0,
            1.0,
        )
        return value, interval, "bias-corrected bootstrap over groups; approximate", parts
    value = float(measure(circuit.mask[None], known)[0])
    if parameters.circuit == "mean":
        between, yes = membership.support(
            lambda counts: measure(circuit.resampled(counts), known) == 1, circuit.groups, parameters.confidence, 0, parameters.resamples
        )
        parts, kind = {"share_of_resamples": yes}, "share of bootstrap resamples; approximate"
    else:
        between, rows = membership.frequent(
            circuits.members[:, known],
            discovered.discovery_groups,
            parameters.p,
            parameters.confidence,
            inside=parameters.measure == "contains",
        )
        names = [unit for unit, expected in zip(circuits.units, known, strict=True) if expected]
        parts = {"frequencies": {name: [round(float(end), 4) for end in row] for name, row in zip(names, rows, strict=True)}}
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
BINARY_MEASURES = ("contains", "excludes")


def _notes(parameters: CircuitMatch, details: dict[str, Any]) -> list[str]:
    measured, known, chance = details["found"], details["known"], details["chance"]
    what = f"shared set (P = {parameters.p:g})" if parameters.circuit == "shared" else "mean circuit"
    types = f"{counted(measured['heads'], 'head')}, {counted(measured['mlps'], 'MLP')}"
    lines = [
        f"{what} of {measured['size']} components ({types}) has {len(details['both'])} of the "
        f"{known['size']} known ones; random sets with as many heads and MLPs: {chance['overlap']:.2f} on average, "
        f"as many or more with probability {chance['p_at_least']:.3g}",
    ]
    rest = [f"{name}: {', '.join(details[name][:12])}{' …' * (len(details[name]) > 12)}" for name in ("missing", "extra") if details[name]]
    return [*lines, *(["; ".join(rest)] if rest else [])]


CIRCUIT_MATCH = Property(
    "circuit_match", CircuitMatch, estimate, 0.0, 1.0, "the circuit matches one that is known from elsewhere", "share of components",
    grows=False, external=lambda parameters: list(parameters.names),
)  # fmt: skip
