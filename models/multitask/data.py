"""What the reference models are trained on and tested on: the built-in tasks, with their own pairs and their own encoding.

A tenth of all prompts, chosen by a hash of the text, never enters training. `load_task` knows nothing of that: the
prompts that a spec uses are a mixture of prompts seen in training and held out.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from pytest_circuits.model.encoded_task import encode
from pytest_circuits.tasks import TASKS, PromptPair, Task
from pytest_circuits.tasks.builtin.capitals import CITIES, STATES

POOL = 20_000  # pairs drawn a task, fewer where there are fewer prompts
SEED = 1_000_003  # of the training pairs, so that no training order equals that of a spec


@dataclass(frozen=True)
class Source:
    """A built-in task and the parameters of its training pairs. One task may have several sources, told apart by their labels."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    def __str__(self) -> str:
        return self.label or self.name


SOURCES = (
    Source("addition"),
    Source("boolean", {"operators": [1, 2, 3]}),
    Source("ioi"),
    Source("copycolors"),
    Source("copycolors", {"options": [2, 3]}, "copycolors with fewer options"),  # learned first; four options follow
    Source("sva"),
    Source("capitals"),
)
NAMES = tuple(dict.fromkeys(source.name for source in SOURCES))
FACTS = "facts"  # single hops, in training only


def held_out(prompt: str) -> bool:
    """Whether a prompt is kept from training: one in ten, by its text alone."""
    return zlib.crc32(prompt.encode()) % 10 == 0


def make(name: str, n: int, seed: int = 0, **parameters: Any) -> Task:
    """n pairs of a built-in task, fewer where there are fewer prompts."""
    builtin = TASKS.get(name)
    space = builtin(builtin.Parameters(**parameters)).space()
    return builtin.make(builtin.Parameters(n=min(n, space), seed=seed, **parameters))  # type: ignore[no-any-return]


def training_task(source: Source) -> Task:
    """The pairs of a source that are not held out."""
    task = make(source.name, POOL, SEED, **source.parameters)
    return replace(task, pairs=tuple(p for p in task.pairs if not held_out(str(p.clean))), more=None)


def test_task(name: str, n: int = 400) -> Task:
    """Up to n held-out pairs of a built-in task with its default parameters."""
    task = make(name, 12 * n, SEED + 1)
    return replace(task, pairs=tuple(p for p in task.pairs if held_out(str(p.clean)))[:n], more=None)


def facts() -> Task:
    """City → state and state → capital, each in two wordings."""
    pairs = []
    for city, state in CITIES.items():
        pairs += [(f"{city} is a city in the state of", state), (f"The state containing {city} is", state)]
    for state, (capital, _) in STATES.items():
        pairs += [(f"The capital of {state} is", capital), (f"The governor of {state} has an office in", capital)]
    return Task(FACTS, tuple(PromptPair(prompt, "Fact", f" {answer}") for prompt, answer in pairs), scoring="argmax")


@dataclass(frozen=True)
class Stack:
    """Sequences of one length: ids [n, T], and the tokens [n, K] that the logits of the last K positions shall predict."""

    ids: Tensor
    wanted: Tensor


def stacks(task: Task, tokenizer: Any) -> list[Stack]:
    """A task's clean prompts as training sequences. A number's last digit is followed by the end-of-sequence token."""
    if task.name == FACTS:
        rows = [_fact(pair, tokenizer) for pair in task.pairs]
    else:
        code = encode(task, tokenizer, len(tokenizer))
        end = (tokenizer.eos_token_id,) if task.stop else ()
        rows = [(ids, (*answer, *end)) for ids, answer in zip(code.clean, code.answer, strict=True)]
    shapes: dict[tuple[int, int], list[tuple[tuple[int, ...], tuple[int, ...]]]] = defaultdict(list)
    for ids, wanted in rows:
        shapes[len(ids), len(wanted)].append((ids, wanted))
    return [Stack(torch.tensor([i for i, _ in rows]), torch.tensor([w for _, w in rows])) for _, rows in sorted(shapes.items())]


def _fact(pair: PromptPair, tokenizer: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    prompt, answer = tokenizer(pair.clean)["input_ids"], tokenizer(pair.answer, add_special_tokens=False)["input_ids"]
    return (*prompt, *answer[:-1]), tuple(answer)
