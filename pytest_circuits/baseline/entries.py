"""From the record of a claim to its entry in a baseline, and what has changed between an entry and a later record."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..properties.payload import named_sets, parameter_changes, plain_json

if TYPE_CHECKING:
    from ..core.claim import Claim
    from ..core.verdict import Estimate
    from ..measurement.executor import Executor
    from ..report.record import RecordedClaim

Entry = dict[str, Any]


def key_of(nodeid: str) -> str:
    """An entry's name: the node id without the file."""
    return nodeid.partition("::")[2]


def model_of(key: str) -> str:
    """The name of the model, or of the series, that an entry is about."""
    return key.split("::")[1]


def measured_on(executor: Executor, claim: Claim) -> dict[str, Any]:
    """Digests of the tokenizer (None where only loading tells) and of each task's encoded prompts, and versions. Measures nothing."""
    from .. import __version__
    from ..errors import CircuitsError
    from ..measurement.requests import Encode
    from ..measurement.version import MEASUREMENT_VERSION, libraries

    tokenizer, data = None, {}
    with suppress(CircuitsError):
        tokenizer = executor.models.identity(claim.model, may_open=False).tokenizer
    for name, task in claim.tasks.items():
        try:
            encoded = executor.stored(Encode(claim.model, task))
        except CircuitsError:
            encoded = None
        data[name] = None if encoded is None else encoded.digest
    versions = {"pytest-circuits": __version__, "measurement": MEASUREMENT_VERSION, **libraries()}
    return {"tokenizer": tokenizer, "data": data, "versions": versions}


def payload_of(estimate: Estimate) -> dict[str, Any]:
    """What the entry holds besides the number; why the claim stays open is part of it."""
    return {**estimate.payload, **({"unsettled": estimate.unsettled} if estimate.unsettled else {})}


def entry_of(recorded: RecordedClaim) -> Entry | None:
    """What a baseline holds of a claim; None of one that could not be measured, or that has no baseline."""
    record, on = recorded.record, recorded.measured_on
    if record.estimate is None or on is None or recorded.payload is None:
        return None
    fingerprint, dtype = (None, None) if recorded.model is None else (recorded.model.fingerprint, recorded.model.dtype)
    entry: Entry = plain_json(
        {
            "property": record.property,
            "parameters": record.parameters,
            "bound": record.bound.as_json(),
            "estimate": record.estimate,
            "interval": record.interval,
            "n": record.n,
            "verdict": record.verdict,
            "circuits": named_sets(record.details),
            "fingerprints": {"weights": fingerprint, "tokenizer": on["tokenizer"], "data": on["data"]},
            "versions": {**on["versions"], "dtype": dtype},
            "kept": recorded.payload,
        }
    )
    return entry


def definition_changes(then: Entry, now: Entry) -> list[str]:
    """In what the claim itself differs, its bound apart, so that its numbers do not compare."""
    if then["property"] != now["property"]:
        return [f"the property was {then['property']} and is {now['property']}"]
    return parameter_changes(then["parameters"], now["parameters"])


def data_changes(then: Entry, now: Entry) -> list[str]:
    """In what the examples differ, as token ids: whatever the tokenizer's files say, equal ids are the same examples."""
    old, new = then["fingerprints"], now["fingerprints"]
    other = sorted(name for name, digest in new["data"].items() if old["data"].get(name) != digest)
    if not other:
        return []
    return [f"the encoded prompts of {', '.join(other)} are not the same", *hints(then, now["fingerprints"]["tokenizer"])]


def hints(then: Entry, tokenizer: str | None) -> list[str]:
    """Why encoded prompts may differ."""
    before = then["fingerprints"]["tokenizer"]
    return ["the tokenizer's files are not the same"] if before is not None and tokenizer is not None and before != tokenizer else []


def version_changes(then: Entry, now: Mapping[str, Any]) -> list[str]:
    """Whether measurements are still made in the same way."""
    before, after = then["versions"].get("measurement"), now.get("measurement")
    return [] if before == after else [f"measurements are made in another way since (version {before} then, {after} now)"]


def changes(then: Entry, now: Entry) -> list[str]:
    """Because of what `--circuits-update-baseline=changed` writes an entry anew: claim, bound, data, model, way of measuring."""
    found = definition_changes(then, now) + data_changes(then, now) + version_changes(then, now["versions"])
    if then["bound"] != now["bound"]:
        found.append("the bound is another")
    if then["fingerprints"]["weights"] != now["fingerprints"]["weights"]:
        found.append("the model is another")
    if then["versions"].get("dtype") != now["versions"].get("dtype"):
        found.append("the precision is another")
    return found
