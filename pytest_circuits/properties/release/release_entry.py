"""The release that a claim on drift compares with, read from a baseline: its own entry, or the entry of the claim in `of`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import Invalid, ReasonCode
from ..nested import Inner
from ..payload import Json, inconsistency, parameter_changes, plain_json
from ..protocol import BaselineReference

SHORT = 12  # characters of a fingerprint that a message shows


class NoRelease(Invalid):
    """There is nothing to compare with: the reason, and the remedy."""

    def __init__(self, reason: str, remedy: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason + remedy, details, code=ReasonCode.NO_RELEASE)
        self.reason = reason


@dataclass(frozen=True)
class Side:
    """One of the two models: its payload for a baseline, and the group of each discovery example (empty unless circuits are compared)."""

    payload: Json
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Release:
    """The release: its payload and its name; and the reason, if the model is compared with itself."""

    payload: Json
    name: str
    itself: str = ""


def from_baseline(of: Inner, against: BaselineReference, now: Json, weights: str) -> Release:
    """The release; `now` is the payload of the model, and `weights` its fingerprint.

    A run that writes baselines compares a model without a release with itself, unless the other entries are of another model: the new model
    would become its own release. Raises `Invalid` if there is nothing to compare with, or if it was measured differently.
    """
    try:
        return _from_entry(of, against, now, weights)
    except NoRelease as problem:
        if not against.writes or _is_other_model(against, weights):
            raise
        reason = f"compared with itself, since this run writes its baseline ({problem.reason})"
        return Release(plain_json(now), "baseline", reason)


def check_data(then: Mapping[str, Any], now: Mapping[str, Any], hints: tuple[str, ...] = (), again: str = "") -> None:
    """Raise `Invalid` unless both payloads are of the same token ids."""
    other = [name for name, digest in now["data"].items() if then["data"].get(name) != digest]
    if other:
        hint = f" ({'; '.join(hints)})" if hints else ""
        raise NoRelease(
            f"the encoded prompts of task {', '.join(map(repr, other))} are not those of the release{hint}: the prompts or the tokenizer "
            "differ, so a difference could not be attributed to the model",
            again,
            {"other_data": other, "hints": list(hints)},
        )


def _from_entry(of: Inner, against: BaselineReference, now: Json, weights: str) -> Release:
    if against.entry is not None:
        return Release(_from_same_claim(of, against, against.entry, now, weights), "baseline")
    if against.related_entry is not None:
        return Release(
            _from_other_claim(of, against, against.related_entry, now, weights), f"baseline, the entry of {against.related_claim}"
        )
    raise NoRelease(against.reason, f": measure the release {against.when}{_remedy(against, weights)}" if against.command else "")


def _from_same_claim(of: Inner, against: BaselineReference, entry: Mapping[str, Any], now: Json, weights: str) -> Json:
    """The payload in the entry of this claim."""
    changed = _changed(of, entry["parameters"].get("of", {}))
    again = f"; if the claim was changed on purpose, measure the release again{_remedy(against, weights)}"
    if changed:
        raise NoRelease(f"the baseline is of another claim: {', '.join(changed)}", again, {"changed": changed})
    then: Json = entry["kept"]
    if "members" in now and ("members" not in then or ("profiles" in now and "profiles" not in then)):
        missing = "profiles for matching heads" if "members" in then else "circuits"
        raise NoRelease(f"the baseline has no {missing}, since it is of another kind of drift", again)
    if "of" in now and "of" not in then:
        raise NoRelease("the baseline has circuits but no value, since it is of another kind of drift", again)
    check_data(then, now, against.hints, again)
    if "of" in now:
        _check_numbers(then["of"], "the baseline's entry")
    return then


def _from_other_claim(of: Inner, against: BaselineReference, entry: Mapping[str, Any], now: Json, weights: str) -> Json:
    """The payload in the entry of the claim in `of`, in the form of this claim's."""
    again = f": measure the release for this claim once{_remedy(against, weights)}"
    insufficient = f"the baseline has no entry for this claim, and the entry of {against.related_claim}"
    changed = [] if entry["property"] == of.name else [f"{entry['property']} then, {of.name} now"]
    changed = changed or parameter_changes(entry["parameters"], of.model_dump(mode="json")[of.name])
    if changed:
        raise NoRelease(f"{insufficient} is of another claim: {', '.join(changed)}", again, {"changed": changed})
    if "members" in now:
        raise NoRelease(f"{insufficient} has no circuits of single examples, which an overlap needs", again)
    check_data({"data": entry["fingerprints"]["data"]}, now, against.hints, again)
    numbers = {key: entry[key] for key in ("estimate", "interval", "n")}
    about = {"sets": entry["circuits"], "unsettled": entry["kept"].get("unsettled"), "confidence": entry["parameters"]["confidence"]}
    then = {**entry["kept"], **numbers, **about}
    _check_numbers(then, f"the baseline's entry of {against.related_claim}")
    paired = "values" in then and "values" in now["of"] and (then["groups"], then["range"]) == (now["of"]["groups"], now["of"]["range"])
    if not paired and then["confidence"] < now["of"]["confidence"]:
        raise NoRelease(
            f"{insufficient} has no per-example values on the same examples, and its interval has confidence {then['confidence']:g} where "
            f"{now['of']['confidence']:g} is needed",
            again,
            {"confidence_then": then["confidence"]},
        )
    return {"data": entry["fingerprints"]["data"], "of": then}


def _check_numbers(payload: Mapping[str, Any], source: str) -> None:
    contradiction = inconsistency(payload, payload)
    if contradiction:
        raise Invalid(
            f"{source} contradicts itself: {contradiction}. Was the file edited? Restore it from version control",
            code=ReasonCode.BASELINE_CONTRADICTS_ITSELF,
        )


def _changed(of: Inner, then: Mapping[str, Any]) -> list[str]:
    """The parameters in which the claim in `of` differs from that of the baseline."""
    ((name, now),) = of.model_dump(mode="json").items()
    if name not in then:
        return [f"{', '.join(then) or 'nothing'} then, {name} now"]
    return parameter_changes(then[name], now)


def _is_other_model(against: BaselineReference, weights: str) -> bool:
    """Whether the other entries are of another model."""
    return bool(against.weights) and weights not in against.weights


def _remedy(against: BaselineReference, weights: str) -> str:
    """The command to run, and the checkpoint to run it on."""
    if not against.command:
        return ""
    if not _is_other_model(against, weights):
        return f", with {against.command}"
    known = " and ".join(fingerprint[:SHORT] for fingerprint in against.weights)
    mismatch = f"its entries are of weights {known}, and this model has {weights[:SHORT]}"
    return f", on its own checkpoint ({mismatch}), with {against.release_command}"
