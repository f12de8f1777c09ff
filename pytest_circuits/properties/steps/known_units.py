"""A circuit that is known from elsewhere: unit names in a spec or in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.units import Universe
from ...errors import Invalid, ReasonCode, UnitError

ANY_MODEL = Universe(sys.maxsize, sys.maxsize)  # has every component that can be written


def check_names(names: Sequence[Any]) -> tuple[str, ...]:
    """Component names as they are written, whatever the model. Raises `ValueError` for others, for repeats and for none."""
    if not names:
        raise ValueError("a known circuit needs at least one component, such as L0H1 or L1MLP")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"a component is written as text such as L0H1 or L1MLP, got {name!r}")
    try:
        ANY_MODEL.index(names)
    except UnitError as problem:
        raise ValueError(str(problem)) from None
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"{twice} is named twice")
    return tuple(names)


def read_names(path: str, folder: Path | None = None) -> tuple[str, ...]:
    """Component names of a file: a JSON list, or text with one name a line, `#` starting a comment. A relative path is taken from `folder`,
    without it from the working directory.

    Raises `ValueError`, naming the file, when it cannot be read or `check_names` refuses what is in it.
    """
    base = Path.cwd() if folder is None else folder
    try:
        text = (base / Path(path).expanduser()).read_text(encoding="utf-8")
        names = json.loads(text) if path.endswith(".json") else _lines(text)
        if not isinstance(names, list):
            raise ValueError("a JSON file must hold a list of component names")
        return check_names(names)
    except OSError as problem:
        raise ValueError(f"the known circuit's file {path!r} cannot be read from {base}: {problem.strerror}") from None
    except ValueError as problem:
        raise ValueError(f"file {path!r}: {problem}") from None


def known_mask(names: Sequence[str], universe: Universe) -> Any:
    """Bool [N]. Raises `Invalid` for a component that the model does not have, and where all components are named."""
    import numpy as np

    try:
        places = universe.index(names)
    except UnitError as problem:
        details = {"known": list(names), **universe.as_dict()}
        raise Invalid(f"the known circuit does not fit this model: {problem}", details, code=ReasonCode.UNKNOWN_UNIT) from None
    if len(places) == universe.components:
        raise Invalid(
            f"the known circuit is all {len(places)} components: nothing could be outside it",
            {"universe": len(places)},
            code=ReasonCode.CIRCUIT_IS_EVERYTHING,
        )
    mask = np.zeros(universe.components, bool)
    mask[places] = True
    return mask


def _lines(text: str) -> list[str]:
    return [name for line in text.splitlines() if (name := line.partition("#")[0].strip())]
