"""Baseline entries: made from the record of a claim, and compared with a later record."""

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
    """The name of an entry: the node id without the file."""
    return nodeid.partition("::")[2]


def model_of(key: str) -> str:
    """The name of the model, or of the series, that an entry is about."""
    return key.split("::")[1]


def measured_on(executor: Executor, claim: Claim) -> dict[str, Any]:
    """Digests of the tokenizer (None if known only by loading it) and of each task's encoded prompts, and versions. Measures nothing."""
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
    """What the entry stores besides the estimate; includes why the claim is unsettled."""
    return {**estimate.payload, **({"unsettled": estimate.unsettled} if estimate.unsettled else {})}


def entry_of(recorded: RecordedClaim) -> Entry | None:
    """What a baseline stores of a claim; None for a claim that was not measured or has no baseline."""
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
    """Definition changes that prevent a comparison; the bound does not count."""
    if then["property"] != now["property"]:
        return [f"the property was {then['property']} and is {now['property']}"]
    return parameter_changes(then["parameters"], now["parameters"])


def data_changes(then: Entry, now: Entry) -> list[str]:
    """Differences between the examples as token ids: equal ids are the same examples, whatever the tokenizer's files say."""
    old, new = then["fingerprints"], now["fingerprints"]
    other = sorted(name for name, digest in new["data"].items() if old["data"].get(name) != digest)
    if not other:
        return []
    return [f"the encoded prompts of {', '.join(other)} differ", *hints(then, now["fingerprints"]["tokenizer"])]


def hints(then: Entry, tokenizer: str | None) -> list[str]:
    """Why encoded prompts may differ."""
    before = then["fingerprints"]["tokenizer"]
    return ["the tokenizer's files differ"] if before is not None and tokenizer is not None and before != tokenizer else []


def version_changes(then: Entry, now: Mapping[str, Any]) -> list[str]:
    """The change of the measurement version, if any."""
    before, after = then["versions"].get("measurement"), now.get("measurement")
    return [] if before == after else [f"the measurement version changed ({before} then, {after} now)"]


def changes(then: Entry, now: Entry) -> list[str]:
    """Why `--circuits-update-baseline=changed` rewrites an entry: a change of claim, bound, data, model, precision or version."""
    reasons = definition_changes(then, now) + data_changes(then, now) + version_changes(then, now["versions"])
    if then["bound"] != now["bound"]:
        reasons.append("the bound changed")
    if then["fingerprints"]["weights"] != now["fingerprints"]["weights"]:
        reasons.append("the model changed")
    if then["versions"].get("dtype") != now["versions"].get("dtype"):
        reasons.append("the precision changed")
    return reasons
