"""Command line of the recipe: trains the models of one family or both, and writes their folders and the families' cards under models/."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from . import card, vocabulary
from .architecture import LENGTH, build
from .evaluate import accuracies, summary
from .recipes import RECIPES, SEEDS, Recipe
from .train import train

RUNNING = 100  # steps over which the reported loss is averaged


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m models.sequence", description=__doc__)
    parser.add_argument("name", nargs="?", choices=sorted(RECIPES), help="which family (default: both)")
    parser.add_argument("--seed", type=int, action="append", metavar="SEED", help="which model; may be repeated (default: 0 to 9)")
    parser.add_argument("--output", type=Path, default=Path(__file__).parents[1], help="folder of the families (default: models/)")
    parser.add_argument(
        "--evaluate", action="store_true", help="measure the models that are there again and rewrite the cards; no training"
    )
    return parser.parse_args()


def make(recipe: Recipe, seed: int, folder: Path) -> dict[str, Any]:
    """Train one model, round it and write its folder. Returns the record of the training."""
    model = build(seed)
    losses: list[float] = []

    def after(step: int, loss: float) -> None:
        losses.append(loss)
        if step % 250 == 0:
            print(f"{folder}: step {step}, loss {sum(losses[-RUNNING:]) / RUNNING:.4f}", flush=True)

    seconds = train(model, recipe, seed, after)
    tokenizer = vocabulary.build(LENGTH)
    model.to(getattr(torch, recipe.dtype)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    config = model.config
    return {
        **asdict(recipe),
        "seed": seed,
        "architecture": config.model_type,
        "layers": config.n_layer,
        "heads": config.n_head,
        "width": config.n_embd,
        "mlp": config.n_inner,
        "longest": config.n_positions,
        "vocabulary": len(tokenizer),
        "parameters": sum(p.numel() for p in model.parameters()),
        "trained_parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "seconds": round(seconds),
        "final_loss": round(sum(losses[-RUNNING:]) / len(losses[-RUNNING:]), 5),
    }


def measured(recipe: Recipe, folder: Path) -> dict[str, Any]:
    """What the model in a folder can do, computed in float32."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return summary(accuracies(model, tokenizer, recipe))


def write_card(recipe: Recipe, family: Path) -> None:
    """The family's card, from the records of all models that are there."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(family.glob("seed-*/training.json"))]
    (family / "README.md").write_text(card.text(recipe, records), encoding="utf-8")


def main() -> None:
    """Train, evaluate, write."""
    arguments = _arguments()
    torch.set_num_threads(1)  # sums in one order: the same weights each time on one machine
    for name in [arguments.name] if arguments.name else RECIPES:
        recipe, family = RECIPES[name], arguments.output / f"sequence-{name}"
        for seed in arguments.seed or SEEDS:
            folder = family / f"seed-{seed:02}"
            path = folder / "training.json"
            record = json.loads(path.read_text(encoding="utf-8")) if arguments.evaluate else make(recipe, seed, folder)
            record.update(measured(recipe, folder))
            path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
            print(f"{folder}: {record['accuracy']}", flush=True)
        write_card(recipe, family)


if __name__ == "__main__":
    main()
