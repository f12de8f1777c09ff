"""Calls of the modules of an unknown model: those inside its first layer and outside all layers, with inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ModelError
from ..model.config_sizes import ModelSizes
from ..model.projections import in_out

TOKENS = 5


@dataclass(frozen=True)
class ModuleCall:
    """One call of a module: its path, its first input tensor `x` and its first output tensor `y`; [1, T, …]."""

    path: str
    module: nn.Module
    x: Tensor
    y: Tensor
    output: Tensor  # the output itself, as it is after the forward; `y` is a copy

    @property
    def in_place(self) -> bool:
        """Whether the output was changed in place later."""
        return not torch.equal(self.output, self.y)

    @property
    def parent(self) -> str:
        """The path of the parent module."""
        return self.path.rpartition(".")[0]

    @property
    def is_projection(self) -> bool:
        """Whether the module multiplies its features by a matrix."""
        weight = getattr(self.module, "weight", None)
        if not isinstance(weight, Tensor) or weight.dim() != 2 or not self.x.is_floating_point():
            return False
        return tuple(in_out(self.module).shape) == (self.x.shape[-1], self.y.shape[-1])

    @property
    def is_norm(self) -> bool:
        """Whether the module may be a norm of the residual stream."""
        weight = getattr(self.module, "weight", None)
        one_each = isinstance(weight, Tensor) and weight.dim() == 1 and weight.numel() == self.x.shape[-1]
        return self.x.shape == self.y.shape and (one_each or "norm" in type(self.module).__name__.lower())


@dataclass(frozen=True)
class CallRecord:
    """Calls inside the first layer (paths from there) and outside of all layers (paths from the model), in the order they ended."""

    layers: str
    layer_tuple: bool
    layer: ModuleCall
    last: ModuleCall
    inside: tuple[ModuleCall, ...]
    outside: tuple[ModuleCall, ...]


def record(model: nn.Module, sizes: ModelSizes) -> CallRecord:
    """Run the model on a few tokens and record the calls. Raises `ModelError` for a model that has no list of layers, does not run, or
    attends to later positions.
    """
    from ..model.hooks import measuring
    from ..model.module_trace import random_prompt, without_user_hooks

    path, layers = _layer_list(model, sizes)
    inner = {id(m) for layer in layers for m in layer.modules()}
    watched = [(name, module) for name, module in model.named_modules() if id(module) not in inner and name and module is not layers]
    calls: dict[str, list[ModuleCall]] = {"inside": [], "outside": [], "layers": []}
    tuples: list[bool] = []

    def watch(kind: str, name: str, module: nn.Module) -> Any:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            x, y = next(_tensors((*args, *kwargs.values())), None), next(_tensors(output), None)
            if kind == "layers":
                tuples.append(isinstance(output, tuple))
            if x is not None and y is not None:
                calls[kind].append(ModuleCall(name, module, x.detach().clone(), y.detach().clone(), y))

        return module.register_forward_hook(hook, with_kwargs=True)

    handles: list[Any] = []
    with measuring(model), torch.no_grad(), without_user_hooks(model):
        try:
            ids = random_prompt(model, TOKENS, 0)
            handles += [watch("inside", name, module) for name, module in layers[0].named_modules() if name]
            handles += [watch("outside", name, module) for name, module in watched]
            handles += [watch("layers", f"{path}.{i}", layer) for i, layer in enumerate(layers)]
            logits = model(input_ids=ids, use_cache=False).logits
            for handle in handles:
                handle.remove()
            _check_causal(model, ids, logits, sizes)
        except ModelError:
            raise
        except Exception as problem:
            first = (str(problem).strip().splitlines() or ["no reason given"])[0]
            raise ModelError(
                f"a {sizes.architecture!r} model cannot be run on token ids alone: {first} ({type(problem).__name__})"
            ) from problem
        finally:
            for handle in handles:
                handle.remove()
    if len(calls["layers"]) != len(layers):
        raise ModelError(f"the {len(layers)} entries of {path!r} were called {len(calls['layers'])} times in one forward")
    return CallRecord(path, all(tuples), calls["layers"][0], calls["layers"][-1], tuple(calls["inside"]), tuple(calls["outside"]))


def _tensors(values: Any) -> Iterator[Tensor]:
    """The floating-point tensors among arguments or outputs, in order."""
    for value in values if isinstance(values, (tuple, list)) else (values,):
        if isinstance(value, Tensor) and value.is_floating_point():
            yield value


def _layer_list(model: nn.Module, sizes: ModelSizes) -> tuple[str, nn.ModuleList]:
    """The list of decoder layers: of the length in the config, and with the most parameters."""
    lists = [(name, m) for name, m in model.named_modules() if isinstance(m, nn.ModuleList) and len(m) == sizes.layers]
    if not lists:
        raise ModelError(f"no list of {sizes.layers} layers was found in {type(model).__name__}")
    return max(lists, key=lambda entry: sum(p.numel() for p in entry[1].parameters()))


def _check_causal(model: nn.Module, ids: Tensor, logits: Tensor, sizes: ModelSizes) -> None:
    changed = ids.clone()
    changed[0, -1] = (ids[0, -1] + 1) % int(logits.shape[-1])
    other = model(input_ids=changed, use_cache=False).logits
    gap = float((other[:, :-1] - logits[:, :-1]).abs().max())
    if not gap <= 64 * torch.finfo(logits.dtype).eps * float(logits.abs().max()):
        raise ModelError(
            f"a {sizes.architecture!r} model attends to later positions: changing the last token changes earlier logits by {gap:.3g}. "
            "It is an encoder or a bidirectional model, not a causal LM"
        )
