"""What a model is, without the model."""

from __future__ import annotations

from dataclasses import dataclass

from ...core.results import Description
from .base import Request


@dataclass(frozen=True)
class Describe(Request[Description]):
    """What the model is: fingerprint, architecture, number of parameters, universe and precision."""
