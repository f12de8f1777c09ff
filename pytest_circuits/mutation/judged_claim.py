"""A claim that was evaluated on the intact model, to be evaluated again on mutants."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims.outcome import Evaluation
from ..core.claim import Claim
from ..core.verdict import MEASURED, as_expected


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its evaluation on the intact model. `number` tells apart the claims of one test in Python."""

    nodeid: str
    claim: Claim
    evaluation: Evaluation
    number: int = 1

    @property
    def id(self) -> str:
        """The node id; of further claims of one test with their number."""
        return self.nodeid if self.number == 1 else f"{self.nodeid} #{self.number}"

    @property
    def name(self) -> str:
        """What tables call the claim."""
        return self.claim.label

    @property
    def file(self) -> str:
        """The spec, as in node ids."""
        return self.nodeid.partition("::")[0]

    @property
    def exclusion(self) -> str | None:
        """Why no mutant can say anything about the claim; None where one can."""
        if self.evaluation.details.get("error") == "Offline":
            return "not measured on the intact model, since --circuits-offline forbids it"
        if not as_expected(self.evaluation.verdict.kind, self.claim.expect):
            return f"{self.evaluation.verdict.kind} on the intact model already"
        return None

    @property
    def is_study(self) -> bool:
        """Whether the claim expects no verdict, so that it fails only by becoming invalid."""
        return self.claim.expect == MEASURED
