"""Tasks in files: one JSON object per line, or a table (.csv)."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from ..errors import TaskError
from .base import PromptPair, Task
from .records import pair_from, refuse_degenerate

if TYPE_CHECKING:
    from .datasets.published import Offers

OPTIONS = {"seed": "arc", "counterfactual": "mib", "tokenizer": "eap"}  # parameter → the format that has it
Reader = Callable[[Any, str], "Offers"]


class Parameters(BaseModel):
    """Parameters of a task that is read from a file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    n: Annotated[int | None, Field(ge=1, description="use the first n pairs (default: all)")] = None
    scoring: Annotated[Literal["choices", "argmax"], Field(description="how an answer is correct")] = "choices"
    stop: Annotated[Literal["digits"] | None, Field(description="`digits`: no digit may follow the answer")] = None
    format: Annotated[
        Literal["pairs", "arc", "mib", "eap"],
        Field(
            description="the form of a record: `pairs` (clean, corrupt, answer, foil; or clean_prefix, patch_prefix, clean_answer, "
            "patch_answer), `arc` (AI2 ARC questions), `mib` (a prompt with named counterfactuals), `eap` (clean, corrupted and answers "
            "or their token ids, as EAP-IG publishes them)"
        ),
    ] = "pairs"
    seed: Annotated[int | None, Field(description="with `arc`: draws the letter that the answer moves to (default 0)")] = None
    counterfactual: Annotated[
        str | None,
        Field(min_length=1, description="with `mib`: the counterfactual that is the corrupt prompt, where there are several"),
    ] = None
    tokenizer: Annotated[
        str | None,
        Field(
            min_length=1, description="with `eap`: the tokenizer of the answers' token ids; a directory, relative to the file, or a hub id"
        ),
    ] = None

    @field_validator(*OPTIONS)
    @classmethod
    def _belongs_to_its_format(cls, value: object, info: ValidationInfo) -> object:
        name = str(info.field_name)
        file_format = info.data.get("format")
        if value is not None and file_format is not None and file_format != OPTIONS[name]:
            raise ValueError(f"{name} needs format: {OPTIONS[name]}, but the format is {file_format}")
        return value


def read(path: str | Path, parameters: Parameters | None = None, name: str | None = None) -> Task:
    """The task in a file. Every record is checked, even beyond the first n.

    Raises `TaskError` with `file:line` for a record that cannot be read or does not have the format, and for fewer than n
    pairs. Degenerate pairs are refused in the format `pairs`, which is written by hand, and left out of published data.
    """
    chosen = parameters or Parameters()
    path = Path(path)
    content = _decoded(path)
    reader = _reader(chosen, path)
    offers = [reader(record, where) for record, where in _records(path, content)]
    if not offers:
        raise TaskError(f"{path}: no prompt pairs in this file; it needs one JSON object per line, or a .csv table with a header")
    provenance = {"file": path.name, **chosen.model_dump(mode="json", exclude_none=True)}
    if chosen.format != "pairs":
        provenance["data"] = hashlib.sha256(content.encode()).hexdigest()
        from .datasets.published import assembled  # here, so that collecting specs does not import the formats

        return assembled(name or path.stem, str(path), offers, chosen.n, chosen.scoring, chosen.stop, provenance)
    pairs = [pair for offer in offers for pair in offer]
    refuse_degenerate(pairs, str(path))
    if chosen.n is not None and chosen.n > len(pairs):
        raise TaskError(f"{path}: n={chosen.n} is more than the {len(pairs)} pairs in this file; lower n or leave it out")
    most = len({pair.group if pair.group is not None else (pair.clean, i) for i, pair in enumerate(pairs)})
    return Task(name or path.stem, tuple(pairs[: chosen.n]), chosen.scoring, chosen.stop, provenance=provenance, most_groups=most)


def _reader(chosen: Parameters, path: Path) -> Reader:
    if chosen.format == "arc":
        from .datasets import arc

        return partial(arc.offers, seed=chosen.seed or 0)
    if chosen.format == "mib":
        from .datasets import mib

        return partial(mib.offers, counterfactual=chosen.counterfactual)
    if chosen.format == "eap":
        from .datasets import eap

        decode = None if chosen.tokenizer is None else eap.decoder(chosen.tokenizer, path.absolute().parent)
        return partial(eap.offers, decode=decode)
    return _written


def _written(record: Any, where: str) -> list[PromptPair]:
    return [pair_from(record, where)]


def _records(path: Path, content: str) -> Iterator[tuple[Any, str]]:
    """Each record with its location, "file:line"."""
    return _rows(path, content) if path.suffix.lower() == ".csv" else _lines(path, content)


def _lines(path: Path, content: str) -> Iterator[tuple[Any, str]]:
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip():
            where = f"{path}:{number}"
            try:
                yield json.loads(line, object_pairs_hook=partial(_unique, where)), where
            except (ValueError, RecursionError) as problem:
                what = f"{problem.msg}, column {problem.colno}" if isinstance(problem, json.JSONDecodeError) else str(problem)
                raise TaskError(f"{where}: not a JSON object ({what}); each line must be one complete object") from None


def _rows(path: Path, content: str) -> Iterator[tuple[dict[str, str], str]]:
    """Rows of a table as objects. An empty cell is a missing field; a column without a name is skipped."""
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    before = 0
    try:
        header = next(reader, [])
        _unique(f"{path}:1", [(column, None) for column in header if column])
        before = reader.line_num
        for row in reader:
            where, before = f"{path}:{before + 1}", reader.line_num
            if not any(row):
                continue
            if len(row) != len(header):
                raise TaskError(f"{where}: {len(row)} cells, but the header names {len(header)} columns; quote text that contains commas")
            yield {column: cell for column, cell in zip(header, row, strict=True) if column and cell}, where
    except csv.Error as problem:
        raise TaskError(f"{path}:{before + 1}: not a row of a table ({problem})") from None


def _decoded(path: Path) -> str:
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise TaskError(f"{path}: cannot read the task file: {problem.strerror or problem}") from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise TaskError(f"{path}:{line}: not UTF-8 (byte 0x{content[problem.start]:02x}); save the file as UTF-8") from None


def _unique(where: str, items: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(items)
    if len(fields) < len(items):
        repeated = next(key for i, (key, _) in enumerate(items) if key in dict(items[:i]))
        raise TaskError(f"{where}: the field {repeated!r} appears twice")
    return fields
