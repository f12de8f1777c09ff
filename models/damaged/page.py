"""The page about the damaged releases, from the record of `compare`."""

from __future__ import annotations

from typing import Any

HEAD = """# Damaged releases

Releases of `{original}` that are damaged on purpose, for tests of release comparison. `python -m models.damaged [NAME]` writes
them. Each is also a loader for specs that run from the repository's root: `{{loader: "models.damaged:zeroed_head"}}`, `int8`, `permuted`,
`fine_tuned`. Only the fine-tuned one has weights of its own, in `models/multitask-llama-finetuned`; the others are built from the
original in a second.

| accuracy | {tasks} |
|---|{columns}
{accuracy}

## Which claims should break

**zeroed-head** lacks {head}. Of all heads it is in the shared sets of most tasks ({shared_by}), and of those it is the one whose ablation
costs a task most ({cost:.0%} of accuracy). Addition is lost ({zeroed_addition:.0%} correct): claims about its accuracy are refuted, and
all other claims about it are invalid at the accuracy gate. Boolean and copycolors lose a little ({zeroed_boolean:.1%} and
{zeroed_copycolors:.1%} correct): accuracy claims at 95% fail, and a gate at 0.9 is close. IOI, SVA and capitals are done as before, but
claims that name {head} as a part of SVA's circuit fail.

**int8** should break nothing: every shared set is that of the original, and no accuracy differs by more than {int8_gap:.1%}.

**permuted** should break only claims that name heads or neurons. By name, addition's shared set has a Jaccard similarity of
{permuted_raw:.2f} with that of the original. Renamed by `damage.json` it is the same, for every task. A comparison that does not match
components by function must not call this a regression.

**fine-tuned** does every task ({tuned_worst:.1%} at least). Its addition circuit has changed: {lost} left the shared set, {joined}
entered. The Jaccard similarity is {tuned:.2f}, and that of two halves of the original is {tuned_ceiling:.2f}. Claims that name {lost} for
addition fail, and so do claims that the circuit is still the released one. Training had side effects: boolean's shared set is still
{boolean_set}, but removing it costs {boolean_drop:.2f} of its accuracy, not {boolean_before:.2f}; copycolors shares only {copy_set}.
Claims about the circuits of IOI and SVA hold; elsewhere margins are smaller, so tight claims may become inconclusive.

## Measured

Per-example circuits by EAP at K = 20%, S_P at P = 80%, {circuits} prompts; ablations to zero on {ablations} of them, in sample.
*S_P costs*: accuracy lost when the release's own shared set is removed; *random costs*: the mean over {draws} random sets
of the same size, of any type, outside it. The difference is necessity. *Old S_P costs*: the same for the original's set, by name. *Halves*:
mean Jaccard similarity of the shared sets of two random halves (the noise ceiling).
"""
TABLE = """
### {name}

| task | accuracy | S_P | Jaccard with the original's | halves | S_P costs | random costs | necessity | old S_P costs |
|---|---|---|---|---|---|---|---|---|
{rows}
"""


def text(record: dict[str, Any]) -> str:
    """Markdown."""
    releases = record["releases"]
    names = list(releases["original"])
    accuracy = "\n".join(f"| {name} | {_accuracies(found)} |" for name, found in releases.items())
    facts = {
        "original": record["original"]["name"],
        "tasks": " | ".join(names),
        "columns": "---|" * len(names),
        "accuracy": accuracy,
        **record["examples"],
        **_zeroed(record),
        **_others(releases),
    }
    return HEAD.format(**facts) + "".join(TABLE.format(name=name, rows=_rows(found)) for name, found in releases.items())


def _accuracies(found: dict[str, Any]) -> str:
    return " | ".join(f"{row['accuracy']:.1%}" for row in found.values())


def _zeroed(record: dict[str, Any]) -> dict[str, Any]:
    head, releases = record["rule"]["chosen"], record["releases"]
    found = releases["zeroed-head"]
    return {
        "head": head,
        "shared_by": " and ".join(name for name, row in releases["original"].items() if head in row["shared"]),
        "cost": max(costs[head] for costs in record["rule"]["cost"].values()),
        **{f"zeroed_{name}": found[name]["accuracy"] for name in ("addition", "boolean", "copycolors")},
    }


def _others(releases: dict[str, Any]) -> dict[str, Any]:
    before, tuned = releases["original"], releases["fine-tuned"]
    old, new = (found["addition"]["shared"] for found in (before, tuned))
    return {
        "int8_gap": max(abs(row["accuracy"] - before[name]["accuracy"]) for name, row in releases["int8"].items()),
        "permuted_raw": releases["permuted"]["addition"]["jaccard"],
        "tuned_worst": min(row["accuracy"] for row in tuned.values()),
        "lost": ", ".join(unit for unit in old if unit not in new),
        "joined": ", ".join(unit for unit in new if unit not in old),
        "tuned": tuned["addition"]["jaccard"],
        "tuned_ceiling": before["addition"]["ceiling"],
        "boolean_set": ", ".join(tuned["boolean"]["shared"]),
        "boolean_drop": tuned["boolean"]["drop"],
        "boolean_before": before["boolean"]["drop"],
        "copy_set": ", ".join(tuned["copycolors"]["shared"]),
    }


def _rows(found: dict[str, Any]) -> str:
    return "\n".join(f"| {name} | {' | '.join(_cells(row))} |" for name, row in found.items())


def _cells(row: dict[str, Any]) -> list[str]:
    drops = (row["ceiling"], row["drop"], row["control_drop"], row["drop"] - row["control_drop"])
    return [f"{row['accuracy']:.1%}", ", ".join(row["shared"]), _similarity(row), *map(_two, drops), _old(row)]


def _two(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no -0.00


def _similarity(row: dict[str, Any]) -> str:
    renamed = f" ({row['jaccard_renamed']:.2f} renamed)" if "jaccard_renamed" in row else ""
    return f"{row['jaccard']:.2f}{renamed}" if "jaccard" in row else "–"


def _old(row: dict[str, Any]) -> str:
    return f"{row['drop_of_original']:.2f}" if "drop_of_original" in row else "–"
