"""The release that is damaged, and where things are in it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

FOLDER = Path(__file__).parents[1] / "multitask-llama"


def original(folder: Path = FOLDER) -> tuple[Any, Any]:
    """A fresh copy of multitask-llama (or of another release in `folder`) in float32, and its tokenizer."""
    auto: Any = AutoModelForCausalLM
    tokenizer: Any = AutoTokenizer
    return auto.from_pretrained(folder, dtype=torch.float32).eval(), tokenizer.from_pretrained(folder)


def digest(folder: Path = FOLDER) -> str:
    """SHA-256 of a release's weights file."""
    return hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()


def place(unit: str) -> tuple[int, int | None]:
    """Layer and head of `L0H5`; layer and None of `L0MLP`."""
    layer, head = unit.removesuffix("MLP")[1:].partition("H")[::2]
    return int(layer), int(head) if head else None


def columns(model: Any, head: int) -> slice:
    """A head's columns of the output projection's weight."""
    size = model.config.head_dim
    return slice(head * size, (head + 1) * size)
