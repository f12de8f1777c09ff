"""A failing claim explained in words, from its record alone."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from .telling import telling


def explain(record: Mapping[str, Any], shown: str | None = None) -> str:
    """Several lines: verdict, estimate, interval and bound; the claim and its place; what was compared with what; how to rerun it.

    The first line says as much as it can, since pytest's short summary shows only that one. `shown` is the node id as seen
    from the working directory, where that differs from the record's.
    """
    nodeid = shown or record["nodeid"]
    lines = [headline(record), f"  {nodeid.partition('::')[0]}:{record['line']} claim {record['claim']!r}, model {record['model']!r}"]
    if record["description"]:
        lines.append(f"  {record['description']}")
    if record["estimate"] is not None:
        lines.append(f"  {record['reason']} (n = {record['n']} examples{_drawn(record['parameters'])})")
    elif "\n" in record["reason"]:
        lines += [f"  {line}" for line in record["reason"].split("\n")]
    lines += [f"  {line}" for line in (*strength(record), *sampling(record), *(f"note: {one}" for one in record["warnings"]))]
    lines += [f"  {line}" for line in telling(record)]
    seed = f" --circuits-seed={record['seed']}" if record.get("seed") else ""
    lines.append(f"  rerun: pytest {quote(nodeid)}{seed}")
    return "\n".join(lines)


def headline(record: Mapping[str, Any]) -> str:
    """One line: `refuted: reuse(ioi) = 0.443 [0.381, 0.506], should be at least 0.9`; of an invalid claim, why it is."""
    what = f"{record['property']}({', '.join(record['tasks'])})" if record["tasks"] else record["property"]
    told = f"{record['verdict']}: {what}"
    unexpected = record["expect"] != "certified" and not record["passed"]
    wanted = f"; the claim expects {record['expect']}" if unexpected else ""
    if record["estimate"] is None:
        return f"{told}: {record['reason'].partition(chr(10))[0]}{wanted}"
    low, high = record["interval"]
    link = "is" if record["verdict"] == "certified" else "should be"
    many = " (not after Holm's correction)" if record.get("survives_holm") is False else ""
    return f"{told} = {record['estimate']:.3f} [{low:.3f}, {high:.3f}], {link} {bound_text(record['bound'])}{many}{wanted}"


def _drawn(parameters: Mapping[str, Any]) -> str:
    """Which examples the bound was held against."""
    if "split_seed" not in parameters:
        return ""
    return ", in sample" if parameters["split"] == "in_sample" else f", split by seed {parameters['split_seed']}"


def strength(record: Mapping[str, Any]) -> list[str]:
    """How sure a refutation is; once the whole suite is known also whether it stands among all its claims."""
    level = record.get("refuted_at")
    if level is None:
        return []
    lines = [f"it would still be refuted at {100 * (1 - level):.6g}% confidence (error level {level:g})"]
    if record.get("survives_holm") is False:
        lines.append("it does not survive Holm's correction: among the claims of this run, chance alone could refute a true one as clearly")
    return lines


def sampling(record: Mapping[str, Any]) -> list[str]:
    """How a claim with `max_n` was looked at again with more examples."""
    taken, planned = record["looks"], record["looks_planned"]
    if planned == 1 or not taken:
        return []
    steps = "; ".join(f"n = {one['n']}: {one['estimate']:.3f} [{one['interval'][0]:.3f}, {one['interval'][1]:.3f}]" for one in taken)
    return [f"looked {len(taken)} of {planned} times, each interval so wide that all planned ones hold together: {steps}"]


def bound_text(bound: Mapping[str, Any]) -> str:
    """A bound in words."""
    ((key, value),) = bound.items()
    return f"within [{value[0]:g}, {value[1]:g}]" if key == "within" else f"{key.replace('_', ' ')} {value:g}"
