"""Self-check: the parts that an anatomy names add up to what the layers compute."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..model.layout import Anatomy, Block
from ..model.module_trace import Trace, parts_of, unembedding_of
from ..model.precision import upcast
from ..model.projections import in_out
from .tolerance import Examiner, rounding, single


def check_sums(anatomy: Anatomy, recorded: Trace, logits: Tensor, examiner: Examiner) -> None:
    """Raise `ModelError` unless every part reads and writes where the anatomy says, and the parts of a layer add up to its output.

    stream' = stream + scale·norm(Σ_heads z_h W_h + b) + scale·norm(MLP), with the post-norms where there are any.
    """
    for block in anatomy.blocks:
        if block.index:
            below = recorded.outputs["module", block.index - 1]
            examiner.equal(
                recorded.inputs["module", block.index],
                below,
                f"the input of layer {block.index} differs from the output of layer {block.index - 1}",
            )
        _in_place(block, recorded, examiner)
        _projections(block, recorded, examiner)
        _stream(anatomy, block, recorded, examiner)
    last = len(anatomy.blocks) - 1
    examiner.equal(
        recorded.inputs["final_norm", -1],
        recorded.outputs["module", last],
        "the input of the final norm differs from the last layer's output",
    )
    _norm(anatomy, anatomy.final_norm_module, recorded, ("final_norm", -1), examiner)
    _logits(anatomy, recorded, logits, examiner)


def _in_place(block: Block, recorded: Trace, examiner: Examiner) -> None:
    """Measured tensors are not changed in place later, unless the anatomy says so."""
    for name in ("attention_norm", "mlp_norm", "attention_post_norm", "mlp_post_norm"):
        if recorded.changed("inputs", name, block.index):
            raise examiner.fail(f"layer {block.index} changes the input of its {name.replace('_', ' ')} in place, which cannot be measured")
    if not block.in_place and recorded.changed("outputs", "mlp" if block.down is None else "down", block.index):
        raise examiner.fail(f"layer {block.index} changes the output of its MLP in place; say so with in_place=True")


def _projections(block: Block, recorded: Trace, examiner: Examiner) -> None:
    """Every projection is x W + b with the weights that heads and neurons use."""
    for name in parts_of(block):
        if name not in ("q", "k", "v", "output", "down"):
            continue
        module: nn.Module = block.readers[name].module if name in block.readers else getattr(block, name)
        x, y = recorded.inputs[name, block.index], recorded.outputs[name, block.index]
        weight = in_out(module).detach()
        if not weight.is_floating_point() or weight.shape != (x.shape[-1], y.shape[-1]):
            raise examiner.fail(
                f"the {name} projection of layer {block.index} ({type(module).__name__}) stores its weight as {tuple(weight.shape)} "
                f"{weight.dtype} for {x.shape[-1]} inputs and {y.shape[-1]} outputs: quantised weights cannot be measured"
            )
        expected = upcast(x) @ upcast(weight)
        bias: Tensor | None = getattr(module, "bias", None)
        expected = expected if bias is None else expected + upcast(bias.detach())
        # products are accumulated in float32 or wider, and the result is rounded once more
        accumulated = 8 * x.shape[-1] ** 0.5 * max(torch.finfo(expected.dtype).eps, rounding(expected))
        allowed = (4 * rounding(y) + accumulated) * float(expected.abs().max())
        what = "the sum of the heads through the output projection" if name == "output" else f"input times weight of the {name} projection"
        examiner.same(y, expected, allowed, f"{what} of layer {block.index} differs from the module's output")


def _stream(anatomy: Anatomy, block: Block, recorded: Trace, examiner: Examiner) -> None:
    """The residual stream through a layer."""
    i, stream = block.index, recorded.inputs["module", block.index]
    first = recorded.inputs["q", i]
    _reads(anatomy, recorded, (block.attention_norm, "attention_norm", i), stream, first, 0.0, examiner, "attention")
    attention = _written(anatomy, recorded, (block.attention_post_norm, "attention_post_norm", i), recorded.outputs["output", i], examiner)
    middle = upcast(stream) + block.scale * upcast(attention)
    size = upcast(stream).abs() + block.scale * upcast(attention).abs()
    source, slack = (stream, 0.0) if anatomy.parallel else (middle, 4 * rounding(stream, attention) * size)
    _reads(anatomy, recorded, (block.mlp_norm, "mlp_norm", i), source, recorded.inputs["mlp", i], slack, examiner, "MLP")
    mlp_output = recorded.outputs["mlp" if block.down is None else "down", i]
    mlp = _written(anatomy, recorded, (block.mlp_post_norm, "mlp_post_norm", i), mlp_output, examiner)
    whole = middle + block.scale * upcast(mlp)
    allowed = 6 * rounding(stream, mlp) * (size + block.scale * upcast(mlp).abs())
    what = f"residual + heads + MLP of layer {i} (bias and post-norms included) differ from the layer's output"
    examiner.same(recorded.outputs["module", i], whole, allowed, what)


NormPlace = tuple[nn.Module | None, str, int]


def _reads(
    anatomy: Anatomy, recorded: Trace, norm: NormPlace, stream: Tensor, read: Tensor, slack: Tensor | float, examiner: Examiner, who: str
) -> None:
    """A sublayer reads the stream, through its pre-norm if it has one. `slack` bounds the rounding of the stream."""
    module, name, i = norm
    slack = slack + 2 * rounding(stream, read) * upcast(stream).abs()
    if module is None:
        examiner.same(read, stream, slack, f"what the {who} of layer {i} reads differs from the residual stream")
        return
    examiner.same(
        recorded.inputs[name, i], stream, slack, f"the input of the {who} norm of layer {i} differs from the residual stream there"
    )
    examiner.equal(read, recorded.outputs[name, i], f"what the {who} of layer {i} reads differs from the output of its norm")
    _norm(anatomy, module, recorded, (name, i), examiner)


def _written(anatomy: Anatomy, recorded: Trace, norm: NormPlace, output: Tensor, examiner: Examiner) -> Tensor:
    """The tensor that a sublayer adds to the stream: its output, or that of its post-norm."""
    module, name, i = norm
    if module is None:
        return output
    examiner.equal(
        recorded.inputs[name, i], output, f"the input of the {name.replace('_', ' ')} of layer {i} differs from the sublayer's output"
    )
    _norm(anatomy, module, recorded, (name, i), examiner)
    return recorded.outputs[name, i]


def _norm(anatomy: Anatomy, module: nn.Module, recorded: Trace, key: tuple[str, int], examiner: Examiner) -> None:
    """A norm computes the formula that gradients through it use."""
    x, y = recorded.inputs[key], recorded.outputs[key]
    norm = anatomy.norms[id(module)]
    expected, (_, r) = norm.value(x), norm.parts(x)
    place = key[0].replace("_", " ") + (f" of layer {key[1]}" if key[1] >= 0 else "")
    # the mean that is subtracted carries the rounding of the largest features
    largest = upcast(x).abs().amax(-1, keepdim=True) if norm.centred else upcast(x).abs()
    size = float(torch.maximum(expected.abs(), largest * r * norm.weight.abs()).max())
    examiner.same(y, expected, 16 * single(x, y) * size, f"the formula of the {place} differs from the module")


def _logits(anatomy: Anatomy, recorded: Trace, logits: Tensor, examiner: Examiner) -> None:
    """Logits are the unembedding's output up to a constant factor, or that output under the soft cap of the config."""
    if unembedding_of(anatomy) is None:
        raise examiner.fail("the model names no unembedding (get_output_embeddings)")
    z = upcast(recorded.outputs["unembedding", -1])
    if anatomy.softcap is not None:
        expected = anatomy.softcap * torch.tanh(z / anatomy.softcap)
        what = f"the unembedding's output under the soft cap {anatomy.softcap:g} differs from the logits"
    else:
        expected = z * ((upcast(logits) * z).sum() / z.square().sum().clamp(min=torch.finfo(z.dtype).tiny))
        what = "the logits are not a constant multiple of the unembedding's output (a soft cap? name it as final_softcap); they differ"
    examiner.same(logits, expected, 16 * rounding(recorded.outputs["unembedding", -1], logits) * float(upcast(logits).abs().max()), what)
