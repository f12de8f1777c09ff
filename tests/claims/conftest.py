"""The executor's fixtures: claims are evaluated on measurements that cost nothing."""

from __future__ import annotations

from tests.measurement.conftest import model, new_executor  # noqa: F401
