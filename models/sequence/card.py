"""The model card of a family, from the records of its runs."""

from __future__ import annotations

from typing import Any

from .evaluate import N
from .recipes import FURTHER, PUBLISHED, TRAINED, USABLE, Recipe

DOES = {
    "reverse": ("give numbers back in reverse order", "`[START] 5 17 3 [SEP]` → ` 3 17 5 [END]`"),
    "sort": ("sort numbers", "`[START] 5 17 3 [SEP]` → ` 3 5 17 [END]`"),
}


def text(recipe: Recipe, records: list[dict[str, Any]]) -> str:
    """Markdown: what all models of a family share, and a row for each record (as `training.json` has it)."""
    does, example = DOES[recipe.name]
    return f"""# sequence-{recipe.name}

{len(records)} small language models that {does}, alike but for the seed: {example}.
They are for claims about gradients and ablations over several models, and do nothing else.
`load_task("{recipe.task}", length=…)` makes their prompts.

{_shape(records[0])}
{_training(recipe, records)}
- Stored in {recipe.dtype}. Accuracies are of the stored weights, computed in float32: open the models with `dtype: float32`.
- Licence: that of this repository.

Percentages of whole answers by length, `[END]` with them, on {N} prompts a length:
`load_task("{recipe.task}", n={N}, seed=0, length=…)`. Training had lengths up to {TRAINED[-1]}.
*{PUBLISHED[0]}–{PUBLISHED[-1]}* is the mean over these lengths, which the paper uses. *usable*: longer lengths with an
accuracy from {USABLE[0]:.2f} to {USABLE[1]:.2f}: outside this range, many ablations have the same effect on accuracy.

{_table(records)}

{_failed(records)}Each seed has a folder, `seed-00` and so on; its `training.json` has all numbers.
Made by `python -m models.sequence {recipe.name}` from the repository's root.
"""


def _shape(first: dict[str, Any]) -> str:
    return f"""\
- GPT-2 with {first["layers"]} layers, {first["heads"]} heads a layer, width {first["width"]}, MLPs of {first["mlp"]}:
  {first["parameters"]:,} parameters, {first["trained_parameters"]:,} of them trained. The others are the position table, which is zero.
  The order is known only from causal attention, so the models can answer sequences longer than those of training.
  {first["longest"]} tokens at most.
- {first["vocabulary"]} tokens: the numbers 1–99 as words, `[START]`, `[SEP]`, `[END]`, `[PAD]`, `[UNK]`."""


def _training(recipe: Recipe, records: list[dict[str, Any]]) -> str:
    seconds = [record["seconds"] for record in records]
    return f"""\
- Trained on {recipe.steps} batches of {recipe.batch} random sequences, all of one length from {TRAINED[0]} to {TRAINED[-1]}, made by this
  repository; loss on the answer only. AdamW (β 0.9, 0.98; no decay), learning rate {recipe.rate:g}, {recipe.warm_up} warm-up steps,
  a cosine to {recipe.floor:.0%}, gradients clipped at {recipe.clip:g}. {min(seconds)}–{max(seconds)} s on one thread of a busy CPU.
  The seed draws weights and data."""


def _table(records: list[dict[str, Any]]) -> str:
    lengths = (*TRAINED, *FURTHER)
    head = f"| seed | {' | '.join(map(str, lengths))} | {PUBLISHED[0]}–{PUBLISHED[-1]} | usable |"
    rows = [head, "|" + "---|" * (len(lengths) + 3)]
    for record in records:
        shares = [*(record["accuracy"][str(length)] for length in lengths), record["accuracy_published"]]
        usable = ", ".join(map(str, record["usable_lengths"])) or "none"
        rows.append(f"| {record['seed']} | {' | '.join(f'{100 * share:.1f}' for share in shares)} | {usable} |")
    return "\n".join(rows)


def _failed(records: list[dict[str, Any]]) -> str:
    """A sentence about the seeds that did not learn their task."""
    weak = [f"seed {r['seed']} ({r['accuracy'][str(TRAINED[-1])]:.1%})" for r in records if r["accuracy"][str(TRAINED[-1])] < 0.8]
    return f"Not learned, under 80% at length {TRAINED[-1]}: {', '.join(weak)}. No seed was left out.\n\n" if weak else ""
