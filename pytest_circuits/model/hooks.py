"""Temporary hooks on a model's modules, and the state that a measurement needs. Everything is restored on every path out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import MeasurementError
from .model_guards import refuse_compiled

Edit = Callable[[Tensor], Tensor | None]


@dataclass(frozen=True, eq=False)
class Frame:
    """One measurement of a model, from its start to its end."""

    model: nn.Module


class _Frames(threading.local):
    def __init__(self) -> None:
        self.open: list[Frame] = []


_FRAMES = _Frames()


def current_frame(model: nn.Module) -> Frame | None:
    """The innermost running measurement of this model in this thread; only its hooks act."""
    return next((frame for frame in reversed(_FRAMES.open) if frame.model is model), None)


class Hooks:
    """Hooks that live as long as a `with` block.

    An edit gets a tensor and returns its replacement, or None to leave it. Edits of one place run in the order
    in which they were added. On a normal exit every hook must have fired at least once, else `MeasurementError` is raised,
    since nothing was measured. Forwards of another measurement of the same model (from inside a user's hook, or in
    another thread) are not edited.
    """

    def __init__(self) -> None:
        self._frame = _FRAMES.open[-1] if _FRAMES.open else None
        self._handles: list[Any] = []
        self._fired: dict[str, int] = {}

    def __enter__(self) -> Hooks:
        return self

    def on_input(self, module: nn.Module, edit: Edit, label: str) -> None:
        """Edit the first argument of a module, positional or `hidden_states`."""
        key = self._label(label)

        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if not self._is_active():
                return None
            self._fired[key] += 1
            x = args[0] if args else kwargs["hidden_states"]
            new = edit(x)
            if new is None:
                return None
            return ((new, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": new})

        self._handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))

    def on_output(self, module: nn.Module, edit: Edit, label: str) -> None:
        """Edit a module's output, or the first element of a tuple output."""
        key = self._label(label)

        def hook(_module: nn.Module, _args: Any, output: Any) -> Any:
            if not self._is_active():
                return None
            self._fired[key] += 1
            new = edit(output[0] if isinstance(output, tuple) else output)
            if new is None:
                return None
            return (new, *output[1:]) if isinstance(output, tuple) else new

        self._handles.append(module.register_forward_hook(hook))

    def on_logits(self, model: nn.Module, edit: Edit, label: str) -> None:
        """Edit the logits that a causal LM returns."""
        key = self._label(label)

        def hook(_module: nn.Module, _args: Any, output: Any) -> None:
            if not self._is_active():
                return
            self._fired[key] += 1
            new = edit(output.logits)
            if new is not None:
                output.logits = new

        self._handles.append(model.register_forward_hook(hook))

    def _is_active(self) -> bool:
        return self._frame is None or current_frame(self._frame.model) is self._frame

    def _label(self, label: str) -> str:
        key = label if label not in self._fired else f"{label} ({len(self._fired)})"
        self._fired[key] = 0
        return key

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None) -> None:
        for handle in self._handles:
            handle.remove()
        silent = [label for label, times in self._fired.items() if not times]
        if kind is None and silent:
            raise MeasurementError(
                f"hooks never fired: {', '.join(silent[:4])}; the model does not call their modules, so nothing was measured"
            )


@contextmanager
def measuring(model: nn.Module) -> Iterator[None]:
    """Evaluation mode and frozen parameters during a measurement; every flag is restored afterwards.

    Raises `ModelError` for a compiled model.
    """
    refuse_compiled(model)
    modes = [(module, module.training) for module in model.modules()]
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    frame = Frame(model)
    _FRAMES.open.append(frame)
    try:
        for module, _ in modes:
            module.training = False
        for parameter, _ in flags:
            parameter.requires_grad_(False)
        device = next((p.device.type for p, _ in flags), "cpu")
        with torch.inference_mode(False), torch.autocast(device, enabled=False):
            yield
    finally:
        _FRAMES.open.remove(frame)
        for module, mode in modes:
            module.training = mode
        for parameter, flag in flags:
            parameter.requires_grad_(flag)
