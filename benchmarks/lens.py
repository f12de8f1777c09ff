"""Against edge attribution patching one example at a time on TransformerLens (the extra `benchmark`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .subjects import gpt2_small, pairs, subject
from .timing import Row, at_least


def one_at_a_time(model: Any, clean: torch.Tensor, corrupt: torch.Tensor, answer: torch.Tensor, foil: torch.Tensor) -> list[torch.Tensor]:
    """EAP as notebooks do it: for each example two forwards and a backward with cached hooks, then edge scores by node and reader."""
    names = ("hook_result", "hook_mlp_out", "hook_q_input", "hook_k_input", "hook_v_input", "hook_mlp_in")

    def wanted(name: str) -> bool:
        return name.endswith(names) or name.endswith(f"{model.cfg.n_layers - 1}.hook_resid_post")

    found = []
    for i in range(len(clean)):
        with torch.no_grad():
            _, other = model.run_with_cache(corrupt[i : i + 1], names_filter=wanted)
        kept, slopes = _watched(model, wanted)
        logits = model(clean[i : i + 1])[0, -1]
        (logits[answer[i]] - logits[foil[i]]).backward()
        model.reset_hooks()
        found.append(_scores(model, kept, other, slopes))
    return found


def _watched(model: Any, wanted: Callable[[str], bool]) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Hooks that fill the two mappings with activations and gradients by hook name."""
    kept: dict[str, torch.Tensor] = {}
    slopes: dict[str, torch.Tensor] = {}
    model.reset_hooks()
    for name, hook in model.hook_dict.items():
        if wanted(name):
            hook.add_hook(lambda x, hook: kept.__setitem__(hook.name, x.detach()))
            hook.add_hook(lambda g, hook: slopes.__setitem__(hook.name, g.detach()), dir="bwd")
    return kept, slopes


def _scores(model: Any, clean: dict[str, torch.Tensor], corrupt: Any, slopes: dict[str, torch.Tensor]) -> torch.Tensor:
    layers = model.cfg.n_layers
    sources: list[torch.Tensor] = []
    total = torch.zeros(layers * (model.cfg.n_heads + 1))

    def read(gradient: torch.Tensor) -> None:
        if sources:
            change = torch.cat(sources)
            edges = torch.einsum("spd,rpd->sr", change, gradient)
            total[: len(change)] += edges.abs().sum(1)

    for layer in range(layers):
        for kind in "qkv":
            read(slopes[f"blocks.{layer}.hook_{kind}_input"][0].transpose(0, 1))
        name = f"blocks.{layer}.attn.hook_result"
        sources.append((corrupt[name] - clean[name])[0].transpose(0, 1))
        read(slopes[f"blocks.{layer}.hook_mlp_in"])
        name = f"blocks.{layer}.hook_mlp_out"
        sources.append(corrupt[name] - clean[name])
    read(slopes[f"blocks.{layers - 1}.hook_resid_post"])
    return total


def lens_model(model: Any) -> Any:
    """The same random weights in TransformerLens, unprocessed."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained.weight_conversions import convert_gpt2_weights

    c = model.config
    config = HookedTransformerConfig(
        n_layers=c.n_layer, d_model=c.n_embd, n_heads=c.n_head, d_head=c.n_embd // c.n_head, d_mlp=4 * c.n_embd,
        d_vocab=c.vocab_size, n_ctx=c.n_positions, act_fn="gelu_new", normalization_type="LN",
        use_attn_result=True, use_split_qkv_input=True, use_hook_mlp_in=True,
    )  # fmt: skip
    made = HookedTransformer(config)
    made.load_state_dict(convert_gpt2_weights(model, config), strict=False)
    for parameter in made.parameters():
        parameter.requires_grad_(False)
    embed = made.hook_dict["hook_embed"]
    embed.add_perma_hook(lambda x, hook: x.requires_grad_() if torch.is_grad_enabled() else x)
    return made.eval()


def rows(rounds: int) -> Iterator[Row]:
    model = gpt2_small()
    lens = lens_model(model)
    opened = subject(model)
    task = pairs(16, 16, 50257)
    clean, corrupt = (torch.tensor([getattr(p, side) for p in task]) for side in ("clean", "corrupt"))
    answer, foil = torch.tensor([p.answer[0] for p in task]), torch.tensor([p.foils[0][0] for p in task])
    theirs = torch.stack(one_at_a_time(lens, clean[:2], corrupt[:2], answer[:2], foil[:2]))
    ours = torch.from_numpy(opened.attribute(task, "eap", examples=[0, 1]).scores)
    worst = float((theirs - ours).abs().max() / ours.abs().max())
    assert worst < 1e-2, f"the two do not compute the same thing: largest difference {worst:.1e}"
    note = f"16 prompts of 16 tokens, batches of 16; scores agree to {worst:.0e}"
    for method, bar in (("atp", 18.0), ("eap", 12.0)):
        yield at_least(
            f"one-at-a-time EAP on TransformerLens / {method}", bar,
            lambda: one_at_a_time(lens, clean, corrupt, answer, foil),
            lambda method=method: opened.attribute(task, method, batch_size=16), max(2, rounds // 2), note,
        )  # fmt: skip
