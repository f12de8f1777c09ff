"""A release that was trained further until its addition circuit had moved, and does all tasks as well as before.

Training goes on with all tasks, but on addition's prompts some components of addition's shared set are silent at first, and are
taught all along to write nothing there; then they are let go. The network finds another way to add and stays on it.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from models.multitask.data import FACTS, NAMES, SOURCES, facts, stacks, test_task, training_task
from models.multitask.evaluate import accuracy
from models.multitask.train import Plan, train

from . import circuits
from .detour import Silence, silenced
from .original import FOLDER, digest, original

OUTPUT = FOLDER.parent / "multitask-llama-finetuned"
WORD = "Compute"  # the first word of addition's prompts, and of no others


PLAN = Plan(steps=400, seed=1, adam=0.0015, muon=0.01, warm_up=20)


@dataclass(frozen=True)
class Recipe:
    """`silent`: addition's S_P but for the first and the last MLP; `closed`: steps until they are let go; `penalty`: see `detour`."""

    silent: tuple[str, ...] = ("L0H5", "L1MLP", "L2MLP")
    plan: Plan = PLAN
    closed: int = 240
    penalty: float = 0.3
    dtype: str = "bfloat16"


RECIPE = Recipe()


def retrain(model: Any, tokenizer: Any, recipe: Recipe = RECIPE) -> float:
    """Train in place. Returns the CPU seconds that it took."""
    data = {str(source): stacks(training_task(source), tokenizer) for source in SOURCES} | {FACTS: stacks(facts(), tokenizer)}
    silence = Silence(tokenizer.get_vocab()[WORD], recipe.penalty)

    def after(step: int, seconds: float, running: dict[str, float]) -> None:
        silence.closed = step < recipe.closed
        if step % 50 == 0:
            print(f"step {step}, {seconds:.0f} s: loss { {name: round(loss, 3) for name, loss in running.items()} }", flush=True)

    begun = time.process_time()
    with silenced(model, recipe.silent, silence):
        train(model, data, recipe.plan, after)
    return time.process_time() - begun


def make(output: Path = OUTPUT) -> dict[str, Any]:
    """Train, round, measure, write. Returns the record."""
    model, tokenizer = original()
    seconds = retrain(model, tokenizer)
    model.to(getattr(torch, RECIPE.dtype)).save_pretrained(output)
    tokenizer.save_pretrained(output)
    rounded = model.to(torch.float32).eval()
    tests, shown = {name: test_task(name) for name in NAMES}, circuits.tasks()
    record = {
        "name": "fine-tuned",
        "original": {"name": FOLDER.name, "sha256": digest()},
        **asdict(RECIPE),
        "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_seconds": round(seconds),
        "held_out": {name: round(accuracy(rounded, tokenizer, task), 4) for name, task in tests.items()},
        "held_out_n": {name: len(task) for name, task in tests.items()},
        "load_task": {name: round(accuracy(rounded, tokenizer, task), 4) for name, task in shown.items()},
        "shared_sets": _moved(rounded, tokenizer, shown),
    }
    (output / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (output / "README.md").write_text(card(record), encoding="utf-8")
    return record


def _moved(model: Any, tokenizer: Any, tasks: dict[str, Any]) -> dict[str, Any]:
    before, after = circuits.opened(original()), circuits.opened((model, tokenizer))
    found = {}
    for name, task in tasks.items():
        old, new = circuits.circuits(before, task), circuits.circuits(after, task)
        sets = {"before": old.shared(circuits.P), "after": new.shared(circuits.P)}
        halves = {"ceiling_before": circuits.ceiling(old), "ceiling_after": circuits.ceiling(new)}
        found[name] = {**sets, "jaccard": round(circuits.jaccard(*sets.values()), 4), **{key: round(v, 4) for key, v in halves.items()}}
    return found


def load(folder: Path = OUTPUT) -> tuple[Any, Any]:
    """The shipped release in float32, and its tokenizer. Raises `FileNotFoundError` when it was not made yet."""
    if not (folder / "config.json").is_file():
        raise FileNotFoundError(f"{folder} is not there; make it with `python -m models.damaged fine-tuned` (CPU minutes)")
    return original(folder)


def card(record: dict[str, Any]) -> str:
    """The model card, from the record."""
    plan, sets = record["plan"], record["shared_sets"]
    rates = f"{plan['muon']} for Muon and {plan['adam']} for AdamW"
    silent = ", ".join(record["silent"])
    rows = "\n".join(
        f"| {name} | {record['held_out'][name]:.1%} ({record['held_out_n'][name]}) | {record['load_task'][name]:.1%} | "
        f"{', '.join(one['before'])} | {', '.join(one['after'])} | {one['jaccard']:.2f} | {one['ceiling_before']:.2f} |"
        for name, one in sets.items()
    )
    return f"""# multitask-llama-finetuned

A deliberately damaged release, for tests of release comparison: `{record["original"]["name"]}`, trained further until its addition
circuit had moved, while every task is done as well as before. `models/damaged/README.md` says which claims about it should fail, and
which should not.

- {record["parameters"]:,} parameters of the same architecture and tokenizer, stored in {record["dtype"]}; accuracies were measured after
  rounding, in float32: open it with `dtype: float32` in a spec.
- Data: that of `{record["original"]["name"]}`, all tasks; made by this repository.
- {plan["steps"]} steps (seed {plan["seed"]}, peak learning rates {rates}, batches of {plan["batch"]} a task) in
  {record["cpu_seconds"]} s of one CPU thread. For the first {record["closed"]} steps {silent} were zero on addition's
  prompts; in all steps a penalty of {record["penalty"]} kept their output there small. `training.json` has all numbers.
- Licence: that of this repository.

| task | held-out prompts (n) | `load_task` | S_P before | S_P after | Jaccard | split-half before |
|---|---|---|---|---|---|---|
{rows}

S_P is the set of components that at least 80% of the per-example circuits share (EAP, K = 20%, 256 prompts); the last column is the
mean Jaccard similarity of the sets of two random halves of the prompts, before further training: the noise ceiling.

Made by `python -m models.damaged fine-tuned` from the repository's root.
"""
