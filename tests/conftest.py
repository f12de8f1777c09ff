"""Shared fixtures of the test suite."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile("tests", settings(deadline=None))  # a shared machine is slow now and then, and no test here is about speed
settings.load_profile("tests")
