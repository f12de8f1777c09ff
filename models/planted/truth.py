"""What is known about a planted circuit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from pytest_circuits.tasks import Task

Effects = dict[str, float]


@dataclass(frozen=True)
class Joint:
    """Several components replaced together: the effect on the metric, m(replaced) − m(intact)."""

    units: tuple[str, ...]
    kind: str
    effect: float


@dataclass(frozen=True)
class Truth:
    """Ground truth, the same on every example of the task. The metric is the logit difference of answer and foil.

    intact: the metric of the intact model.
    causal: the components that do the work; dead: those with zero output weights, whose scores are exactly 0.
    zero, counterfactual: exact effect m(component replaced) − m(intact) of replacing one component with zero, or with its
        value on the corrupt prompt; components that are not named: 0.
    gradient, atp, relp, eap_ig, ig_activations: what these methods give in theory (signed; integrated gradients at 8
        midpoints). Where they differ from the exact effects, the method is wrong, and `notes` says why.
    edges: score of each edge that carries anything, by "upstream>reader" (readers: L1H2.q, L1MLP, logits), as EAP gives it.
    joint: effects of sets.
    neurons: by answer, the one neuron that writes it: alone in being active on such an example, with the effects of its MLP.
    dead_neurons: those with a zero output column.
    """

    intact: float
    causal: tuple[str, ...]
    dead: tuple[str, ...]
    zero: Effects
    counterfactual: Effects
    gradient: Effects
    atp: Effects
    relp: Effects
    eap_ig: Effects
    ig_activations: Effects
    edges: Effects
    joint: tuple[Joint, ...] = ()
    neurons: dict[str, str] = field(default_factory=dict)
    dead_neurons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For truth.json."""
        return asdict(self)


@dataclass(frozen=True)
class Planted:
    """A planted model with its tokenizer, the task that it does without a mistake, and the truth about it."""

    name: str
    model: Any
    tokenizer: Any
    task: Task
    truth: Truth


def components(layers: int, heads: int) -> tuple[str, ...]:
    """All component names in order."""
    return tuple(f"L{layer}{tail}" for layer in range(layers) for tail in [*(f"H{h}" for h in range(heads)), "MLP"])


def neurons(layers: int, count: int) -> tuple[str, ...]:
    """All neuron names in order, `count` a layer."""
    return tuple(f"L{layer}N{i}" for layer in range(layers) for i in range(count))


def all_but(names: Iterable[str], causal: Iterable[str]) -> tuple[str, ...]:
    """The names that are not causal."""
    taken = set(causal)
    return tuple(name for name in names if name not in taken)
