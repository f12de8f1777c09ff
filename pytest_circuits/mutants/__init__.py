"""Mutants: small, named, seeded changes to a model or to the labels of a task. One file each, plus one line in `OPERATORS`.

Importing this package imports no torch. `pytest_circuits.mutation` runs the claims of a spec on mutants.

Facts of an operator, in the `FACTS` of its file, or arguments of `mutant` for one from elsewhere: `of`, one of `TARGETS`; its options and
their defaults; `equivalent`, whether it must change no answer; `donor`, whether it takes weights of an earlier checkpoint.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import OptionError, suggestion
from ..registry import Registry

TARGETS = ("head", "mlp", "layer", "pair", "weights", "labels")
"""Targets: a head, an MLP, a layer, two heads (one in the circuit, one outside), all layers, or the task's labels."""

OPERATORS = Registry(
    "mutant",
    "pytest_circuits.mutants",
    {
        "zero-head": "pytest_circuits.mutants.zero_head:zero_head",
        "shuffle-head": "pytest_circuits.mutants.shuffle_head:shuffle_head",
        "swap-heads": "pytest_circuits.mutants.swap_heads:swap_heads",
        "permute-heads": "pytest_circuits.mutants.permute_heads:permute_heads",
        "reinit-mlp": "pytest_circuits.mutants.reinit_mlp:reinit_mlp",
        "undo-layer": "pytest_circuits.mutants.undo_layer:undo_layer",
        "round": "pytest_circuits.mutants.round_weights:round_weights",
        "noise": "pytest_circuits.mutants.noise:noise",
        "swap-labels": "pytest_circuits.mutants.swap_labels:swap_labels",
        "shuffle-labels": "pytest_circuits.mutants.shuffle_labels:shuffle_labels",
    },
)


def mutant(name: str, *, of: str, equivalent: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a mutant operator, which `--circuits-mutate=NAME` can then name.

    `of`, one of `TARGETS`, decides the arguments: `function(surgery, *units, **options)` changes weights through a
    `surgery.Surgery` (one unit for head and mlp, two for pair, a number for layer, none for weights); of `labels`,
    `function(task, random, **options)` returns another `Task`. Keyword-only parameters with defaults are its options.
    `equivalent`: it must change no answer, so it counts neither for nor against a spec. Raises `OptionError`.
    """
    if of not in TARGETS:
        raise OptionError(f"mutant {name!r}: unknown target {of!r}; {suggestion(of, TARGETS)}")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        options = [p for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
        without_default = [p.name for p in options if p.default is p.empty]
        if without_default:
            raise OptionError(f"mutant {name!r}: the option {without_default[0]!r} needs a default")
        OPERATORS.add(name, function, of=of, equivalent=equivalent, options={p.name: p.default for p in options})
        return function

    return register


def target_of(name: str) -> str:
    """The target of an operator. Raises `OptionError` for an entry point that `mutant` did not decorate."""
    if name not in OPERATORS.builtin:
        OPERATORS.get(name)  # refuses unknown names
    of = OPERATORS.fact(name, "of")
    if of is None:
        raise OptionError(f"mutant {name!r} has no target; decorate it with pytest_circuits.mutants.mutant")
    return str(of)
