"""Refusal of models that cannot be measured: compiled ones, where hooks do not act, and quantised ones."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import ModelError


def plain_state(model: nn.Module) -> dict[str, Tensor]:
    """All parameters and buffers by name. Raises `ModelError` where an entry is not a plain tensor (quantised, packed)."""
    state: dict[str, Any] = model.state_dict()
    for name, entry in state.items():
        if not isinstance(entry, Tensor) or entry.is_quantized:
            what = "a quantised tensor" if isinstance(entry, Tensor) else f"a {type(entry).__name__}"
            raise ModelError(
                f"this {type(model).__name__} is quantised: {name} is {what}, and quantised weights cannot be measured; "
                "load the model in float32, bfloat16 or float16"
            )
    return state


def refuse_compiled(model: nn.Module) -> None:
    """Raise `ModelError` where a module runs compiled code, in which hooks do not act."""
    for name, module in model.named_modules():
        how = _compiled(module)
        if how:
            who = f"{name} of this {type(model).__name__}" if name else f"this {type(model).__name__}"
            raise ModelError(f"{who} is compiled, and hooks do not act inside compiled code, so it cannot be measured; {how}")


def _compiled(module: nn.Module) -> str | None:
    """How to get the plain module back; None for a module that is not compiled."""
    kind = type(module)
    if kind.__module__.startswith("torch._dynamo") and "_orig_mod" in module._modules:
        return "give the module that torch.compile was called with (its _orig_mod)"
    if module.__dict__.get("_compiled_call_impl") is not None:
        return "open a copy of the model on which module.compile() was not called"
    if hasattr(module.__dict__.get("forward"), "_torchdynamo_orig_callable"):
        return "remove the compiled forward (del module.forward), or open another copy of the model"
    return None


def content_key(state: dict[str, Tensor]) -> tuple[Any, ...] | None:
    """A key that differs when one of these tensors may have changed, much cheaper than reading all bytes.

    It holds the tensors' addresses and versions, which count changes in place, and the products of their rows with a fixed vector, since
    changes through `.data` are not counted. None for inference tensors, which have no versions: then nothing may be concluded.
    """
    entries: list[Any] = []
    for name, tensor in sorted(state.items()):
        if tensor.is_inference():
            return None
        entries.append((name, tensor.data_ptr(), tensor._version, tensor.dtype, tuple(tensor.shape), tensor.stride(), _probe(tensor)))
    return tuple(entries)


def _probe(tensor: Tensor) -> bytes:
    data = tensor.detach()
    if data.dim() > 1 and data.is_floating_point():
        rows = data.reshape(-1, data.shape[-1])
        vector = torch.linspace(0.5, 1.5, rows.shape[1], dtype=torch.float32, device=data.device).to(data.dtype)
        data = rows @ vector
    return hashlib.sha256(data.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).digest()
