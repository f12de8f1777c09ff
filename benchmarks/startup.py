"""What the plugin adds to a pytest run: start-up, collection, and a rerun from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from .timing import Row

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "specs" / "core.circuits.yaml"


def timed(*arguments: str, cwd: Path, rounds: int) -> float:
    """Least wall-clock seconds of a pytest run over rounds, with byte code kept as on users' machines."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": str(cwd / "bytecode")}
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        command = [sys.executable, "-m", "pytest", *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
        best = min(best, time.perf_counter() - start)
        assert done.returncode in (0, 1, 5), done.stdout + done.stderr
    return best


def rows(rounds: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "test_nothing.py").write_text("def test_nothing():\n    pass\n")
        cache = f"--circuits-cache-dir={root / 'cache'}"
        spec = "core.circuits.yaml"  # a copy, so that both runs have the same root directory and conftest files
        (root / spec).write_text(SPEC.read_text(encoding="utf-8").replace("../models", os.fspath(ROOT / "models")), encoding="utf-8")
        timed(spec, cache, "-q", cwd=root, rounds=1)
        bare = ["-p", "no:circuits", "-q"]
        for name, limit, ours, theirs in (
            ("--help", 0.3, ["--help"], ["-p", "no:circuits", "--help"]),
            ("--collect-only on the ready spec", 0.3, [spec, "--collect-only", "-q"], [*bare, "--collect-only", "test_nothing.py"]),
            ("rerun of the ready spec from the cache", 1.0, [spec, cache, "-q"], [*bare, "test_nothing.py"]),
        ):
            with_plugin, without = timed(*ours, cwd=root, rounds=rounds), timed(*theirs, cwd=root, rounds=rounds)
            extra = with_plugin - without
            yield Row(f"{name}, over bare pytest", with_plugin / without, 0.0, 0.0, f"+ ≤ {limit:g} s", extra <= limit, f"+{extra:.2f} s")
