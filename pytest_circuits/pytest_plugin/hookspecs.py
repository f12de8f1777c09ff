"""Hooks of pytest-circuits that conftest files and other plugins may implement."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from ..report.model import Report


@pytest.hookspec
def pytest_circuits_report(report: Report, config: pytest.Config) -> None:
    """Called once at the end of a run with claims, on the controller only, with the finished report.

    The report is immutable. With `--circuits-json` the file has been written by then.
    """
