"""A claim from plain facts, for tests of reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pytest_circuits.core.claim import Claim
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.verdict import Bound


def claim_of(facts: dict[str, Any]) -> Claim:
    """`facts` has the keys of a record: claim, description, property, model, tasks, parameters, bound, expect, line."""
    values = dict(facts["parameters"])
    bound = Bound(*facts["bound"]["within"]) if "within" in facts["bound"] else Bound(**facts["bound"])
    return Claim(
        facts["property"], SimpleNamespace(model_dump=lambda mode: dict(values)), ModelSource(facts["model"]),
        {task: TaskSource(task, "builtin", task) for task in facts["tasks"]}, bound=bound, expect=facts["expect"], name=facts["claim"],
        description=facts["description"], entry=facts["model"], line=facts["line"],
    )  # fmt: skip
