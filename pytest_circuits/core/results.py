"""Results of measurements: named numpy arrays, without torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import OptionError, suggestion
from .descriptions import Description as Description
from .descriptions import Encoded as Encoded
from .shares import Size, exact, needed

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class CircuitSet:
    """Per-example circuits: `members` bool [n_examples, n_units]. A row without members: all scores are zero, there is no circuit."""

    members: Bools
    units: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"CircuitSet({len(self)} examples, {len(self.units)} units, up to {int(self.members.sum(1).max(initial=0))} in a circuit)"

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> CircuitSet:
        """The circuits of some of the examples."""
        return CircuitSet(self.members[np.asarray(rows, dtype=np.int64)], self.units)

    @property
    def counts(self) -> NDArray[np.int64]:
        """In how many examples each unit is a member; [n_units]."""
        return self.members.sum(0).astype(np.int64)  # type: ignore[no-any-return]

    def shared_mask(self, p: float) -> Bools:
        """S_P as a mask [n_units]: units in at least a share `p` of the examples, exactly. Raises `OptionError` without examples."""
        if not len(self):
            raise OptionError("there are no examples: every unit would be in a shared set of none")
        return self.counts >= needed(p, len(self))

    def shared(self, p: float) -> tuple[str, ...]:
        """S_P = {u : count_u ≥ ceil(P·n)} as unit names in order. Raises `OptionError` for P outside (0, 1]."""
        mask = self.shared_mask(p)
        return tuple(u for u, inside in zip(self.units, mask, strict=True) if inside)

    def coverage(self, shared: Bools, definition: str = "coverage") -> NDArray[np.float64]:
        """Per example |C_i ∩ S| / |C_i| (`coverage`) or min(|S|, k)/k (`size`); 0 for an example without a circuit."""
        size = self.members.sum(1)
        if definition == "coverage":
            inside = (self.members & shared).sum(1)
        elif definition == "size":
            inside = np.minimum(int(shared.sum()), size)
        else:
            raise OptionError(f"unknown definition of reuse {definition!r}; {suggestion(definition, ('coverage', 'size'))}")
        return np.where(size > 0, inside / np.maximum(size, 1), 0.0)

    def reuse(self, p: float, definition: str = "coverage") -> float:
        """reuse@P, in sample: the mean over these examples of their coverage by their own shared set S_P.

        Source: consistency of circuits (arXiv 2605.08348). Range [0, 1]; 0 when S_P is empty.
        """
        return float(self.coverage(self.shared_mask(p), definition).mean())


@dataclass(frozen=True)
class Attribution:
    """Attribution scores; `units` names the columns of `scores`.

    A score estimates how the metric changes when the unit is replaced: m(replaced) − m(clean).
    `values` are float32: all scores [n_examples, n_units], or with `indices` int32 [n_examples, k] only those of the k units
    with the largest absolute score on each example, strongest first, ties in unit order. `blocks` [n_examples] numbers the
    examples that were measured together and are therefore not independent. `details`: the options, and under `passes` the
    forward and backward passes of one prompt that an example cost.
    """

    values: Floats
    units: tuple[str, ...]
    method: str
    level: str
    metric: str
    blocks: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    details: dict[str, Any] = field(default_factory=dict)
    indices: NDArray[np.int32] | None = None

    def __repr__(self) -> str:
        return f"Attribution({self.method}, {self.level} level, {len(self.values)} examples × {len(self.units)} units, {self.metric})"

    @property
    def scores(self) -> Floats:
        """float32 [n_examples, n_units]; built on demand where only the strongest units were stored, with 0 for the others."""
        if self.indices is None:
            return self.values
        dense = np.zeros((len(self.values), len(self.units)), np.float32)
        np.put_along_axis(dense, self.indices.astype(np.int64), self.values, axis=1)
        return dense

    def circuits(self, size: Any = "10%", rounding: str = "floor") -> CircuitSet:
        """Top-K units by absolute score on each example.

        `size` is a share of all units ("10%", by `rounding`, at least 1) or a count. Ties go to the unit that
        comes first in `units`. Units with a score of exactly 0 are never members, so a circuit can be smaller
        than K, and a row of zeros has none. Raises `OptionError` for K above the number of units that were stored.
        """
        k = Size.parse(size).of(len(self.units), rounding)
        members = np.zeros((len(self.values), len(self.units)), bool)
        if self.indices is None:
            order = np.argsort(-np.abs(self.values), axis=1, kind="stable")[:, :k]
            values = np.take_along_axis(self.values, order, axis=1)
        elif k > self.indices.shape[1]:
            raise OptionError(
                f"cannot cut circuits of {k} of {len(self.units)} units: only the {self.indices.shape[1]} strongest of each example were "
                f"stored; attribute again with top={k} or more"
            )
        else:
            order, values = self.indices[:, :k].astype(np.int64), self.values[:, :k]
        np.put_along_axis(members, order, np.abs(values) > 0, axis=1)
        return CircuitSet(members, self.units)

    def circuits_above(self, threshold: float) -> CircuitSet:
        """Units with |score| ≥ τ·Σ|score|, where τ is `threshold` and the sum is over all units of the example.

        Circuits differ in size: none has more than 1/τ units, and one is empty where no unit reaches the threshold, as on an example
        whose scores are all zero. Raises `OptionError` for a τ outside (0, 1), and where only the strongest units were stored, so
        that the sum is unknown.
        """
        if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 < threshold < 1:
            raise OptionError(f"a threshold is a share of the sum of absolute scores, between 0 and 1 (exclusive); got {threshold!r}")
        if self.indices is not None and self.indices.shape[1] < len(self.units):
            raise OptionError(
                f"a threshold is a share of the sum of all scores, but only the {self.indices.shape[1]} strongest of {len(self.units)} "
                "units of each example were stored; attribute again without top"
            )
        strength, share = np.abs(self.scores).astype(np.float64), exact(float(threshold))
        # as integers over integers: a float 0.1·Σ would miss units that have exactly a tenth
        reached = strength * share.denominator >= strength.sum(1, keepdims=True) * share.numerator
        return CircuitSet(reached & (strength > 0), self.units)


@dataclass(frozen=True)
class Outcome:
    """The behaviour of a model under ablation. Arrays are [n_examples], or [n_sets, n_examples] for several sets.

    `correct` bool, `metric` and `log_prob` (of the answer, summed over its tokens, in nats) float32;
    `baseline` is the intact model on the same examples.
    """

    correct: Bools
    metric: Floats
    log_prob: Floats
    baseline: Outcome | None = None

    def __repr__(self) -> str:
        base = "" if self.baseline is None else f", intact {self.baseline.correct.mean():.3f}"
        return f"{type(self).__name__}({' × '.join(map(str, self.correct.shape))}, accuracy {self.correct.mean():.3f}{base})"

    @property
    def accuracy(self) -> NDArray[np.float64] | float:
        """Share of correct examples: one number, or one per set."""
        mean = self.correct.mean(-1)
        return float(mean) if mean.ndim == 0 else mean


@dataclass(frozen=True, repr=False)
class SweepOutcome(Outcome):
    """Every unit ablated by itself: arrays [n_examples, n_units]; `baseline` arrays are [n_examples]."""

    units: tuple[str, ...] = ()


@dataclass(frozen=True)
class ComponentNorms:
    """Mean L2 norm of what each component writes into its sublayer's output; `values` float32 [n_units], named by `units`.

    A head: its slice of the output projection's input, mapped through its own rows of that projection, without the bias. An MLP:
    its down projection's output. The mean is over every position of every clean prompt.
    """

    values: Floats
    units: tuple[str, ...]


@dataclass(frozen=True)
class Conservation:
    """Relevance in the residual stream compared with the metric; float64.

    `boundaries` [B]: `embeddings` (the input of layer 0), then `L0`, `L1` … (the stream after each layer). `totals` [n_examples, B]:
    Σ x·∂f/∂x over positions and features of the stream there. `metric` [n_examples]: f. `biases` [n_examples, B]: Σ b·∂f/∂b over the
    biases above each boundary, None where the model has none. Where relevance is conserved, totals + biases = f at every boundary.
    """

    boundaries: tuple[str, ...]
    totals: NDArray[np.float64]
    metric: NDArray[np.float64]
    biases: NDArray[np.float64] | None = None

    @property
    def gaps(self) -> NDArray[np.float64]:
        """Total relevance minus f; [n_examples, B]."""
        sums = self.totals if self.biases is None else self.totals + self.biases
        return sums - self.metric[:, None]
