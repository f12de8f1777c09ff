"""For tests of the plugin: a property whose estimate a spec states, and a torch side that computes nothing. Importable in a subprocess."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from pytest_circuits.core.results import Attribution, Description, Encoded
from pytest_circuits.core.units import Universe
from pytest_circuits.core.verdict import Estimate
from pytest_circuits.errors import Invalid, ModelError
from pytest_circuits.measurement import models
from pytest_circuits.measurement.requests import Attribute, Describe, Encode
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import Parameters, TaskName
from pytest_circuits.properties.protocol import Claim, Property

UNIVERSE = Universe(2, 3, 8)
LOG: Path | None = None  # one line is appended for every model that is opened and every measurement that is made


class Stated(Parameters):
    """Values of the estimate; `raises` names what happens instead; a task is measured with `method` before.

    `slope` times the model's place in its series is added; `from_on` is the first place from which on it is not invalid.
    """

    value: float = 0.5
    low: float = 0.4
    high: float = 0.6
    n: Annotated[int, Field(ge=1)] = 100
    unsettled: str | None = None
    raises: str | None = None
    task: TaskName | None = None
    method: str = "atp"
    slope: float = 0.0
    from_on: float = 0.0


def _judge(claim: Claim) -> Any:
    p = claim.parameters
    yield Describe(claim.model)
    details: dict[str, Any] = {"array": np.arange(3, dtype=np.float32), "nothing": np.float64("nan")}
    if p.task:
        encoded = yield Encode(claim.model, claim.tasks[p.task])
        scores = yield Attribute(claim.model, claim.tasks[p.task], p.method)
        details |= {"examples": encoded.n, "scored": scores.scores.shape}
    at = claim.model.at or 0.0
    if at < p.from_on:
        raise Invalid(f"no behaviour yet at {at:g}")
    if p.raises == "bug":
        raise KeyError("a bug in a property")
    if p.raises == "invalid":
        raise Invalid("there is nothing to measure", {"counted": 3})
    if p.raises == "lines":
        raise Invalid("first line\nsecond line")
    if p.raises == "interrupt":
        raise KeyboardInterrupt
    value = float("nan") if p.raises == "nan" else p.value
    low = float("-inf") if p.raises == "infinite" else p.low
    rise = p.slope * at
    return Estimate(value + rise, (low + rise, p.high + rise), p.n, p.confidence, "stated", "stated", details, p.unsettled)


STATED = Property("stated", Stated, _judge, 0.0, 1.0, "a number that the spec states")


class FakeSubject:
    """Knows its path. A model called `broken…` cannot be opened, one called `buggy…` raises what nobody foresees."""

    def __init__(self, path: str) -> None:
        if Path(path).name.startswith("broken"):
            raise ModelError(f"the model {path!r} is broken")
        if Path(path).name.startswith("buggy"):
            raise ZeroDivisionError("a bug in a loader")
        self.path = path
        self.forwards = self.backwards = 0
        _log(f"open {Path(path).name}")

    behaviour = ""
    model = SimpleNamespace(parameters=lambda: iter(()))

    def describe(self) -> Description:
        return Description(f"weights of {Path(self.path).name}", "fake", 10, UNIVERSE, "float32")

    def encode(self, task: Any) -> Encoded:
        _log(f"encode {task.name}")
        return Encoded(len(task), tuple(f"g{i}" for i in range(len(task))), task.fingerprint)

    def attribute(self, task: Any, method: str, level: str, **options: Any) -> Attribution:
        _log(f"attribute {method} {task.name}")
        self.forwards += 2
        self.backwards += 1
        units = UNIVERSE.names(level)
        return Attribution(np.ones((len(task), len(units)), np.float32), units, method, level, options["metric"])


def _log(line: str) -> None:
    if LOG is not None:
        with LOG.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def opener(model: Any, tokenizer: Any = None, **options: Any) -> FakeSubject:
    return FakeSubject(str(model))


def install(log: str | Path | None = None) -> None:
    """For the conftest of a subprocess."""
    global LOG
    LOG = None if log is None else Path(log)
    models.default_opener = opener
    PROPERTIES.add("stated", STATED)


def fake_model(folder: Path, weights: bytes = b"weights") -> Path:
    """A directory with the files of a model, filled with nonsense."""
    folder.mkdir(parents=True, exist_ok=True)
    shape = {"num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 8}
    (folder / "config.json").write_text(json.dumps(shape), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    return folder
