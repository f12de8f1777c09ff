"""The report as a file."""

from __future__ import annotations

import json
import os

import pytest

from pytest_circuits.report.build import build_report
from pytest_circuits.report.renderers.json_file import JsonRenderer, read_report
from tests.fakes.records import recorded


def test_a_report_is_written_whole_or_not_at_all_and_read_back(tmp_path, monkeypatch):
    target = tmp_path / "new" / "deep" / "report.json"
    report = build_report([recorded(claim="ü")], 1.0)
    JsonRenderer().write(report, target)
    text = target.read_text(encoding="utf-8")
    assert "ü" in text and json.loads(text) == report.as_json() and read_report(target) == report
    assert target.stat().st_mode & 0o777 == 0o644

    def broken(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        JsonRenderer().write(build_report([], 1.0), target)
    assert target.read_text(encoding="utf-8") == text
    assert [path.name for path in target.parent.iterdir()] == ["report.json"]
