"""Requests: one type a file, plus one line in `REQUESTS`. A property asks for them with `ask`; importing this package imports no numpy."""

from __future__ import annotations

from ...core.sources import freeze
from ...registry import Registry
from .ablate import Ablate
from .attribute import Attribute
from .base import ALL, ExampleRequest, Inputs, MeasuredRequest, Part, Request, Rows, TaskRequest, UnmeasuredRequest
from .component_norms import MeasureNorms
from .conserve import Conserve
from .describe import Describe
from .encode import Encode
from .load_task import LoadTask
from .plan_boundary import PlanBoundary
from .steps import Requested, Steps, ask, ask_all, ask_together
from .sweep import Sweep

REQUESTS = Registry(
    "request",
    "pytest_circuits.requests",
    {
        "Describe": f"{__name__}.describe:Describe",
        "Encode": f"{__name__}.encode:Encode",
        "Attribute": f"{__name__}.attribute:Attribute",
        "Ablate": f"{__name__}.ablate:Ablate",
        "Sweep": f"{__name__}.sweep:Sweep",
        "MeasureNorms": f"{__name__}.component_norms:MeasureNorms",
        "Conserve": f"{__name__}.conserve:Conserve",
        "LoadTask": f"{__name__}.load_task:LoadTask",
        "PlanBoundary": f"{__name__}.plan_boundary:PlanBoundary",
    },
)

__all__ = [
    "ALL", "REQUESTS", "Ablate", "Attribute", "Conserve", "Describe", "Encode", "ExampleRequest", "Inputs", "LoadTask", "MeasureNorms",
    "MeasuredRequest", "Part", "PlanBoundary", "Request", "Requested", "Rows", "Steps", "Sweep", "TaskRequest", "UnmeasuredRequest", "ask",
    "ask_all", "ask_together", "freeze",
]  # fmt: skip
