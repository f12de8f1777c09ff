"""Tasks: prompt pairs with a known answer. Plain Python; no tokenizer, no numpy.

A built-in task is one file in `builtin` plus one line in `TASKS`. `load_task` opens built-ins, JSONL files and loaders.
"""

from __future__ import annotations

from ..registry import Registry
from .base import PromptPair, Task

TASKS = Registry(
    "task",
    "pytest_circuits.tasks",
    {
        "addition": "pytest_circuits.tasks.builtin.addition:Addition",
        "boolean": "pytest_circuits.tasks.builtin.boolean:Boolean",
        "ioi": "pytest_circuits.tasks.builtin.ioi:Ioi",
        "copycolors": "pytest_circuits.tasks.builtin.copycolors:CopyColors",
        "sva": "pytest_circuits.tasks.builtin.sva:Sva",
        "capitals": "pytest_circuits.tasks.builtin.capitals:Capitals",
        "reversal": "pytest_circuits.tasks.builtin.reversal:Reversal",
        "sorting": "pytest_circuits.tasks.builtin.sorting:Sorting",
        "template": "pytest_circuits.tasks.builtin.template:Template",
        "arc_easy": "pytest_circuits.tasks.datasets.arc:ArcEasy",
        "arc_challenge": "pytest_circuits.tasks.datasets.arc:ArcChallenge",
    },
)

__all__ = ["TASKS", "PromptPair", "Task"]
