"""The word-level tokenizer of the reference models, made from the texts of the built-in tasks."""

from __future__ import annotations

from collections.abc import Iterator

from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from pytest_circuits.tasks import PromptPair, Task
from pytest_circuits.tasks.builtin.capitals import CITIES, STATES

from .data import Source, facts, make

POOL = 1500  # pairs a task; every word turns up long before
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
# wider than what is trained: a model should fail at a hard task, its tokenizer should know the words
SOURCES = (
    Source("addition", {"digits": 3}),
    Source("boolean"),
    Source("ioi"),
    Source("copycolors", {"options": 8}),
    Source("sva"),
    Source("capitals"),
)


def splitter() -> pre_tokenizers.PreTokenizer:
    """Words, single digits and single punctuation marks; white space is only a separator."""
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Split(Regex(r"[0-9]"), "isolated"),
            pre_tokenizers.Punctuation("isolated"),
        ]
    )


def _texts(task: Task) -> Iterator[str]:
    for pair in task.pairs:
        assert isinstance(pair, PromptPair)
        yield from map(str, (pair.clean, pair.corrupt, pair.answer, *pair.foils))


def words() -> list[str]:
    """All words of the tasks, sorted."""
    split = splitter()
    found: set[str] = set()
    tasks = [make(s.name, POOL, **s.parameters) for s in SOURCES] + [facts()]
    for text in [t for task in tasks for t in _texts(task)] + [*CITIES, *STATES]:
        found.update(word for word, _ in split.pre_tokenize_str(text))
    return sorted(found)


def build(length: int) -> PreTrainedTokenizerFast:
    """The tokenizer: `<bos>` first, unknown words `<unk>`. `length` is the longest prompt of the model in tokens."""
    vocabulary = {word: i for i, word in enumerate([*SPECIAL, *words()])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = splitter()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", pair="<bos> $A $B", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        bos_token="<bos>",
        eos_token="<eos>",
        unk_token="<unk>",
        model_max_length=length,
        clean_up_tokenization_spaces=False,
    )
