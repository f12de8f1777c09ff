"""Planted models, and oracles for them that share no code with the engine: weight edits and plain hooks on Hugging Face forwards."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor

from models.planted import CIRCUITS, Planted, plant
from models.planted import induction as induction_circuit
from models.planted.host import layers_of

SOFT = "induction-soft"  # attention that is not saturated: the truth is a formula
NAMES = (*CIRCUITS, SOFT)
TOLERANCE = 1e-4  # of effects that are 16 or 32 logits


@cache
def planted(name: str) -> Planted:
    """The planted model of that name, built once."""
    return induction_circuit.build(sharpness=6.0) if name == SOFT else plant(name)


def universe(case: Planted) -> tuple[str, ...]:
    """All component names."""
    layers = layers_of(case.model)
    heads = len(layers[0].q)
    return tuple(f"L{i}{tail}" for i in range(len(layers)) for tail in [*(f"H{h}" for h in range(heads)), "MLP"])


def expected(case: Planted, effects: dict[str, float]) -> np.ndarray:
    """Effects as a row [components]; 0 where nothing is said."""
    assert set(effects) <= set(universe(case))
    return np.array([effects.get(name, 0.0) for name in universe(case)])


@cache
def shapes(name: str, which: str = "clean") -> tuple[tuple[list[int], Tensor], ...]:
    """(rows, token ids [rows, T]) of a task's prompts, those of one length together."""
    case, found = planted(name), {}
    encoded = [case.tokenizer(getattr(pair, which)).input_ids for pair in case.task]
    for row, ids in enumerate(encoded):
        found.setdefault(len(ids), []).append(row)
    return tuple((rows, torch.tensor([encoded[row] for row in rows])) for _, rows in sorted(found.items()))


def gathered(name: str, parts: list[Tensor]) -> Tensor:
    """Results of the shapes, in the order of the task."""
    order = torch.tensor([row for rows, _ in shapes(name) for row in rows])
    joined = torch.cat(parts)
    return torch.empty_like(joined).index_copy_(0, order, joined)


def logits(name: str, model=None) -> Tensor:
    """Logits at the last position of every clean prompt by plain forwards; [n, vocabulary]."""
    model = model or planted(name).model
    with torch.no_grad():
        return gathered(name, [model(input_ids=ids, use_cache=False).logits[:, -1] for _, ids in shapes(name)])


def answers(case: Planted) -> tuple[Tensor, Tensor]:
    """Token ids of answers and of foils."""
    vocabulary = case.tokenizer.get_vocab()
    return torch.tensor([vocabulary[p.answer] for p in case.task]), torch.tensor([vocabulary[p.foils[0]] for p in case.task])


def differences(case: Planted, found: Tensor) -> np.ndarray:
    """Answer logit minus foil logit; [n]."""
    answer, foil = (x[:, None] for x in answers(case))
    return (found.gather(1, answer) - found.gather(1, foil))[:, 0].double().numpy()


def operated(case: Planted, names) -> torch.nn.Module:
    """A copy of the model with components or neurons cut out of its weights."""
    twin = copy.deepcopy(case.model)
    layers = layers_of(twin)
    for name in names:
        layer, kind, index = parsed(name)
        at = layers[layer]
        if kind == "H":
            at.o[:, index] = 0
        elif kind == "N":
            at.down[:, index] = 0
        else:
            at.down.zero_()
            if getattr(at.mlp_output, "bias", None) is not None:
                at.mlp_output.bias.detach().zero_()
    return twin


def parsed(name: str) -> tuple[int, str, int]:
    """(layer, H, N or M, index)."""
    kind = next(letter for letter in "HMN" if letter in name[1:])
    layer, index = name[1:].split(kind)
    return int(layer), kind, int(index) if kind != "M" else 0


@contextmanager
def hooked(model, edits: dict[str, Callable[[Tensor], Tensor | None]]):
    """Plain hooks on components: an edit sees the head's slice of the output projection's input, or the MLP's output."""
    layers, handles = layers_of(model), []

    def on_head(at, index, edit):
        size = at.q.shape[1]
        columns = slice(index * size, (index + 1) * size)

        def hook(_module, args):
            new = edit(args[0][..., columns])
            if new is None:
                return None
            changed = args[0].clone()
            changed[..., columns] = new
            return (changed,)

        return at.output.register_forward_pre_hook(hook)

    for name, edit in edits.items():
        layer, kind, index = parsed(name)
        at = layers[layer]
        handles.append(
            on_head(at, index, edit) if kind == "H" else at.mlp_output.register_forward_hook(lambda _m, _a, y, edit=edit: edit(y))
        )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def recorded(model, ids: Tensor, names) -> dict[str, Tensor]:
    """Outputs of components on a batch of prompts."""
    kept: dict[str, Tensor] = {}
    with torch.no_grad(), hooked(model, {name: (lambda x, name=name: kept.__setitem__(name, x.clone())) for name in names}):
        model(input_ids=ids, use_cache=False)
    return kept


@cache
def everything(name: str) -> tuple[tuple[dict[str, Tensor], dict[str, Tensor]], ...]:
    """Outputs of all components on the clean and on the corrupt prompts, for each shape."""
    case = planted(name)
    both = zip(shapes(name), shapes(name, "corrupt"), strict=True)
    return tuple((recorded(case.model, a, universe(case)), recorded(case.model, b, universe(case))) for (_, a), (_, b) in both)


def replaced(name: str, names, kind: str, share: float = 1.0, held=()) -> np.ndarray:
    """Metric [n] with components moved a `share` of the way to zero or to their corrupt value, and others held at their clean value."""
    case, parts = planted(name), []
    for (_, ids), (clean, corrupt) in zip(shapes(name), everything(name), strict=True):
        targets = {unit: corrupt[unit] if kind == "counterfactual" else torch.zeros_like(clean[unit]) for unit in names}
        edits = {unit: (lambda x, target=target: x + share * (target - x)) for unit, target in targets.items()}
        edits |= {unit: (lambda _x, value=clean[unit]: value) for unit in held}
        with torch.no_grad(), hooked(case.model, edits):
            parts.append(case.model(input_ids=ids, use_cache=False).logits[:, -1])
    return differences(case, gathered(name, parts))
