"""What the tables on the gradient–causal gap share: what claims are called in its specs, and seeds summed up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import mean
from typing import Any

from pytest_circuits.stats.distributions import t_quantile

from .claims import Claim, Report
from .markdown import number

TASKS = ("reversal", "sorting")
ABLATIONS = {"mean": "heads, mean", "zero": "heads, zero", "residual_slice": "published hook"}
HOOKS = {"mean": "heads", "residual_slice": "published hook"}
NORMALISATIONS = {"sqrt_parameters": "√parameters", "none": "none"}
EFFECTS = {"loss": "loss", "accuracy": "exact answers"}
ROLES = {"heroes": "hidden_heroes", "bloats": "gradient_bloats"}
BATCH = 16
CONFIDENCE = 0.95


def over_seeds(values: Iterable[float | None], what: str = "seeds") -> str:
    """`0.58 ± 0.09 (0.31 to 0.79, 10 seeds)`: mean over models, half the width of its t interval, and the range; one number as it is."""
    every = list(values)
    known = [v for v in every if v is not None]
    if not known:
        return "— (invalid)" if every else ""
    if len(known) == 1:
        return _plain(known[0]) + _missing(every, known)
    centre = mean(known)
    deviation = (sum((v - centre) ** 2 for v in known) / (len(known) - 1)) ** 0.5
    half = t_quantile(CONFIDENCE, len(known) - 1) * deviation / len(known) ** 0.5
    spread = f"{number(min(known))} to {number(max(known))}, {len(known)} {what}"
    return f"{number(centre)} ± {number(half)} ({spread})" + _missing(every, known)


def _plain(value: float) -> str:
    """Counts as they are, other numbers with decimals."""
    return str(value) if isinstance(value, int) else number(value)


def _missing(every: Sequence[Any], known: Sequence[Any]) -> str:
    return f", {len(every) - len(known)} of {len(every)} invalid" if len(known) < len(every) else ""


def read(claim: Claim, path: str) -> Any:
    """Something inside a claim's details, by its path (`mean_single.0`: the first of a list); None where it is missing."""
    value: Any = claim["details"]
    for key in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(key)
        else:
            value = value[int(key)] if isinstance(value, list) and key.isdecimal() and int(key) < len(value) else None
    return value


def seed(claim: Claim) -> str:
    """The checkpoint of the claim's model."""
    return str(claim["model"]).partition("@")[2] or str(claim["model"])


def options(normalisation: str = "sqrt_parameters", batch: int = BATCH) -> dict[str, Any]:
    """The gradient options of the specs."""
    return {"normalisation": normalisation, "gradient_batch": batch}


def rho(report: Report, task: str, **wanted: Any) -> list[Claim]:
    """Agreement claims of a task, one for each seed."""
    found = report.select(**{"property": "gradient_ablation_agreement", "task": task, "gradient": "weight_gradient", **wanted})
    return list({claim["model"]: claim for claim in found}.values())  # several claims may ask the same of a model, with other bounds


def by_loss(report: Report, task: str, ablation: str) -> list[Claim]:
    """The same by loss, with the normalisation of the later version: what most tables are of."""
    return rho(report, task, effect="loss", ablation=ablation, gradient_options=options())
