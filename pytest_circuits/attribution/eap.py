"""Edge attribution patching, aggregated to components."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ..model.batches import Batch
from ..model.hooks import Hooks
from ..model.layout import Anatomy, Block
from ..model.metrics import metric_function
from ..model.precision import upcast
from ..model.projections import in_out
from ..model.runner import Runner
from ..model.sites import Site
from .edge_check import check_row_sums
from .method import AttributionMethod, Job

FACTS: dict[str, Any] = {
    "levels": ("component", "edge"),
    "options": {},
    "clean_gradient": True,
    "nonnegative": ("component",),
    "sums_readers": True,
    "passes": {"batch": (2, 1)},
}


@dataclass(frozen=True)
class Eap(AttributionMethod):
    """score(u) = Σ over readers v of | Σ over positions and dimensions (a_u(corrupt) − a_u(clean))·∂m/∂in_v |.

    Positions are summed before the absolute value; readers are q of each query head, k and v of each key-value
    head, the input of each later MLP, and the logits. in_v is the residual stream as v reads it, before the norm. Scores are ≥ 0. Early
    layers have more readers and therefore tend to score higher. Source: arXiv 2605.08348 and its code.
    """

    name: ClassVar[str] = "eap"
    levels: ClassVar[tuple[str, ...]] = FACTS["levels"]
    clean_gradient: ClassVar[bool] = FACTS["clean_gradient"]

    def scores(self, job: Job, batch: Batch) -> Tensor:
        """[batch, components], or signed [batch, edges] in the order of `pytest_circuits.core.edges`."""
        if job.level == "edge":
            return torch.cat([edges.transpose(1, 2).flatten(1) for _, edges in self.edges(job, batch)], 1)
        total = torch.zeros(len(batch), job.universe.components, device=batch.clean.device)
        for upstream, edges in self.edges(job, batch):
            total[:, upstream] += edges.abs().sum(2).to(total.dtype)
        return total

    def edges(self, job: Job, batch: Batch) -> list[tuple[slice, Tensor]]:
        """Signed edge scores; see `edge_scores`."""
        corrupt = job.runner.activations(batch.corrupt, job.sites)
        recorded = clean_pass(job.runner, batch, job.metric, job.sites)
        change = residual_changes(job.runner.anatomy, job.sites, corrupt, recorded.activations)
        scores = edge_scores(job.runner.anatomy, change, recorded)
        if recorded.slopes:
            check_row_sums(job.sites, corrupt, recorded.activations, recorded.slopes, scores)
        return scores


def edge_scores(anatomy: Anatomy, change: Tensor, recorded: CleanPass) -> list[tuple[slice, Tensor]]:
    """Signed edge scores: for each group of readers, the columns of its upstream components and [batch, upstream, readers].

    Groups in order: for each layer its attention readers (queries, keys, values) and its MLP; last the logits.
    `change` [batch, components, T, d_model] is each component's corrupt − clean output, from `residual_changes`;
    post-norms between it and the stream are linearised at the run of `recorded`.
    """
    change = carried(anatomy, change, recorded)
    scores: list[tuple[slice, Tensor]] = []
    step = anatomy.heads + 1

    def add(upstream: int, gradients: Tensor) -> None:
        if upstream:
            edges = change[:, :upstream].flatten(2) @ gradients.flatten(2).transpose(1, 2)
            scores.append((slice(0, upstream), edges))

    for block in anatomy.blocks:
        below = block.index * step
        if below:
            add(below, _attention_gradients(anatomy, block, recorded))
        key = ("mlp", block.index)
        gradients = _before_norm(anatomy, block.mlp_norm, recorded, key, recorded.gradients[key].unsqueeze(1))
        add(below if anatomy.parallel else below + anatomy.heads, gradients)
    add(len(anatomy.blocks) * step, recorded.gradients[("logits", -1)].unsqueeze(1))
    return scores


@dataclass
class CleanPass:
    """Records of a clean pass: activations at the sites, inputs of norms and post-norms, gradients at the readers.

    slopes: gradients at the sites, only where a user's hooks in the layers require a check.
    """

    activations: list[Tensor]
    streams: dict[tuple[str, int], Tensor]
    gradients: dict[tuple[str, int], Tensor]
    slopes: list[Tensor] = field(default_factory=list)


def clean_pass(runner: Runner, batch: Batch, metric: str, sites: list[Site], embedded: Tensor | None = None) -> CleanPass:
    """A forward and a backward on the clean prompts, which record all that edge scores need.

    `embedded` [batch, T, d_model] replaces the token embeddings (integrated gradients).
    """
    recorded = CleanPass([], {}, {})
    read: dict[tuple[str, int], Tensor] = {}
    written: list[Tensor] = []
    anatomy, hooked = runner.anatomy, not runner.can_skip

    def keep_site(x: Tensor) -> Tensor | None:
        recorded.activations.append(x.detach())
        if not hooked:
            return None
        written.append(x if x.requires_grad else x.detach().requires_grad_())
        return written[-1]

    def keep_stream(key: tuple[str, int]) -> Callable[[Tensor], None]:
        return lambda x: recorded.streams.__setitem__(key, x.detach())

    def keep_gradient(key: tuple[str, int]) -> Callable[[Tensor], Tensor]:
        def edit(x: Tensor) -> Tensor:
            # a view, so that the gradient is of this reader alone where several read one tensor
            read[key] = x.view_as(x) if x.requires_grad else x.detach().requires_grad_()
            return read[key]

        return edit

    with torch.enable_grad(), Hooks() as hooks:
        if embedded is not None:
            hooks.on_output(runner.embedding, lambda _: embedded, "token embedding")
        for site in sites:
            site.hook(hooks, keep_site)
        for block in anatomy.blocks:
            for name in ("attention_norm", "mlp_norm", "attention_post_norm", "mlp_post_norm"):
                norm = getattr(block, name)
                if norm is not None:
                    key = (name.removesuffix("_norm"), block.index)
                    hooks.on_input(norm, keep_stream(key), f"{name.replace('_', ' ')} of layer {block.index}")
            for name, reader in block.readers.items() if block.index else ():  # the heads of the first layer have no upstream components
                if name == "q" or reader.module is not block.readers["q"].module:
                    hooks.on_output(reader.module, keep_gradient((name, block.index)), f"{name} projection of layer {block.index}")
            hooks.on_input(block.mlp, keep_gradient(("mlp", block.index)), f"MLP of layer {block.index}")
        hooks.on_input(anatomy.final_norm_module, keep_gradient(("logits", -1)), "final norm")
        value = metric_function(metric)(runner.logits(batch.clean, batch.tail), batch.targets).sum()
        gradients = runner.gradients(value, [*read.values(), *written])
        recorded.gradients.update(zip(read, gradients[: len(read)], strict=True))
        recorded.slopes = gradients[len(read) :]
    return recorded


def residual_changes(anatomy: Anatomy, sites: list[Site], corrupt: list[Tensor], clean: Sequence[Tensor]) -> Tensor:
    """Each component's corrupt − clean output in d_model, before any post-norm; [batch, components, T, d_model]."""
    batch, positions = clean[0].shape[:2]
    first = upcast(clean[0])
    # components outermost in memory: one matrix product a layer for all examples and positions
    out = first.new_empty(anatomy.universe.components, batch * positions, anatomy.width)
    for i, site in enumerate(sites):
        change = (upcast(corrupt[i]) - upcast(clean[i])).flatten(0, 1).transpose(0, 1)
        if site.kind == "heads":
            weight = upcast(in_out(site.module).detach()).reshape(site.units, site.width, -1)
            torch.bmm(change, weight, out=out[site.columns])
        else:
            out[site.columns] = change
    return out.view(-1, batch, positions, anatomy.width).transpose(0, 1)


def carried(anatomy: Anatomy, change: Tensor, recorded: CleanPass) -> Tensor:
    """Changes of outputs [batch, components, T, d_model] → changes of the residual stream: through post-norms and scales.

    A post-norm acts on the sum of a sublayer's parts. Each part goes through its derivative at the run of `recorded`, so
    that the parts of a sublayer add up, and the signed edges of a component to its attribution patching score.
    """
    if all(b.attention_post_norm is None and b.mlp_post_norm is None and b.scale == 1 for b in anatomy.blocks):
        return change
    out = torch.empty_like(change)
    for block in anatomy.blocks:
        start = block.index * (anatomy.heads + 1)
        parts = (
            (("attention_post", block.index), block.attention_post_norm, slice(start, start + anatomy.heads)),
            (("mlp_post", block.index), block.mlp_post_norm, slice(start + anatomy.heads, start + anatomy.heads + 1)),
        )
        for key, norm, columns in parts:
            part = change[:, columns]
            out[:, columns] = (part if norm is None else anatomy.norms[id(norm)].derivative(recorded.streams[key], part)) * block.scale
    return out


def _attention_gradients(anatomy: Anatomy, block: Block, recorded: CleanPass) -> Tensor:
    """∂m/∂in of every q, k and v reader of a layer at the residual stream; [batch, readers, T, d_model]."""
    gradients, weights = [], []
    for name, reader in block.readers.items():
        g = recorded.gradients[(name if (name, block.index) in recorded.gradients else "q", block.index)]
        shape = g.shape[:2]
        g = g.flatten(0, 1)[:, reader.columns.flatten().to(g.device)]
        gradients.append(g.view(-1, *reader.columns.shape).transpose(0, 1))
        weights.append(upcast(reader.weight().detach()))
    if block.attention_norm is None:
        out = torch.cat([g @ weight.transpose(1, 2) for g, weight in zip(gradients, weights, strict=True)])
    else:
        norm = anatomy.norms[id(block.attention_norm)]
        out = norm.adjoint_of_readers(recorded.streams[("attention", block.index)], gradients, weights)
    return out.view(len(out), *shape, -1).transpose(0, 1)


def _before_norm(anatomy: Anatomy, norm: nn.Module | None, recorded: CleanPass, key: tuple[str, int], gradients: Tensor) -> Tensor:
    """Gradients with respect to a norm's output → with respect to its input; unchanged without a norm."""
    return gradients if norm is None else anatomy.norms[id(norm)].adjoint(recorded.streams[key], gradients)
