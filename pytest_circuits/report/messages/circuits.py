"""How well circuits are supported, and what is missing."""

from __future__ import annotations

from ..model import CircuitEvidence

_MISSING = {
    "component": {
        "necessity": "a certified necessity",
        "faithfulness": "certified sufficiency (definition: relative, control: none) within bounds around 1, in [0.5, 1.5], under {more}",
        "stability": "a certified stability of at least 0.5, or over chance",
        "specificity": "a certified specificity",
    },
    "neuron": {
        "necessity": "a certified neuron_completeness of at most 0.5",
        "faithfulness": "certified neuron_faithfulness within bounds around 1, in [0.5, 1.5], under {more}",
        "stability": "stability, which no property measures for neuron circuits",
        "specificity": "specificity, which no property measures for neuron circuits",
    },
}


def missing(kind: str, level: str, ablations: int) -> str:
    """What a circuit of this level lacks; `ablations`: how many more kinds of ablation it has to be faithful under."""
    return _MISSING[level][kind].format(more=f"{ablations} more kind{'s' * (ablations != 1)} of ablation")


def line(circuit: CircuitEvidence, next_tier: str) -> str:
    """A circuit in one line: tier, what it is, what is certified, what the next tier asks for."""
    evidence = circuit.evidence
    kinds = [kind for kind in ("necessity", "stability", "specificity") if getattr(evidence, kind)]
    if evidence.faithfulness:
        kinds.insert(int("necessity" in kinds), f"faithful under {' and '.join(evidence.faithfulness)}")
    wanted = f"; for {next_tier}: {' and '.join(circuit.missing)}" if circuit.missing else ""
    refuted = f"; refuted: {', '.join(circuit.refuted)}" if circuit.refuted else ""
    return (
        f"{circuit.tier}: a circuit of {circuit.task} in {circuit.model} ({circuit.attribution}, {_cut(circuit)}): {', '.join(kinds)}"
        f"{wanted}{refuted}"
    )


def _cut(circuit: CircuitEvidence) -> str:
    if circuit.level == "neuron":
        return f"{circuit.neurons} neurons"
    return f"{circuit.size if circuit.threshold is None else circuit.threshold}, P = {circuit.p:g}"
