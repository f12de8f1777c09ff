"""Edge scores as finite differences in which exactly one reader sees a moved residual stream."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from pytest_circuits.attribution.eap import Eap
from pytest_circuits.attribution.method import Job
from pytest_circuits.model.hooks import measuring
from pytest_circuits.model.sites import sites_of
from tests.fakes.plain_hooks import Parts, as_ids, metric, prompts, record

STEP = 1e-5


def run(model, ids, embedded):
    """A forward of one prompt, or of given embeddings."""
    with torch.no_grad():
        return model(**({"input_ids": as_ids(ids)} if embedded is None else {"inputs_embeds": embedded}), use_cache=False)


def through_post_norm(model, norm, change: torch.Tensor, clean, embedded) -> torch.Tensor:
    """The derivative of a post-norm at the clean run, by finite differences of the module itself."""
    if norm is None:
        return change
    kept = []
    handle = norm.register_forward_pre_hook(lambda _m, a: kept.append(a[0]))
    run(model, clean, embedded)
    handle.remove()
    return (norm.forward(kept[0] + STEP * change) - norm.forward(kept[0] - STEP * change)) / (2 * STEP)


def contributions(model, clean, corrupt, embedded=None) -> torch.Tensor:
    """Each component's corrupt − clean contribution to the residual stream; [components, T, d], by the modules themselves."""
    parts, a, c = Parts(model), record(model, clean), record(model, corrupt)
    found = []
    with torch.no_grad():
        for layer in range(parts.L):
            change = c["z", layer] - a["z", layer]
            for h in range(parts.H):
                alone = torch.zeros_like(change)
                alone[..., h * parts.hd : (h + 1) * parts.hd] = change[..., h * parts.hd : (h + 1) * parts.hd]
                written = parts.o[layer](alone) - parts.o[layer](torch.zeros_like(alone))
                found.append(through_post_norm(model, parts.post1[layer], written, clean, embedded)[0])
            written = c["mlp", layer] - a["mlp", layer]
            found.append(through_post_norm(model, parts.post2[layer], written, clean, embedded)[0])
    return torch.stack(found)


def readers(parts: Parts):
    """(layer, what, head, number of upstream components) of every reader."""
    for layer in range(parts.L):
        below = layer * (parts.H + 1)
        for which, heads in (("q", parts.H), ("k", parts.kv), ("v", parts.kv)):
            yield from ((layer, which, h, below) for h in range(heads))
        yield layer, "mlp", 0, below if parts.parallel else below + parts.H
    yield parts.L, "logits", 0, parts.L * (parts.H + 1)


def one_reader_sees(parts: Parts, reader, moved: torch.Tensor) -> list:
    """Hooks by which this reader, and nothing else, reads the residual stream plus `moved` [rows, T, d]."""
    layer, which, head, _ = reader
    if which == "logits":
        return [parts.final_norm.register_forward_pre_hook(lambda _m, a: (a[0] + moved,))]
    norm: nn.Module | None = (parts.norm2 if which == "mlp" else parts.norm1)[layer]
    kept = []
    if norm is None:
        return bare_reader_sees(parts, reader, moved)
    handles = [norm.register_forward_pre_hook(lambda _m, a: kept.append(a[0]))]
    if which == "mlp":
        handles.append(parts.mlp[layer].register_forward_pre_hook(lambda _m, _a: (norm.forward(kept.pop() + moved),)))
        return handles
    columns = parts.columns(which, head)

    def swap(module, _args, y):
        y = y.clone()
        y[..., columns] = module.forward(norm.forward(kept.pop() + moved))[..., columns]
        return y

    return [*handles, parts.projection(layer, which).register_forward_hook(swap)]


def bare_reader_sees(parts: Parts, reader, moved: torch.Tensor) -> list:
    """The same where nothing is between the stream and the reader."""
    layer, which, head, _ = reader
    if which == "mlp":
        return [parts.mlp[layer].register_forward_pre_hook(lambda _m, a: (a[0] + moved,))]
    columns = parts.columns(which, head)

    def swap(module, args, y):
        y = y.clone()
        y[..., columns] = module.forward(args[0] + moved)[..., columns]
        return y

    return [parts.projection(layer, which).register_forward_hook(swap)]


def edge_oracle(model, pair, which="logit_diff", embedded=None) -> list[np.ndarray]:
    """For every reader with something upstream: d/dε m(reader sees ε·Δ_u more), for each upstream u."""
    parts = Parts(model)
    clean, corrupt, _ = prompts(pair)
    change, found = contributions(model, clean, corrupt, embedded), []
    for reader in readers(parts):
        count = reader[3]
        if not count:
            continue
        moved = torch.cat([STEP * change[:count], -STEP * change[:count]])
        handles = one_reader_sees(parts, reader, moved)
        given = (
            {"input_ids": as_ids(clean).repeat(2 * count, 1)} if embedded is None else {"inputs_embeds": embedded.repeat(2 * count, 1, 1)}
        )
        with torch.no_grad():
            logits = model(**given, use_cache=False).logits
        for handle in handles:
            handle.remove()
        m = np.array([float(metric(which, x, pair)) for x in logits])
        found.append((m[:count] - m[count:]) / (2 * STEP))
    return found


def edges_of(subject, task, method=None, metric_name="logit_diff") -> list[list[np.ndarray]]:
    """For each example, signed edge scores as the engine has them: one array [upstream] a reader."""
    sites, universe = sites_of(subject.anatomy)
    job = Job(subject._runner, subject.encode(task), None, metric_name, "component", None, sites, universe)
    found: list[list[np.ndarray]] = [[] for _ in range(len(task))]
    with measuring(subject.model):
        for batch in job.batches():
            for columns, scores in (method or Eap()).edges(job, batch):
                assert columns.start == 0
                for i, row in enumerate(batch.rows):
                    found[int(row)] += list(scores[i].T.numpy())
    return found


def total(edges: list[np.ndarray], components: int, magnitude: bool) -> np.ndarray:
    out = np.zeros(components)
    for e in edges:
        out[: len(e)] += np.abs(e) if magnitude else e
    return out
