"""Self-check: the parts that an anatomy names add up to what the layers compute."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..model.layout import Anatomy, Block
from ..model.precision import wide
from ..model.projections import in_out
from ..model.trace import Trace, parts_of, unembedding_of
from .tolerance import Examiner, rounding, single


def check_sums(anatomy: Anatomy, seen: Trace, logits: Tensor, examiner: Examiner) -> None:
    """Raise `ModelError` unless every part reads and writes where the anatomy says, and the parts of a layer add up to its output.

    stream' = stream + scale·norm(Σ_heads z_h W_h + b) + scale·norm(MLP), with the post-norms where there are any.
    """
    for block in anatomy.blocks:
        if block.index:
            below = seen.outputs["module", block.index - 1]
            examiner.equal(
                seen.inputs["module", block.index],
                below,
                f"the input of layer {block.index} differs from the output of layer {block.index - 1}",
            )
        _in_place(block, seen, examiner)
        _projections(block, seen, examiner)
        _stream(anatomy, block, seen, examiner)
    last = len(anatomy.blocks) - 1
    examiner.equal(
        seen.inputs["final_norm", -1], seen.outputs["module", last], "the input of the final norm differs from the last layer's output"
    )
    _norm(anatomy, anatomy.final_norm_module, seen, ("final_norm", -1), examiner)
    _logits(anatomy, seen, logits, examiner)


def _in_place(block: Block, seen: Trace, examiner: Examiner) -> None:
    """Nothing that measurements look at is changed in place later, or the anatomy says so."""
    for name in ("attention_norm", "mlp_norm", "attention_post_norm", "mlp_post_norm"):
        if seen.changed("inputs", name, block.index):
            raise examiner.fail(f"layer {block.index} changes the input of its {name.replace('_', ' ')} in place, which cannot be measured")
    if not block.in_place and seen.changed("outputs", "mlp" if block.down is None else "down", block.index):
        raise examiner.fail(f"layer {block.index} changes the output of its MLP in place; say so with in_place=True")


def _projections(block: Block, seen: Trace, examiner: Examiner) -> None:
    """Every projection is x W + b with the weights that heads and neurons are read from."""
    for name in parts_of(block):
        if name not in ("q", "k", "v", "output", "down"):
            continue
        module: nn.Module = block.readers[name].module if name in block.readers else getattr(block, name)
        x, y = seen.inputs[name, block.index], seen.outputs[name, block.index]
        weight = in_out(module).detach()
        if not weight.is_floating_point() or weight.shape != (x.shape[-1], y.shape[-1]):
            raise examiner.fail(
                f"the {name} projection of layer {block.index} ({type(module).__name__}) stores its weight as {tuple(weight.shape)} "
                f"{weight.dtype} for {x.shape[-1]} inputs and {y.shape[-1]} outputs: quantised weights cannot be measured"
            )
        expected = wide(x) @ wide(weight)
        bias: Tensor | None = getattr(module, "bias", None)
        expected = expected if bias is None else expected + wide(bias.detach())
        # products are accumulated in float32 or wider, and the result is rounded once more
        accumulated = 8 * x.shape[-1] ** 0.5 * max(torch.finfo(expected.dtype).eps, rounding(expected))
        allowed = (4 * rounding(y) + accumulated) * float(expected.abs().max())
        what = "the sum of the heads through the output projection" if name == "output" else f"input times weight of the {name} projection"
        examiner.same(y, expected, allowed, f"{what} of layer {block.index} differs from what the module gives")


def _stream(anatomy: Anatomy, block: Block, seen: Trace, examiner: Examiner) -> None:
    """How the residual stream goes through a layer."""
    i, stream = block.index, seen.inputs["module", block.index]
    first = seen.inputs["q", i]
    _reads(anatomy, seen, (block.attention_norm, "attention_norm", i), stream, first, 0.0, examiner, "attention")
    attention = _written(anatomy, seen, (block.attention_post_norm, "attention_post_norm", i), seen.outputs["output", i], examiner)
    middle = wide(stream) + block.scale * wide(attention)
    size = wide(stream).abs() + block.scale * wide(attention).abs()
    source, slack = (stream, 0.0) if anatomy.parallel else (middle, 4 * rounding(stream, attention) * size)
    _reads(anatomy, seen, (block.mlp_norm, "mlp_norm", i), source, seen.inputs["mlp", i], slack, examiner, "MLP")
    own = seen.outputs["mlp" if block.down is None else "down", i]
    mlp = _written(anatomy, seen, (block.mlp_post_norm, "mlp_post_norm", i), own, examiner)
    whole = middle + block.scale * wide(mlp)
    allowed = 6 * rounding(stream, mlp) * (size + block.scale * wide(mlp).abs())
    what = f"residual + heads + MLP of layer {i} (bias and post-norms included) differ from the layer's output"
    examiner.same(seen.outputs["module", i], whole, allowed, what)


Place = tuple[nn.Module | None, str, int]


def _reads(
    anatomy: Anatomy, seen: Trace, norm: Place, stream: Tensor, read: Tensor, slack: Tensor | float, examiner: Examiner, who: str
) -> None:
    """A sublayer reads the stream, through its pre-norm if it has one. `slack` is what rounding may change in the stream."""
    module, name, i = norm
    slack = slack + 2 * rounding(stream, read) * wide(stream).abs()
    if module is None:
        examiner.same(read, stream, slack, f"what the {who} of layer {i} reads differs from the residual stream")
        return
    examiner.same(seen.inputs[name, i], stream, slack, f"the input of the {who} norm of layer {i} differs from the residual stream there")
    examiner.equal(read, seen.outputs[name, i], f"what the {who} of layer {i} reads differs from the output of its norm")
    _norm(anatomy, module, seen, (name, i), examiner)


def _written(anatomy: Anatomy, seen: Trace, norm: Place, own: Tensor, examiner: Examiner) -> Tensor:
    """What a sublayer adds to the stream: its own output, or that of its post-norm."""
    module, name, i = norm
    if module is None:
        return own
    examiner.equal(seen.inputs[name, i], own, f"the input of the {name.replace('_', ' ')} of layer {i} differs from what it should follow")
    _norm(anatomy, module, seen, (name, i), examiner)
    return seen.outputs[name, i]


def _norm(anatomy: Anatomy, module: nn.Module, seen: Trace, key: tuple[str, int], examiner: Examiner) -> None:
    """A norm computes the formula by which gradients are taken through it."""
    x, y = seen.inputs[key], seen.outputs[key]
    norm = anatomy.norms[id(module)]
    expected, (_, r) = norm.value(x), norm.parts(x)
    place = key[0].replace("_", " ") + (f" of layer {key[1]}" if key[1] >= 0 else "")
    # the mean that is subtracted carries the rounding of the largest features
    largest = wide(x).abs().amax(-1, keepdim=True) if norm.centred else wide(x).abs()
    size = float(torch.maximum(expected.abs(), largest * r * norm.weight.abs()).max())
    examiner.same(y, expected, 16 * single(x, y) * size, f"the formula of the {place} differs from the module")


def _logits(anatomy: Anatomy, seen: Trace, logits: Tensor, examiner: Examiner) -> None:
    """Logits are the unembedding's output up to a constant factor, or that output under the soft cap of the config."""
    if unembedding_of(anatomy) is None:
        raise examiner.fail("the model names no unembedding (get_output_embeddings)")
    z = wide(seen.outputs["unembedding", -1])
    if anatomy.softcap is not None:
        expected = anatomy.softcap * torch.tanh(z / anatomy.softcap)
        what = f"the unembedding's output under the soft cap {anatomy.softcap:g} differs from the logits"
    else:
        expected = z * ((wide(logits) * z).sum() / z.square().sum().clamp(min=torch.finfo(z.dtype).tiny))
        what = (
            "the logits are no constant multiple of the unembedding's output (is there a soft cap? name it as final_softcap); they differ"
        )
    examiner.same(logits, expected, 16 * rounding(seen.outputs["unembedding", -1], logits) * float(wide(logits).abs().max()), what)
