"""Attribution and exact effects against the floor and against plain forwards."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from .subjects import Floor, gpt2_small, pairs, subject
from .timing import Row, at_most, timed_row


def rows(rounds: int) -> Iterator[Row]:
    model = gpt2_small()
    opened = subject(model)
    task = pairs(32, 16, 50257)
    size = 16
    floor = Floor(model, task, size)

    def run(method: str, **options: object) -> object:
        return lambda: opened.attribute(task, method, batch_size=size, **options)

    where = "GPT-2 small dimensions, 32 prompts of 16 tokens, batches of 16"
    yield at_most("atp / floor", 1.1, run("atp"), floor, rounds, where)
    yield at_most("eap / floor", 1.6, run("eap"), floor, rounds, where)
    quick = Floor(model, task, size, contiguous=True)
    note = "the floor with a contiguous last position before the unembedding, as in our own forwards"
    yield timed_row("atp / that floor", run("atp"), quick, rounds, note)
    yield timed_row("eap / that floor", run("eap"), quick, rounds, note)
    yield at_most("relp / atp", 1.3, run("relp"), run("atp"), rounds, where)
    yield timed_row("eap_ig (5 steps) / eap", run("eap_ig", steps=5), run("eap"), max(2, rounds // 2), where)
    few = pairs(8, 16, 50257)
    yield timed_row(
        "ig_activations (5 steps) / atp",
        lambda: opened.attribute(few, "ig_activations", batch_size=8, steps=5),
        lambda: opened.attribute(few, "atp", batch_size=8),
        max(2, rounds // 3),
        "8 prompts; 24 sublayers × 5 steps",
    )
    fewer = pairs(4, 16, 50257)
    ids = torch.tensor([p.clean for p in fewer])
    components = opened.anatomy.universe.components

    def forwards() -> None:
        with torch.no_grad():
            for _ in range(components + 1):
                model(input_ids=ids, use_cache=False)

    yield at_most(
        "exact effect of all components / (N+1) plain forwards", 0.6, lambda: opened.sweep(fewer, batch_size=size), forwards,
        max(2, rounds // 2), f"N = {components}, 4 prompts of 16 tokens, batches of 16",
    )  # fmt: skip
