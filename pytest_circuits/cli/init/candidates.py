"""The candidate claims: a few for every task that the model can do, and for every pair of such tasks."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.verdict import Bound, Estimate
from ...errors import CircuitsError
from .bounds import count_above

REACH = 0.9  # faithfulness in the claims about neurons
FEW = 0.25  # the largest share of the neurons that counts as few
EACH = ("accuracy", "reuse", "necessity", "gradient_ablation_agreement", "neurons_to_reach", "neuron_faithfulness", "specificity")
PAIRS = ("jaccard",)
PROPERTIES = (*EACH, *PAIRS)


@dataclass(frozen=True)
class Candidate:
    """A claim before it is measured. `side` is the kind of bound, `meaning` the claim in words, `target` the value of a claim with two
    sides. A bound that is not beyond `beyond` (on the side of the claim) would be vacuous; `otherwise` says what that means. A count may
    be at most this `share` of the estimate's universe. An overlap that is `stable` must lie below the estimate's noise ceilings.
    """

    name: str
    property: str
    parameters: Mapping[str, Any]
    side: str
    meaning: str
    tasks: tuple[str, ...]
    beyond: float | None = None
    otherwise: str = ""
    count: bool = False
    target: float | None = None
    share: float | None = None
    stable: bool = False

    def empty(self, outcome: Estimate, bound: Bound) -> str | None:
        """Why a bound on the outcome would not support the claim's name, or None."""
        edge = bound.at_most if bound.at_least is None else bound.at_least
        assert edge is not None
        if self.share is not None:
            whole = int(outcome.details["universe"])
            return None if edge <= self.share * whole else f"up to {edge:g} of {whole}, more than {self.share:.0%}: these are not few"
        if self.stable:
            ceilings: Mapping[str, float | None] = outcome.details["noise_ceiling"]
            for task, ceiling in ceilings.items():
                if ceiling is None or edge >= ceiling:
                    halves = "have no shared sets to compare" if ceiling is None else f"themselves overlap no more than {ceiling:.2f}"
                    return f"two halves of the prompts of {task} {halves}, so an overlap of up to {edge:g} does not show a difference"
        if self.beyond is None or (edge > self.beyond if self.side == "at_least" else edge < self.beyond):
            return None
        return self.otherwise


@dataclass(frozen=True)
class Finding:
    """The outcome of a candidate: its estimate or error, and its bound; without a bound, `reason` says why."""

    candidate: Candidate
    outcome: Estimate | CircuitsError
    bound: Bound | None = None
    reason: str = ""


CandidateSteps = Generator[Candidate, Finding, None]


def candidates_for_task(task: str, others: Sequence[str], chance: float, wanted: Sequence[str]) -> CandidateSteps:
    """The claims about one task, in order: some depend on the findings of earlier ones."""
    if "accuracy" in wanted:
        yield Candidate(
            f"{task}-is-done", "accuracy", {"task": task}, "at_least", "the intact model does the task", (task,),
            chance, f"not above what guessing or one constant answer reaches ({chance:.3g})",
        )  # fmt: skip
    if "reuse" in wanted:
        yield Candidate(
            f"{task}-components-recur", "reuse", {"task": task}, "at_least", "the share of a prompt's circuit that is in the shared set",
            (task,), 0.0, "the shared part is not clearly more than nothing",
        )  # fmt: skip
    if "necessity" in wanted:
        yield from _necessity(task)
    if "gradient_ablation_agreement" in wanted:
        yield Candidate(
            f"{task}-gradients-agree", "gradient_ablation_agreement", {"task": task, "gradient": "atp"}, "at_least",
            "the ranking by attribution patching agrees with the one by ablation", (task,),
            0.0, "the agreement is not clearly above none",
        )  # fmt: skip
    if "neurons_to_reach" in wanted or "neuron_faithfulness" in wanted:
        yield from _neurons(task, wanted)
    if "specificity" in wanted and others:
        yield Candidate(
            f"{task}-is-specific", "specificity", {"task": task, "tasks": list(others)}, "at_least",
            "removing the task's own shared set costs it more than removing those of the others", (task, *others),
            0.0, "its own set does not clearly cost it more than those of the others",
        )  # fmt: skip


def _necessity(task: str) -> CandidateSteps:
    """Against controls of the same types; where none can be drawn, against controls of any type: a weaker claim."""
    nothing = "removing the shared set does not clearly cost more than removing a control; that does not mean that it is unused"
    finding = yield Candidate(
        f"{task}-shared-set-matters", "necessity", {"task": task, "control": "c3"}, "at_least",
        "removing the shared set costs more accuracy than removing as many heads and MLPs outside of it", (task,), 0.0, nothing,
    )  # fmt: skip
    if not isinstance(finding.outcome, Estimate) and "control" in str(finding.outcome):
        yield Candidate(
            f"{task}-shared-set-matters-more-than-any", "necessity", {"task": task, "control": "c3_any"}, "at_least",
            "removing the shared set costs more accuracy than removing as many components of any type; the weaker claim", (task,),
            0.0, nothing,
        )  # fmt: skip


def _neurons(task: str, wanted: Sequence[str]) -> CandidateSteps:
    """How many neurons suffice, and how faithful that many are."""
    finding = yield Candidate(
        f"{task}-few-neurons-suffice", "neurons_to_reach", {"task": task, "attribution": "relp", "reach": REACH}, "at_most",
        f"the number of neurons needed for a faithfulness of {REACH:g}", (task,), count=True, share=FEW,
    )  # fmt: skip
    if not isinstance(finding.outcome, Estimate) or "neuron_faithfulness" not in wanted:
        return
    enough, whole = int(count_above(finding.outcome.interval[1])), int(finding.outcome.details["universe"])
    if enough < whole:
        yield Candidate(
            f"{task}-these-neurons-are-faithful", "neuron_faithfulness", {"task": task, "attribution": "relp", "neurons": enough},
            "within", f"{enough} of {whole} neurons do what the whole model does, no less and no more", (task,), target=1.0,
        )  # fmt: skip


def candidates_for_pair(first: str, second: str, wanted: Sequence[str]) -> CandidateSteps:
    """The claims about two tasks."""
    if "jaccard" in wanted:
        yield Candidate(
            f"{first}-and-{second}-differ", "jaccard", {"tasks": [first, second]}, "at_most",
            "the shared sets of the two tasks overlap no more than this", (first, second),
            1.0, "the two sets may be the same", stable=True,
        )  # fmt: skip
