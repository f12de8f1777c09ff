"""pytest-circuits: claims about the circuits of language models, tested.

Importing this package imports neither torch nor numpy; the names below are imported when first used.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.former_paths import FormerPaths

__version__ = "0.1.0"

_LAZY = {
    "open_model": "subject",
    "Subject": "subject",
    "load_task": "tasks.load",
    "Task": "tasks.base",
    "PromptPair": "tasks.base",
    "Attribution": "core.results",
    "CircuitSet": "core.results",
    "Outcome": "core.results",
    "SweepOutcome": "core.results",
    "Estimate": "core.verdict",
    "Bound": "core.verdict",
    "CircuitsError": "errors",
    "ModelError": "errors",
    "TaskError": "errors",
    "SpecError": "errors",
    "Invalid": "errors",
    "register_property": "properties.registration",
    "claimable": "properties.registration",  # former name
}
__all__ = [
    "Attribution", "Bound", "CircuitSet", "CircuitsError", "Estimate", "Invalid", "ModelError", "Outcome", "PromptPair", "SpecError",
    "Subject", "SweepOutcome", "Task", "TaskError", "__version__", "claimable", "load_task", "open_model", "register_property",
]  # fmt: skip

if TYPE_CHECKING:
    from .core.results import Attribution, CircuitSet, Outcome, SweepOutcome
    from .core.verdict import Bound, Estimate
    from .errors import CircuitsError, Invalid, ModelError, SpecError, TaskError
    from .properties.registration import claimable, register_property
    from .subject import Subject, open_model
    from .tasks.base import PromptPair, Task
    from .tasks.load import load_task

sys.meta_path.append(FormerPaths())


def __getattr__(name: str) -> Any:
    if name == "strategies":  # needs hypothesis, so it is in no list of names that are always there
        return import_module(".strategies", __name__)
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_LAZY[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
