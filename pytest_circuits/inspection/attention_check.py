"""Self-check: queries, keys, values, heads and gates are wired as the anatomy says, whatever the weights are.

One forward of a few rows. Queries, keys and values of every layer are overwritten with noise, the same in every row but
for one head's query (or key) at one position, and every layer gets the same input in all rows. So each layer shows at once which
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
from ..model.precision import wide
from .tolerance import Examiner, rounding

SCALES = (1.0, 8.0)  # of the noise: attention that is spread out, and attention that is almost all on one position
ROWS = 8  # for each scale: plain, a query changed, a key changed; then two rows for the MLP's activation
POSITION = 3  # where it is changed


Silent = tuple[int, str]  # layer, query or key


@dataclass
class Wired:
    """What each layer showed: attention outputs [rows, T, heads, head_dim]; activations and neurons [rows, T, neurons]."""

    z: dict[int, Tensor] = field(default_factory=dict)
    values: dict[int, Tensor] = field(default_factory=dict)
    neurons: dict[int, Tensor] = field(default_factory=dict)
    activations: dict[int, list[Tensor]] = field(default_factory=dict)
    chosen: dict[int, tuple[int, int]] = field(default_factory=dict)


def wire(anatomy: Anatomy, taps: Hooks, length: int, seed: int, attempt: int = 0) -> Wired:
    """Hooks that overwrite and record during the next forward of `ROWS` equal prompts of `length` tokens.

    The heads that are looked at come from `seed`, the noise from `seed` and `attempt`.
    """
    seen, r = Wired(), random.Random(seed)
    for block in anatomy.blocks:
        seen.chosen[block.index] = r.randrange(anatomy.heads), r.randrange(anatomy.kv_heads)
        noise = _noise(anatomy, length, seed + block.index + 10_000 * attempt, *seen.chosen[block.index])
        seen.values[block.index] = noise["v"]
        for name, reader in block.readers.items():
            columns = reader.columns.flatten()
            taps.on_output(reader.module, _overwrite(columns, noise[name]), f"{name} projection of layer {block.index}")
        taps.on_input(block.output, _keep_heads(seen, block.index, anatomy.heads), f"output projection of layer {block.index}")
        if block.down is not None:
            taps.on_input(block.down, _keep(seen.neurons, block.index), f"down projection of layer {block.index}")
        taps.on_output(block.module, lambda x: x[:1].expand_as(x), f"layer {block.index}")
    for module in {id(b.activation): b.activation for b in anatomy.blocks if b.activation is not None}.values():
        taps.on_output(module, _activation(seen.activations.setdefault(id(module), [])), "activation")
    return seen


def _noise(anatomy: Anatomy, length: int, seed: int, query: int, key: int) -> dict[str, Tensor]:
    """Queries, keys and values of one layer; [rows, T, heads, head_dim]."""
    generator = torch.Generator().manual_seed(seed)
    counts = {"q": anatomy.heads, "k": anatomy.kv_heads, "v": anatomy.kv_heads}
    noise = {name: torch.randn(1, length, n, anatomy.head_dim, generator=generator).repeat(ROWS, 1, 1, 1) for name, n in counts.items()}
    half = max(1, anatomy.head_dim // 2)  # a part of one head: heads that are too large or too small show themselves too
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


def _keep(where: dict[int, Tensor], key: int) -> Callable[[Tensor], None]:
    return lambda x: where.__setitem__(key, x.detach().clone())


def _keep_heads(seen: Wired, layer: int, heads: int) -> Callable[[Tensor], None]:
    return lambda x: seen.z.__setitem__(layer, x.detach().clone().view(*x.shape[:2], heads, -1))


def _activation(kept: list[Tensor]) -> Callable[[Tensor], Tensor]:
    """Row 6: the activation is 1, so that a gated neuron is its other factor; row 7: it is doubled. Row 0 shows it as it is."""

    def edit(y: Tensor) -> Tensor:
        kept.append(y.detach().clone())
        y = y.clone()
        y[6] = 1
        y[7] = 2 * y[0]
        return y

    return edit


def check_wiring(anatomy: Anatomy, seen: Wired, examiner: Examiner) -> set[Silent]:
    """Raise `ModelError` naming the first reader, head or gate that is not where the anatomy says.

    Returns the readers whose change was too small to be seen: with other noise they may speak.
    """
    silent: set[Silent] = set()
    for block in anatomy.blocks:
        _check_values(anatomy, block.index, seen, examiner)
        silent |= _check_heads(anatomy, block.index, seen, examiner)
    users: dict[int, list[Block]] = {}
    for block in anatomy.blocks:
        if block.activation is not None and block.down is not None:
            users.setdefault(id(block.activation), []).append(block)
    for module, blocks in users.items():
        calls = seen.activations[module]
        if len(calls) != len(blocks):
            raise examiner.fail(f"the activation of layer {blocks[0].index} is called {len(calls)} times where {len(blocks)} MLPs have it")
        for block, activation in zip(blocks, calls, strict=True):
            _check_gate(block, activation, seen.neurons[block.index], examiner)
    return silent


def _check_values(anatomy: Anatomy, layer: int, seen: Wired, examiner: Examiner) -> None:
    """The first position attends to itself alone, so there a head's output is its value."""
    z = seen.z[layer][:, 0]
    values = seen.values[layer][:, 0].to(z).repeat_interleave(anatomy.heads // anatomy.kv_heads, 1)
    what = (
        f"the heads' outputs at the first position of layer {layer} differ from their values (wrong v columns or order of heads, no "
        "causal mask, or attention sinks)"
    )
    examiner.same(z, values, 4 * rounding(z) * float(wide(values).abs().max()), what)


def _check_heads(anatomy: Anatomy, layer: int, seen: Wired, examiner: Examiner) -> set[Silent]:
    """A query changes its own head at its own position; a key its group of heads, there and later. All of a head's output changes."""
    z, group = wide(seen.z[layer]), anatomy.heads // anatomy.kv_heads
    query, key = seen.chosen[layer]
    half = max(1, anatomy.head_dim // 2)
    unseen = 4 * rounding(seen.z[layer]) * float(z.abs().max())
    expected = {
        "query": (1, query, slice(query, query + 1), slice(POSITION, POSITION + 1)),
        "key": (2, key, slice(key * group, (key + 1) * group), slice(POSITION, None)),
    }
    silent: set[Silent] = set()
    for what, (offset, number, heads, positions) in expected.items():
        changes = torch.stack([(z[3 * i + offset] - z[3 * i]).abs() for i in range(len(SCALES))])
        inside = changes[:, positions, heads].clone()
        changes[:, positions, heads] = 0
        if float(changes.max()) > unseen:
            raise examiner.fail(
                f"the {what} of head {number} in layer {layer} changes other heads or positions by {float(changes.max()):.3g}: its columns "
                "are not where the anatomy says, or queries and keys are exchanged, or heads are cut at the wrong places"
            )
        later = inside[:, 1:] if what == "key" else inside
        whole = torch.stack([part.flatten(1).amax(1) > unseen for part in (later[..., :half], later[..., -half:])]).all(0)
        if not bool(whole.any()):
            silent.add((layer, what))
    return silent


def _check_gate(block: Block, activation: Tensor, neurons: Tensor, examiner: Examiner) -> None:
    """A neuron is its activation, or the product of its activation and a second factor."""
    first, other, doubled = (wide(neurons[row]) for row in (0, 6, 7))
    value = wide(activation[0])
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
