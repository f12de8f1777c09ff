"""Tasks: prompt pairs with a known answer. Plain Python; no tokenizer, no numpy.

A built-in task is one file here plus one line in `TASKS`. `load_task` opens built-ins, JSONL files and loaders.
"""

from __future__ import annotations

from ..registry import Registry
from .base import PromptPair, Task

TASKS = Registry(
    "task",
    "pytest_circuits.tasks",
    {
        "addition": "pytest_circuits.tasks.addition:Addition",
        "boolean": "pytest_circuits.tasks.boolean:Boolean",
        "ioi": "pytest_circuits.tasks.ioi:Ioi",
        "copycolors": "pytest_circuits.tasks.copycolors:CopyColors",
        "sva": "pytest_circuits.tasks.sva:Sva",
        "capitals": "pytest_circuits.tasks.capitals:Capitals",
        "reversal": "pytest_circuits.tasks.reversal:Reversal",
        "sorting": "pytest_circuits.tasks.sorting:Sorting",
        "template": "pytest_circuits.tasks.template:Template",
        "arc_easy": "pytest_circuits.tasks.arc:ArcEasy",
        "arc_challenge": "pytest_circuits.tasks.arc:ArcChallenge",
    },
)

__all__ = ["TASKS", "PromptPair", "Task"]
