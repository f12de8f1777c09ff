"""The release that a claim about drift compares with, as a baseline holds it: its own entry, or that of the claim in `of`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import Invalid
from ..nested import Inner
from ..payload import Json, as_kept, changed_parameters, contradicts_itself
from ..protocol import BaselineReference

SHORT = 12  # characters of a fingerprint that a message shows


class NoRelease(Invalid):
    """There is nothing to compare with: `what` is missing, and what to do about it."""

    def __init__(self, what: str, remedy: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(what + remedy, details)
        self.what = what


@dataclass(frozen=True)
class Release:
    """What is kept of it, what to call it, and, where it is the model itself, why."""

    kept: Json
    name: str
    itself: str = ""


def from_baseline(of: Inner, against: BaselineReference, now: Json, weights: str) -> Release:
    """The release's side; `now` is the model's, and `weights` its fingerprint.

    A run that writes baselines compares what has no release with itself, but not where the other entries are of another model: it would
    make the new model its own release. Raises `Invalid` where there is nothing to compare with, or it was measured otherwise.
    """
    try:
        return _recorded(of, against, now, weights)
    except NoRelease as problem:
        if not against.writes or _other(against, weights):
            raise
        why = f"compared with itself, since this run writes its baseline ({problem.what})"
        return Release(as_kept(now), "baseline", why)


def check_data(then: Mapping[str, Any], now: Mapping[str, Any], hints: tuple[str, ...] = (), again: str = "") -> None:
    """Differences are taken on the same token ids only. Raises `Invalid`."""
    other = [name for name, digest in now["data"].items() if then["data"].get(name) != digest]
    if other:
        why = f" ({'; '.join(hints)})" if hints else ""
        raise NoRelease(
            f"the encoded prompts of task {', '.join(map(repr, other))} are not those of the release{why}: other prompts, or another "
            "tokenizer, so that a difference would not be the model's",
            again,
            {"other_data": other, "hints": list(hints)},
        )


def _recorded(of: Inner, against: BaselineReference, now: Json, weights: str) -> Release:
    if against.entry is not None:
        return Release(_own(of, against, against.entry, now, weights), "baseline")
    if against.lent is not None:
        return Release(_lent(of, against, against.lent, now, weights), f"baseline, the entry of {against.lender}")
    raise NoRelease(against.reason, f": measure the release {against.again}{_remedy(against, weights)}" if against.command else "")


def _own(of: Inner, against: BaselineReference, entry: Mapping[str, Any], now: Json, weights: str) -> Json:
    """The entry of this very claim."""
    changed = _changed(of, entry["parameters"].get("of", {}))
    again = f"; if the claim was meant to change, measure the release anew{_remedy(against, weights)}"
    if changed:
        raise NoRelease(f"the baseline is of another claim: {', '.join(changed)}", again, {"changed": changed})
    then: Json = entry["kept"]
    if "members" in now and ("members" not in then or ("profiles" in now and "profiles" not in then)):
        what = "profiles by which heads could be matched" if "members" in then else "circuits"
        raise NoRelease(f"the baseline has no {what}, since it is of another kind of drift", again)
    if "of" in now and "of" not in then:
        raise NoRelease("the baseline has circuits and no value, since it is of another kind of drift", again)
    check_data(then, now, against.hints, again)
    if "of" in now:
        _check_numbers(then["of"], "the baseline's entry")
    return then


def _lent(of: Inner, against: BaselineReference, entry: Mapping[str, Any], now: Json, weights: str) -> Json:
    """The entry of the claim in `of`, as this claim would have kept it."""
    again = f": measure the release for this claim once{_remedy(against, weights)}"
    nothing = f"the baseline has no entry for this claim, and that of {against.lender}"
    changed = [] if entry["property"] == of.name else [f"{entry['property']} then, {of.name} now"]
    changed = changed or changed_parameters(entry["parameters"], of.model_dump(mode="json")[of.name])
    if changed:
        raise NoRelease(f"{nothing} is of another claim, {', '.join(changed)}", again, {"changed": changed})
    if "members" in now:
        raise NoRelease(f"{nothing} keeps no circuits of single examples, which an overlap needs", again)
    check_data({"data": entry["fingerprints"]["data"]}, now, against.hints, again)
    numbers = {key: entry[key] for key in ("estimate", "interval", "n")}
    about = {"sets": entry["circuits"], "unsettled": entry["kept"].get("unsettled"), "confidence": entry["parameters"]["confidence"]}
    then = {**entry["kept"], **numbers, **about}
    _check_numbers(then, f"the baseline's entry of {against.lender}")
    paired = "values" in then and "values" in now["of"] and (then["groups"], then["range"]) == (now["of"]["groups"], now["of"]["range"])
    if not paired and then["confidence"] < now["of"]["confidence"]:
        raise NoRelease(
            f"{nothing} has no values for the same examples one by one, and its interval has confidence {then['confidence']:g} where "
            f"{now['of']['confidence']:g} is needed",
            again,
            {"confidence_then": then["confidence"]},
        )
    return {"data": entry["fingerprints"]["data"], "of": then}


def _check_numbers(kept: Mapping[str, Any], what: str) -> None:
    wrong = contradicts_itself(kept, kept)
    if wrong:
        raise Invalid(f"{what} contradicts itself: {wrong}. Was the file edited? Restore it from version control")


def _changed(of: Inner, then: Mapping[str, Any]) -> list[str]:
    """In which parameters the claim in `of` differs from what the baseline was measured with."""
    ((name, now),) = of.model_dump(mode="json").items()
    if name not in then:
        return [f"{', '.join(then) or 'nothing'} then, {name} now"]
    return changed_parameters(then[name], now)


def _other(against: BaselineReference, weights: str) -> bool:
    """Whether the model is not the one that the other entries are of."""
    return bool(against.weights) and weights not in against.weights


def _remedy(against: BaselineReference, weights: str) -> str:
    """What to run, and on which checkpoint."""
    if not against.command:
        return ""
    if not _other(against, weights):
        return f", with {against.command}"
    of = " and ".join(one[:SHORT] for one in against.weights)
    return f", on its own checkpoint (its entries are of weights {of}, and this model has {weights[:SHORT]}), with {against.elsewhere}"
