"""Where the plugin keeps its state in pytest's config."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .session import Session

STATE: pytest.StashKey[Session] = pytest.StashKey()
