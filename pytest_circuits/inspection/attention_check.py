"""Self-check: queries, keys, values, heads and gates are wired as the anatomy says, whatever the weights are.

One forward of a few rows. Queries, keys and values of every layer are overwritten with noise, equal in all rows except
for one head's query (or key) at one position, and every layer gets the same input in all rows. So each layer shows which
heads and positions a query or a key changes, however small its weights are.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..model.hooks import Hooks
from ..model.layout import Anatomy, Block
from ..model.precision import upcast
from .tolerance import Examiner, rounding

SCALES = (1.0, 8.0)  # of the noise: spread-out attention, and attention almost all on one position
ROWS = 8  # for each scale: plain, a query changed, a key changed; then two rows for the MLP's activation
POSITION = 3  # of the changed query or key


SilentReader = tuple[int, str]  # layer, query or key


@dataclass
class AttentionTrace:
    """Records of each layer: attention outputs [rows, T, heads, head_dim]; activations and neurons [rows, T, neurons]."""

    z: dict[int, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)
    neurons: dict[int, Tensor] = field(default_factory=dict)
    activations: dict[int, list[Tensor]] = field(default_factory=dict)
    heads: dict[int, tuple[int, int]] = field(default_factory=dict)


def overwrite_with_noise(anatomy: Anatomy, hooks: Hooks, length: int, seed: int, attempt: int = 0) -> AttentionTrace:
    """Hooks that overwrite and record during the next forward of `ROWS` equal prompts of `length` tokens.

    `seed` selects the heads that are checked; `seed` and `attempt` the noise.
    """
    recorded, r = AttentionTrace(), random.Random(seed)
    for block in anatomy.blocks:
        recorded.heads[block.index] = r.randrange(anatomy.heads), r.randrange(anatomy.kv_heads)
        noise = _noise(anatomy, length, seed + block.index + 10_000 * attempt, *recorded.heads[block.index])
        recorded.values[block.index] = noise["v"]
        for name, reader in block.readers.items():
            columns = reader.columns.flatten()
            hooks.on_output(reader.module, _overwrite(columns, noise[name]), f"{name} projection of layer {block.index}")
        hooks.on_input(block.output, _heads_recorder(recorded, block.index, anatomy.heads), f"output projection of layer {block.index}")
        if block.down is not None:
            hooks.on_input(block.down, _recorder(recorded.neurons, block.index), f"down projection of layer {block.index}")
        hooks.on_output(block.module, lambda x: x[:1].expand_as(x), f"layer {block.index}")
    for module in {id(b.activation): b.activation for b in anatomy.blocks if b.activation is not None}.values():
        hooks.on_output(module, _activation(recorded.activations.setdefault(id(module), [])), "activation")
    return recorded


def _noise(anatomy: Anatomy, length: int, seed: int, query: int, key: int) -> dict[str, Tensor]:
    """Queries, keys and values of one layer; [rows, T, heads, head_dim]."""
    generator = torch.Generator().manual_seed(seed)
    counts = {"q": anatomy.heads, "k": anatomy.kv_heads, "v": anatomy.kv_heads}
    noise = {name: torch.randn(1, length, n, anatomy.head_dim, generator=generator).repeat(ROWS, 1, 1, 1) for name, n in counts.items()}
    half = max(1, anatomy.head_dim // 2)  # a part of one head, so that too large or too small heads are noticed
    for row, scale in enumerate(SCALES):
        rows = slice(3 * row, 3 * row + 3)
        noise["q"][rows] *= scale
        noise["k"][rows] *= scale
        part = slice(None, half) if row % 2 else slice(-half, None)
        noise["q"][3 * row + 1, POSITION, query, part] *= -1
        noise["k"][3 * row + 2, POSITION, key, part] *= -1
    return noise


def _overwrite(columns: Tensor, noise: Tensor) -> Callable[[Tensor], Tensor]:
    def edit(y: Tensor) -> Tensor:
        y = y.clone()
        y[..., columns.to(y.device)] = noise.flatten(2).to(y)
        return y

    return edit


def _recorder(tensors: dict[int, Tensor], key: int) -> Callable[[Tensor], None]:
    return lambda x: tensors.__setitem__(key, x.detach().clone())


def _heads_recorder(recorded: AttentionTrace, layer: int, heads: int) -> Callable[[Tensor], None]:
    return lambda x: recorded.z.__setitem__(layer, x.detach().clone().view(*x.shape[:2], heads, -1))


def _activation(calls: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """Row 6: the activation is 1, so that a gated neuron is its other factor; row 7: it is doubled. Row 0 shows it as it is."""

    def edit(y: Tensor) -> Tensor:
        calls.append(y.detach().clone())
        y = y.clone()
        y[6] = 1
        y[7] = 2 * y[0]
        return y

    return edit


def check_wiring(anatomy: Anatomy, recorded: AttentionTrace, examiner: Examiner) -> set[SilentReader]:
    """Raise `ModelError` naming the first reader, head or gate that is not where the anatomy says.

    Returns the readers whose change was too small to be seen; other noise may show it.
    """
    silent: set[SilentReader] = set()
    for block in anatomy.blocks:
        _check_values(anatomy, block.index, recorded, examiner)
        silent |= _check_heads(anatomy, block.index, recorded, examiner)
    users: dict[int, list[Block]] = {}
    for block in anatomy.blocks:
        if block.activation is not None and block.down is not None:
            users.setdefault(id(block.activation), []).append(block)
    for module, blocks in users.items():
        calls = recorded.activations[module]
        if len(calls) != len(blocks):
            raise examiner.fail(f"the activation of layer {blocks[0].index} is called {len(calls)} times, but {len(blocks)} MLPs have it")
        for block, activation in zip(blocks, calls, strict=True):
            _check_gate(block, activation, recorded.neurons[block.index], examiner)
    return silent


def _check_values(anatomy: Anatomy, layer: int, recorded: AttentionTrace, examiner: Examiner) -> None:
    """The first position attends to itself alone, so there a head's output is its value."""
    z = recorded.z[layer][:, 0]
    values = recorded.values[layer][:, 0].to(z).repeat_interleave(anatomy.heads // anatomy.kv_heads, 1)
    what = (
        f"the heads' outputs at the first position of layer {layer} differ from their values (wrong v columns or order of heads, no "
        "causal mask, or attention sinks)"
    )
    examiner.same(z, values, 4 * rounding(z) * float(upcast(values).abs().max()), what)


def _check_heads(anatomy: Anatomy, layer: int, recorded: AttentionTrace, examiner: Examiner) -> set[SilentReader]:
    """A query changes its head at its position; a key its group of heads, from its position on. All of a head's output changes."""
    z, group = upcast(recorded.z[layer]), anatomy.heads // anatomy.kv_heads
    query, key = recorded.heads[layer]
    half = max(1, anatomy.head_dim // 2)
    negligible = 4 * rounding(recorded.z[layer]) * float(z.abs().max())
    expected = {
        "query": (1, query, slice(query, query + 1), slice(POSITION, POSITION + 1)),
        "key": (2, key, slice(key * group, (key + 1) * group), slice(POSITION, None)),
    }
    silent: set[SilentReader] = set()
    for what, (offset, number, heads, positions) in expected.items():
        changes = torch.stack([(z[3 * i + offset] - z[3 * i]).abs() for i in range(len(SCALES))])
        inside = changes[:, positions, heads].clone()
        changes[:, positions, heads] = 0
        if float(changes.max()) > negligible:
            raise examiner.fail(
                f"the {what} of head {number} in layer {layer} changes other heads or positions by {float(changes.max()):.3g}: its columns "
                "are not where the anatomy says, or queries and keys are exchanged, or heads are cut at the wrong places"
            )
        later = inside[:, 1:] if what == "key" else inside
        whole = torch.stack([part.flatten(1).amax(1) > negligible for part in (later[..., :half], later[..., -half:])]).all(0)
        if not bool(whole.any()):
            silent.add((layer, what))
    return silent


def _check_gate(block: Block, activation: Tensor, neurons: Tensor, examiner: Examiner) -> None:
    """A neuron is its activation, or the product of its activation and a second factor."""
    first, other, doubled = (upcast(neurons[row]) for row in (0, 6, 7))
    value = upcast(activation[0])
    if value.shape != first.shape:
        raise examiner.fail(
            f"the activation of layer {block.index} gives {tuple(value.shape)} where the down projection reads {tuple(first.shape)}"
        )
    expected = value * other if block.gated else value
    allowed = 4 * rounding(activation, neurons) * float(expected.abs().max().clamp(min=1e-30))
    kind = "activation times second factor" if block.gated else "the activation"
    examiner.same(first, expected, allowed, f"{kind} differs from the neurons of layer {block.index} (gated={block.gated})")
    examiner.same(doubled, 2 * first, 2 * allowed, f"the neurons of layer {block.index} are not proportional to the activation")
    if block.gated and bool((other == 1).all()):
        raise examiner.fail(f"the neurons of layer {block.index} are the activation itself (gated=True)")
    if not block.gated:
        examiner.same(other, torch.ones_like(other), 0.0, f"the neurons of layer {block.index} are not the activation")
