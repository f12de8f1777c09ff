"""The proposal as the text of a spec: claims with their estimates, and unsettled claims as comments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any

from ... import __version__
from ...core.results import Encoded
from ...core.verdict import Bound, Estimate
from ...measurement.version import MEASUREMENT_VERSION, libraries
from ...spec.document import VERSION
from ...spec.scalars import plain
from .arguments import RequestedTask, relative
from .candidates import Finding
from .measure import Ability, Proposal, shown_accuracy

WIDTH = 118
SCHEMA = "circuits-spec-1.json"
_UNTESTED = (
    "There are no other prompts of these tasks here: keep some aside in a separate file, and test the claims on that file. A seed only "
    "splits the same prompts again, which is a weaker test"
)
_BARE = re.compile(r"[A-Za-z_.][\w.%/+@-]*")


def spec_text(proposal: Proposal, path: Path, command: str, encoded: Mapping[str, Encoded | None]) -> str:
    """The text of the file at `path`. `command` is the command line that writes it; `encoded` are the tasks as token ids."""
    parts = [
        *_header(proposal, path, command),
        f"version: {VERSION}",
        "",
        "models:",
        f"  {proposal.model.name}: {flow(_model(proposal, path))}",
        "",
        "tasks:",
        *(line for item in proposal.abilities for line in _task(item, path, encoded.get(item.task.name))),
        "",
        "defaults:",
        *(f"  {key}: {flow(value)}" for key, value in proposal.defaults.items()),
        "",
        "claims:",
    ]
    for about, findings in proposal.findings:
        parts += [f"  # ---- {about} ----", ""]
        for item in findings:
            parts += [*(_claim(item, proposal) if item.bound is not None else _left_open(item)), ""]
    return "\n".join(parts).rstrip() + "\n"


def flow(value: Any) -> str:
    """A value as YAML on one line; strings are quoted where YAML would read another type."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return f"{value:.12g}" if value % 1 else f"{value:.1f}" if abs(value) < 10 else f"{value:.0f}"
    if isinstance(value, str):
        bare = (_BARE.fullmatch(value) or re.fullmatch(r"\d+%", value)) and isinstance(plain(value), str)
        return value if bare else json.dumps(value, ensure_ascii=False)
    return str(value)


def _header(proposal: Proposal, path: Path, command: str) -> Iterator[str]:
    yield f"# yaml-language-server: $schema={SCHEMA}"
    yield "#"
    yield from _comment(f"A first spec, to be edited. Written by: {command}")
    yield "#"
    described, versions = proposal.described, ", ".join(f"{name} {version}" for name, version in libraries().items() if version)
    yield from _comment(
        f"Model: {described.architecture}, {described.parameters} parameters, {described.universe.components} components, fingerprint "
        f"{described.fingerprint[:16]}. Measured by pytest-circuits {__version__} (measurements {MEASUREMENT_VERSION}) with {versions}, "
        f"in {described.dtype}."
    )
    slack = "" if not proposal.slack else f", loosened by {proposal.slack:g} half-widths"
    yield "#"
    yield from _comment(
        f"Every bound is the safe end of an interval, rounded away from it, or a margin around a target that contains the interval{slack}. "
        "It was set on the same prompts that it is now tested on, so it is no evidence that all claims are certified. A bound is only as "
        "good as its independence from the data. "
        + ("Test the claims on other prompts, and loosen or drop those that do not hold:" if proposal.redrawn else f"{_UNTESTED}:")
    )
    yield "#"
    yield f"#     pytest {path.name} --circuits-seed 1"
    if proposal.fixed and proposal.redrawn:
        yield "#"
        yield from _comment(f"({', '.join(proposal.fixed)}: no other prompts, so only the split into discovery and evaluation changes.)")
    yield "#"
    yield from _comment(f"For completion in an editor: pytest-circuits schema --out {SCHEMA}")


def _comment(text: str, indent: str = "") -> Iterator[str]:
    yield from (f"{indent}# {line}" for line in wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def _model(proposal: Proposal, path: Path) -> dict[str, Any]:
    model = proposal.model
    written = {"path": relative(str(model.path), path.parent), "revision": model.revision, "dtype": model.dtype, "device": model.device}
    return {key: value for key, value in written.items() if value is not None}


def _task(ability: Ability, path: Path, encoded: Encoded | None) -> Iterator[str]:
    task = ability.task
    line = f"{flow(task.name)}: {flow(task.entry(path.parent))}"
    if ability.reason:
        yield from _comment(f"No claims about {task.name}: {shown_accuracy(ability)}, {ability.reason}", "  ")
        yield f"  # {line}"
        return
    about = [shown_accuracy(ability)]
    if encoded is not None:
        about += [f"{encoded.n} prompts in {len(set(encoded.groups))} groups", f"token ids {encoded.digest[:12]}"]
    yield from _comment(", ".join(about), "  ")
    yield f"  {line}"


def _claim(finding: Finding, proposal: Proposal) -> Iterator[str]:
    candidate, bound, estimate = finding.candidate, finding.bound, finding.outcome
    assert bound is not None and isinstance(estimate, Estimate)
    yield from _comment(f"{candidate.meaning}: {_measured(estimate)}", "  ")
    yield f"  {flow(candidate.name)}:"
    drawn = _drawn([task.task for task in proposal.abilities if task.task.name in candidate.tasks], proposal.defaults)
    yield f"    description: {_text(f'bound proposed on these prompts ({drawn})')}"
    yield f"    {candidate.property}: {flow(candidate.parameters)}"
    yield f"    {_written(bound, candidate.count)}"


def _left_open(finding: Finding) -> Iterator[str]:
    """The claim as a comment without a bound: the reader must choose one before enabling it."""
    candidate = finding.candidate
    measured = f"; {_measured(finding.outcome)}" if isinstance(finding.outcome, Estimate) else ""
    yield from _comment(f"Not claimed, {candidate.meaning}: {_first(finding.reason)}{measured}", "  ")
    yield f"  # {flow(candidate.name)}:"
    yield f"  #   {candidate.property}: {flow(candidate.parameters)}"
    yield f"  #   {'within: [ , ]' if candidate.side == 'within' else f'{candidate.side}:'}"


def _measured(estimate: Estimate) -> str:
    low, high = estimate.interval
    values = (
        f"{estimate.value:g} [{low:g}, {high:g}]"
        if estimate.value == int(estimate.value) and high > 1
        else f"{estimate.value:.3f} [{low:.3f}, {high:.3f}]"
    )
    return f"{values} at {estimate.confidence:.0%}, n = {estimate.n}, {estimate.kind}"


def _drawn(tasks: list[RequestedTask], defaults: Mapping[str, Any]) -> str:
    seeds = [f"{task.name} drawn by seed {task.options['seed']}" for task in tasks if "seed" in task.options]
    return ", ".join([*seeds, f"split by seed {defaults['split_seed']}"])


def _written(bound: Bound, count: bool) -> str:
    ((key, value),) = bound.as_dict().items()
    return f"{key}: {flow(int(value) if count else value)}"


def _text(text: str) -> str:
    """A sentence as a YAML scalar."""
    return text if re.fullmatch(r"[A-Za-z][\w (),.@+%-]*", text) else json.dumps(text, ensure_ascii=False)


def _first(reason: str) -> str:
    return reason.partition("\n")[0]
