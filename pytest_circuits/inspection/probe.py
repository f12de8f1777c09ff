"""Probing an unknown architecture: its parts follow from the tensors of one layer; names only decide the order of guesses.

A result is a guess until it passes the self-check. There may be several guesses, for instance for the order of
queries, keys and values of the same shape.
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
from .module_calls import CallRecord, ModuleCall, record

if TYPE_CHECKING:
    from ..model.layout import Anatomy

Fused = Literal["blocks", "heads", "groups"]
ROLES = ("query", "key", "value")


class NotFoundError(Exception):
    """A part that the structure does not show; the message names it."""


@dataclass(frozen=True)
class Mlp:
    """A guess at a layer's MLP. `x` is its input and `y` its output, before any norm."""

    path: str
    down: str | None
    activation: str | None
    gated: bool
    x: Tensor
    y: Tensor
    in_place: bool


def probe(model: nn.Module) -> Anatomy:
    """The anatomy of a model of unknown architecture, verified by the self-check.

    Raises `ModelError`, which says what was found and what is missing or inconsistent.
    """
    from ..model.layout import assemble
    from .self_check import self_check

    sizes = config_sizes(model.config)
    calls = record(model, sizes)
    parts: dict[str, str] = {"layers": calls.layers}
    problems: list[str] = []
    try:
        for family in _guesses(calls, sizes, parts):
            try:
                anatomy = assemble(model, family, probed=True)
                self_check(anatomy)
            except ModelError as problem:
                problems.append(str(problem).split(". ")[0])
                continue
            return anatomy
    except NotFoundError as problem:
        problems.append(f"missing: {problem}")
    listing = ", ".join(f"{name}={path!r}" for name, path in parts.items())
    raise ModelError(
        f"the architecture {sizes.architecture!r} is not known ({suggestion(sizes.architecture, FAMILIES)}), and probing its structure "
        f"did not explain it. Found: {listing}. {problems[0] if problems else 'missing: everything else'}. Describe it with "
        f"pytest_circuits.model.architectures.register_family({sizes.architecture!r}, Family(…)) if its layers are stream + attention + MLP"
    )


def _guesses(calls: CallRecord, sizes: ModelSizes, parts: dict[str, str]) -> Iterator[Family]:
    """Families that the structure allows, the likeliest first. `parts` collects the certain parts, for messages."""
    attention, fused = _attention_inputs(calls, sizes)
    parts["qkv"] = " or ".join(sorted({c.path for c in attention}))
    output = _output_projection(calls, sizes, attention)
    parts["output"] = output.path
    norms = [c for c in calls.inside if c.is_norm]
    final = _first(calls.outside, lambda c: c.is_norm and _same(c.x, calls.last.y), "a final norm that reads the last layer's output")
    parts["final_norm"] = final.path
    base = Family(
        layers=calls.layers,
        qkv=(),
        output=output.path,
        mlp="",
        down=None,
        activation=None,
        attention_norm=_norm_before(calls, norms, attention[0].x, "attention"),
        mlp_norm=None,
        final_norm=final.path,
        attention_post_norm=_norm_after(norms, output.y),
        layer_tuple=calls.layer_tuple,
        attention_softcap=_entry(sizes, "attn_logit_softcapping"),
        final_softcap=_entry(sizes, "final_logit_softcapping"),
    )
    mlps, missing = list(_mlps(calls, attention, output)), ""
    if not mlps:
        raise NotFoundError("an MLP: no projection or module writes the remaining part of the layer's change of the stream")
    parts["mlp"] = " or ".join(dict.fromkeys(m.path for m in mlps))
    for mlp in mlps:
        try:
            mlp_norm = _norm_before(calls, norms, mlp.x, "MLP")
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
            parallel=_same(read, calls.layer.x),
        )
        whole = replace(whole, residual_scale=_scale(calls, sizes, norms, whole, output.y, mlp.y))
        for qkv, layout in _orders(attention, fused, sizes):
            yield replace(whole, qkv=qkv, fused=layout)
    if missing:
        raise NotFoundError(missing)


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(torch.equal(a, b.to(a.dtype)))


def _first(calls: Sequence[ModuleCall], wanted: Any, what: str) -> ModuleCall:
    call = next((c for c in calls if wanted(c)), None)
    if call is None:
        raise NotFoundError(what)
    return call


def _entry(sizes: ModelSizes, name: str) -> str | None:
    """The name of a config entry, if it is set."""
    return name if getattr(sizes.config, name, None) is not None else None


def _attention_inputs(calls: CallRecord, sizes: ModelSizes) -> tuple[list[ModuleCall], bool]:
    """The projections that q, k and v come from, and whether it is one for all three: they read one tensor and lie in one module."""
    projections = [c for c in calls.inside if c.is_projection]
    for first in projections:
        group = [c for c in projections if c.parent == first.parent and _same(c.x, first.x)]
        widths = sorted((c.y.shape[-1] for c in group), reverse=True)
        ratio = sizes.heads // sizes.kv_heads
        triples = [w for w in permutations(widths, 3) if w[1] == w[2] and w[0] == ratio * w[1] and w[1] % sizes.kv_heads == 0]
        if len(group) >= 3 and triples:
            return group, False
        head_dim = getattr(sizes.config, "head_dim", None) or calls.layer.x.shape[-1] // sizes.heads
        if len(group) == 1 and widths[0] == (sizes.heads + 2 * sizes.kv_heads) * head_dim and first.parent:
            return group, True
    raise NotFoundError(
        f"query, key and value projections ({sizes.heads} and twice {sizes.kv_heads} heads that read one tensor, or one fused projection)"
    )


def _output_projection(calls: CallRecord, sizes: ModelSizes, attention: list[ModuleCall]) -> ModuleCall:
    """The projection back to the stream in the module of the others (or around it), which reads something else."""
    width, used = calls.layer.x.shape[-1], {c.path for c in attention}
    around = attention[0].parent
    while True:
        for call in calls.inside:
            inside = call.parent == around or call.parent.startswith(f"{around}.")
            fits = call.y.shape[-1] == width and call.x.shape[-1] % sizes.heads == 0
            if call.is_projection and inside and fits and call.path not in used and not _same(call.x, attention[0].x):
                return call
        if "." not in around:
            raise NotFoundError(f"an output projection of the attention, from its heads to {width} features, next to {attention[0].path!r}")
        around = around.rpartition(".")[0]


def _norm_before(calls: CallRecord, norms: list[ModuleCall], x: Tensor, who: str) -> str | None:
    """The norm whose output a sublayer reads; None where it reads the stream directly."""
    call = next((c for c in norms if _same(c.y, x)), None)
    if call is not None:
        return call.path
    if who == "attention" and not _same(calls.layer.x, x):
        raise NotFoundError("the attention reads neither the layer's input nor the output of a norm")
    if who == "MLP" and any(_same(c.x, x) for c in calls.inside if "." in c.path and c.is_norm):
        raise NotFoundError("the MLP has a norm inside, before its projections")
    return None


def _norm_after(norms: list[ModuleCall], y: Tensor) -> str | None:
    """The norm that reads a sublayer's output and nothing else."""
    return next((c.path for c in norms if _same(c.x, y)), None)


def _mlps(calls: CallRecord, attention: list[ModuleCall], output: ModuleCall) -> Iterator[Mlp]:
    """Guesses: dense ones by their down projection (the last first), then modules that write to the stream as a whole (experts)."""
    width, used = calls.layer.x.shape[-1], {output.path, *(c.path for c in attention)}
    holder = attention[0].parent
    rest = [c for c in calls.inside if c.is_projection and c.path not in used]
    for down in reversed([c for c in rest if c.y.shape[-1] == width]):
        inputs = [
            c for c in rest if c.parent == down.parent and c is not down and c.y.shape[-1] in (down.x.shape[-1], 2 * down.x.shape[-1])
        ]
        inputs = [c for c in inputs if _same(c.x, inputs[0].x)]
        if not inputs or any(_same(c.x, down.x) for c in inputs):
            continue
        holders = [c for c in calls.inside if _holds(c.path, [down, *inputs]) and _same(c.x, inputs[0].x)]
        path = holders[-1].path if holders else inputs[0].path if len(inputs) == 1 else None
        if path is None:
            continue
        activation = _activation(calls, down, inputs)
        fused = inputs[0].y.shape[-1] == 2 * down.x.shape[-1]
        gated = len(inputs) > 1 or fused if activation is None else not _same(activation.y, down.x)
        yield Mlp(path, down.path, None if activation is None else activation.path, gated, inputs[0].x, down.y, down.in_place)
    for call in reversed(calls.inside):
        weights = any(p.dim() > 1 for p in call.module.parameters())
        attends = _holds(call.path, attention) or call.path == holder or holder.startswith(f"{call.path}.")
        if (
            call.x.shape == call.y.shape == calls.layer.x.shape
            and weights
            and not attends
            and not call.is_projection
            and "." not in call.path
        ):
            yield Mlp(call.path, None, None, True, call.x, call.y, call.in_place)


def _holds(path: str, calls: Sequence[ModuleCall]) -> bool:
    return all(c.path.startswith(f"{path}.") for c in calls)


def _activation(calls: CallRecord, down: ModuleCall, inputs: list[ModuleCall]) -> ModuleCall | None:
    """The module of the nonlinearity: it has the neurons' shape, and is neither a projection nor the identity."""
    order = {c.path: i for i, c in enumerate(calls.inside)}
    between = [c for c in calls.inside if order[c.path] < order[down.path] and c.x.shape == c.y.shape == down.x.shape]
    makers = [c for c in between if not c.is_projection and not c.is_norm and not _same(c.x, c.y)]
    makers = [c for c in makers if any(_same(c.x, part) for i in inputs for part in (i.y, *i.y.chunk(2, -1)))]
    return makers[-1] if makers else None


def _scale(calls: CallRecord, sizes: ModelSizes, norms: list[ModuleCall], family: Family, attention: Tensor, mlp: Tensor) -> float | str:
    """The factor of both sublayers: 1, a config entry of that value, or the value itself."""
    after = {c.path: c.y for c in norms}
    added = after.get(family.attention_post_norm or "", attention).double() + after.get(family.mlp_post_norm or "", mlp).double()
    change = calls.layer.y.double() - calls.layer.x.double()
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
