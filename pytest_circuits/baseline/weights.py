"""A baseline describes one release: the weights that its entries were measured on, and messages where a model's entries mix several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from .entries import Entry, model_of

MAX_NAMES = 3  # entries that a message names
SHORT = 12  # characters of a fingerprint in a message

Weights = dict[str, list[str]]


def weights_of(entries: Mapping[str, Entry], model: str) -> Weights:
    """The fingerprints of the weights that the entries about `model` were measured on, each with the names of its entries."""
    by_weights: Weights = {}
    for key, entry in entries.items():
        weights = entry["fingerprints"].get("weights")
        if weights is not None and model_of(key) == model:
            by_weights.setdefault(weights, []).append(key)
    return by_weights


def is_of_other_weights(entry: Entry, known: Mapping[str, Weights], model: str) -> bool:
    """Whether the known entries of this model were all measured on other weights than this entry."""
    weights = entry["fingerprints"]["weights"]
    return bool(known.get(model)) and weights is not None and weights not in known[model]


def refusal(keys: Sequence[str], entry: Entry, known: Weights) -> str:
    """Why entries about one model were not written, and what to do. `entry` is the first of them."""
    model, fingerprints = model_of(keys[0]), ", ".join(weights[:SHORT] for weights in known)
    return (
        f"{_join_names(keys)} not written: the entries of {model!r} were measured on weights {fingerprints}, and this run "
        f"measured {str(entry['fingerprints']['weights'])[:SHORT]}. Measure the release, with --circuits-model={quote(model)}=RELEASE, "
        "or make this model the release, with --circuits-update-baseline=all for all claims"
    )


def mixtures(entries: Mapping[str, Entry]) -> list[str]:
    """A warning for each model whose entries mix several weights, so that a comparison mixes several releases."""
    warnings = []
    for model in dict.fromkeys(map(model_of, entries)):
        weights = sorted(weights_of(entries, model).items(), key=lambda item: (-len(item[1]), item[0]))
        if len(weights) > 1:
            counts = ", ".join(f"{len(keys)} of {fingerprint[:SHORT]}" for fingerprint, keys in weights)
            warnings.append(
                f"mixes weights of {model!r}: {counts} ({_join_names(weights[-1][1])}). Measure all of its claims on the release, with "
                "--circuits-update-baseline=all"
            )
    return warnings


def _join_names(keys: Sequence[str]) -> str:
    return ", ".join(keys[:MAX_NAMES]) + (f" and {len(keys) - MAX_NAMES} more" if len(keys) > MAX_NAMES else "")
