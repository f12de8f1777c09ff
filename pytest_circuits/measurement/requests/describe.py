"""What a model is, without the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .base import Request

if TYPE_CHECKING:
    from ...core.results import Description  # noqa: F401 - named in the base class


@dataclass(frozen=True)
class Describe(Request["Description"]):
    """What the model is: fingerprint, architecture, number of parameters, universe and precision."""
