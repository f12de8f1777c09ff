"""Settings of the test suite."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# The same examples on every run, however busy the machine is: no deadline, no check of speed, no examples left over from an earlier run.
settings.register_profile("tests", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
