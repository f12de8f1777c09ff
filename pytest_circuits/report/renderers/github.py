"""Annotations for GitHub: workflow commands that mark mistakes and failed claims at their lines of the spec."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..explain import headline


def commands(content: Mapping[str, Any], root: Path, claims: bool = True) -> list[str]:
    """`::error …` lines from the JSON document: each mistake in a spec and, with `claims`, each claim that failed its test.

    `root` is the folder that the document's paths are relative to; GitHub wants them relative to the repository.
    """
    found = [_error(root, one["file"], one["line"], one["column"], "spec", one["problem"]) for one in content["suite"]["errors"]]
    for claim in content["claims"] if claims else ():
        if claim["outcome"] == "failed" and not claim["passed"]:
            found.append(_error(root, claim["file"], claim["line"], None, f"claim {claim['claim']}", headline(claim)))
    return found


def _error(root: Path, file: str, line: int, column: int | None, title: str, text: str) -> str:
    home = os.environ.get("GITHUB_WORKSPACE") or root
    place = {"file": os.path.relpath(root / file, home).replace(os.sep, "/"), "line": line, "col": column, "title": title}
    return f"::error {','.join(f'{k}={_value(v)}' for k, v in place.items() if v is not None)}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _value(value: Any) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")
