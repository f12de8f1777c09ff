"""What a request may ask of the run that it is part of: of an executor that measures, or of a planner that measures nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ...core.sources import ModelSource, TaskSource

if TYPE_CHECKING:
    from ...core.results import Encoded
    from ...core.units import Universe
    from ...tasks.base import Task
    from ..fingerprints import Identity


class Session(Protocol):
    """Tasks, and their encodings."""

    @property
    def batch_size(self) -> int | None:
        """Examples a model call; None leaves it to the model."""

    def task(self, source: TaskSource) -> Task:
        """The task's prompt pairs. Raises `TaskError`."""

    def encoded(self, model: ModelSource, source: TaskSource) -> Encoded:
        """The task as this model's tokenizer sees it."""


class MeasuringSession(Session, Protocol):
    """Also what a cache key says of a model."""

    def identity(self, model: ModelSource) -> Identity:
        """Which model it is."""

    def dtype(self, model: ModelSource) -> str | None:
        """The precision that is asked for; None for that of the checkpoint."""

    def device_type(self, model: ModelSource) -> str:
        """The kind of device that it runs on: cpu, cuda, …"""


class PlanningSession(Session, Protocol):
    """Also the shape of a model that is not loaded."""

    def universe(self, model: ModelSource) -> Universe:
        """The model's units. Raises `ModelError` where config.json does not tell."""
