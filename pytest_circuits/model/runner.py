"""Running a model: logits at the answer only, counted calls, and forwards that skip layers whose output is known."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import MeasurementError, OptionError
from .hooks import Hooks, current_frame
from .layout import Anatomy
from .module_trace import unembedding_of
from .precision import upcast
from .sites import Site

ELEMENTS = 2**27  # activations of one batch, in numbers of the residual stream over all layers
LARGEST_BATCH = 128


class Runner:
    """Runs an opened model. `forwards` and `backwards` count its batched calls.

    `prompts_forward` and `prompts_backward` count the prompts in those calls; a call that skips layers counts
    each prompt by the share of layers that it runs.
    """

    def __init__(self, model: nn.Module, anatomy: Anatomy) -> None:
        self.model, self.anatomy = model, anatomy
        self.forwards = self.backwards = 0
        self.prompts_forward = self.prompts_backward = 0.0
        self._run_share = 1.0
        self._takes_logits_to_keep = "logits_to_keep" in inspect.signature(model.forward).parameters

    @property
    def dtype(self) -> torch.dtype:
        """The model's precision."""
        return next(self.model.parameters()).dtype

    @property
    def embedding(self) -> nn.Module:
        """The token embedding."""
        return self.model.get_input_embeddings()  # type: ignore[operator, no-any-return]

    @property
    def device(self) -> torch.device:
        """The device that token ids must be on."""
        return self.embedding.weight.device  # type: ignore[return-value]

    @property
    def vocabulary(self) -> int:
        """How many tokens the model embeds."""
        return int(self.embedding.weight.shape[0])  # type: ignore[index]

    def batch_size(self, wanted: int | None, length: int) -> int:
        """How many prompts of `length` tokens to run at once: `wanted`, or as many as a fixed budget of activations allows."""
        if wanted is not None:
            if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
                raise OptionError(f"batch_size must be a whole number of at least 1, got {wanted!r}")
            return wanted
        per_prompt = max(1, length) * self.anatomy.width * len(self.anatomy.blocks)
        return max(1, min(LARGEST_BATCH, ELEMENTS // per_prompt))

    def logits(self, ids: Tensor, tail: int) -> Tensor:
        """Logits of the last `tail` positions, float32 or wider; [batch, tail, vocabulary]."""
        self.forwards += 1
        self.prompts_forward += len(ids) * self._run_share
        keep = {"logits_to_keep": tail} if self._takes_logits_to_keep else {}
        with self._contiguous_tail():
            out: Tensor = self.model(input_ids=ids, use_cache=False, **keep).logits[:, -tail:]
        return upcast(out)

    @contextmanager
    def _contiguous_tail(self) -> Iterator[None]:
        """Make the unembedding's input contiguous: with a slice of positions and a frozen weight torch multiplies prompt by prompt."""
        unembedding = unembedding_of(self.anatomy) if self._takes_logits_to_keep else None
        if unembedding is None:
            yield
            return
        handle = unembedding.register_forward_pre_hook(_contiguous)
        try:
            yield
        finally:
            handle.remove()

    def gradients(self, value: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
        """∂value/∂input of each input, in float32 or wider; zeros where value does not depend on it.

        Nothing else gets a gradient, neither a parameter nor a tensor in a user's hook. Raises `MeasurementError`
        when value depends on none of them.
        """
        self.backwards += 1
        self.prompts_backward += len(inputs[0]) * self._run_share
        gradients = torch.autograd.grad(value, inputs, allow_unused=True) if value.requires_grad else (None,) * len(inputs)
        if all(g is None for g in gradients):
            raise MeasurementError("no gradient flows from the metric back to the units: does a hook on the model detach what it returns?")
        return [upcast(torch.zeros_like(x) if g is None else g) for x, g in zip(inputs, gradients, strict=True)]

    def activations(self, ids: Tensor, sites: list[Site]) -> list[Tensor]:
        """Activations at each site, no gradients: [batch, T, units, width] in order."""
        activations: dict[int, Tensor] = {}
        with torch.no_grad(), Hooks() as hooks:
            for i, site in enumerate(sites):
                site.hook(hooks, lambda x, i=i: activations.__setitem__(i, x.detach().clone()))  # type: ignore[misc]
            self.logits(ids, 1)
        return [activations[i] for i in range(len(sites))]

    def residuals(self, ids: Tensor, tail: int) -> tuple[list[Tensor], Tensor]:
        """The residual stream after each layer [batch, T, d_model], and the logits, of an intact forward without gradients."""
        streams: list[Tensor] = []
        with torch.no_grad(), Hooks() as hooks:
            for block in self.anatomy.blocks:
                hooks.on_output(block.module, lambda x: streams.append(x.detach().clone()), f"layer {block.index}")
            logits = self.logits(ids, tail)
        if len(streams) != len(self.anatomy.blocks):
            raise MeasurementError(f"{len(self.anatomy.blocks)} layers were called {len(streams)} times in one forward")
        return streams, logits

    @property
    def can_skip(self) -> bool:
        """Whether layers may be skipped: not where a user's hooks are attached, which would not see the call."""
        return not any(
            m._forward_hooks or m._forward_pre_hooks or "forward" in m.__dict__ for b in self.anatomy.blocks for m in b.module.modules()
        )

    @contextmanager
    def starting_at(self, layer: int, residual: Tensor | None) -> Iterator[None]:
        """Within the block, forwards skip the layers below `layer` and start from `residual` (the stream after layer−1)."""
        skipped = self.anatomy.blocks[:layer]
        frame, share = current_frame(self.model), self._run_share

        def skip(module: nn.Module, last: bool) -> Callable[..., Any]:
            def forward(*args: Any, **kwargs: Any) -> Any:
                if current_frame(self.model) is not frame:  # another measurement, from inside a user's hook
                    return type(module).forward(module, *args, **kwargs)
                stream = residual if last else args[0] if args else kwargs["hidden_states"]
                return (stream,) if self.anatomy.family.layer_tuple else stream

            return forward

        try:
            for block in skipped:
                block.module.forward = skip(block.module, block.index == layer - 1)
            self._run_share = 1 - len(skipped) / len(self.anatomy.blocks)
            yield
        finally:
            self._run_share = share
            for block in skipped:
                block.module.__dict__.pop("forward", None)


def _contiguous(_module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x.contiguous() if isinstance(x, Tensor) else x for x in args)
