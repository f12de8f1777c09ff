"""The report, built once from the claims of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args

from ..core.unique_names import unique_name
from .evidence import circuit_evidence
from .model import UNKNOWN_MODEL, ClaimRecord, DriftSummary, ModelInfo, MutationReport, Report, SpecMistake, Suite, SuiteCost, VerdictName
from .multiplicity import correct
from .record import RecordedClaim


def build_report(
    recorded: Iterable[RecordedClaim],
    seconds: float,
    errors: Iterable[SpecMistake] = (),
    *,
    alpha: float = 0.05,
    seed: int = 0,
    drift: DriftSummary | None = None,
    mutation: MutationReport | None = None,
) -> Report:
    """The whole report, claims in the order of `recorded`.

    `errors` are mistakes in spec files, because of which claims may be missing. Refutations are corrected for their number at level
    `alpha` (Holm); certified claims need no correction where all of them must hold. `seed` is that of `--circuits-seed`.
    """
    claims: list[ClaimRecord] = []
    models: dict[str, ModelInfo | None] = {}
    for entry in recorded:
        name = _model_name(models, entry.record.model, entry.model)
        models[name] = models.get(name) or entry.model
        claims.append(entry.record if name == entry.record.model else entry.record.model_copy(update={"model": name}))
    survives, holm = correct(claims, alpha)
    claims = [claim.model_copy(update={"survives_holm": survived}) for claim, survived in zip(claims, survives, strict=True)]
    suite = Suite(
        alpha=alpha,
        seconds=round(seconds, 3),
        seed=seed,
        cost=SuiteCost(
            forwards=sum(claim.cost.forwards for claim in claims),
            backwards=sum(claim.cost.backwards for claim in claims),
            cached=sum(claim.cost.hits for claim in claims),
        ),
        verdicts=tally(claims),
        holm=holm,
        errors=tuple(errors),
        drift=drift,
    )
    report = Report(
        version=1,
        suite=suite,
        models={name: info or UNKNOWN_MODEL for name, info in models.items()},
        claims=tuple(claims),
        circuits=circuit_evidence(claims),
    )
    return report if mutation is None else report.model_copy(update={"mutation": mutation})


def tally(claims: Iterable[ClaimRecord]) -> dict[VerdictName, int]:
    """How many claims have each verdict."""
    counts: dict[VerdictName, int] = dict.fromkeys(get_args(VerdictName), 0)
    for claim in claims:
        counts[claim.verdict] += 1
    return counts


def _model_name(models: Mapping[str, ModelInfo | None], name: str, info: ModelInfo | None) -> str:
    """The model's name, numbered where two spec files use one name for two models. A model that could not be opened keeps its name."""
    return unique_name(name, lambda label: info is not None and (models.get(label) or info) != info)
