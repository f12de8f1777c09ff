"""The tokenizer: each number from 1 to 99 is a token whose id is the number itself; four marks follow."""

from __future__ import annotations

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

LARGEST = 99
WORDS = ("[UNK]", *map(str, range(1, LARGEST + 1)), "[PAD]", "[START]", "[SEP]", "[END]")
PAD, START, SEP, END = (WORDS.index(mark) for mark in ("[PAD]", "[START]", "[SEP]", "[END]"))


def build(length: int) -> PreTrainedTokenizerFast:
    """Words between white space; nothing is put before or after a text. `length` is the longest sequence of the model in tokens."""
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        bos_token="[START]",
        sep_token="[SEP]",
        eos_token="[END]",
        model_max_length=length,
        clean_up_tokenization_spaces=False,
    )
