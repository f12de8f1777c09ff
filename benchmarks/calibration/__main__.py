"""`python -m benchmarks.calibration [--quick] [--json PATH] [--page PATH]`: how often verdicts are wrong, and reached."""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path
from typing import Any

from .real import Row, null_rows, planted_rows
from .scenarios import scenarios
from .scenarios.series import until_settled
from .simulate import CONFIDENCE, SURE, TAIL, Tally, run_all


def measure(studies: int, models: int, sizes: tuple[int, ...], repeats: int) -> dict[str, Any]:
    """Everything that the page shows."""
    started = time.perf_counter()

    def tell(tally: Tally) -> None:
        mark = " EXCEEDS" if tally.exceeds else ""
        print(f"{tally.property:28} {tally.population[:58]:58} n {tally.n:4} coverage {tally.coverage:.3f}{mark}", flush=True)

    def show(row: Row) -> None:
        print(f"{row.models:28} {row.claim[:58]:58} n {row.n:4} certified {row.certified}/{row.studies}", flush=True)

    tallies = run_all(scenarios(), studies, tell=tell)
    tallies.append(until_settled(studies // 2))
    tell(tallies[-1])
    nulls, power = null_rows(models, 64, show), planted_rows(sizes, repeats, show)
    return {
        "studies": studies,
        "models": models,
        "repeats": repeats,
        "confidence": CONFIDENCE,
        "tail": TAIL,
        "sure": SURE,
        "seconds": round(time.perf_counter() - started),
        "machine": platform.machine(),
        "simulated": [one.as_dict() for one in tallies],
        "null": [one.as_dict() for one in nulls],
        "planted": [one.as_dict() for one in power],
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the studies, for a look")
    parser.add_argument("--studies", type=int, help="studies of each population and size; dear ones get a share of them")
    parser.add_argument("--json", type=Path, default=Path("build/calibration.json"))
    parser.add_argument("--page", type=Path, help="write the page, e.g. docs/explanation/calibration.md")
    given = parser.parse_args()
    studies = given.studies or (40 if given.quick else 400)
    found = measure(studies, 6 if given.quick else 40, (16, 32) if given.quick else (16, 24, 32, 64), 3 if given.quick else 10)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{given.json}: {found['seconds']} s")
    if given.page:
        from .page import page

        given.page.write_text(page(found), encoding="utf-8")
        print(given.page)


if __name__ == "__main__":
    main()
