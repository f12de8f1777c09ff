"""Series of models, and sampling until a claim is settled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pytest_circuits.core.verdict import CERTIFIED, INCONCLUSIVE, REFUTED, Bound, Estimate, decide

from ..populations import UNIVERSE
from ..simulate import CONFIDENCE, HAIR, Rng, Scenario, Tally
from ..world import Behaviour, Intervention, Sample, World, plain

N = UNIVERSE.components


def _roles(models: int) -> Scenario:
    """Importance of each model scatters about what all have in common; the truth is the mean ρ of pairs of models without noise."""
    common = np.random.default_rng(41).normal(size=N)

    def importance(rng: Rng, many: int) -> np.ndarray[Any, Any]:
        return np.exp(0.7 * (common + rng.normal(size=(many, N))))

    ranks = np.argsort(np.argsort(importance(np.random.default_rng(42), 3000)), axis=-1).astype(float)
    rho = np.corrcoef(ranks)
    truth = float(rho[np.triu_indices(len(rho), 1)].mean())

    def series(rng: Rng, n: int) -> Mapping[str, World]:
        made = {}
        for i, c in enumerate(importance(rng, models)):
            rise = c * np.exp(0.5 * rng.normal(size=(n, N)))
            gradient = np.exp(rng.normal(size=(n, N)))

            def behave(done: Intervention, rise: Any = rise) -> Behaviour:
                loss = rise @ ~done.live
                return Behaviour(np.ones(n, bool), 1 - loss, -1 - loss)

            made[f"m{i}"] = World(UNIVERSE, {"t": Sample({"weight_gradient": gradient}, behave)}, f"weights {i}")
        return made

    return Scenario(
        "role_stability", f"{models} models", {"task": "t", "resamples": 200}, series, lambda study, found: truth, 0.2, (64,), 6
    )


def _trajectory() -> list[Scenario]:
    curve = (0.5, 0.7, 0.9, 0.75)

    def series(rng: Rng, n: int) -> Mapping[str, World]:
        made = {}
        for i, share in enumerate(curve):
            answers = rng.random(n) < share
            sample = Sample(np.ones((n, N)), lambda done, answers=answers: plain(answers))
            made[f"m{i}"] = World(UNIVERSE, {"t": sample}, f"weights {i}")
        return made

    def truth(value: float) -> Any:
        def of(study: Any, found: Estimate) -> float:
            return value

        return of

    of = {"of": {"accuracy": {"task": "t"}}}
    return [
        Scenario("trajectory", "no_drop of accuracy, four models", {**of, "shape": "no_drop"}, series, truth(0.15), 0.2),
        Scenario("trajectory", "emerges_by", {**of, "shape": "emerges_by", "at": 1.0}, series, truth(0.7), 0.2),
    ]


def until_settled(studies: int, first: int = 32, most: int = 256, share: float = 0.8, seed: int = 0) -> Tally:
    """Accuracy, evaluated at each planned number of examples until the claim is settled; false verdicts at any look count."""
    from pytest_circuits.claims.sequential import confidence_per_look, look_sizes
    from pytest_circuits.properties import PROPERTIES

    looks = look_sizes(first, most)
    confidence = confidence_per_look(PROPERTIES.get("accuracy"), CONFIDENCE, len(looks))
    tally = Tally("accuracy", f"evaluated at {', '.join(map(str, looks))} examples until it is settled", most, gap=0.15)
    for i in range(studies):
        answers = np.random.default_rng([seed, i]).random(most) < share

        def settled(bound: Bound, answers: Any = answers) -> str:
            for n in looks:
                world = World(UNIVERSE, {"t": Sample(np.ones((n, N)), lambda done, n=n: plain(answers[:n]))})
                verdict = decide(world.ask("accuracy", task="t", split="in_sample", confidence=confidence), bound).kind
                if verdict != INCONCLUSIVE:
                    break
            return verdict

        tally.studies += 1
        tally.low_above += settled(Bound(at_least=share + HAIR)) == CERTIFIED
        tally.high_below += settled(Bound(at_least=share - HAIR)) == REFUTED
        tally.powerful += settled(Bound(at_least=share - tally.gap)) == CERTIFIED
        tally.truth += share
    tally.kind = "betting interval over groups, the error spent over the looks"
    return tally


def scenarios() -> list[Scenario]:
    """All of this family."""
    return [_roles(4), _roles(10), *_trajectory()]
