"""Shared fixtures of the test suite."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("tests", settings(deadline=None))  # a shared machine is slow now and then, and no test here is about speed
settings.load_profile("tests")
