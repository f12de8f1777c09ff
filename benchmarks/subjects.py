"""What is measured on: random weights in real classes, and prompt pairs of one length."""

from __future__ import annotations

import random

import torch
import transformers as tf

from pytest_circuits import PromptPair, Subject, Task, open_model


def gpt2_small(vocabulary: int = 50257) -> torch.nn.Module:
    """GPT-2 small's dimensions, random weights."""
    torch.manual_seed(0)
    config = tf.GPT2Config(vocab_size=vocabulary, bos_token_id=0, eos_token_id=0)
    return tf.GPT2LMHeadModel(config).eval()


def pairs(n: int, length: int, vocabulary: int, seed: int = 0) -> Task:
    """Random pairs that differ in two tokens."""
    r = random.Random(seed)
    made = []
    for _ in range(n):
        clean = [r.randrange(vocabulary) for _ in range(length)]
        corrupt = list(clean)
        for position in r.sample(range(length), 2):
            corrupt[position] = r.randrange(vocabulary)
        answer, foil = r.sample(range(vocabulary), 2)
        made.append(PromptPair(tuple(clean), tuple(corrupt), (answer,), ((foil,),)))
    return Task("random", tuple(made))


def subject(model: torch.nn.Module) -> Subject:
    return open_model(model)


class Floor:
    """The least that per-example attribution can cost: a forward without gradients on the corrupt batch, a forward and a
    backward to activations only on the clean batch, last-position logits, on the bare model.

    `contiguous` copies the last position before the unembedding: torch multiplies a slice by a frozen matrix prompt by prompt.
    """

    def __init__(self, model: torch.nn.Module, task: Task, batch_size: int, contiguous: bool = False) -> None:
        self.model, self.batch_size, self.contiguous = model, batch_size, contiguous
        self.clean = torch.tensor([p.clean for p in task])
        self.corrupt = torch.tensor([p.corrupt for p in task])
        self.answer = torch.tensor([p.answer[0] for p in task])
        self.foil = torch.tensor([p.foils[0][0] for p in task])

    def __call__(self) -> None:
        flags = [p.requires_grad for p in self.model.parameters()]
        for p in self.model.parameters():
            p.requires_grad_(False)
        unembedding = self.model.get_output_embeddings()
        copy = unembedding.register_forward_pre_hook(lambda _m, given: (given[0].contiguous(),)) if self.contiguous else None
        for start in range(0, len(self.clean), self.batch_size):
            rows = slice(start, start + self.batch_size)
            with torch.no_grad():
                self.model(input_ids=self.corrupt[rows], use_cache=False, logits_to_keep=1)
            handle = self.model.get_input_embeddings().register_forward_hook(lambda _m, _i, out: out.requires_grad_())
            logits = self.model(input_ids=self.clean[rows], use_cache=False, logits_to_keep=1).logits[:, -1]
            handle.remove()
            index = torch.arange(len(logits))
            (logits[index, self.answer[rows]] - logits[index, self.foil[rows]]).sum().backward()
        if copy is not None:
            copy.remove()
        for p, flag in zip(self.model.parameters(), flags, strict=True):
            p.requires_grad_(flag)
