"""Write planted models as checkpoints: each a folder with model, tokenizer, task.jsonl, truth.json and a model card."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from . import card
from .registry import CIRCUITS, plant
from .truth import Planted

FOLDER = Path(__file__).parents[1] / "planted-circuits"
CARD = """# {title}

A model whose weights were set by hand; nothing was trained. `truth.json` says which parts do the work and what each method
must find; `task.jsonl` is the task, which the model does without a mistake. Made by `python -m models.planted`.

{account}

| class | parameters | precision | examples | accuracy | licence |
|---|---|---|---|---|---|
| {kind} | {parameters} | float32 | {examples} | 100% | the project's own |

{table}"""


def write(planted: Planted, folder: Path) -> None:
    """One planted model as a checkpoint folder."""
    planted.model.save_pretrained(folder)
    planted.tokenizer.save_pretrained(folder)
    lines = [{"clean": pair.clean, "corrupt": pair.corrupt, "answer": pair.answer, "foil": pair.foils[0]} for pair in planted.task]
    (folder / "task.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    truth = {"name": planted.name, "scoring": planted.task.scoring, "metric": "logit_diff", **planted.truth.as_dict()}
    (folder / "truth.json").write_text(json.dumps(truth, indent=1) + "\n", encoding="utf-8")
    title, _, account = card.account(planted.name).partition("\n\n")
    kind, parameters = type(planted.model).__name__, sum(p.numel() for p in planted.model.parameters())
    facts = {"kind": kind, "parameters": parameters, "examples": len(planted.task), "table": card.table(planted.truth)}
    (folder / "README.md").write_text(CARD.format(title=title, account=account, **facts), encoding="utf-8")


def main() -> None:
    """Write the chosen circuits; all of them with a page about all."""
    parser = argparse.ArgumentParser(prog="python -m models.planted", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT_DIR", nargs="?", default=FOLDER, help="default: models/planted-circuits")
    parser.add_argument("--circuit", action="append", choices=sorted(CIRCUITS), help="one circuit only; may be repeated")
    arguments = parser.parse_args()
    for name in arguments.circuit or CIRCUITS:
        write(plant(name), arguments.out / name)
        print(f"wrote {arguments.out / name}")
    if not arguments.circuit:
        (arguments.out / "README.md").write_text(card.overview(map(plant, CIRCUITS)), encoding="utf-8")


if __name__ == "__main__":
    main()
