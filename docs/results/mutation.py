"""The page on mutation testing of the ready specs, from the `mutation` part of a JSON report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_circuits.report.messages.mutation import caught_by

from .claims import shortened
from .markdown import number, table

Json = Mapping[str, Any]
HEAD = """# Mutation testing of the ready specs

This page shows which damages of `models/multitask-llama` the quick tier of the ready specs notices. It is made by

    pytest {files} \\
      -m "not slow" -k "candidate or (llama and not 8layers and not olmo2)" --circuits-mutate --circuits-json=build/mutation.json
    python -m docs.results mutation=build/mutation.json

How mutants are made and what counts as noticed: `docs/how-to/mutation-testing.md`. The specs of the gradient–causal gap are about other
models and are not on this page. Each spec has its own mutants, inside or outside the circuit that its claims measured."""
SUMMARY = """*Only inconclusive*, *only invalid*: all claims that noticed these mutants have this verdict. An inconclusive claim is a weak
catch; an invalid one mostly means that the model no longer does the task, which a test of accuracy would find as well."""
SURVIVORS = "Why each survivor survived:"
COUNTS = "How many of the counted mutants each claim noticed, by its verdict on them. A claim with 0 may be unable to fail:"


def stored_report(path: Path) -> Json:
    """The stored report."""
    content: Json = json.loads(path.read_text(encoding="utf-8"))
    return content


def stored(content: Json) -> dict[str, Any]:
    """What is kept of a report: what became of each mutant, without the claims' answers one by one."""
    if "mutation" not in content:
        raise SystemExit("the report has no key 'mutation': run pytest with --circuits-mutate")
    mutation = {key: value for key, value in content["mutation"].items() if key != "seconds"}
    mutation["specs"] = [{**spec, "mutants": [_kept(m) for m in spec["mutants"]]} for spec in mutation["specs"]]
    wrapped = shortened({"suite": {}, "claims": [{"details": mutation, "cost": {}}]})
    found: dict[str, Any] = wrapped["claims"][0]["details"]
    return found


def _kept(mutant: Json) -> dict[str, Any]:
    count = sum(bool(one["beyond_noise"]) for one in mutant["outcomes"])
    return {**{key: value for key, value in mutant.items() if key not in ("outcomes", "fingerprint", "seed")}, "beyond_noise": count}


def page(content: Json) -> str:
    """The page, in Markdown."""
    specs = content["specs"]
    parts = [HEAD.format(files=" ".join(dict.fromkeys(_folder(spec["file"]) for spec in specs))), "## Scores", _scores(content), SUMMARY]
    for spec in specs:
        parts += [f"## {_name(spec)}", *_spec(spec)]
    return "\n\n".join(parts) + "\n"


def _folder(file: str) -> str:
    return file if file.count("/") < 2 else file.rpartition("/")[0]


def _name(spec: Json) -> str:
    return f"{spec['file'].removeprefix('specs/').removesuffix('.circuits.yaml')}"


def _scores(content: Json) -> str:
    rows = [[f"`{spec['file']}`", len(spec["claims"]), *_figures(spec)] for spec in content["specs"]]
    rows.append(["all", sum(len(spec["claims"]) for spec in content["specs"]), *_figures(content)])
    return table(["spec", "claims", "noticed", "counted", "score", "only inconclusive", "only invalid"], rows)


def _figures(one: Json) -> list[Any]:
    score = "—" if one["score"] is None else f"{one['score']:.0%}"
    return [one["noticed"], one["counted"], score, one["inconclusive_only"], one["invalid_only"]]


def _spec(spec: Json) -> list[str]:
    names = {claim["nodeid"]: claim["claim"] for claim in spec["claims"]}
    rows = [[f"`{m['name']}`", m["status"], _lost(m), caught_by(m["caught_by"], names)] for m in spec["mutants"]]
    survivors = [f"- `{m['name']}`: {'; '.join(m['reasons'])}" for m in spec["mutants"] if m["status"] in ("survived", "equivalent")]
    not_made = [f"- `{m['name']}` was not made: {m['reasons'][0]}" for m in spec["mutants"] if m["status"].startswith("not ")]
    counts = [[f"`{c['claim']}`", c["expect"], len(c["caught"]), _ways(c)] for c in spec["claims"]]
    found = [_circuit(spec), table(["mutant", "", "accuracy, where it fell most", "noticed by"], rows)]
    if survivors or not_made:
        found += [SURVIVORS, "\n".join([*survivors, *not_made])]
    found += [COUNTS, table(["claim", "expected", "noticed", "by being"], counts)]
    if spec["left_out"]:
        found.append("Left out: " + "; ".join(f"`{one['claim']}` ({one['reason']})" for one in spec["left_out"]) + ".")
    return found


def _circuit(spec: Json) -> str:
    if spec["circuit"] is None:
        return f"No mutants: {spec['problem']}."
    units = sorted({unit for units in spec["circuit"]["sets"].values() for unit in units})
    return f"The circuit: {spec['circuit']['source']}; {', '.join(units) or 'no component'}."


def _lost(mutant: Json) -> str:
    """The task that lost most, if any did."""
    falls = {name: b["accuracy"] for name, b in mutant["behaviour"].items() if None not in b["accuracy"]}
    if not falls:
        return ""
    name, (before, after) = max(falls.items(), key=lambda item: item[1][0] - item[1][1])
    return f"{name} {number(before)} → {number(after)}" if after < before else "no fall"


def _ways(claim: Json) -> str:
    hows = list(claim["caught"].values())
    return ", ".join(f"{how} {hows.count(how)}" for how in dict.fromkeys(hows))
