"""Changing the weights of an opened model in place, and restoring them bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from zlib import crc32

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from ..core.units import layer_of
from ..errors import MutationError
from ..model.hooks import measuring
from ..model.layout import Anatomy
from ..model.projections import in_out
from . import target_of
from .base import Mutation, applied

Layer = dict[str, Tensor]


class Surgery:
    """The model as operators see it: views of weights that may be changed in place. Originals are copied at their first use.

    `donor`, where there is one, gives by layer number that layer's tensors in an earlier checkpoint.
    """

    def __init__(self, model: nn.Module, anatomy: Anatomy, seed: int, donor: dict[int, Layer] | None = None) -> None:
        self.model, self.anatomy, self.donor = model, anatomy, donor
        self._generator = torch.Generator().manual_seed(seed)
        self._originals: dict[int, tuple[Tensor, Tensor]] = {}

    def edit(self, parameter: Tensor) -> Tensor:
        """The data of a parameter, to be changed in place. A copy is stored on the CPU, so only changed parameters take memory twice."""
        if parameter.is_inference():
            raise MutationError("the model was made in inference mode, so its weights cannot be changed; load it outside inference_mode")
        data = parameter.detach()
        if id(parameter) not in self._originals:
            self._originals[id(parameter)] = (parameter, data.to("cpu", copy=True))
        return data

    def restore(self) -> None:
        """Restore every tensor. An interruption is delayed until all are restored."""
        interruption: KeyboardInterrupt | None = None
        while self._originals:
            try:
                key, (parameter, original) = next(iter(self._originals.items()))
                parameter.detach().copy_(original)
                del self._originals[key]
            except KeyboardInterrupt as stop:
                interruption = stop
        if interruption is not None:
            raise interruption

    @property
    def changed(self) -> bool:
        """Whether any weight differs from its original."""
        return any(not _same(parameter.detach(), original) for parameter, original in self._originals.values())

    def head(self, name: str) -> Tensor:
        """The rows of the output projection that read a head, [head_dim, d_model]."""
        self.anatomy.universe.index([name])
        if not name.partition("H")[2]:
            raise MutationError(f"{name} is not a head")
        module, size = self.anatomy.blocks[layer_of(name)].output, self.anatomy.head_dim
        self.edit(module.weight)  # type: ignore[arg-type]
        start = int(name.partition("H")[2]) * size
        return in_out(module).detach()[start : start + size]

    def matrices(self) -> Iterator[tuple[Tensor, int]]:
        """All weight matrices of the layers, each once, with the axis of their inputs."""
        for block in self.anatomy.blocks:
            for module in block.module.modules():
                for parameter in module.parameters(recurse=False):
                    if parameter.dim() > 1 and id(parameter) not in self._originals:
                        yield self.edit(parameter), 0 if isinstance(module, Conv1D) else -1

    def normal(self, shape: torch.Size) -> Tensor:
        """Standard normal numbers, float32 on the CPU, so that they are the same on every device."""
        return torch.randn(shape, generator=self._generator)

    def derangement(self, n: int) -> Tensor:
        """A random permutation of 0 … n−1 without fixed points: one cycle; [n]."""
        order = torch.randperm(n, generator=self._generator)
        permutation = torch.empty_like(order)
        permutation[order] = order.roll(-1)
        return permutation

    def logits(self) -> Tensor:
        """Logits on a few tokens, float32 or wider; [1, T, vocabulary]."""
        embedding: Any = self.model.get_input_embeddings()  # type: ignore[operator]
        count = len(embedding.weight)
        ids = (torch.arange(8, device=embedding.weight.device) * 7 + 1).remainder(count)[None]
        with measuring(self.model):
            logits: Tensor = self.model(input_ids=ids, use_cache=False).logits
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def reinitialise(self, *modules: nn.Module) -> None:
        """New initial weights, drawn as the architecture draws them, on the CPU and without touching the global random state.

        Raises `MutationError` for an architecture without an initialisation.
        """
        start = getattr(self.model, "_init_weights", None)
        seed = int(torch.randint(2**62, (1,), generator=self._generator))
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # of the CPU alone
            for module in modules:
                fresh = _unmarked(deepcopy(module).to("cpu"))
                if callable(start):
                    for part in fresh.modules():
                        start(part)
                for old, new in zip(module.parameters(), fresh.parameters(), strict=True):
                    self.edit(old).copy_(new.detach())
        if not self.changed:
            raise MutationError(f"{type(self.model).__name__} does not define an initialisation")

    def transplant(self, layer: int) -> None:
        """Give a layer the tensors of the donor's. Raises `MutationError` where they do not fit."""
        donated = (self.donor or {}).get(layer)
        parameters = dict(self.anatomy.blocks[layer].module.named_parameters())
        if donated is None or set(donated) != set(parameters) or any(donated[name].shape != parameters[name].shape for name in parameters):
            raise MutationError(f"the earlier checkpoint has no layer {layer} of the same shape")
        for name, parameter in parameters.items():
            self.edit(parameter).copy_(donated[name])


def layer_tensors(subject: Any, layers: list[int]) -> dict[int, Layer]:
    """Copies of some layers' parameters, to be a donor."""
    blocks = subject.anatomy.blocks
    return {
        i: {name: p.detach().to("cpu", copy=True) for name, p in blocks[i].module.named_parameters()} for i in layers if i < len(blocks)
    }


@contextmanager
def operated(subject: Any, mutation: Mutation, donor: dict[int, Layer] | None = None) -> Iterator[None]:
    """Within the block, the subject's model is the mutant; on every path out it is restored bit for bit.

    Raises `MutationError` for an operator that does not fit the model, raises anything, or leaves the model as it is.
    """
    if target_of(mutation.operator) == "labels":
        raise MutationError(f"{mutation.operator} changes a task, not a model")
    surgery = Surgery(subject.model, subject.anatomy, mutation.seed, donor)
    try:
        with torch.no_grad():
            applied(mutation, surgery, *mutation.units)
            if not surgery.changed:
                raise MutationError(f"{mutation.name} does not change the model: the weights are equal already")
        yield
    finally:
        with torch.no_grad():
            surgery.restore()


def weight_digests(model: nn.Module) -> dict[str, tuple[int, int]]:
    """The identity of each parameter, and a checksum of its bytes."""
    return {name: (id(p), crc32(_bytes(p.detach()).numpy().data)) for name, p in model.named_parameters()}


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Parameters that changed, appeared or disappeared."""
    return sorted(name for name in {*before} | {*after} if before.get(name) != after.get(name))


def _same(first: Tensor, second: Tensor) -> bool:
    return torch.equal(_bytes(first), _bytes(second))


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8)


def _unmarked(module: nn.Module) -> nn.Module:
    """Without the marks that transformers leaves on modules and weights that it initialised or loaded."""
    for part in module.modules():
        part.__dict__.pop("_is_hf_initialized", None)
    for parameter in module.parameters():
        parameter.__dict__.pop("_is_hf_initialized", None)
    return module
