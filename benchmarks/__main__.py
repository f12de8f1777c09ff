"""`python -m benchmarks [NAME …] [--rounds N] [--threads N] [--json PATH]`: print the table of ratios, and write it as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib import import_module
from pathlib import Path

SUITES = ("attribution", "lens", "startup", "memory")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], default=list(SUITES))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("build/benchmarks.json"))
    given = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):  # before torch is imported, here and in runs that are started
        os.environ[name] = str(given.threads)
    found = []
    for suite in given.suites:
        try:
            module = import_module(f"benchmarks.{suite}")
            for row in module.rows(given.rounds):
                found.append({"suite": suite, **row.as_dict()})
                spread = f" ({row.low:.2f}–{row.high:.2f})" if row.high else ""
                met = {True: "met", False: "MISSED", None: ""}[row.met]
                print(f"{row.name:60} {row.ratio:7.2f}{spread:16} {row.bar:10} {met:7} {row.note}", flush=True)
        except ModuleNotFoundError as problem:
            print(f"{suite}: left out, {problem.name} is not installed (pip install 'pytest-circuits[benchmark]')")
    given.json.parent.mkdir(parents=True, exist_ok=True)
    document = {"machine": platform.processor() or platform.machine(), "threads": given.threads, "rows": found}
    given.json.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
