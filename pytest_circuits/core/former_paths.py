"""Import paths of the previous release that documentation named: they still work, with a `DeprecationWarning`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

ROOT = __name__.partition(".")[0]
FORMER: dict[str, dict[str, str]] = {
    "requests": {"*": "measurement.requests", "Norms": "measurement.requests:MeasureNorms", "Read": "measurement.requests:LoadTask"},
    "units": {"*": "core.units"},
    "results": {"*": "core.results", "Norms": "core.results:ComponentNorms"},
    "sources": {"*": "core.sources"},
    "verdict": {"*": "core.verdict"},
    "anatomy": {"*": "model.architectures", "Anatomy": "model.layout:Anatomy", "anatomy_of": "inspection.locate:anatomy_of"},
    "properties.base": {
        "*": "properties.parameters", "Claim": "core.claim:Claim", "Property": "properties.protocol:Property",
        "Method": "properties.parameters:MethodName", "Kind": "properties.parameters:AblationName",
        "Metric": "properties.parameters:MetricName", "Rounding": "properties.parameters:RoundingName",
    },
    "properties.measured": {
        "*": "properties.steps.shared_sets", "part": "properties.steps.examples:part", "Examples": "properties.steps.examples:Examples",
        "examples": "properties.steps.examples:split_examples", "intact": "properties.steps.examples:measure_intact",
        "describe": "properties.steps.examples:describe_model", "attributed": "properties.steps.attribution:attribute_examples",
        "circuits": "properties.steps.circuits:find_circuits",
    },
    "properties.own": {"*": "properties.registration"},
}  # fmt: skip
"""Former modules, below the package; for each, where its names are now: `*` is the module of all that have no line of their own."""


class FormerPaths:
    """A finder for `sys.meta_path`, asked after all others: only for modules that do not exist any more."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a stand-in; None for any other module."""
        root, _, rest = name.partition(".")
        return ModuleSpec(name, _StandIn()) if root == ROOT and rest in FORMER else None  # type: ignore[arg-type]


class _StandIn:
    """Loads a former module as an empty one whose names are looked up where they are now."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's own module object."""

    def exec_module(self, module: ModuleType) -> None:
        former = FORMER[module.__name__.removeprefix(f"{ROOT}.")]

        def lookup(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            place, _, attribute = former.get(name, former["*"]).partition(":")
            value = getattr(import_module(f"{ROOT}.{place}"), attribute or name)
            text = f"{module.__name__}.{name} has moved to {ROOT}.{place}.{attribute or name}"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return value

        module.__dict__["__getattr__"] = lookup
