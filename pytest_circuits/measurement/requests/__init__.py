"""Measurement requests, one type a file. A property asks for them with `ask`; each is measured once, or read from the store."""

from __future__ import annotations

from ...core.sources import freeze
from .ablate import Ablate
from .attribute import Attribute
from .base import ALL, Part, Request, Requested, Steps, ask, ask_all, ask_together
from .component_norms import MeasureNorms
from .conserve import Conserve
from .describe import Describe
from .encode import Encode
from .load_task import LoadTask
from .plan_boundary import PlanBoundary
from .sweep import Sweep

AnyRequest = Describe | Encode | Attribute | Ablate | Sweep | MeasureNorms | Conserve

__all__ = [
    "ALL", "Ablate", "AnyRequest", "Attribute", "Conserve", "Describe", "Encode", "LoadTask", "MeasureNorms", "Part", "PlanBoundary",
    "Request", "Requested", "Steps", "Sweep", "ask", "ask_all", "ask_together", "freeze",
]  # fmt: skip
