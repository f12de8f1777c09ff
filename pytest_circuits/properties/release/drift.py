"""Drift: how far a model has moved from a released one, in the value of another claim or in its circuit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Describe, Encode, Steps, ask, ask_all
from ..parameters import in_sample, task_names
from ..payload import Json, group_digest, named_sets, pack_bits, pack_columns, rounded
from ..protocol import BaselineReference, Claim, Property
from ..steps.examples import competent_task, describe_model
from ..steps.shared_sets import discover_circuits
from .circuit_overlap import compare_circuits, profiles
from .drift_parameters import Drift
from .release_entry import Release, Side, check_data, from_baseline
from .value_difference import compare_values

if TYPE_CHECKING:
    from ...core.sources import ModelSource


def estimate(claim: Claim) -> Steps[Estimate]:
    """Measure the model, read the release from the baseline or measure it too, and compare."""
    p: Drift = claim.parameters
    now = yield from _measured(p, claim, claim.model)
    against = claim.against
    if against is None:
        raise Invalid(
            "there is nothing to compare with: claim drift in a spec file, which has a baseline, or with against: NAME",
            code=ReasonCode.NO_RELEASE,
        )
    if isinstance(against, BaselineReference):
        description = yield from ask(Describe(claim.model))
        release = from_baseline(p.of, against, now.payload, description.fingerprint)
    else:
        release = Release((yield from _measured(p, claim, against)).payload, against.name)
        check_data(release.payload, now.payload)
    return (compare_circuits if p.overlap else compare_values)(p, release, now)


def _measured(p: Drift, claim: Claim, model: ModelSource) -> Steps[Side]:
    """The payload of one model: the inner estimate at half the error, or circuits and profiles; and digests of the data."""
    tasks = task_names(p.of.parameters)
    encoded = yield from ask_all([Encode(model, claim.tasks[name]) for name in tasks])
    data: Json = {"data": {name: encoded_task.digest for name, encoded_task in zip(tasks, encoded, strict=True)}}
    inner = claim.about(model, p.of.name, p.of.parameters.model_copy(update={"confidence": (1 + p.confidence) / 2}))
    if not p.overlap:
        estimate: Estimate = yield from p.of.property.estimate(inner)
        about = {"sets": named_sets(estimate.details), "unsettled": estimate.unsettled, "confidence": rounded(estimate.confidence)}
        numbers = {"estimate": rounded(estimate.value), "interval": [rounded(end) for end in estimate.interval], "n": estimate.n}
        return Side({**data, "of": {**numbers, **about, **estimate.payload}})
    task = yield from competent_task(inner, inner.parameters.task)
    universe = yield from describe_model(inner)
    discovered = yield from discover_circuits(inner, task)
    circuits: Json = {
        "shape": [universe.layers, universe.heads],
        "members": pack_bits(discovered.discovery.members),
        "discovery": group_digest(discovered.discovery_groups),
        "shared": list(discovered.discovery.shared(inner.parameters.p)),
    }
    if p.match == "function":
        circuits["profiles"] = pack_columns((yield from profiles(inner, discovered)))
    return Side({**data, **circuits}, tuple(discovered.discovery_groups))


def _limits(p: Drift) -> tuple[float | None, float | None]:
    if p.overlap:
        return -1.0, 1.0
    low, high = p.of.property.range(p.of.parameters)
    width = None if low is None or high is None else high - low
    return (None, None) if width is None else (-width, width)


def _growth(p: Drift) -> str | None:
    """Why more evaluation examples would not help, or None."""
    if p.overlap:
        return "overlap compares circuits of discovery examples, and max_n adds only evaluation examples: raise n of the task"
    if p.against is None:
        return "a baseline has only the examples that the release was measured on, and max_n adds others: use against: NAME, or raise n"
    if not p.of.property.grows:
        return f"{p.of.name} is estimated on discovery examples, and max_n adds only evaluation examples: raise n of the tasks"
    return in_sample(p.of.parameters)


DRIFT = Property(
    "drift", Drift, estimate, None, None, "how far a model has moved from a released one: the value of another claim, or its circuit",
    "units of the claim in `of`, or Jaccard", limits=_limits, growth=_growth,
)  # fmt: skip
