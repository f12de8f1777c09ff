"""Projects with planted models whose smallest counterexample is known."""

from __future__ import annotations

from tests.fakes.planted_project import planted, project  # noqa: F401
