"""A catalogue of properties and tasks for tests of the spec layer: the same shapes as the real ones, and nothing to measure."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pytest_circuits.attribution import METHODS
from pytest_circuits.properties.parameters import AblationName, CircuitParameters, Share, TaskName
from pytest_circuits.properties.protocol import Property


class Reuse(CircuitParameters):
    task: TaskName
    p: Share = 0.95
    note: str = ""


class Circuit(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    task: TaskName


class Necessity(CircuitParameters):
    task: TaskName
    p: Share = 0.95
    control: Literal["c3", "c3_parity", "c3_any"] = "c3"
    draws: Annotated[int, Field(ge=1)] = 49
    ablation: AblationName = "zero"
    circuit: Circuit | None = None


class Jaccard(CircuitParameters):
    tasks: Annotated[tuple[TaskName, ...], Field(min_length=2)]
    p: Share = 0.95


class Faithfulness(CircuitParameters):
    task: TaskName
    neurons: Annotated[int, Field(ge=1)] = 200
    ablation: AblationName = "mean"

    @model_validator(mode="after")
    def _level(self) -> Faithfulness:
        if "neuron" not in METHODS.fact(self.attribution, "levels", ()):
            raise ValueError(f"attribution {self.attribution!r} does not work at neuron level")
        return self


def estimate(claim: Any) -> Any:
    raise AssertionError("the spec layer must not measure")
    yield


ALL = {
    one.name: one
    for one in (
        Property("reuse", Reuse, estimate, 0.0, 1.0, "how much of the circuits is shared"),
        Property("necessity", Necessity, estimate, -1.0, 1.0, "how much removing hurts"),
        Property("jaccard", Jaccard, estimate, 0.0, 1.0, "overlap of two tasks"),
        Property("neuron_faithfulness", Faithfulness, estimate, None, None, "how much few neurons keep"),
    )
}


class Counting:
    """Counts upwards."""

    class Parameters(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
        n: Annotated[int, Field(ge=1)] = 256
        seed: int = 0
        digits: Annotated[int, Field(ge=1, le=6)] = 2


class Names:
    """Names of people."""

    class Parameters(BaseModel):
        model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
        n: Annotated[int, Field(ge=1)] = 256
        seed: int = 0


TASKS = {"addition": Counting, "ioi": Names}
