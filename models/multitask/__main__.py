"""Command line of the recipes: trains one model and writes its folder under models/."""

from __future__ import annotations

import argparse
import copy
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from . import card, vocabulary
from .architectures import LENGTH, build
from .data import FACTS, NAMES, SOURCES, facts, make, stacks, test_task, training_task
from .evaluate import accuracy
from .recipes import RECIPES, Recipe
from .train import train


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m models.multitask", description=__doc__)
    parser.add_argument("name", choices=sorted(RECIPES), help="which model")
    parser.add_argument("--output", type=Path, help="folder to write (default: models/multitask-NAME)")
    parser.add_argument("--evaluate-every", type=int, default=100, metavar="STEPS")
    return parser.parse_args()


@dataclass
class Run:
    """One training run: what is measured and written on the way."""

    recipe: Recipe
    tokenizer: Any
    output: Path
    saved: dict[int, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tests = {name: test_task(name) for name in NAMES}

    def measured(self, model: Any, tasks: dict[str, Any] | None = None) -> dict[str, float]:
        """Accuracy by task; of the held-out prompts unless others are given."""
        return {name: round(accuracy(model, self.tokenizer, task), 4) for name, task in (tasks or self.tests).items()}

    def folder(self, step: int) -> Path:
        """Where the weights after a step go: a folder for each step of a series, the model's own otherwise."""
        return self.output / f"step-{step:04}" if self.recipe.series else self.output

    def save(self, model: Any, step: int) -> Any:
        """Write the weights, rounded to the recipe's type. Returns the rounded model in float32; the given one is left as it is."""
        stored = copy.deepcopy(model).to(getattr(torch, self.recipe.dtype))
        stored.save_pretrained(self.folder(step))
        self.tokenizer.save_pretrained(self.folder(step))
        rounded = stored.to(torch.float32).eval()
        self.saved[step] = self.measured(rounded)
        return rounded


def main() -> None:
    """Train, evaluate, write."""
    arguments = _arguments()
    torch.set_num_threads(1)  # sums in one order: the same weights each time on one machine
    recipe = RECIPES[arguments.name]
    run = Run(recipe, vocabulary.build(LENGTH), arguments.output or Path(__file__).parents[1] / f"multitask-{arguments.name}")
    torch.manual_seed(recipe.plan.seed)
    model = build(recipe.architecture, recipe.size, run.tokenizer)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{len(run.tokenizer)} tokens, {parameters} parameters", flush=True)
    training = {str(s): stacks(training_task(s), run.tokenizer) for s in SOURCES} | {FACTS: stacks(facts(), run.tokenizer)}

    def after(step: int, seconds: float, running: dict[str, float]) -> None:
        if step in recipe.series:
            run.save(model, step)
        if step % arguments.evaluate_every == 0 or step == recipe.plan.steps:
            losses = {name: round(loss, 3) for name, loss in running.items()}
            print(f"step {step}, {seconds:.0f} s: {run.measured(model)} loss {losses}", flush=True)

    seconds = train(model, training, recipe.plan, after)
    final = run.save(model, recipe.plan.steps)
    record = {
        "name": arguments.name,
        **asdict(recipe),
        "parameters": parameters,
        "vocabulary": len(run.tokenizer),
        "seconds": round(seconds),
        "held_out": run.saved[recipe.plan.steps],
        "held_out_n": {name: len(task) for name, task in run.tests.items()},
        "load_task": run.measured(final, {name: make(name, 256) for name in NAMES}),
        "training_prompts": {name: sum(len(s.ids) for s in found) for name, found in training.items()},
        "held_out_by_step": run.saved if recipe.series else {},
    }
    (run.output / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (run.output / "README.md").write_text(card.text(record), encoding="utf-8")
    print(f"wrote {run.output}: {record['load_task']}")


if __name__ == "__main__":
    main()
