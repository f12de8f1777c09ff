"""Drift of a circuit: shared sets of two models on the same prompts, by name or with heads matched by function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...core.units import Universe, is_mlp, layer_of
from ...core.verdict import Estimate
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Steps
from ..payload import Json
from ..protocol import Claim
from ..steps.attribution import attribute_examples
from ..steps.shared_sets import DiscoveredTask, check_share, empty_shared_set, format_set, unsettled_share
from .drift_parameters import Drift
from .release_entry import Release, Side

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]


BY_NAME = (
    "components were compared by name, which is only meaningful for a model that was trained further from the release: heads are defined "
    "up to a permutation, and a head at another index has another name. overlap: jaccard with match: function matches heads by function"
)
"""The note for a circuit that differs by name."""
NO_SCATTER = (
    "the circuits are the same on every example, so the interval has no width, whatever the number of prompts; it does not predict how "
    "wide the interval will be for a model whose circuits differ, nor whether that settles the claim"
)
"""The note for perfect agreement."""


def profiles(claim: Claim, task: DiscoveredTask) -> Steps[Array]:
    """The function of each component, whatever its name: its signed share of Σ|score| on each evaluation prompt; [n, N]."""
    import numpy as np

    scores = yield from attribute_examples(claim, claim.parameters.task)
    rows = scores.scores[task.examples.evaluation].astype(np.float64)
    total = np.abs(rows).sum(1, keepdims=True)
    shares: Array = rows / np.where(total > 0, total, 1)
    return shares


def compare_circuits(p: Drift, release: Release, side: Side) -> Estimate:
    """Agreement across models minus agreement within them; `side` is the model now."""
    import numpy as np

    from ...stats import overlap
    from ...stats.bootstrap import bootstrap_interval
    from ...stats.model_overlap import beyond_noise_rows
    from ..payload import unpack_bits

    inner: Any = p.of.parameters
    then, now, share, task = release.payload, side.payload, inner.p, inner.task
    if then["shape"] != now["shape"]:
        shapes = [f"{layers} layers of {heads} heads" for layers, heads in (then["shape"], now["shape"])]
        raise Invalid(f"the release has {shapes[0]} and the model {shapes[1]}: their components do not correspond",
                      {"then": then["shape"], "now": now["shape"]}, code=ReasonCode.DIFFERENT_COMPONENTS)  # fmt: skip
    if then["discovery"] != now["discovery"]:
        raise Invalid(
            f"the discovery examples of task {task!r} differ from those of the release, so circuits cannot be compared",
            code=ReasonCode.DIFFERENT_PROMPTS,
        )
    names = Universe(*now["shape"]).component_names
    old, new = unpack_bits(then["members"]), unpack_bits(now["members"])
    columns, matching = _matching(p, then, now, names)
    new = new[:, columns]
    for owner, members in (("release", old), ("model", new)):
        if not _shared(members, share).any():
            raise Invalid(f"in the {owner}, {_empty(p, task, members)}", code=ReasonCode.EMPTY_SHARED_SET)
    (a, sizes), (b, _) = (overlap.group_tallies(members, side.groups) for members in (old, new))
    first = overlap.halves(len(sizes), p.repeats)
    check_share(share, int(min((first @ sizes).min(), ((1 - first) @ sizes).min())))

    def across_and_within(counts: Any) -> tuple[Array, Array]:
        return beyond_noise_rows(counts, a, b, sizes, share, first)

    across, within = (float(rows[0]) for rows in across_and_within(np.ones((1, len(sizes)), np.int64)))

    def statistic(counts: Any) -> Array:
        across_rows, within_rows = across_and_within(counts)
        difference: Array = across_rows - within_rows
        return difference

    parts: dict[str, Any] = {}
    if np.array_equal(old, new):
        value, interval, kind = 0.0, (0.0, 0.0), "the circuits are the same on every example"
    else:
        value, interval, parts = bootstrap_interval(statistic, [len(sizes)], p.confidence, 0, p.resamples, -1.0, 1.0)
        kind = "bias-corrected bootstrap over groups"
    sets = _shared(old, share), _shared(new, share)
    labels = [f"{'mlp' if is_mlp(name) else 'head'}{layer_of(name)}" for name in names]
    chance = overlap.typed_null(*sets, labels)
    details: Json = {
        "of": p.of.name, "release": release.name, "compared_with_itself": bool(release.itself), "match": p.match,
        "shared_then": _names(names, sets[0]), "shared_now": list(now["shared"]), "shared_now_as_then": _names(names, sets[1]),
        "entered": _names(names, sets[1] & ~sets[0]), "left": _names(names, sets[0] & ~sets[1]),
        "jaccard": overlap.jaccard(*sets), "across": across, "within": within, "chance": vars(chance),
        "examples_with_another_circuit": int((old != new).any(1).sum()), "groups_compared": len(sizes), "bootstrap": parts, **matching,
    }  # fmt: skip
    details["notes"] = _notes(p, details, release.itself, len(old), value)
    if p.match == "name" and (interval[1] < 0 or _no_head_in_common(details)):
        details["notes"].append(BY_NAME)
    return Estimate(
        value, interval, len(old), p.confidence, kind, "drift", details, unsettled_share(share, len(old), "an overlap with it"), dict(now)
    )


def _matching(p: Drift, then: Json, now: Json, names: tuple[str, ...]) -> tuple[Ints, Json]:
    """For each component of the release, the column of the matching component of the model; and details of the matching."""
    import numpy as np

    from ...stats.assignment import best_assignment, concordance
    from ..payload import unpack_columns

    columns = np.arange(len(names))
    if p.match == "name":
        return columns, {}
    old, new = unpack_columns(then["profiles"]), unpack_columns(now["profiles"])
    if old.shape != new.shape:
        raise Invalid(
            f"heads cannot be matched: profiles over {len(old)} evaluation prompts then and {len(new)} now",
            code=ReasonCode.DIFFERENT_PROMPTS,
        )
    layers, heads = now["shape"]
    quality, by_name = np.zeros(len(names)), np.zeros(len(names))
    for layer in range(layers):
        layer_heads = np.arange(heads) + layer * (heads + 1)
        similarity = concordance(old[:, layer_heads], new[:, layer_heads])
        assignment = best_assignment(similarity)
        columns[layer_heads] = layer_heads[assignment]
        quality[layer_heads], by_name[layer_heads] = similarity[np.arange(heads), assignment], similarity.diagonal()
    attention = [i for i, name in enumerate(names) if not is_mlp(name)]
    became = {names[i]: names[columns[i]] for i in attention if columns[i] != i}
    return columns, {
        "became": became,
        "match_quality": {names[i]: round(float(quality[i]), 4) for i in attention},
        "mean_match_quality": float(quality[attention].mean()),
        "mean_quality_by_name": float(by_name[attention].mean()),
        "prompts_matched_on": len(old),
    }


def _empty(p: Drift, task: str, members: Bools) -> Invalid:
    inner: Any = p.of.parameters
    return empty_shared_set(inner.p, task, int(members.sum(0).max()), len(members), inner.threshold)


def _shared(members: Bools, p: float) -> Bools:
    from ...core.results import CircuitSet

    return CircuitSet(members, ()).shared_mask(p)


def _names(names: tuple[str, ...], mask: Bools) -> list[str]:
    return [name for name, inside in zip(names, mask, strict=True) if inside]


def moved_text(moved: Mapping[str, Any]) -> str:
    """The units that entered a set, and those that left it, as text."""
    parts = [f"{', '.join(moved[key])} {key}" for key in ("entered", "left") if moved[key]]
    return "; ".join(parts) or "the same"


def _no_head_in_common(d: Json) -> bool:
    then, now = ({unit for unit in d[key] if not is_mlp(unit)} for key in ("shared_then", "shared_now"))
    return bool(then and now) and not then & now


def _notes(p: Drift, d: Json, itself: str, n: int, value: float) -> list[str]:
    inner: Any = p.of.parameters
    lines = [
        f"shared set of {n} discovery examples (P = {inner.p:g}): {format_set(d['shared_then'])} at the release ({d['release']}), "
        f"{format_set(d['shared_now'])} now; {moved_text(d)}; Jaccard {d['jaccard']:.2f}"
    ]
    if p.match == "function":
        moved = ", ".join(f"{old} is now {new}" for old, new in list(d["became"].items())[:8])
        more = f" and {len(d['became']) - 8} more" if len(d["became"]) > 8 else ""
        lines.append(
            f"heads matched within each layer by function on {d['prompts_matched_on']} prompts, not by name: concordance "
            f"{d['mean_match_quality']:.2f} on average (by name {d['mean_quality_by_name']:.2f}); "
            f"{moved + more if moved else 'no head has moved'}"
        )
    return [
        *lines,
        f"across the models {d['across']:.2f}, between halves of one model {d['within']:.2f} (noise floor): {value:+.2f}; random sets of "
        f"as many heads and MLPs in each layer: {d['chance']['mean']:.2f}",
        *([] if d["examples_with_another_circuit"] else [NO_SCATTER]),
        *([itself] if itself else []),
    ]
