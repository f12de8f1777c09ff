"""Tokenizer, special tokens and pairings of words."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
LENGTH = 16
PAD, BOS, EOS = 0, 1, 2


def common(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    """The part of a config that comes from the tokenizer."""
    return {"vocab_size": len(tokenizer), "pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}


def tokenizer(words: Sequence[str]) -> PreTrainedTokenizerFast:
    """One token a word, `<bos>` first."""
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate((*SPECIAL, *words))}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", BOS)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=made,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        model_max_length=LENGTH,
        clean_up_tokenization_spaces=False,
    )


def pairings(words: Sequence[str], times: int, seed: int = 0) -> Iterator[tuple[str, str, random.Random]]:
    """(word, another word, a random generator), each word `times` times first and second, in a mixed order."""
    r = random.Random(seed)
    shifts = r.sample(range(1, len(words)), times)
    found = [(word, words[(i + shift) % len(words)]) for i, word in enumerate(words) for shift in shifts]
    r.shuffle(found)
    for word, other in found:
        yield word, other, r
