"""What a model is, without the model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..cost_model import Passes
from ..example_selection import Rows
from .base import Inputs, MeasuredRequest
from .sessions import MeasuringSession, PlanningSession

if TYPE_CHECKING:
    from ...core.results import Description
    from ...tasks.base import Task


@dataclass(frozen=True)
class Describe(MeasuredRequest["Description"]):
    """What the model is: fingerprint, architecture, number of parameters, universe and precision."""

    @classmethod
    def result_types(cls) -> tuple[type, ...]:
        """`Description`, which names a `Universe`."""
        from ...core.results import Description
        from ...core.units import Universe

        return Description, Universe

    def describe(self) -> str:
        """`the description of model 'm' (path)`."""
        return f"the description of model {self.model.describe()}"

    def inputs(self, session: MeasuringSession) -> Inputs:
        """The model and its precision."""
        return Inputs({"model": session.identity(self.model).model, "dtype": session.dtype(self.model)})

    def execute(self, subject: Any, task: Task | None, rows: Rows, batch_size: int | None) -> Description:
        """`Subject.describe`."""
        description: Description = subject.describe()
        return description

    def plan(self, session: PlanningSession) -> tuple[Description, Passes]:
        """A model of this shape; another source is another model."""
        from ...core.results import Description
        from ..synthetic import MARK, digest

        universe = session.universe(self.model)
        return Description(digest(replace(self.model, name="")), MARK, 0, universe, "float32"), Passes()
