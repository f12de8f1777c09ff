"""Speed and memory, as ratios of two things timed in one run. See `docs/benchmarks.md`."""
