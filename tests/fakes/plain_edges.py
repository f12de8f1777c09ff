"""Edge ablation written out by hand: one prompt, one set of edges, plain hooks, contributions through the projection modules themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.fakes.plain_hooks import Parts, as_ids, record


def edge_names(parts: Parts) -> list[str]:
    """All edges in order, from the definition: by reader, then by source."""
    found = []
    for layer in range(parts.L):
        below = parts.names[: layer * (parts.H + 1)]
        here = below if parts.parallel else parts.names[: layer * (parts.H + 1) + parts.H]
        targets = [f"L{layer}H{h}.q" for h in range(parts.H)] + [f"L{layer}KV{h}.{p}" for p in "kv" for h in range(parts.kv)]
        found += [f"{source}->{target}" for target in targets for source in below]
        found += [f"{source}->L{layer}MLP" for source in here]
    return found + [f"{source}->logits" for source in parts.names]


def slot(parts: Parts, name: str) -> tuple[str, int, slice]:
    """Where a component's value is: (kind, layer, slice)."""
    layer, tail = int(name[1]), name[2:]
    if tail == "MLP":
        return "mlp", layer, slice(0, parts.d)
    h = int(tail[1:])
    return "z", layer, slice(h * parts.hd, (h + 1) * parts.hd)


class EdgeRun:
    """Logits of one prompt with edges replaced. `values` {(kind, layer): activation} are what sources are replaced with."""

    def __init__(self, model, edges, values) -> None:
        self.model, self.parts, self.values = model, Parts(model), values
        self.sources: dict[str, list[str]] = {}
        for edge in edges:
            source, reader = edge.split("->")
            self.sources.setdefault(reader, []).append(source)
        self.now: dict[tuple[str, int], Tensor] = {}
        self.after: dict[tuple[str, int], Tensor] = {}

    def contribution(self, name: str, value: Tensor) -> Tensor:
        """What a value at a component's site adds to the stream, post-norms with the scale of this run."""
        kind, layer, where = slot(self.parts, name)
        added = value
        if kind == "z":
            alone = torch.zeros_like(self.now["z", layer])
            alone[..., where] = value
            project = self.parts.o[layer].forward  # past the hooks
            added = project(alone) - project(torch.zeros_like(alone))
        norm = (self.parts.post1 if kind == "z" else self.parts.post2)[layer]
        if norm is not None:
            x = self.after[kind, layer]
            weight = norm.weight + (1 if "Gemma" in type(norm).__name__ else 0)
            added = (
                added * weight / (x.square().mean(-1, keepdim=True) + getattr(norm, "eps", getattr(norm, "variance_epsilon", None))).sqrt()
            )
        return added

    def seen_by(self, reader: str, stream: Tensor) -> Tensor:
        """The stream as a reader sees it."""
        for name in self.sources[reader]:
            kind, layer, where = slot(self.parts, name)
            now, value = self.now[kind, layer][..., where], self.values[kind, layer].expand_as(self.now[kind, layer])[..., where]
            stream = stream + self.contribution(name, value) - self.contribution(name, now)
        return stream

    def logits(self, ids) -> Tensor:
        parts, handles, streams = self.parts, [], {}
        keep = lambda store, key: lambda _m, a: store.__setitem__(key, a[0].clone())  # noqa: E731
        for layer in range(parts.L):
            handles.append(parts.o[layer].register_forward_pre_hook(keep(self.now, ("z", layer))))
            handles.append(parts.down[layer].register_forward_hook(lambda _m, _a, y, k=("mlp", layer): self.now.__setitem__(k, y.clone())))
            for kind, norm in (("z", parts.post1[layer]), ("mlp", parts.post2[layer])):
                if norm is not None:
                    handles.append(norm.register_forward_pre_hook(keep(self.after, (kind, layer))))
            for which, norm, first in (("attention", parts.norm1[layer], "q"), ("mlp", parts.norm2[layer], None)):
                module = norm if norm is not None else parts.mlp[layer] if first is None else parts.projection(layer, first)
                handles.append(module.register_forward_pre_hook(keep(streams, (which, layer))))
            for which in "qkv":
                for h in range(parts.H if which == "q" else parts.kv):
                    reader = f"L{layer}{'H' if which == 'q' else 'KV'}{h}.{which}"
                    if reader in self.sources:
                        handles.append(
                            parts.projection(layer, which).register_forward_hook(self._projection(layer, which, h, reader, streams))
                        )
            if f"L{layer}MLP" in self.sources:
                handles.append(parts.mlp[layer].register_forward_pre_hook(self._mlp(layer, streams)))
        if "logits" in self.sources:
            handles.append(parts.final_norm.register_forward_pre_hook(lambda _m, a: (self.seen_by("logits", a[0]),)))
        try:
            with torch.no_grad():
                return self.model(input_ids=as_ids(ids), use_cache=False).logits[0]
        finally:
            for handle in handles:
                handle.remove()

    def _projection(self, layer, which, head, reader, streams):
        norm = getattr(self.parts.norm1[layer], "forward", lambda x: x)  # past the hooks

        def swap(module, _args, y):
            y = y.clone()
            columns = self.parts.columns(which, head)
            y[..., columns] = module.forward(norm(self.seen_by(reader, streams["attention", layer])))[..., columns]
            return y

        return swap

    def _mlp(self, layer, streams):
        norm = self.parts.norm2[layer]

        def swap(_module, args):
            x = args[0] if norm is None else streams["mlp", layer].clone()
            moved = self.seen_by(f"L{layer}MLP", x)
            return (moved if norm is None else norm.forward(moved),)

        return swap


def zeros(model, ids) -> dict[tuple[str, int], Tensor]:
    """Zero ablation."""
    return {key: torch.zeros_like(x) for key, x in record(model, ids, ("z", "mlp")).items()}
