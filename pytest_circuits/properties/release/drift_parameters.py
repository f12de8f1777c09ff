"""Parameters of `drift`: the claim whose value or circuit is compared with that of a release."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..nested import PropertyOf
from ..parameters import AnyParameters, CircuitParameters

Margin = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]


class Drift(AnyParameters):
    """The value of another claim now minus its value at the release, in that claim's unit; or how far its circuit moved.

    `of` names a claim of the same spec (one drift test for each of its tests), or holds a property with its parameters. The release is read
    from the entry of this claim in the spec's baseline file (`--circuits-update-baseline=new` writes it on the release). Without such an
    entry, the entry of the claim in `of` about the same model is used, if it is sufficient (per-example values on the same examples, or an
    interval with the confidence below). With `against: NAME`, the release is another entry of `models`, measured as well.

    Bounds can be written inside: `within: m` claims equivalence (the bound within [−m, m]); `no_worse_by: m` claims that the value did not
    get worse by m or more: at_least −m if the claim in `of` has at_least, at_most m if it has at_most. Range: the width of the range of
    `of`, in both directions.

    If the property is a mean of per-example values (accuracy, reuse, and absolute necessity and sufficiency), the difference is taken on
    each of the same examples. Interval: betting over groups of examples, exact; the draws of random controls are added in quadrature,
    approximate. An interval inside [−m, m] is equivalent to two one-sided tests, each at half the error. For any other property:
    (l − u', u − l') from an interval of each side at confidence (1 + confidence)/2, which holds under any dependence, and is wide.

    The interval assumes that the sets of both sides are fixed. It is extended to 0 if they differ only by components whose share of the
    circuits changed within noise, since other discovery examples could have given both sides the same set.

    `overlap: jaccard` compares the shared sets S_P of the claim's task instead: mean Jaccard of S_P of one model on half of the discovery
    groups with S_P of the other model on the other half, minus the mean Jaccard of the two halves' sets of the same model (the noise
    floor), over `repeats` splits. 0: no more different than noise; negative: the circuit moved. Range [−1, 1]. `match: name` compares
    components by name, which is only meaningful for a model that was trained further from the release. `match: function` first matches the
    heads of each layer: the one-to-one assignment with the largest sum of Lin's concordance between the heads' shares of Σ|score| on the
    evaluation prompts. Interval: bias-corrected bootstrap over discovery groups with a fixed matching; approximate.

    `max_n` adds examples for both models, and so needs `against`: a baseline has only the examples that the release was measured on.

    Invalid: no baseline; prompts, token ids, parameters of the claim, or numbers of layers or heads that differ from the baseline's; and
    whatever makes the claim in `of` invalid. Sources: Schuirmann 1987 (two one-sided tests); Lin 1989.
    """

    of: Annotated[
        PropertyOf, Field(json_schema_extra={"claims": True}, description="a claim of this spec by name, or a property with its parameters")
    ]
    against: Annotated[str | None, Field(description="another entry of models to compare with, instead of the baseline")] = None
    within: Annotated[Margin, Field(description="margin of equivalence: sets the bound within [-m, m]")] = None
    no_worse_by: Annotated[
        Margin, Field(description="margin on the worse side: sets the bound at_least -m, or at_most m if the claim in of has at_most")
    ] = None
    overlap: Annotated[Literal["jaccard"] | None, Field(description="compare the shared sets instead of the values")] = None
    match: Annotated[
        Literal["name", "function"], Field(description="for overlap: components by name, or heads by their attribution profiles")
    ] = "name"
    max_n: Annotated[
        int | None,
        Field(
            ge=1,
            description="with against, for values: compare again with twice as many prompts of each built-in task, up to this many, "
            "until the verdict is settled",
        ),
    ] = None
    repeats: Annotated[int, Field(ge=2, le=100, description="for overlap: random splits into halves")] = 10
    resamples: Annotated[int, Field(ge=200, description="for overlap: bootstrap resamples")] = 2000

    @model_validator(mode="after")
    def _fits(self) -> Drift:
        if self.of.name == "drift":
            raise ValueError("drift of drift is not defined; name the claim that the other drift is about")
        if self.within is not None and self.no_worse_by is not None:
            raise ValueError("within and no_worse_by are both bounds: give one of them")
        if self.match == "function" and self.overlap is None:
            raise ValueError(
                "match: function matches the heads of circuits and has no meaning for values: add overlap: jaccard, or leave match out"
            )
        inner = self.of.parameters
        if self.overlap and not (isinstance(inner, CircuitParameters) and hasattr(inner, "task") and hasattr(inner, "p")):
            raise ValueError(
                f"overlap compares shared sets, and {self.of.name!r} has no shared set of a single task; use a claim on reuse or necessity"
            )
        return self
