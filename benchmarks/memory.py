"""Peak memory of neuron attribution: it must follow the batch and the number kept, not the number of examples."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from .timing import Row

PROBE = """
import resource, sys, torch
torch.set_num_threads(1)
from benchmarks.subjects import gpt2_small, pairs, subject
n = int(sys.argv[1])
opened = subject(gpt2_small(1000))
task = pairs(n, 16, 1000)
opened.attribute(pairs(8, 16, 1000), "relp", level="neuron", batch_size=8, top=100)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
opened.attribute(task, "relp", level="neuron", batch_size=8, top=100)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, before)
"""


def grown(n: int) -> int:
    """By how many KiB the peak rises while n examples are attributed, after eight of them have warmed everything up."""
    done = subprocess.run([sys.executable, "-c", PROBE, str(n)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[0])


def rows(rounds: int) -> Iterator[Row]:
    few, many = grown(32), grown(512)
    dense = 480 * 12 * 3072 * 4 / 1024
    extra = max(0, many - few)
    yield Row(
        "peak memory of 480 further examples / their dense scores", extra / dense, 0.0, 0.0, "≤ 0.25", extra / dense <= 0.25,
        f"neuron level, top 100 kept: +{extra / 1024:.0f} MiB against {dense / 1024:.0f} MiB",
    )  # fmt: skip
