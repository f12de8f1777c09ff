"""Fixtures for the specs and tests of this repository; the plugin itself comes from the installed package."""

from __future__ import annotations

import os

# two workers of two threads each on two cores are slower than one thread each; reductions are also the same everywhere
os.environ.setdefault("OMP_NUM_THREADS", "1")

pytest_plugins = ["pytester"]
