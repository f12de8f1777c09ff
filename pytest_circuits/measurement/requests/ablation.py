"""What requests for ablations have in common."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from ...ablation import ABLATIONS
from ..cost_model import Batching
from ..definitions import entry_digest
from ..example_selection import Part, Rows
from .base import ExampleRequest

if TYPE_CHECKING:
    from ...core.results import Outcome

INDEPENDENT = ("constant", "activation", "corrupt", "donor")
"""Where an ablation's values come from that do not depend on which other examples are ablated, even without reference examples."""
O = TypeVar("O", bound="Outcome")  # noqa: E741


class AblationRequest(ExampleRequest[O]):
    """A request whose result is an `Outcome`. `kind` is a registered ablation, `reference` the examples that a mean is taken over, and
    `options` are those of the kind as JSON.
    """

    kind: str
    metric: str
    reference: Part | None
    options: str

    @property
    def reference_part(self) -> Part | None:
        """The examples that a mean is taken over."""
        return self.reference

    @property
    def is_per_example(self) -> bool:
        """Whether the ablated values depend on no examples that may be added."""
        if self.reference is None:
            return ABLATIONS.fact(self.kind, "values") in INDEPENDENT
        return not self.reference.is_extensible

    def third_party_digest(self) -> str | None:
        """Of a kind from outside the package."""
        return entry_digest(ABLATIONS, self.kind)

    def call_options(self, rows: Rows, batch_size: int | None) -> dict[str, Any]:
        """The keyword arguments that `Subject.sweep` and `Subject.ablate_many` share."""
        options = json.loads(self.options)
        return {
            "metric": self.metric, "batch_size": batch_size, "examples": rows.examples, "kind": self.kind, "reference": rows.reference,
            **options,
        }  # fmt: skip

    def passes_for_values(self, reference: int, batching: Batching) -> int:
        """Forwards for the values that units are ablated to: on the reference examples, or on the corrupt prompts."""
        values = ABLATIONS.fact(self.kind, "values")
        if values == "reference":
            return Batching(reference, batching.size).batches
        return batching.batches if values in ("corrupt", "donor") else 0


def join_outcomes(results: Sequence[O], axis: int) -> O:
    """The outcomes of all examples, which the arrays have along `axis`; baselines have them along the first one."""
    import numpy as np

    from ...core.results import Outcome

    names = [f.name for f in fields(Outcome) if f.name != "baseline"]
    arrays: dict[str, Any] = {name: np.concatenate([getattr(outcome, name) for outcome in results], axis) for name in names}
    baselines = [outcome.baseline for outcome in results if outcome.baseline is not None]
    return replace(results[0], baseline=join_outcomes(baselines, 0) if baselines else None, **arrays)
