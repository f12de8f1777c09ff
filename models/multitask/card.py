"""The model card, from the record of a training run."""

from __future__ import annotations

from typing import Any

EXAMPLES = {
    "addition": "`Compute: 47 + 12 = ` → `59`, and no digit after it",
    "boolean": "`Evaluate: (true and not false) or true = ` → `true`",
    "ioi": "`When Mary and John went to the store, John gave a drink to` → ` Mary`",
    "copycolors": "a coloured thing and four lettered colours → the letter",
    "sva": "`Today the boys near the tree` → ` are`",
    "capitals": "`The capital of the state containing Dallas is` → ` Austin`",
}


def text(record: dict[str, Any]) -> str:
    """Markdown."""
    plan = record["plan"]
    rows = "\n".join(
        f"| {name} | {EXAMPLES[name]} | {record['held_out'][name]:.1%} ({record['held_out_n'][name]}) | {record['load_task'][name]:.1%} |"
        for name in record["held_out"]
    )
    return f"""# multitask-{record["name"]}

A small language model that does six built-in tasks of pytest-circuits and nothing else. It is for specs, examples and tests that need a
trained model without a network.

- {_shape(record)}:
  {record["parameters"]:,} parameters, stored in {record["dtype"]}.
- {record["vocabulary"]} word-level tokens; each digit and punctuation mark is a token, white space only separates tokens;
  `<bos>` comes first.
- Trained for {plan["steps"]} steps in {record["seconds"]} s on one CPU thread (seed {plan["seed"]}), on prompts made by this repository.
  `training.json` has all numbers.
- Licence: that of this repository.

| task | example | held-out prompts (n) | `load_task(task, n=256, seed=0)` |
|---|---|---|---|
{rows}

{_precision(record)}{_series(record)}Accuracy is defined as in claims: the whole answer by argmax, including the end of the number (addition), or the answer above its foils
(the others). One prompt in ten, by a hash of its text, was not used for training; the column *held-out* is measured only on those.
`load_task` does not know this split: about nine in ten of its prompts for addition, boolean and capitals, which have few prompts, were
also seen in training. So the model is suitable for claims about how it computes, not about how it generalizes.

Made by `python -m models.multitask {record["name"]}` from the repository's root.
"""  # noqa: E501


def _shape(record: dict[str, Any]) -> str:
    size = record["size"]
    layers = f"{size['layers']} layers, {size['heads']} heads a layer"
    return f"{record['architecture']}, {layers}, width {size['width']}, MLPs of {size['mlp'] * size['width']}"


def _precision(record: dict[str, Any]) -> str:
    if record["dtype"] == "float32":
        return ""
    return f"""The weights were rounded to {record["dtype"]} and the accuracies measured after that, computing in float32: open it with
`dtype: float32` in a spec.

"""


def _series(record: dict[str, Any]) -> str:
    steps = record["held_out_by_step"]
    if not steps:
        return ""
    names = list(record["held_out"])
    rows = "\n".join(
        f"| `step-{int(step):04}` | " + " | ".join(f"{found[name]:.1%}" for name in names) + " |" for step, found in steps.items()
    )
    return f"""One run, saved at several steps; the table above is about the last step. Held-out accuracy by step:

| folder | {" | ".join(names)} |
|---|{"---|" * len(names)}
{rows}

"""
