"""Makes the catalogue of properties from the code: `python -m docs.catalogue` writes docs/reference/properties.md; `--check` compares."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import CircuitParameters, Parameters
from pytest_circuits.properties.protocol import Property

PAGE = Path(__file__).parent / "reference" / "properties.md"
HEAD = """# Properties

This page lists every property that a claim can be about. Each one is estimated on evaluation examples with an interval, which is
compared with the claim's bound. *Invalid* means that it could not be estimated. `python -m docs.catalogue` makes this page from the code.
"""


def _range(prop: Property) -> str:
    low, high = ("−∞" if prop.lowest is None else f"{prop.lowest:g}"), ("∞" if prop.highest is None else f"{prop.highest:g}")
    some = ", other limits for some parameters" if prop.limits is not None else ""
    return f"{'(' if prop.lowest is None else '['}{low}, {high}{')' if prop.highest is None else ']'}{some}"


def _parameter(name: str, field: Any) -> str:
    default = "required" if field.is_required() else f"`{field.get_default(call_default_factory=True)!r}`".replace("|", "\\|")
    return f"| `{name}` | {default} | {(field.description or '').replace('|', chr(92) + '|')} |"


def _table(fields: dict[str, Any]) -> str:
    return "\n".join(["| parameter | default | meaning |", "|---|---|---|", *(_parameter(name, field) for name, field in fields.items())])


def _entry(name: str) -> str:
    prop: Property = PROPERTIES.get(name)
    inherited = next((base for base in (CircuitParameters, Parameters) if issubclass(prop.parameters, base)), None)
    common = set(inherited.model_fields) if inherited else set()
    own = {key: field for key, field in prop.parameters.model_fields.items() if key not in common}
    everywhere = "[of all properties](#parameters-of-all-properties)"
    more = {CircuitParameters: f", in addition to those [of circuits](#parameters-of-circuits) and {everywhere}"}
    where = more.get(inherited, f", in addition to those {everywhere}") if inherited else ""
    series = "\n\nThis property is about a whole series of models." if prop.over_series else ""
    return f"""## {name}

*{prop.summary[:1].upper()}{prop.summary[1:]}.* Unit: {prop.unit or "none"}. Values in {_range(prop)}.{series}

{inspect.getdoc(prop.parameters)}

Parameters{where}:

{_table(own)}
"""


def page() -> str:
    """The whole page."""
    names = list(PROPERTIES.builtin)
    index = "\n".join(f"- [`{name}`](#{name}): {PROPERTIES.get(name).summary}" for name in names)
    circuit = {key: field for key, field in CircuitParameters.model_fields.items() if key not in Parameters.model_fields}
    common = f"""## Parameters of all properties

{_table(dict(Parameters.model_fields))}

## Parameters of circuits

Shared by all properties that use per-example component circuits.

{_table(circuit)}
"""
    return "\n".join([HEAD, index, "", *(_entry(name) for name in names), common])


def main() -> int:
    """Write the page; with `--check`, fail if it is not up to date."""
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
