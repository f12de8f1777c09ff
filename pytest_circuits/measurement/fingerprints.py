"""The identity of a model from its files, without loading it: digests of a directory, or the commit of a hub id.

Weights of many gigabytes are digested once: the digest is remembered with the file's size, times and inode.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..core.atomic import write_atomic
from ..core.sources import ModelSource
from ..errors import ModelError

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_NOT_WEIGHTS = {"training_args.bin", "optimizer.bin", "scheduler.bin"}
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
              "vocab.txt", "tokenizer.model", "spiece.model", "*.tiktoken")  # fmt: skip
_RACY = 2_000_000_000  # ns: a file that changed so recently may change again without a new time stamp


@dataclass(frozen=True)
class Identity:
    """What a measurement's key says of the model.

    `model`: digest of config and weights, or the hub id with its commit. `tokenizer`: the same of the tokenizer; None where it is only
    known by loading, and the encoded prompts stand for it. `commit`: of a hub id, so that exactly this one is opened.
    """

    model: str
    tokenizer: str | None
    commit: str | None = None


def identify(source: ModelSource, memo: Path | None = None) -> Identity | None:
    """The identity of a model, or None where only loading the model can tell: loaders, modules, hub ids that are not downloaded.

    `memo` is a folder for remembered digests. Raises `ModelError` for a path that cannot be a model.
    """
    if source.loader is not None or source.path is None:
        return None
    folder = Path(source.path).expanduser()
    if folder.is_dir():
        if source.revision is not None:
            raise ModelError(f"model {source.describe()} is a directory, which has no revisions: remove revision {source.revision!r}")
        return _directory(source, folder, memo)
    if folder.exists():
        raise ModelError(f"model {source.describe()} is a file; give the directory that has config.json and the weights")
    if not _HUB_ID.fullmatch(source.path):
        raise ModelError(f"model {source.describe()}: there is no directory {folder}{_neighbours(folder)}")
    config = cached_config(source)
    if config is None:
        return None
    commit = config.parent.name
    return Identity(f"hub:{source.path}@{commit}", f"hub:{source.path}@{commit}", commit)


def cached_config(source: ModelSource) -> Path | None:
    """config.json of a model in a directory, or of a hub id in the local cache; None if there is none. No network."""
    if source.path is None or source.loader is not None:
        return None
    folder = Path(source.path).expanduser()
    if folder.exists() or not _HUB_ID.fullmatch(source.path):
        return folder / "config.json" if (folder / "config.json").is_file() else None
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(source.path, "config.json", revision=source.revision)
    return Path(path) if isinstance(path, str) else None


def _directory(source: ModelSource, folder: Path, memo: Path | None) -> Identity:
    names = sorted(p.name for p in folder.iterdir() if p.is_file())
    if "config.json" not in names:
        raise ModelError(f"model {source.describe()} has no config.json ({_shown(names)}); give the directory that `save_pretrained` wrote")
    weights = [n for n in names if n.endswith(".safetensors")]
    weights = weights or [n for n in names if n.endswith(".bin") and n not in _NOT_WEIGHTS]
    if not weights:
        raise ModelError(f"model {source.describe()} has config.json but no weights, *.safetensors or *.bin ({_shown(names)})")
    indices = [n for n in names if n.endswith((".safetensors.index.json", ".bin.index.json"))]
    _complete(source, folder, indices, names)
    files = ["config.json", *indices, *weights, *(n for n in names if n == "adapter_config.json")]
    if "auto_map" in _read_json(source, folder / "config.json"):
        files += [n for n in names if n.endswith(".py")]  # the model's own code, which a config without auto_map never runs
    tokenizer = [n for n in names if any(Path(n).match(pattern) for pattern in _TOKENIZER)]
    return Identity(_digest(folder, files, memo), _digest(folder, tokenizer, memo))


def _complete(source: ModelSource, folder: Path, indices: Iterable[str], names: list[str]) -> None:
    """Refuse a sharded checkpoint of which a shard that would be read is missing."""
    if any(n in names for n in ("model.safetensors", "pytorch_model.bin")):
        return
    for index in sorted(indices, key=lambda n: n.endswith(".bin.index.json"))[:1]:
        shards = _read_json(source, folder / index).get("weight_map", {})
        missing = sorted(set(shards.values()) - set(names)) if isinstance(shards, dict) else []
        if missing:
            raise ModelError(f"model {source.describe()} is not complete: {index} names {_shown(missing, '')}, which is not there")


def _read_json(source: ModelSource, path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise ModelError(f"model {source.describe()}: {path.name} is not valid JSON ({problem})") from None
    if not isinstance(content, dict):
        raise ModelError(f"model {source.describe()}: {path.name} is not a JSON object")
    return content


def _digest(folder: Path, names: Iterable[str], memo: Path | None) -> str:
    together = hashlib.sha256()
    for name in sorted(set(names)):
        together.update(f"{name}\0{file_digest(folder / name, memo)}\n".encode("utf-8", "surrogateescape"))
    return together.hexdigest()


def file_digest(path: Path, memo: Path | None = None) -> str:
    """SHA-256 of a file, read in blocks. With `memo`, remembered for as long as size, times and inode stay the same."""
    path = path.resolve()
    before = _state(path)
    note = memo / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:40]}.json" if memo is not None else None
    if note is not None:
        known = _recall(note)
        if known.get("path") == str(path) and known.get("state") == before:
            return str(known["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if _state(path) != before:
        raise ModelError(f"{path} changed while it was read; run again when it is written completely")
    if note is not None and time.time_ns() - max(before[1:3]) > _RACY:
        _remember(note, {"path": str(path), "state": before, "sha256": digest})
    return digest


def _state(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _recall(note: Path) -> dict[str, object]:
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    well_formed = isinstance(known, dict) and re.fullmatch("[0-9a-f]{64}", str(known.get("sha256")))
    return known if well_formed else {}


def _remember(note: Path, known: dict[str, object]) -> None:
    with suppress(OSError):  # a folder that cannot be written costs time, not correctness
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(note, json.dumps(known).encode())


def _shown(names: list[str], before: str = "found: ") -> str:
    some = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return f"{before}{some or 'nothing'}"


def _neighbours(folder: Path) -> str:
    try:
        near = sorted(p.name for p in folder.parent.iterdir() if p.is_dir())
    except OSError:
        return f", nor {folder.parent}"
    return f"; {folder.parent} has {_shown(near, '')}"
