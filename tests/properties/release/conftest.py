"""Projects with fake models, as the tests of baselines have them."""

from __future__ import annotations

from tests.baseline.conftest import box  # noqa: F401
