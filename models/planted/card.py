"""Model cards of planted circuits: what is planted where, and the truth as a table."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from .registry import CIRCUITS
from .truth import Planted, Truth

METHODS = ("zero", "counterfactual", "gradient", "atp", "relp", "eap_ig", "ig_activations")
SHOWN = 16  # names in a list

OVERVIEW = """# Planted circuits

Real Hugging Face models whose weights were set by hand. It is known which parts do the work and what score each attribution method must
give: ground truth for attribution, ablation, redundancy and faithfulness. Nothing was trained; each model does its task without a mistake.
Open one as `models: {{candidate: {{path: models/planted-circuits/copy_head}}}}` with the task
`{{file: models/planted-circuits/copy_head/task.jsonl, scoring: argmax}}`. Made by `python -m models.planted`; licence: that of this
repository.

| folder | class | layers × heads | parameters | examples | causal components |
|---|---|---|---|---|---|
{rows}

In each folder: the model in float32, its tokenizer, `task.jsonl`, `truth.json` (all that is known) and a model card.

The tables show how the logit difference of answer and foil changes, which is the same on every example. *zero* and *counterfactual* are the
exact effects of replacing one component by zero, or by its value on the corrupt prompt. The other columns are what a method gives in
theory: *gradient* for replacing by zero, the others for replacing by the corrupt value. Where this differs from the exact effect, the
method is wrong. Components that are not in a table have 0 in every column.
"""


def overview(planted: Iterable[Planted]) -> str:
    """One page for all of them, with the table of each."""
    every = list(planted)
    rows = "\n".join(_row(one) for one in every)
    return OVERVIEW.format(rows=rows) + "".join(f"\n## {one.name}\n\n{account(one.name)}\n\n{table(one.truth)}" for one in every)


def account(name: str) -> str:
    """Title and explanation of a circuit, as its module tells them."""
    return inspect.getdoc(inspect.getmodule(CIRCUITS[name])) or ""


def table(truth: Truth) -> str:
    """Effects by component and method, then joint effects, neurons, dead parts and notes."""
    effects = {method: getattr(truth, method) for method in METHODS}
    names = [*truth.causal, *sorted({name for found in effects.values() for name in found} - set(truth.causal))]
    lines = [f"| component | {' | '.join(METHODS)} |", f"|---|{'---|' * len(METHODS)}"]
    lines += [f"| {name} | {' | '.join(_number(found.get(name, 0.0)) for found in effects.values())} |" for name in names]
    lines += ["", f"- intact: {truth.intact:g}; causal: {', '.join(truth.causal)}; inactive: {_listed(truth.dead)}."]
    lines += [f"- {one.kind} of {' and '.join(one.units)} together: {one.effect:+g}." for one in truth.joint]
    lines += [f"- neurons: {', '.join(f'{place} writes {word}' for word, place in truth.neurons.items())}."] if truth.neurons else []
    lines += [f"- {note}." for note in truth.notes]
    return "\n".join(lines) + "\n"


def _number(effect: float) -> str:
    """With its sign; what float32 cannot tell from 0 beside effects of 16 is 0."""
    return f"{effect:+g}" if abs(effect) > 1e-6 else "0"


def _row(one: Planted) -> str:
    c = one.model.config
    shape = f"{c.num_hidden_layers} × {c.num_attention_heads}"
    parameters = sum(p.numel() for p in one.model.parameters())
    return f"| {one.name} | {type(one.model).__name__} | {shape} | {parameters:,} | {len(one.task)} | {', '.join(one.truth.causal)} |"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "") if names else "none"
