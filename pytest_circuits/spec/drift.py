"""Claims about drift as a spec writes them: `of` names another claim, margins stand for bounds, `against` names a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..core.claim import Claim
from ..core.sources import ModelSource
from ..errors import suggestion
from ..properties import PROPERTIES
from ..properties.nested import OUTER, Inner
from .document import BOUNDS
from .problems import Problems
from .yaml_reader import Where

DRIFT = "drift"
INSIDE = ("of", DRIFT)  # where a drift stands in the parameters of a trajectory
_MODELS = ("model", "models")
Models = Mapping[str, tuple[ModelSource, ...]]


def written_out(problems: Problems, claims: Mapping[str, Any], models: Sequence[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The claims, with those about drift as if everything had been written out, and which claim each of them names in `of`.

    One with a mistake, which is reported, is left out.
    `of: NAME` becomes that claim's property with its parameters (and its models, where the claim names none), so that it makes one test for
    each of that claim's; `within: m` becomes the bound [−m, m], `no_worse_by: m` a bound on the side that is worse for that claim.
    """
    expanded: dict[str, Any] = {}
    about: dict[str, str] = {}
    for name, claim in claims.items():
        path = _path_of(claim)
        written = claim
        if path is not None:
            drift_claim = _Claim(problems, claims, name, path)
            written = drift_claim.expand(models)
            if isinstance(drift_claim.original.get("of"), str):
                about[name] = drift_claim.original["of"]
        if written is not None:
            expanded[name] = written
    return expanded, about


def resolved(problems: Problems, claims: Sequence[Claim], models: Models, about: Mapping[str, str]) -> list[Claim]:
    """The claims, those about drift knowing which model they compare with and which test is the one in `of`; `about` names its claim."""
    every = {source.name: source for sources in models.values() for source in sources}
    resolved_claims = []
    for claim in claims:
        parameters, path = _drift_of(claim)
        if claim.property == DRIFT and claim.name in about:
            claim = replace(claim, related=_same(claim, about[claim.name], claims))
        name = None if parameters is None else parameters.against
        if name is None:
            resolved_claims.append(claim)
            continue
        where: Where = ("claims", claim.name, *path, "against")
        if name in every and (claim.property != DRIFT or every[name].name != claim.model.name):
            resolved_claims.append(replace(claim, against=every[name]))
        elif name in every:
            problems.at_value(where, f"the model {name!r} would be compared with itself; name another in 'model' or in 'against'")
        elif name in models:
            labels = ", ".join(checkpoint.name for checkpoint in models[name])
            problems.at_value(where, f"{name!r} is a series; name one checkpoint of it: {labels}")
        else:
            problems.at_value(where, f"unknown model {name!r}; {suggestion(name, every)}")
    return resolved_claims


def _drift_of(claim: Claim) -> tuple[Any, Where]:
    """The parameters of the drift that a claim claims, or the trajectory of which, and where they stand; None for any other."""
    if claim.property == DRIFT:
        return claim.parameters, (DRIFT,)
    inner = getattr(claim.parameters, "of", None)
    return (inner.parameters, (claim.property, *INSIDE)) if isinstance(inner, Inner) and inner.name == DRIFT else (None, ())


def _same(claim: Claim, name: str, claims: Sequence[Claim]) -> str:
    """The test of the claim of this name that is about the same model, tasks and parameters, without the file; "" where there is none."""
    inner: Inner = claim.parameters.of
    mine = inner.parameters.model_dump(exclude=set(OUTER))
    for other in claims:
        alike = other.property == inner.name and other.model == claim.model and other.tasks == claim.tasks
        if other.name == name and alike and other.parameters.model_dump(exclude=set(OUTER)) == mine:
            return "::".join((other.name, *other.ids))
    return ""


def _path_of(claim: Any) -> Where | None:
    """Where in a claim as written the parameters of a drift stand, or None."""
    for path in ((DRIFT,), ("trajectory", *INSIDE)):
        at = claim
        for key in path:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict):
            return path
    return None


class _Claim:
    """One claim about drift, as it is written; `path` leads to the parameters of the drift."""

    def __init__(self, problems: Problems, claims: Mapping[str, Any], name: str, path: Where) -> None:
        self.problems, self.claims, self.where, self.path = problems, claims, ("claims", name), path
        self.claim = dict(claims[name])
        holder: Any = self.claim
        for key in path[:-1]:
            holder[key] = holder = dict(holder[key])
        self.original: Mapping[str, Any] = holder[path[-1]]
        holder[path[-1]] = self.parameters = dict(self.original)

    def refuse(self, key: str, text: str) -> None:
        self.problems.at_value((*self.where, *self.path, key), text)

    def expand(self, models: Sequence[str]) -> dict[str, Any] | None:
        of, target = self.parameters.get("of"), None
        if isinstance(of, str):
            target = self.named(of)
            if target is None:
                return None
        if self.path == (DRIFT,) and not self.bounded(target):
            return None
        against = self.parameters.get("against")
        if against is not None and not any(key in self.claim for key in _MODELS):
            others = [model for model in models if model not in (against if isinstance(against, list) else [against])]
            if others:
                self.claim["models"] = others
        return self.claim

    def named(self, of: str) -> dict[str, Any] | None:
        """The claim of this name, its property and models taken over. None if it cannot be one."""
        known = [claim for claim in self.claims if claim != self.where[1]]
        if of not in known:
            what = "a claim cannot be about its own drift" if of in self.claims else f"unknown claim {of!r}"
            self.refuse("of", f"{what}; {suggestion(of, known)}")
            return None
        target: Any = self.claims[of]
        names = [key for key in target if key in PROPERTIES] if isinstance(target, dict) else []
        if len(names) != 1 or not isinstance(target[names[0]], dict):
            return None  # which is reported there
        if names[0] == DRIFT or PROPERTIES.get(names[0]).over_series:
            what = "is itself about drift" if names[0] == DRIFT else "is about a series of models, and drift about one"
            self.refuse("of", f"{of!r} {what}; name another claim")
            return None
        self.parameters["of"] = {names[0]: {key: value for key, value in target[names[0]].items() if key not in OUTER}}
        if not any(key in self.claim for key in _MODELS):
            self.claim |= {key: target[key] for key in _MODELS if key in target}
        return dict(target)

    def bounded(self, target: dict[str, Any] | None) -> bool:
        """Put the bound that a margin stands for into the claim, if that is possible. A margin that is not a number is refused later."""
        margins = [key for key in ("within", "no_worse_by") if self.parameters.get(key) is not None]
        if not margins:
            return True
        bounds = [key for key in BOUNDS if key in self.claim]
        if bounds:
            self.refuse(margins[0], f"the claim has a bound already, {bounds[0]}; give the margin or the bound")
            return False
        margin = self.parameters[margins[0]]
        if isinstance(margin, bool) or not isinstance(margin, (int, float)) or not margin > 0:
            self.refuse(margins[0], f"a margin is a number above 0, got {margin!r}")
            return False
        if margins[0] == "within":
            self.claim["within"] = [-margin, margin]
        elif self.parameters.get("overlap") is not None or (target is not None and "at_least" in target):
            self.claim["at_least"] = -margin
        elif target is not None and "at_most" in target:
            self.claim["at_most"] = margin
        else:
            why = "that claim has 'within', and both sides of it are worse" if target else "only a claim that 'of' names has a bound"
            self.refuse("no_worse_by", f"which side is worse is not known: {why}; use within, or at_least or at_most on the difference")
            return False
        return True
