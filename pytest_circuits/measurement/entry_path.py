"""Where a measurement lies in the folder of a store."""

from __future__ import annotations

from pathlib import Path


def entry_path(folder: Path, key: str) -> Path:
    """The file of an entry."""
    return folder / key[:2] / f"{key}.safetensors"
