"""Conservation: whether relevance in the residual stream adds up to the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from ..core.metric_names import HOMOGENEOUS, inhomogeneous
from ..core.results import Conservation
from ..errors import MeasurementError, ModelError, OptionError, suggestion
from ..model.batches import Batch
from ..model.encoded_task import EncodedTask
from ..model.gradients import Rules
from ..model.hooks import Edit, Hooks, measuring
from ..model.layout import Anatomy
from ..model.metrics import metric_function
from ..model.module_trace import unembedding_of
from ..model.precision import upcast
from ..model.runner import Runner
from ..model.sites import sites_of
from .method import Job
from .relp import Relp

RULES = ("relp", "none")
_SHARE = 4  # outputs with biases are held in addition to the residual stream


def conservation(
    runner: Runner, task: EncodedTask, metric: str, rules: str, batch_size: int | None, examples: Sequence[int] | None
) -> Conservation:
    """Σ x·∂f/∂x over the residual stream at every boundary, and the terms of the biases above it; float64 [n_examples, boundaries].

    `rules` is `relp`, whose replacement model is linear in the stream except for biases, or `none`, the model's own gradient, for
    comparison. Raises `OptionError` for a metric that is not homogeneous in the logits and for a model that a rule does not fit.
    """
    if metric not in HOMOGENEOUS:
        raise OptionError(inhomogeneous(metric))
    if rules not in RULES:
        raise OptionError(f"unknown rules {rules!r}; {suggestion(rules, RULES)}")
    sites, universe = sites_of(runner.anatomy)
    job = Job(runner, task, examples, metric, "component", batch_size, sites, universe)
    relp_rules = Relp().rules(job) if rules == "relp" else None
    biased = _biased(runner.anatomy)
    boundaries = ("embeddings", *(f"L{block.index}" for block in runner.anatomy.blocks))
    with measuring(runner.model):
        totals, biases = (torch.zeros(job.rows, len(boundaries), dtype=torch.float64) for _ in range(2))
        values = torch.zeros(job.rows, dtype=torch.float64)
        for batch in job.batches(_SHARE if biased else 1):
            recorded = _RecordedPass(runner, biased)
            values[batch.rows] = recorded.run(batch, metric, relp_rules)
            totals[batch.rows], biases[batch.rows] = recorded.totals(), recorded.biases()
    results = (totals, biases, values)
    if not all(bool(torch.isfinite(t).all()) for t in results):
        raise MeasurementError(
            f"relevances or the metric {metric} are not finite numbers on some of {job.rows} examples; "
            "try dtype: float32, and check the checkpoint for NaN weights"
        )
    return Conservation(boundaries, totals.numpy(), values.numpy(), biases.numpy() if biased else None)


@dataclass(frozen=True)
class _Biased:
    """A module that adds a bias. `boundary`: the last boundary below it."""

    module: nn.Module
    boundary: int
    norm: bool
    what: str


def _biased(anatomy: Anatomy) -> list[_Biased]:
    """Every bias between the first boundary and the logits. Raises `ModelError` for a bias that is not a module's `bias`."""
    last = len(anatomy.blocks)
    places = [(block.module, block.index, f"layer {block.index}") for block in anatomy.blocks]
    places.append((anatomy.final_norm_module, last, "the final norm"))
    unembedding = unembedding_of(anatomy)
    if unembedding is not None:
        places.append((unembedding, last, "the unembedding"))
    biased_modules = []
    for root, boundary, where in places:
        for path, module in root.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                if name == "bias" and parameter.dim() == 1:
                    biased_modules.append(_Biased(module, boundary, id(module) in anatomy.norms, f"{path or 'bias'} of {where}"))
                elif "bias" in name:
                    raise ModelError(
                        f"{where}: {'.'.join(filter(None, (path, name)))} is a bias that no module adds to its output by itself, "
                        "so its contribution to the metric cannot be separated"
                    )
    return biased_modules


@dataclass
class _RecordedPass:
    """The stream at the boundaries and the outputs with biases in one forward, and their gradients."""

    runner: Runner
    biased: list[_Biased]
    stream: list[Tensor] = field(default_factory=list)
    outputs: list[tuple[_Biased, Tensor]] = field(default_factory=list)
    slopes: list[Tensor] = field(default_factory=list)

    def run(self, batch: Batch, metric: str, rules: Rules | None) -> Tensor:
        """The metric of each example [batch]; fills the other fields."""
        blocks = self.runner.anatomy.blocks
        with torch.enable_grad(), Hooks() as hooks:
            hooks.on_input(blocks[0].module, self._boundary, "embeddings")
            for block in blocks:
                hooks.on_output(block.module, self._boundary, f"layer {block.index}")
            self._watch(hooks, norms=False)  # before the rules, which detach queries and keys
            if rules is not None:
                rules(hooks)
            self._watch(hooks, norms=True)  # after them, when the scale is frozen but the bias is not
            values = metric_function(metric)(self.runner.logits(batch.clean, batch.tail), batch.targets)
            self.slopes = self.runner.gradients(values.sum(), [*self.stream, *(y for _, y in self.outputs)])
        if len(self.stream) != len(blocks) + 1:
            raise MeasurementError(f"{len(blocks)} layers were called {len(self.stream) - 1} times in one forward")
        return values.detach().double().cpu()

    def totals(self) -> Tensor:
        """Σ x·∂f/∂x over positions and features; [batch, boundaries]."""
        pairs = zip(self.stream, self.slopes, strict=False)
        return torch.stack([(upcast(x.detach()).double() * g.double()).sum((1, 2)).cpu() for x, g in pairs], 1)

    def biases(self) -> Tensor:
        """Σ b·∂f/∂b over the biases above each boundary; [batch, boundaries]."""
        terms = torch.zeros(len(self.stream[0]), len(self.stream), dtype=torch.float64)
        for (biased, _), slope in zip(self.outputs, self.slopes[len(self.stream) :], strict=True):
            bias: Tensor = biased.module.bias  # type: ignore[assignment]
            term = (slope.double().flatten(1, -2).sum(1) @ bias.detach().double()).cpu()
            terms[:, : biased.boundary + 1] += term[:, None]
        return terms

    def _boundary(self, x: Tensor) -> Tensor:
        self.stream.append(x if x.requires_grad else x.detach().requires_grad_())
        return self.stream[-1].clone()  # some layers add to the stream in place

    def _watch(self, hooks: Hooks, norms: bool) -> None:
        for biased in self.biased:
            if biased.norm == norms:
                edit: Edit = lambda y, biased=biased: self._output(biased, y)  # type: ignore[misc]  # noqa: E731
                hooks.on_output(biased.module, edit, biased.what)

    def _output(self, biased: _Biased, y: Tensor) -> None:
        if y.requires_grad:  # else it reaches the metric only through constants of the rules
            self.outputs.append((biased, y))
