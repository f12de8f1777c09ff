"""The page on calibration, from what was measured: every number in it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Found = Mapping[str, Any]

HEAD = """# How often are verdicts wrong?

A claim is certified when the whole interval of its estimate is on the right side of the bound, and refuted when all of it is on the
wrong side. So a verdict is only as good as its interval. This page measures the intervals on simulated models whose true values are known.
The properties themselves estimate, with their usual splits, shared sets, controls and refusals. `make calibrate` (`python -m
benchmarks.calibration --page docs/explanation/calibration.md`) makes this page.
"""

SIMULATED = """## Simulated studies with the truth at the bound

A population is a table of {rows} examples (or a formula). A study draws n of them, half for discovery. The bound is the true value.

- *False high*: the share of studies whose whole interval is above the true value. They wrongly certify `at_least`, or refute `at_most`.
- *False low*: the share whose whole interval is below it. They wrongly refute `at_least`, or certify `at_most`. The nominal rate is
  {tail:.1%} for each side, because intervals are two-sided {confidence:.0%} intervals.
- *Coverage*: the share of intervals that contain the true value, ± its 95% Monte-Carlo error.
- *Power*: the share of studies that certify `at_least` the true value minus the gap.

If a property's docstring says that its interval is conditional on the selected sets or ranking, so is the true value. ▲ marks a rate
above nominal beyond Monte-Carlo error (one-sided, at {sure:.1%} each, because the tables have {cells} rates).

There are {studies} studies of each population and size, fewer for expensive estimates. Bootstraps use at most 400 resamples
instead of 2000.
"""

NULL = """## Untrained models and shuffled answers

Small Llama and GPT-2 models with random weights on random tokens, and a trained model ({trained}) on its tasks with the answers of
other prompts. The accuracy gate (`min_accuracy` and the chance level) makes claims about behaviour that does not exist invalid, so with the
gate nothing may be certified. Without it (`min_accuracy: 0`) at most {tail:.1%} of claims about behaviour may be certified.
"""

PLANTED = """## Power on planted circuits

True claims about models whose circuits were set by hand (`models/planted-circuits`), over draws of prompts, splits and controls. These
models treat all prompts alike, so only n matters: below some n an interval is too wide for any model. n counts all
prompts; half of them are for discovery.
"""


def page(found: Found) -> str:
    """The whole page as Markdown."""
    return "\n".join([HEAD, _summary(found), _simulated(found), _null(found), _planted(found), _made(found)]).rstrip() + "\n"


def _summary(found: Found) -> str:
    rows = found["simulated"]
    over = [one for one in rows if one["exceeds"]]
    sides = 2 * len(rows)
    false = sum(one["certified"] for one in found["null"] if one["gate"])
    open_ = [one for one in found["null"] if not one["gate"] and one["error"]]
    lines = [
        f"- Of {sides} rates of false verdicts, {_sides_over(over, found)} are above the nominal {found['tail']:.1%} beyond Monte-Carlo "
        f"error{':' if over else '.'}",
        *(f"    - {one['property']}, {one['population']}, n = {one['n']}: coverage {one['coverage']:.1%}{_note(one)}" for one in over),
        f"- On untrained models and shuffled answers, {false} of {_studies(found, True)} claims were certified with the accuracy gate, and "
        f"{sum(one['certified'] for one in open_)} of {sum(one['studies'] for one in open_)} claims about behaviour without it.",
    ]
    return "\n".join([*lines, ""])


def _note(one: Found) -> str:
    return "" if one["known"] else " (missing in the property's docstring)"


def _sides_over(over: Iterable[Found], found: Found) -> int:
    return sum(_above(one, side, found) for one in over for side in ("low_above", "high_below"))


def _above(one: Found, side: str, found: Found) -> bool:
    from pytest_circuits.stats.binomial import binomial_lower

    return bool(
        one["studies"] > one["invalid"] and binomial_lower(one[side], one["studies"] - one["invalid"], found["sure"]) > found["tail"]
    )


def _studies(found: Found, gate: bool) -> int:
    return sum(one["studies"] for one in found["null"] if one["gate"] is gate)


def _simulated(found: Found) -> str:
    from .populations import ROWS

    rows = found["simulated"]
    text = SIMULATED.format(
        rows=f"{ROWS:,}",
        tail=found["tail"],
        confidence=found["confidence"],
        sure=found["sure"],
        cells=2 * len(rows),
        studies=found["studies"],
    )
    head = ["property", "population", "n", "studies", "false high", "false low", "coverage", "mean width", "power (gap)"]
    parts = [text, _table(head, (_row(one, found) for one in rows))]
    refused = [one for one in rows if one["invalid"]]
    if refused:
        parts.append("\nInvalid studies, which are left out:\n")
        parts += [
            f"- {one['property']}, {one['population']}, n {one['n']}: {one['invalid']} of {one['studies']} ({_reason(one)})"
            for one in refused
        ]
    parts.append("\nHow these intervals are made:\n")
    parts.append(_table(["property", "interval"], sorted({(one["property"], one["kind"]) for one in rows if one["kind"]})))
    return "\n".join([*parts, ""])


def _row(one: Found, found: Found) -> list[str]:
    if not one["studies"] - one["invalid"]:
        return [one["property"], one["population"], str(one["n"]), str(one["studies"]), *[""] * 5]
    low, high = one["coverage_interval"]
    error = max(one["coverage"] - low, high - one["coverage"])

    def rate(side: str, value: float) -> str:
        return f"{value:.1%}{' ▲' if _above(one, side, found) else ''}"

    return [
        one["property"], one["population"], str(one["n"]), str(one["judged"]), rate("low_above", one["false_high"]),
        rate("high_below", one["false_low"]), f"{one['coverage']:.1%} ± {error:.1%}", f"{one['mean_width']:.3g}" if one["width"] else "",
        f"{one['power']:.0%} ({one['gap']:g})",
    ]  # fmt: skip


def _reason(one: Found) -> str:
    return max(one["reasons"], key=one["reasons"].get)


def _null(found: Found) -> str:
    head = ["models", "claim", "n", "number of models", "certified with the gate", "certified without it", "mostly, with the gate"]
    pairs: dict[tuple[str, str], dict[bool, Found]] = {}
    for one in found["null"]:
        pairs.setdefault((one["models"], one["claim"]), {})[one["gate"]] = one
    rows = []
    for (models, claim), both in pairs.items():
        closed, without = both[True], both[False]
        low, high = without["interval"]
        rows.append([
            models, claim, str(closed["n"]), str(closed["studies"]), str(closed["certified"]),
            f"{without['certified']} ({low:.0%}–{high:.0%})", _shorter(closed["reason"]),
        ])  # fmt: skip
    other = [one["claim"].split()[0] for one in found["null"] if not one["error"]]
    note = (
        f"\n{', '.join(dict.fromkeys(other))} are about where attribution scores fall, not about what the model can do. If untrained "
        "models have high values too, the number is correct but says nothing about training. Therefore reuse is reported next to its "
        "chance level and to the sets of other tasks.\n"
    )
    return "\n".join([NULL.format(trained="models/multitask-llama", tail=found["tail"]), _table(head, rows), note])


def _planted(found: Found) -> str:
    sizes = sorted({one["n"] for one in found["planted"]})
    claims = dict.fromkeys((one["models"], one["claim"]) for one in found["planted"])
    cells = {(one["models"], one["claim"], one["n"]): f"{one['certified']}/{one['studies']}" for one in found["planted"]}
    rows = [[models, claim, *(cells.get((models, claim, n), "") for n in sizes)] for models, claim in claims]
    return "\n".join([PLANTED, _table(["model", "claim", *(f"certified at n = {n}" for n in sizes)], rows), ""])


def _made(found: Found) -> str:
    return (
        f"Seeds are fixed: on one machine the same command gives the same numbers. This page: {found['studies']} studies per population, "
        f"{found['models']} untrained models, {found['repeats']} repeats on planted circuits, {found['seconds']} s on a "
        "busy core.\n"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], clean: Callable[[str], str] = lambda text: text.replace("|", "\\|")) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(clean(str(cell)) for cell in line) + " |" for line in lines)


def _shorter(text: str, longest: int = 70) -> str:
    first = text.partition(", not clearly")[0]
    return first if len(first) <= longest else first[:longest].rsplit(" ", 1)[0] + " …"
