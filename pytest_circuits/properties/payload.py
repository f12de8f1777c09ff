"""The payload of an estimate: plain JSON that a baseline stores to compare a later model on the same examples.

Values are rounded to six significant digits on both sides, so that equal measurements compare as equal. Lists become one
line of text each: `1x12 0.5 0x3` are twelve ones, a half and three zeros.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from ..core.results import CircuitSet

    Array = np.ndarray[Any, np.dtype[np.float64]]
    Bools = np.ndarray[Any, np.dtype[np.bool_]]

Json = dict[str, Any]
DIGITS = 6
"""Significant digits."""
MAX_COUNT_DIGITS = 7
"""Digits of a repeat count; a longer one is damaged."""
MIN_FREQUENCY = 0.05
"""Units in a smaller share of the circuits are left out."""


def rounded(value: float) -> float:
    """To six significant digits; −0 becomes 0."""
    return float(f"{value:.{DIGITS}g}") + 0.0


def plain_json(value: Any) -> Any:
    """The value as a baseline stores it: text keys, lists for tuples, numbers with six digits."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(entry) for entry in value]
    return rounded(value) if isinstance(value, float) else value


def group_digest(groups: Sequence[str]) -> str:
    """A digest of the groups of a list of examples, in order."""
    return hashlib.sha256("\0".join(groups).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def per_group(values: ArrayLike, groups: Sequence[str], lowest: float, highest: float, draws: tuple[float, int] | None = None) -> Json:
    """Per-example values [n] in [lowest, highest] whose mean over groups is the estimate, as means of the groups in order.

    `draws`, where random draws are a second source of error, are its standard error and degrees of freedom.
    """
    from ..stats.groups import group_means

    means = group_means(values, groups)[0]
    payload: Json = {"values": _line([rounded(float(v)) for v in means]), "groups": group_digest(groups), "range": [lowest, highest]}
    return payload if draws is None else {**payload, "draws": [rounded(draws[0]), draws[1]]}


def per_draw(table: Array, groups: Sequence[str], parts: Mapping[str, Any]) -> Json:
    """Differences [n_draws, n] in [−1, 1] as `per_group`, their mean over draws; `parts` are those of `stats.crossed`."""
    draws = int(parts["n_draws"])
    return per_group(table.mean(0), groups, -1.0, 1.0, (float(parts["draw_sd"]) / draws**0.5, draws - 1))


def group_values(payload: Mapping[str, Any]) -> Array:
    """The means of the groups that `per_group` wrote; [n_groups]. Raises `ValueError` for anything else."""
    import numpy as np

    try:
        values = [float(value) for part in str(payload["values"]).split() for value in _repeated(part)]
    except (KeyError, ValueError) as problem:
        raise ValueError(f"not a list of values: {problem}") from None
    return np.asarray(values, dtype=np.float64)


def inconsistency(numbers: Mapping[str, Any], payload: Mapping[str, Any]) -> str | None:
    """How the estimate in `numbers` differs from the mean of the values of its payload, as text; None where they agree or there are none.

    Both have six digits, so they may differ by 1e-5 of the range. Raises `ValueError` for values that cannot be read.
    """
    if "values" not in payload:
        return None
    low, high = map(float, payload["range"])
    mean = float(group_values(payload).mean())
    if abs(mean - float(numbers["estimate"])) <= 1e-5 * (high - low):
        return None
    return f"it says {numbers['estimate']:.6g}, and the values that it holds have mean {mean:.6g}"


def is_paired(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the values of two measurements belong to the same examples, one by one."""
    return "values" in then and "values" in now and then["groups"] == now["groups"] and then["range"] == now["range"]


def pack_bits(table: Bools) -> Json:
    """A bool table as text, eight values a byte."""
    import numpy as np

    return {"shape": list(table.shape), "bits": _text(np.packbits(table.reshape(-1)).tobytes())}


def unpack_bits(payload: Mapping[str, Any]) -> Bools:
    """The table that `pack_bits` wrote. Raises `ValueError` where the text is damaged."""
    import numpy as np

    shape = tuple(map(int, payload["shape"]))
    raw = np.frombuffer(_bytes(payload["bits"]), np.uint8)
    count = int(np.prod(shape))
    if len(raw) != -(-count // 8):
        raise ValueError(f"{len(raw)} bytes for a table of {shape}")
    return np.unpackbits(raw, count=count).reshape(shape).astype(bool)


def pack_columns(table: Array) -> Json:
    """Numbers [n, m] as text, each column with 255 levels between minus and plus its largest absolute value."""
    import numpy as np

    largest = np.abs(table).max(0, initial=0.0)
    scale = np.asarray([rounded(float(v)) for v in largest])
    levels = np.round(table / np.where(scale > 0, scale, 1) * 127).clip(-127, 127).astype(np.int8)
    return {"shape": list(table.shape), "bytes": _text(levels.tobytes()), "scale": _line(list(scale))}


def unpack_columns(payload: Mapping[str, Any]) -> Array:
    """The numbers that `pack_columns` wrote, to within 1/254 of a column's largest. Raises `ValueError` where the text is damaged."""
    import numpy as np

    shape = tuple(map(int, payload["shape"]))
    raw = np.frombuffer(_bytes(payload["bytes"]), np.int8)
    scale = np.asarray([float(value) for part in str(payload["scale"]).split() for value in _repeated(part)])
    if len(raw) != int(np.prod(shape)) or scale.shape != shape[1:]:
        raise ValueError(f"{len(raw)} bytes and {len(scale)} scales for a table of {shape}")
    table: Array = raw.reshape(shape).astype(np.float64) / 127 * scale
    return table


def frequencies(circuits: CircuitSet, groups: Sequence[str]) -> Json:
    """The share of the circuits that contain each unit, shares below 5% left out, and the number of groups."""
    shares = circuits.counts / len(circuits)
    named = {unit: rounded(float(share)) for unit, share in zip(circuits.units, shares, strict=True) if share >= MIN_FREQUENCY}
    return {"frequency": {"groups": len(set(groups)), "shares": named}}


SHARED_SET_NAMES = ("shared_set", "found")
"""Names in `details` of the set that `frequencies` belongs to; a claim has one of them."""


def moved_units(then: Sequence[str], now: Sequence[str]) -> dict[str, list[str]]:
    """The units that entered a set, and those that left it."""
    return {"entered": [unit for unit in now if unit not in set(then)], "left": [unit for unit in then if unit not in set(now)]}


def share_changes(units: Iterable[str], then: Mapping[str, Any], now: Mapping[str, Any], confidence: float) -> Json:
    """For units that entered or left a shared set: `shares` of the circuits then and now, and those whose share moved `beyond_noise`.

    `then` and `now` are the `frequency` of both sides. The other units only crossed the threshold P, which another sample of discovery
    examples could have undone.
    """
    from ..stats.paired_difference import share_difference

    shares, beyond = {}, []
    for unit in units:
        before, after = (float(side["shares"].get(unit, 0.0)) for side in (then, now))
        low, high = share_difference(after, before, (now["groups"], then["groups"]), confidence)
        shares[unit] = [before, after]
        if low > 0 or high < 0:
            beyond.append(unit)
    return {"shares": shares, "beyond_noise": beyond}


def is_within_noise(sets: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a shared set changed only by units that crossed the threshold within noise; `sets` are `moved_units` with `share_changes`."""
    return any(sets[name].get("shares") and not sets[name]["beyond_noise"] for name in SHARED_SET_NAMES if name in sets)


def parameter_changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The parameters that changed, as text. Parameters of one side only came or went with a version of the package and do not count."""
    return [f"{key} was {then[key]!r} and is {now[key]!r}" for key in sorted({*then} & {*now}) if then[key] != now[key]]


def named_sets(details: Any, most: int = 500) -> dict[str, list[str]]:
    """The sets of units in details, by their path: every mapping with `units`, a list of names, and `size`.

    Sets of more than `most` units are left out.
    """
    return {name: units for name, units in _sets(details, ()) if len(units) <= most}


def _sets(details: Any, where: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    if not isinstance(details, Mapping):
        return
    units = details.get("units")
    if "size" in details and isinstance(units, (list, tuple)) and all(isinstance(unit, str) for unit in units):
        yield ".".join(where), list(units)
        return
    for key, value in details.items():
        yield from _sets(value, (*where, str(key)))


def _line(values: Sequence[float]) -> str:
    runs = [(f"{value:.{DIGITS}g}", len(list(run))) for value, run in itertools.groupby(values)]
    return " ".join(text if count == 1 else f"{text}x{count}" for text, count in runs)


def _repeated(part: str) -> list[str]:
    value, _, count = part.partition("x")
    if len(count) > MAX_COUNT_DIGITS:
        raise ValueError(f"{part} would be more values than any task has examples")
    return [value] * int(count or 1)


def _text(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw, 9)).decode("ascii")


def _bytes(text: str) -> bytes:
    try:
        return zlib.decompress(base64.b85decode(text))
    except (ValueError, zlib.error) as problem:
        raise ValueError(f"damaged: {problem}") from None
