"""One baseline, one release: which weights the entries about a model are of, and what is said where they are of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote

from .entries import Entry, model_of

SHOWN = 3  # entries that a message names
SHORT = 12  # characters of a fingerprint

Weights = dict[str, list[str]]


def weights_of(entries: Mapping[str, Entry], model: str) -> Weights:
    """Which weights the entries about a model of this name are of, and the names of those entries."""
    found: Weights = {}
    for key, entry in entries.items():
        weights = entry["fingerprints"].get("weights")
        if weights is not None and model_of(key) == model:
            found.setdefault(weights, []).append(key)
    return found


def of_another(entry: Entry, known: Mapping[str, Weights], model: str) -> bool:
    """Whether an entry is of weights that none of the entries known of this model is of."""
    weights = entry["fingerprints"]["weights"]
    return bool(known.get(model)) and weights is not None and weights not in known[model]


def refusal(keys: Sequence[str], entry: Entry, known: Weights) -> str:
    """Why entries about one model were not written, and what to do. `entry` is one of them."""
    model = model_of(keys[0])
    return (
        f"{_named(keys)} not written: the entries of {model!r} are of weights {', '.join(one[:SHORT] for one in known)}, and this run "
        f"measured {str(entry['fingerprints']['weights'])[:SHORT]}. Measure the release, with --circuits-model={quote(model)}=RELEASE, "
        "or make this model the release, with --circuits-update-baseline=all for all claims"
    )


def mixtures(entries: Mapping[str, Entry]) -> list[str]:
    """A warning for each model whose entries are of several weights: what is compared with them is compared with several releases."""
    found = []
    for model in dict.fromkeys(map(model_of, entries)):
        weights = sorted(weights_of(entries, model).items(), key=lambda one: (-len(one[1]), one[0]))
        if len(weights) > 1:
            counts = ", ".join(f"{len(keys)} of {one[:SHORT]}" for one, keys in weights)
            found.append(
                f"mixes weights of {model!r}: {counts} ({_named(weights[-1][1])}). Measure all of its claims on the release, with "
                "--circuits-update-baseline=all"
            )
    return found


def _named(keys: Sequence[str]) -> str:
    return ", ".join(keys[:SHOWN]) + (f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else "")
