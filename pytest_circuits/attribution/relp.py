"""RelP: attribution patching on the locally linear replacement model (Jafari et al. 2025)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..errors import OptionError
from ..model.gradients import Rules
from ..model.hooks import Edit, Hooks
from ..model.layout import Anatomy, Block
from ..model.norms import Norm
from ..model.precision import upcast
from .atp import Atp
from .method import Job

FACTS: dict[str, Any] = {
    "levels": ("component", "neuron"),
    "options": {"unpaired": False, "positions": "all"},
    "clean_gradient": True,
    "passes": {"batch": (2, 1)},
}


@dataclass(frozen=True)
class Relp(Atp):
    """Attribution patching under the RelP rules. The forward pass is unchanged bit for bit; only derivatives differ.

    Norms: their scale is a constant. Attention: the pattern is a constant. Activations: x·sg(act(x)/x). Gated products:
    half of the gradient to each factor; a neuron itself keeps all of it. Everything else: the ordinary gradient.
    A soft cap of the logits: z·sg(cap(z)/z); one of the attention scores is inside the constant pattern, as are norms of queries and
    keys. `unpaired` takes a zero baseline instead of the corrupt prompt. Mixtures of experts are refused: hooks cannot reach the gated
    products inside fused experts.
    """

    unpaired: bool = False
    name: ClassVar[str] = "relp"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]
    clean_gradient: ClassVar[bool] = FACTS["clean_gradient"]

    def rules(self, job: Job) -> Rules:
        """The RelP rules, as hooks. Raises `OptionError` where a rule has no module to apply to."""
        anatomy = job.runner.anatomy
        anatomy.require_neurons("relp")
        if any(block.activation is None for block in anatomy.blocks):
            raise OptionError(
                f"relp cannot be measured on this {anatomy.architecture} model: no module applies the MLP's activation, so its rule has "
                "nothing to apply to; name the module with register_family(…, activation=…) if there is one, or use atp"
            )
        return lambda hooks: relp_rules(job.runner.anatomy, hooks)

    def baseline(self, job: Job, batch: object) -> list[Tensor] | None:
        """Corrupt activations, or zero."""
        return None if self.unpaired else super().baseline(job, batch)  # type: ignore[arg-type]


def straight(value: Tensor, route: Tensor) -> Tensor:
    """`value` exactly, with the derivative of `route`."""
    return value.detach() + (route - route.detach())


def relp_rules(anatomy: Anatomy, hooks: Hooks) -> None:
    """Install all rules on a model."""
    for module_id, norm in anatomy.norms.items():
        _norm_rule(hooks, norm, f"norm {module_id}")
    seen: set[int] = set()
    for block in anatomy.blocks:
        _pattern_rule(hooks, block)
        activation = block.activation
        if activation is not None and id(activation) not in seen:  # a module shared by several layers is hooked once, for all its calls
            seen.add(id(activation))
            _activation_rule(hooks, activation, f"activation of layer {block.index}")
        if block.gated and block.down is not None:
            hooks.on_input(block.down, lambda z: straight(z, 0.5 * z), f"gated product of layer {block.index}")
    if anatomy.softcap is not None:
        _softcap_rule(hooks, anatomy)


def _with_input(hooks: Hooks, module: nn.Module, rule: Callable[[Tensor, Tensor], Tensor], label: str) -> None:
    """A rule that sees a module's input and output."""
    inputs: list[Tensor] = []

    def keep(x: Tensor) -> None:
        inputs.append(x)

    hooks.on_input(module, keep, label + " input")
    edit: Edit = lambda y: rule(inputs.pop(), y)  # noqa: E731
    hooks.on_output(module, edit, label)


def _norm_rule(hooks: Hooks, norm: Norm, label: str) -> None:
    _with_input(hooks, norm.module, lambda x, y: straight(y, norm.frozen_scale(x).to(y.dtype)), label)


def _activation_rule(hooks: Hooks, module: nn.Module, label: str) -> None:
    def rule(x: Tensor, y: Tensor) -> Tensor:
        x_constant = x.detach()
        at_zero = _slope_at_zero(module, x_constant)
        ratio = torch.where(x_constant == 0, at_zero, y.detach() / torch.where(x_constant == 0, torch.ones_like(x_constant), x_constant))
        return straight(y, x * ratio)

    _with_input(hooks, module, rule, label)


def _softcap_rule(hooks: Hooks, anatomy: Anatomy) -> None:
    """The cap comes after the last module: its input is the unembedding's output, its output the model's logits."""
    outputs: list[Tensor] = []
    unembedding: nn.Module = anatomy.model.get_output_embeddings()  # type: ignore[operator]
    hooks.on_output(unembedding, outputs.append, "unembedding")

    def rule(capped: Tensor) -> Tensor:
        z = upcast(outputs.pop())
        held = z.detach()
        ratio = torch.where(held == 0, torch.ones_like(held), upcast(capped.detach()) / torch.where(held == 0, torch.ones_like(held), held))
        return straight(upcast(capped), z * ratio)

    hooks.on_logits(anatomy.model, rule, "logits")


def _slope_at_zero(module: nn.Module, like: Tensor) -> Tensor:
    """act′(0), for inputs that are exactly 0; through `forward`, so that no hook fires."""
    with torch.enable_grad():
        zero = torch.zeros((), dtype=like.dtype, device=like.device, requires_grad=True)
        (slope,) = torch.autograd.grad(module.forward(zero), zero)
    return slope


def _pattern_rule(hooks: Hooks, block: Block) -> None:
    """Detached queries and keys make the attention pattern a constant, whatever attention implementation runs."""
    q, k, v = (block.readers[name] for name in "qkv")
    if q.module is not k.module:
        for name, reader in (("query", q), ("key", k)):
            hooks.on_output(reader.module, lambda x: x.detach(), f"{name} projection of layer {block.index}")
        return

    def detach_pattern(x: Tensor) -> Tensor:
        values = torch.zeros(x.shape[-1], dtype=torch.bool, device=x.device)
        values[v.columns.flatten().to(x.device)] = True
        return torch.where(values, x, x.detach())

    hooks.on_output(v.module, detach_pattern, f"fused projection of layer {block.index}")
