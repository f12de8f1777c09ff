"""The cluster of neurons that is steered, and random clusters to compare it with."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.shares import Size
from ...core.units import Universe, layer_of, split_position
from ...errors import Invalid, ReasonCode
from ...measurement.requests import Attribute, Steps, ask, freeze
from ..protocol import Claim
from ..steps.examples import part
from ..steps.numeric_checks import check_finite
from .steering_parameters import Steering


def select_cluster(claim: Claim, universe: Universe) -> Steps[tuple[str, ...]]:
    """The names of the cluster's neurons. Raises `Invalid` if the cluster would be all neurons, or have neurons without a score."""
    import numpy as np

    p: Steering = claim.parameters
    total = universe.size("neuron")
    if not total:
        raise Invalid(
            "the model's MLPs are mixtures of experts, and have no neurons to multiply", {"universe": 0}, code=ReasonCode.NO_NEURONS
        )
    if p.units is not None:
        universe.index([split_position(name)[0] for name in p.units], "neuron")
        if len(p.units) >= total:
            raise Invalid(
                f"the cluster is all {total} neurons of the model: choose fewer", {"universe": total}, code=ReasonCode.CIRCUIT_IS_EVERYTHING
            )
        return tuple(p.units)
    assert p.neurons is not None
    attribution = yield from ask(
        Attribute(
            claim.model, claim.tasks[p.task], p.attribution, "neuron", p.metric, part(p, "discovery"), "mean", freeze(p.attribution_options)
        )
    )
    strength = np.abs(attribution.scores[0])
    check_finite(strength, f"{p.attribution} scores of neurons on task {p.task!r}")
    size = Size.parse(p.neurons)
    k = int(size.count) if size.count is not None else size.of(len(strength))
    if k >= len(strength):
        raise Invalid(
            f"the claim needs {p.neurons} neurons, and the model has {len(strength)}: choose fewer",
            {"universe": len(strength)},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    scored = int((strength > 0).sum())
    if scored < k:
        raise Invalid(
            f"only {scored} of {len(strength)} neurons have a {p.attribution} score other than zero, and the claim needs {k}",
            {"scored": scored, "asked": k},
            code=ReasonCode.TOO_FEW_UNITS,
        )
    return tuple(attribution.units[int(i)] for i in np.argsort(-strength, kind="stable")[:k])


def control_clusters(cluster: Sequence[str], universe: Universe, p: Steering) -> tuple[list[tuple[str, ...]], str | None]:
    """Random clusters outside the cluster, with as many neurons in each layer; none, and the reason, if a layer has too few others."""
    import numpy as np

    members_of: dict[int, dict[str, list[str]]] = {}  # layer → neuron → its positions, "" for all of them
    for name in cluster:
        unit, _ = split_position(name)
        members_of.setdefault(layer_of(unit), {}).setdefault(unit, []).append(name.removeprefix(unit))
    others = {layer: [u for i in range(universe.neurons) if (u := f"L{layer}N{i}") not in members] for layer, members in members_of.items()}
    short = next((layer for layer in members_of if len(others[layer]) < len(members_of[layer])), None)
    if short is not None:
        reason = (
            f"layer {short} has {universe.neurons} neurons, {len(members_of[short])} of them in the cluster, so no control with as "
            "many other neurons can be drawn there"
        )
        if p.against == "control":
            raise Invalid(
                f"{reason}; choose fewer neurons, or against: intact",
                {"layer": short, "cluster": len(members_of[short])},
                code=ReasonCode.CONTROL_CANNOT_BE_DRAWN,
            )
        return [], reason
    controls = []
    for draw in range(p.draws):
        rng = np.random.default_rng([p.control_seed, draw])
        control: list[str] = []
        for layer, members in members_of.items():
            for i, tails in zip(rng.permutation(len(others[layer])), members.values(), strict=False):
                control += [others[layer][int(i)] + tail for tail in tails]
        controls.append(tuple(control))
    return controls, None
