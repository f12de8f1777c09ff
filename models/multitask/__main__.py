"""Command line of the recipe: trains one model and writes its folder under models/."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import torch

from . import card, vocabulary
from .architectures import ARCHITECTURES, LENGTH, Size, build
from .data import FACTS, NAMES, SOURCES, facts, make, stacks, test_task, training_task
from .evaluate import accuracy
from .train import Plan, train


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m models.multitask", description=__doc__)
    parser.add_argument("--architecture", choices=sorted(ARCHITECTURES), default="llama")
    parser.add_argument("--output", type=Path, help="folder to write (default: models/multitask-ARCHITECTURE)")
    parser.add_argument("--evaluate-every", type=int, default=100, metavar="STEPS")
    for group in (Size, Plan):
        for entry in fields(group):
            parser.add_argument(f"--{entry.name.replace('_', '-')}", type=type(entry.default), default=entry.default)
    return parser.parse_args()


def _pick(kind: Any, arguments: argparse.Namespace) -> Any:
    return kind(**{entry.name: getattr(arguments, entry.name) for entry in fields(kind)})


def main() -> None:
    """Train, evaluate, write."""
    arguments = _arguments()
    torch.set_num_threads(1)  # sums in one order: the same weights each time on one machine
    size, plan = _pick(Size, arguments), _pick(Plan, arguments)
    output = arguments.output or Path(__file__).parents[1] / f"multitask-{arguments.architecture}"
    tokenizer = vocabulary.build(LENGTH)
    tokenizer.save_pretrained(output)
    torch.manual_seed(plan.seed)
    model = build(arguments.architecture, size, tokenizer)
    print(f"{len(tokenizer)} tokens, {sum(p.numel() for p in model.parameters())} parameters", flush=True)
    training = {str(s): stacks(training_task(s), tokenizer) for s in SOURCES} | {FACTS: stacks(facts(), tokenizer)}
    tests = {name: test_task(name) for name in NAMES}

    def measured(tasks: dict[str, Any]) -> dict[str, float]:
        return {name: round(accuracy(model, tokenizer, task), 4) for name, task in tasks.items()}

    def after(step: int, seconds: float, running: dict[str, float]) -> None:
        if step % arguments.evaluate_every == 0 or step == plan.steps:
            losses = {name: round(loss, 3) for name, loss in running.items()}
            print(f"step {step}, {seconds:.0f} s: {measured(tests)} loss {losses}", flush=True)

    seconds = train(model, training, plan, after)
    model.eval()
    model.save_pretrained(output)
    record = {
        "architecture": arguments.architecture,
        "size": asdict(size),
        "plan": asdict(plan),
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabulary": len(tokenizer),
        "seconds": round(seconds),
        "held_out": measured(tests),
        "held_out_n": {name: len(task) for name, task in tests.items()},
        "load_task": measured({name: make(name, 256) for name in NAMES}),
        "training_prompts": {name: sum(len(s.ids) for s in found) for name, found in training.items()},
    }
    (output / "training.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (output / "README.md").write_text(card.text(record), encoding="utf-8")
    print(f"wrote {output}: {record['load_task']}")


if __name__ == "__main__":
    main()
