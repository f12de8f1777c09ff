"""A claim that was judged on the intact model, kept so that it can be asked again of mutants."""

from __future__ import annotations

from dataclasses import dataclass

from ..claims.evaluation import Judgement
from ..claims.question import Question
from ..core.sources import ModelSource
from ..core.verdict import MEASURED, Bound, as_expected


@dataclass(frozen=True)
class JudgedClaim:
    """`entry` is the name under `models:` that the claim is about, `name` what tables call it.

    `number` tells apart the claims of one test in Python.
    """

    nodeid: str
    name: str
    question: Question
    bound: Bound
    expect: str
    judgement: Judgement
    entry: str
    number: int = 1

    @property
    def id(self) -> str:
        """The node id; of further claims of one test with their number."""
        return self.nodeid if self.number == 1 else f"{self.nodeid} #{self.number}"

    @property
    def file(self) -> str:
        """The spec, as in node ids."""
        return self.nodeid.partition("::")[0]

    @property
    def model(self) -> ModelSource:
        """The model that mutants are made of: of a series the last."""
        return self.question.model

    @property
    def excluded(self) -> str | None:
        """Why no mutant can tell anything about the claim; None where one can."""
        if self.judgement.details.get("error") == "Offline":
            return "not measured on the intact model, since --circuits-offline forbids it"
        if not as_expected(self.judgement.verdict.kind, self.expect):
            return f"{self.judgement.verdict.kind} on the intact model already"
        return None

    @property
    def study(self) -> bool:
        """Whether the claim expects no verdict, so that only becoming invalid makes it fail."""
        return self.expect == MEASURED
