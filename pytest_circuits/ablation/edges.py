"""Replacing edges: one reader reads the residual stream with some components' contributions replaced; all others read it unchanged.

Each reader of removed edges is computed from its own stream, x + Σ (replacement − current contribution) over the removed
sources, through its norm; what follows is recomputed, so contributions further down are those of the changed run. Where a
post-norm stands between a component and the stream, both contributions go through it with its scale in the changed run:
the scale belongs to the sublayer as a whole, whose output does not depend on a single reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil

import torch
from torch import Tensor, nn

from ..core.edges import EdgeReader
from ..model.batches import Batch
from ..model.hooks import Edit, Hooks
from ..model.layout import Anatomy, Block
from ..model.precision import upcast
from ..model.projections import in_out
from ..model.runner import Runner
from ..model.sites import Site


def edge_logits(runner: Runner, batch: Batch, sites: Sequence[Site], masks: Tensor, values: Sequence[Tensor]) -> Tensor:
    """Logits of a batch under each of several sets of replaced edges, masks bool [sets, edges]; rows are sets × examples, sets outermost.

    `values` are the replacements at the components' sites. A reader without replaced edges in a set is left alone.
    """
    replacement = _EdgeReplacement(runner.anatomy, masks.to(runner.device), len(batch))
    with torch.no_grad(), Hooks() as hooks:
        replacement.install(hooks, sites, values)
        return runner.logits(batch.clean.repeat(len(masks), 1), batch.tail)


def rows_of_edges(anatomy: Anatomy, masks: Tensor) -> int:
    """The memory of a row of `edge_logits` in plain rows: it holds a d_model vector for each removed source."""
    return 1 + ceil(len(_removed(anatomy, masks)) / len(anatomy.blocks))


def _removed(anatomy: Anatomy, masks: Tensor) -> list[int]:
    """The components with an edge that some set removes."""
    is_removed = torch.zeros(anatomy.universe.components, dtype=torch.bool)
    for reader in anatomy.universe.edges.readers:
        is_removed[: reader.sources] |= masks[:, reader.columns].any(0).cpu()
    return [int(i) for i in is_removed.nonzero()]


class _EdgeReplacement:
    """The hooks of one stacked forward: [sets × batch] rows."""

    def __init__(self, anatomy: Anatomy, masks: Tensor, batch: int) -> None:
        self.anatomy, self.masks, self.shape = anatomy, masks, (len(masks), batch)
        self.removed = _removed(anatomy, masks)
        self.exchanged: list[tuple[Tensor, Tensor]] = []  # components, and replacement − contribution [sets, components, rows·T·d]
        self._inside = False

    def install(self, hooks: Hooks, sites: Sequence[Site], values: Sequence[Tensor]) -> None:
        """Record the removed sources, and change the inputs of the readers."""
        for site, value in zip(sites, values, strict=True):
            units = [c - site.columns.start for c in self.removed if site.columns.start <= c < site.columns.stop]
            if units:
                site.hook(hooks, self._guarded(lambda x, s=site, v=value, m=units: self._exchange(s, v, m, x)))  # type: ignore[misc]
                self._post_norm(hooks, site)
        live = [r for r in self.anatomy.universe.edges.readers if bool(self.masks[:, r.columns].any())]
        for block in self.anatomy.blocks:
            in_layer = [r for r in live if r.layer == block.index]
            self._attention(hooks, block, [r for r in in_layer if r.part in "qkv"])
            self._mlp(hooks, block, [r for r in in_layer if r.part == "mlp"])
        if live and live[-1].part == "logits":
            pattern = self.masks[:, live[-1].columns]
            hooks.on_input(self.anatomy.final_norm_module, lambda x: self._put(x, pattern, self._moved(x, pattern)), "final norm")

    def _guarded(self, edit: Edit) -> Edit:
        """An edit that ignores the calls that this class makes."""
        return lambda x: None if self._inside else edit(x)

    @contextmanager
    def _calling_modules(self) -> Iterator[None]:
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    def _by_set(self, x: Tensor) -> Tensor:
        """Rows as [sets, batch]."""
        return x.reshape(*self.shape, *x.shape[1:])

    def _exchange(self, site: Site, value: Tensor, removed: list[int], x: Tensor) -> None:
        """Record replacement − current contribution of the removed components of a site."""
        units = torch.tensor(removed, device=x.device)
        now = upcast(self._by_set(x)[:, :, :, units])
        change = upcast(value.to(x.device).expand(-1, -1, site.units, -1)[:, :, units]) - now
        change = change.permute(0, 3, 1, 2, 4)
        if site.kind == "heads":
            weight = upcast(in_out(site.module).detach()).view(site.units, site.width, -1)[units]
            change = change @ weight[:, None]
        change = change * site.block.scale
        self.exchanged.append((units + site.columns.start, change.flatten(2)))

    def _post_norm(self, hooks: Hooks, site: Site) -> None:
        """Pass the changes that `_exchange` recorded for a site through its post-norm."""
        module = site.block.attention_post_norm if site.kind == "heads" else site.block.mlp_post_norm
        if module is None:
            return
        norm = self.anatomy.norms[id(module)]

        def scale(x: Tensor) -> None:
            components, change = self.exchanged[-1]
            _, r = norm.parts(self._by_set(x))
            part = change.view(*change.shape[:2], *r.shape[1:-1], -1)
            if norm.centred:
                part = part - part.mean(-1, keepdim=True)
            self.exchanged[-1] = (components, (part * (r[:, None] * norm.weight)).flatten(2))

        hooks.on_input(module, self._guarded(scale), f"post-norm of layer {site.layer}")

    def _moved(self, x: Tensor, pattern: Tensor) -> Tensor:
        """The stream [rows, T, d] that a reader reads in the sets that replace any of its edges; `pattern` [sets, sources]."""
        sets = pattern.any(1).nonzero()[:, 0]
        stream = upcast(self._by_set(x)[sets])
        for components, change in self.exchanged:
            below = int((components < pattern.shape[1]).sum())
            chosen = pattern[sets][:, components[:below].to(pattern.device)].to(change)
            if bool(chosen.any()):
                delta = (chosen[:, None] @ change[sets, :below]).view(stream.shape)
                stream = stream + delta.to(stream.device)
        return stream.to(x.dtype).flatten(0, 1)

    def _put(self, y: Tensor, pattern: Tensor, new: Tensor, columns: Tensor | None = None) -> Tensor:
        """`y` with the rows of the sets that `pattern` changes taken from `new`, all features or only some."""
        sets = pattern.any(1).nonzero()[:, 0]
        out = self._by_set(y).clone()
        fresh = new.reshape(len(sets), self.shape[1], *new.shape[1:])
        if columns is None:
            out[sets] = fresh
        else:
            rows = out[sets]
            rows[..., columns] = fresh[..., columns]
            out[sets] = rows
        return out.flatten(0, 1)

    def _attention(self, hooks: Hooks, block: Block, readers: list[EdgeReader]) -> None:
        """Queries, keys and values of a layer, projection by projection."""
        modules = {id(block.readers[r.part].module): block.readers[r.part].module for r in readers}
        for key, module in modules.items():
            of_module = [r for r in readers if id(block.readers[r.part].module) == key]
            label = f"{of_module[0].part} projection of layer {block.index}"
            stream = self._stream(hooks, block.attention_norm or module, f"stream of the {label}")
            edit: Edit = lambda y, b=block, p=module, m=of_module, x=stream: self._project(b, p, m, x[0], y)  # type: ignore[misc]  # noqa: E731
            hooks.on_output(module, self._guarded(edit), label)

    def _stream(self, hooks: Hooks, module: nn.Module, label: str) -> list[Tensor]:
        """The input of a module, in a list that is filled when the module is called."""
        inputs: list[Tensor] = []
        hooks.on_input(module, self._guarded(lambda x: inputs.__setitem__(slice(None), [x])), label)
        return inputs

    def _project(self, block: Block, module: nn.Module, readers: list[EdgeReader], x: Tensor, y: Tensor) -> Tensor:
        """A projection's output with the readers' parts computed from their own streams; readers with the same edges share one."""
        by_pattern: dict[bytes, list[EdgeReader]] = {}
        for reader in readers:
            by_pattern.setdefault(self.masks[:, reader.columns].cpu().numpy().tobytes(), []).append(reader)
        for group in by_pattern.values():
            pattern = self.masks[:, group[0].columns]
            columns = torch.cat([block.readers[r.part].columns[r.head] for r in group]).to(y.device)
            with self._calling_modules():
                new = module(_normed(block.attention_norm, self._moved(x, pattern)))
            y = self._put(y, pattern, new, columns)
        return y

    def _mlp(self, hooks: Hooks, block: Block, readers: list[EdgeReader]) -> None:
        """The input of a layer's MLP."""
        if not readers:
            return
        pattern = self.masks[:, readers[0].columns]
        stream = None if block.mlp_norm is None else self._stream(hooks, block.mlp_norm, f"MLP norm of layer {block.index}")

        def read(y: Tensor) -> Tensor:
            with self._calling_modules():
                new = _normed(block.mlp_norm, self._moved(y if stream is None else stream[0], pattern))
            return self._put(y, pattern, new)

        hooks.on_input(block.mlp, self._guarded(read), f"MLP of layer {block.index}")


def _normed(norm: nn.Module | None, x: Tensor) -> Tensor:
    return x if norm is None else norm(x)
