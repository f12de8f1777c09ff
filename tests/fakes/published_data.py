"""Files of published forms, in words of our own, and GPT-2's tokenizer to read them with."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from pytest_circuits.model.encoded_task import EncodedTask, encode
from tests.paths import DATA, GPT2_TOKENIZER

PUBLISHED = DATA / "published"


@cache
def gpt2() -> PreTrainedTokenizerFast:
    text = gzip.decompress(GPT2_TOKENIZER.read_bytes()).decode()
    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(text), bos_token=end, eos_token=end, unk_token=end)


def encoded(task) -> EncodedTask:
    return encode(task, gpt2(), 50257)


def answers(task) -> list[tuple[str, list[str]]]:
    """Answer and foils as GPT-2's tokens; each must be one token."""
    code = encoded(task)
    assert all(len(ids) == 1 for row in (code.answer, *code.foils) for ids in row)
    name = gpt2().convert_ids_to_tokens
    return [(name(answer[0]), [name(foil[0]) for foil in foils]) for answer, foils in zip(code.answer, code.foils, strict=True)]


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path: Path, *records) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path
