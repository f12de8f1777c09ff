"""Write damaged releases of multitask-llama: each a folder with model, tokenizer and damage.json, which says what was done."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch

from . import retraining
from .original import FOLDER, digest
from .registry import DAMAGES, EXACT, damaged

BUILD = FOLDER.parents[1] / "build" / "models"


def write(name: str, folder: Path) -> None:
    """One release that is an exact function of the original."""
    model, tokenizer, record = damaged(name)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    told = {"name": name, "original": {"name": FOLDER.name, "sha256": digest()}, **record}
    (folder / "damage.json").write_text(json.dumps(told) + "\n", encoding="utf-8")


def main() -> None:
    """Write the chosen release, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m models.damaged", description=__doc__)
    parser.add_argument("name", nargs="?", choices=DAMAGES, help="one release; all by default, the trained one (CPU minutes) included")
    where = "folder to write (default: build/models/damaged-NAME; models/multitask-llama-finetuned for the trained one)"
    parser.add_argument("--output", type=Path, metavar="DIR", help=where)
    arguments = parser.parse_args()
    if arguments.output is not None and arguments.name is None:
        parser.error("--output goes with one NAME")
    torch.set_num_threads(1)  # sums in one order: the same weights each time on one machine
    for name in [arguments.name] if arguments.name else DAMAGES:
        if name in EXACT:
            folder = arguments.output or BUILD / f"damaged-{name}"
            write(name, folder)
        else:
            folder = arguments.output or retraining.OUTPUT
            retraining.make(folder)
        print(f"wrote {folder}")


if __name__ == "__main__":
    main()
