"""Finding the parts of an unknown architecture by what flows through one layer; names only decide what is tried first.

What is found is a guess until the self-check has passed on it. Several guesses may be made, for instance for the order of
queries, keys and values where all have the same shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from ..errors import ModelError, suggestion
from ..model.architectures import FAMILIES, Family
from ..model.config_sizes import ModelSizes, config_sizes
from .module_calls import Flow, ModuleCall, record

if TYPE_CHECKING:
    from ..model.layout import Anatomy

Fused = Literal["blocks", "heads", "groups"]
ROLES = ("query", "key", "value")


class NotFoundError(Exception):
    """A part that the structure does not show; the message is what is missing."""


@dataclass(frozen=True)
class Mlp:
    """A guess at a layer's MLP. `x` is what it reads and `y` what it writes, before any norm."""

    path: str
    down: str | None
    activation: str | None
    gated: bool
    x: Tensor
    y: Tensor
    in_place: bool


def probe(model: nn.Module) -> Anatomy:
    """The anatomy of a model of unknown architecture, verified by the self-check.

    Raises `ModelError` saying what was found and what is missing, or does not add up.
    """
    from ..model.layout import assemble
    from .self_check import self_check

    sizes = config_sizes(model.config)
    flow = record(model, sizes)
    found: dict[str, str] = {"layers": flow.layers}
    problems: list[str] = []
    try:
        for family in _guesses(flow, sizes, found):
            try:
                anatomy = assemble(model, family, probed=True)
                self_check(anatomy)
            except ModelError as problem:
                problems.append(str(problem).split(". ")[0])
                continue
            return anatomy
    except NotFoundError as problem:
        problems.append(f"missing: {problem}")
    parts = ", ".join(f"{name}={path!r}" for name, path in found.items())
    raise ModelError(
        f"the architecture {sizes.architecture!r} is not known ({suggestion(sizes.architecture, FAMILIES)}), and probing its structure "
        f"did not explain it. Found: {parts}. {problems[0] if problems else 'missing: everything else'}. Describe it with "
        f"pytest_circuits.model.architectures.register_family({sizes.architecture!r}, Family(…)) if its layers are stream + attention + MLP"
    )


def _guesses(flow: Flow, sizes: ModelSizes, found: dict[str, str]) -> Iterator[Family]:
    """Families that the structure allows, the likeliest first. `found` collects what is certain, for messages."""
    attention, fused = _attention_inputs(flow, sizes)
    found["qkv"] = " or ".join(sorted({c.path for c in attention}))
    output = _output_projection(flow, sizes, attention)
    found["output"] = output.path
    norms = [c for c in flow.inside if c.is_norm]
    final = _first(flow.outside, lambda c: c.is_norm and _same(c.x, flow.last.y), "a final norm that reads the last layer's output")
    found["final_norm"] = final.path
    base = Family(
        layers=flow.layers,
        qkv=(),
        output=output.path,
        mlp="",
        down=None,
        activation=None,
        attention_norm=_norm_before(flow, norms, attention[0].x, "attention"),
        mlp_norm=None,
        final_norm=final.path,
        attention_post_norm=_norm_after(norms, output.y),
        layer_tuple=flow.layer_tuple,
        attention_softcap=_entry(sizes, "attn_logit_softcapping"),
        final_softcap=_entry(sizes, "final_logit_softcapping"),
    )
    mlps, missing = list(_mlps(flow, attention, output)), ""
    if not mlps:
        raise NotFoundError("an MLP: no projection or module writes the rest of what the layer adds to the stream")
    found["mlp"] = " or ".join(dict.fromkeys(m.path for m in mlps))
    for mlp in mlps:
        try:
            mlp_norm = _norm_before(flow, norms, mlp.x, "MLP")
        except NotFoundError as problem:
            missing = str(problem)
            continue
        read = next((c.x for c in norms if c.path == mlp_norm), mlp.x)
        whole = replace(
            base,
            mlp=mlp.path,
            down=mlp.down,
            activation=mlp.activation,
            gated=mlp.gated,
            in_place=mlp.in_place,
            mlp_norm=mlp_norm,
            mlp_post_norm=_norm_after(norms, mlp.y),
            parallel=_same(read, flow.layer.x),
        )
        whole = replace(whole, residual_scale=_scale(flow, sizes, norms, whole, output.y, mlp.y))
        for qkv, layout in _orders(attention, fused, sizes):
            yield replace(whole, qkv=qkv, fused=layout)
    if missing:
        raise NotFoundError(missing)


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a, b.to(a.dtype)))


def _first(calls: Sequence[ModuleCall], wanted: Any, what: str) -> ModuleCall:
    found = next((c for c in calls if wanted(c)), None)
    if found is None:
        raise NotFoundError(what)
    return found


def _entry(sizes: ModelSizes, name: str) -> str | None:
    """The name of a config entry, if it is set."""
    return name if getattr(sizes.config, name, None) is not None else None


def _attention_inputs(flow: Flow, sizes: ModelSizes) -> tuple[list[ModuleCall], bool]:
    """The projections that q, k and v come from, and whether it is one for all three: they read one tensor and lie in one module."""
    projections = [c for c in flow.inside if c.is_projection]
    for first in projections:
        group = [c for c in projections if c.parent == first.parent and _same(c.x, first.x)]
        widths = sorted((c.y.shape[-1] for c in group), reverse=True)
        ratio = sizes.heads // sizes.kv_heads
        triples = [w for w in permutations(widths, 3) if w[1] == w[2] and w[0] == ratio * w[1] and w[1] % sizes.kv_heads == 0]
        if len(group) >= 3 and triples:
            return group, False
        head_dim = getattr(sizes.config, "head_dim", None) or flow.layer.x.shape[-1] // sizes.heads
        if len(group) == 1 and widths[0] == (sizes.heads + 2 * sizes.kv_heads) * head_dim and first.parent:
            return group, True
    raise NotFoundError(
        f"query, key and value projections ({sizes.heads} and twice {sizes.kv_heads} heads that read one tensor, or one fused projection)"
    )


def _output_projection(flow: Flow, sizes: ModelSizes, attention: list[ModuleCall]) -> ModuleCall:
    """The projection back to the stream in the module of the others (or around it), which reads something else."""
    width, used = flow.layer.x.shape[-1], {c.path for c in attention}
    around = attention[0].parent
    while True:
        for call in flow.inside:
            inside = call.parent == around or call.parent.startswith(f"{around}.")
            fits = call.y.shape[-1] == width and call.x.shape[-1] % sizes.heads == 0
            if call.is_projection and inside and fits and call.path not in used and not _same(call.x, attention[0].x):
                return call
        if "." not in around:
            raise NotFoundError(f"an output projection of the attention, from its heads to {width} features, beside {attention[0].path!r}")
        around = around.rpartition(".")[0]


def _norm_before(flow: Flow, norms: list[ModuleCall], x: Tensor, who: str) -> str | None:
    """The norm whose output a sublayer reads; None where it reads the bare stream."""
    call = next((c for c in norms if _same(c.y, x)), None)
    if call is not None:
        return call.path
    if who == "attention" and not _same(flow.layer.x, x):
        raise NotFoundError("what the attention reads is neither the layer's input nor the output of a norm")
    if who == "MLP" and any(_same(c.x, x) for c in flow.inside if "." in c.path and c.is_norm):
        raise NotFoundError("what the MLP reads goes through a norm inside it")
    return None


def _norm_after(norms: list[ModuleCall], y: Tensor) -> str | None:
    """The norm that reads a sublayer's output and nothing else."""
    return next((c.path for c in norms if _same(c.x, y)), None)


def _mlps(flow: Flow, attention: list[ModuleCall], output: ModuleCall) -> Iterator[Mlp]:
    """Guesses: dense ones by their down projection (the last first), then modules that write to the stream as a whole (experts)."""
    width, used = flow.layer.x.shape[-1], {output.path, *(c.path for c in attention)}
    holder = attention[0].parent
    rest = [c for c in flow.inside if c.is_projection and c.path not in used]
    for down in reversed([c for c in rest if c.y.shape[-1] == width]):
        inputs = [
            c for c in rest if c.parent == down.parent and c is not down and c.y.shape[-1] in (down.x.shape[-1], 2 * down.x.shape[-1])
        ]
        inputs = [c for c in inputs if _same(c.x, inputs[0].x)]
        if not inputs or any(_same(c.x, down.x) for c in inputs):
            continue
        holders = [c for c in flow.inside if _holds(c.path, [down, *inputs]) and _same(c.x, inputs[0].x)]
        path = holders[-1].path if holders else inputs[0].path if len(inputs) == 1 else None
        if path is None:
            continue
        activation = _activation(flow, down, inputs)
        fused = inputs[0].y.shape[-1] == 2 * down.x.shape[-1]
        gated = len(inputs) > 1 or fused if activation is None else not _same(activation.y, down.x)
        yield Mlp(path, down.path, None if activation is None else activation.path, gated, inputs[0].x, down.y, down.in_place)
    for call in reversed(flow.inside):
        weights = any(p.dim() > 1 for p in call.module.parameters())
        attends = _holds(call.path, attention) or call.path == holder or holder.startswith(f"{call.path}.")
        if (
            call.x.shape == call.y.shape == flow.layer.x.shape
            and weights
            and not attends
            and not call.is_projection
            and "." not in call.path
        ):
            yield Mlp(call.path, None, None, True, call.x, call.y, call.in_place)


def _holds(path: str, calls: Sequence[ModuleCall]) -> bool:
    return all(c.path.startswith(f"{path}.") for c in calls)


def _activation(flow: Flow, down: ModuleCall, inputs: list[ModuleCall]) -> ModuleCall | None:
    """The module that makes the nonlinearity: it has the neurons' shape, and is neither a projection nor the identity."""
    order = {c.path: i for i, c in enumerate(flow.inside)}
    between = [c for c in flow.inside if order[c.path] < order[down.path] and c.x.shape == c.y.shape == down.x.shape]
    makers = [c for c in between if not c.is_projection and not c.is_norm and not _same(c.x, c.y)]
    makers = [c for c in makers if any(_same(c.x, part) for i in inputs for part in (i.y, *i.y.chunk(2, -1)))]
    return makers[-1] if makers else None


def _scale(flow: Flow, sizes: ModelSizes, norms: list[ModuleCall], family: Family, attention: Tensor, mlp: Tensor) -> float | str:
    """What both sublayers are multiplied with: 1, a config entry of that value, or the value itself."""
    after = {c.path: c.y for c in norms}
    added = after.get(family.attention_post_norm or "", attention).double() + after.get(family.mlp_post_norm or "", mlp).double()
    change = flow.layer.y.double() - flow.layer.x.double()
    value = float((change * added).sum() / added.square().sum().clamp(min=1e-300))
    if abs(value - 1) < 0.02:
        return 1.0
    entries = {name: v for name, v in sizes.config.to_dict().items() if isinstance(v, float) and abs(v - value) < 0.02 * abs(value)}
    return next((name for name in entries if "residual" in name), next(iter(entries), value))


def _orders(attention: list[ModuleCall], fused: bool, sizes: ModelSizes) -> Iterator[tuple[tuple[str, ...], Fused | None]]:
    """Possible orders of q, k and v, those that the names suggest first; or possible layouts of a fused projection."""
    if fused:
        grouped: tuple[Fused, ...] = ("blocks", "groups") if sizes.heads != sizes.kv_heads else ("blocks", "heads")
        yield from (((attention[0].path,), layout) for layout in grouped)
        return
    triples = [
        t
        for t in permutations(attention, 3)
        if t[1].y.shape == t[2].y.shape and t[0].y.shape[-1] == t[1].y.shape[-1] * (sizes.heads // sizes.kv_heads)
    ]

    def fits(triple: tuple[ModuleCall, ...]) -> int:
        names = [c.path.rpartition(".")[2].lower() for c in triple]
        return sum(name.startswith(role[0]) or role in name for name, role in zip(names, ROLES, strict=True))

    for triple in sorted(triples, key=fits, reverse=True):
        yield tuple(c.path for c in triple), None
