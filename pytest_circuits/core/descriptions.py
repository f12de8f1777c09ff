"""What a model and an encoded task are, in plain values: results of measurements that need no numpy."""

from __future__ import annotations

from dataclasses import dataclass

from .units import Universe


@dataclass(frozen=True)
class Description:
    """A model's fingerprint, architecture and size."""

    fingerprint: str
    architecture: str
    parameters: int
    universe: Universe
    dtype: str


@dataclass(frozen=True)
class Encoded:
    """A task as one tokenizer sees it. `groups` [n] names the unit of resampling of each example.

    `chance` is the accuracy of a guess that does not read the prompt; `prompts` [n] are short digests of the clean prompts. `first`: how
    many examples an extended task had at first; the split is decided on these. `kept`: the numbers of the pairs that fit the tokenizer,
    for a task that leaves out the others.
    """

    n: int
    groups: tuple[str, ...]
    digest: str
    regenerated: int = 0
    notes: tuple[str, ...] = ()
    chance: float = 0.0
    prompts: tuple[str, ...] = ()
    first: int | None = None
    kept: tuple[int, ...] = ()
