"""The report as a JSON file: written by `--circuits-json`, read by `pytest-circuits figure`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...core.atomic import write_atomic
from ...errors import OptionError
from ..model import VERSION, Report

FACTS = {"purpose": "file"}


class JsonRenderer:
    """The whole report as one JSON document."""

    def write(self, report: Report, path: Path) -> None:
        """Write the file whole or not at all; folders are created. Raises `OSError`."""
        write_atomic(path, json.dumps(report.as_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_report(path: Path) -> Report:
    """A report that `--circuits-json` wrote. Raises `OptionError` for anything else."""
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text)
    except OSError as problem:
        raise OptionError(f"the report {path} cannot be read: {problem.strerror or problem}") from None
    except ValueError as problem:
        raise OptionError(f"{path} is not a report: it is not JSON ({problem})") from None
    if not isinstance(content, dict) or content.get("schema") != VERSION or not isinstance(content.get("claims"), list):
        raise OptionError(f"{path} is not a report of pytest-circuits; make one with pytest … --circuits-json={path.name}")
    try:
        return Report.model_validate_json(text, strict=True)
    except ValidationError as problem:
        raise OptionError(_first_problem(content, problem)) from None


def _first_problem(content: dict[str, Any], problem: ValidationError) -> str:
    """What is wrong first, and in which claim."""
    error = problem.errors(include_url=False)[0]
    location = list(error["loc"])
    where = "the report"
    if location[:1] == ["claims"] and len(location) > 1:
        claim = content["claims"][location[1]]
        where = str(claim.get("nodeid", "a claim")) if isinstance(claim, dict) else "a claim"
        location = location[2:]
    field = f"{'.'.join(map(str, location))}: " if location else ""
    return f"{where} is not as a run writes it ({field}{error['msg']}); was the report edited? Write it again with --circuits-json"
