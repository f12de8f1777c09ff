"""The JSON Schema of spec files, generated from the models that validate them, so that editors complete and check specs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from ..ablation import ABLATIONS
from ..attribution import METHODS
from ..core.json_schema import share_repeated, without_noise
from ..core.summaries import summary
from ..properties import PROPERTIES
from ..properties.nested import OUTER, is_nested
from ..properties.protocol import Property
from ..registry import Registry
from ..tasks import TASKS
from .document import (
    BOUNDS,
    MODEL_KINDS,
    MODEL_NAME,
    NAME,
    NOT_OF_SERIES,
    VERSION,
    ClaimKeys,
    FileTask,
    FixtureTask,
    LoaderTask,
    ModelEntry,
)
from .parameters import takes_lists

Json = dict[str, Any]


def json_schema() -> Json:
    """The schema (draft 2020-12) with all registered properties, tasks and methods, third-party ones included.

    What a schema cannot say (that a task is declared, that a bound is not vacuous) is left to `load_suite`.
    """
    definitions: Json = {}
    properties = {name: _property(PROPERTIES.get(name), definitions) for name in PROPERTIES}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"pytest-circuits spec, version {VERSION}",
        "description": "Claims about the circuits of language models, tested by pytest.",
        "type": "object",
        "required": ["version", "models", "claims"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": VERSION, "description": "The version of this grammar."},
            "models": {**_named(_model(definitions), MODEL_NAME), "minProperties": 1, "description": "The models, by name."},
            "tasks": {**_named({"oneOf": list(_tasks(definitions))}), "description": "The tasks that claims refer to, by name."},
            "defaults": {**_defaults(definitions), "description": "Parameters for all claims whose property has them."},
            "claims": {**_named(_claim(properties, definitions)), "minProperties": 1, "description": "The claims, by name."},
        },
        "$defs": {name: definitions[name] for name in sorted(definitions)},
    }
    for registry in (METHODS, ABLATIONS):
        _share_options(schema, registry, registry.what.replace(" ", "-"))
    return share_repeated(schema)


def _named(entry: Json, pattern: str = NAME) -> Json:
    return {"type": "object", "propertyNames": {"pattern": pattern}, "additionalProperties": entry}


def _of(model: type[BaseModel], prefix: str, definitions: Json) -> Json:
    """A model's schema; the definitions that it needs go under `prefix`, since two models may call theirs the same."""
    schema = model.model_json_schema(ref_template=f"#/$defs/{prefix}.{{model}}")
    for name, definition in schema.pop("$defs", {}).items():
        definitions[f"{prefix}.{name}"] = without_noise(definition)
    cleaned: Json = without_noise(schema)
    return cleaned


def _property(prop: Property, definitions: Json) -> Json:
    """A property's parameters: each may be a list (one test for each value), and each may come from `defaults`."""
    schema = _of(prop.parameters, prop.name, definitions)
    schema.pop("required", None)
    for name, info in prop.parameters.model_fields.items():
        if is_nested(info):
            definitions.pop(schema["properties"][name].pop("$ref").removeprefix("#/$defs/"), None)
            extra = info.json_schema_extra
            claims: Json = {"type": "string", "description": "the name of another claim of this spec"}
            schema["properties"][name] |= {"anyOf": [_inner(), claims]} if isinstance(extra, dict) and extra.get("claims") else _inner()
            schema["properties"][name].pop("claims", None)
    schema["properties"] = {
        name: part if takes_lists(prop.parameters.model_fields[name].annotation) else _listable(part)
        for name, part in schema.get("properties", {}).items()
    }
    schema["description"] = summary(PROPERTIES, prop.name) or schema.get("description", "")
    definitions[prop.name] = schema
    return {"$ref": f"#/$defs/{prop.name}"}


def _inner() -> Json:
    """A property inside another one: one of those that are about single models, with its parameters."""
    single = [name for name in PROPERTIES if not PROPERTIES.get(name).over_series]
    forbidden = {"not": {"anyOf": [{"required": [key]} for key in OUTER]}}
    refs = {name: {"allOf": [{"$ref": f"#/$defs/{name}"}, forbidden]} for name in single}
    return {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": False, "properties": refs}


def _listable(schema: Json) -> Json:
    outer: Json = {key: schema[key] for key in ("description", "default") if key in schema}
    inner = {key: value for key, value in schema.items() if key not in outer}
    return {**outer, "anyOf": [inner, {"type": "array", "items": inner, "minItems": 1, "uniqueItems": True}]}


def _model(definitions: Json) -> Json:
    schema = _of(ModelEntry, "model", definitions)
    one_source: Json = {"oneOf": [{"required": [kind]} for kind in MODEL_KINDS]}
    series = {"required": ["checkpoints"], "not": {"anyOf": [{"required": [key]} for key in NOT_OF_SERIES]}}
    return {**schema, "anyOf": [{**one_source, "not": {"required": ["checkpoints"]}}, series]}


def _tasks(definitions: Json) -> Iterator[Json]:
    for name in TASKS:
        schema = _of(TASKS.get(name).Parameters, f"task.{name}", definitions)
        chosen = {"builtin": {"const": name, "description": summary(TASKS, name)}}
        yield {
            **schema,
            "description": summary(TASKS, name),
            "properties": {**chosen, **schema.get("properties", {})},
            "required": ["builtin", *schema.get("required", [])],
        }
    yield _of(FileTask, "task.file", definitions)
    yield _of(FixtureTask, "task.fixture", definitions)
    loader = _of(LoaderTask, "task.loader", definitions)
    yield {**loader, "properties": {**loader["properties"], "builtin": False, "file": False, "fixture": False}}


def _defaults(definitions: Json) -> Json:
    options: dict[str, list[Json]] = {}
    for prop in PROPERTIES:
        for name, schema in definitions[prop]["properties"].items():
            plain = {key: value for key, value in schema.items() if key != "default"}
            if plain not in options.setdefault(name, []):
                options[name].append(plain)
    merged = {name: variants[0] if len(variants) == 1 else {"anyOf": variants} for name, variants in sorted(options.items())}
    return {"type": "object", "additionalProperties": False, "properties": merged}


def _claim(properties: Json, definitions: Json) -> Json:
    schema = _of(ClaimKeys, "claim", definitions)
    return {
        **schema,
        "description": "One property with its parameters, one bound, and what is expected of it.",
        "properties": {**properties, **schema["properties"]},
        "allOf": [
            {"oneOf": [{"required": [name]} for name in properties]},
            {"oneOf": [*({"required": [name]} for name in BOUNDS), _margin(), *_boundless()]},
            {"not": {"required": ["model", "models"]}},
        ],
    }


def _boundless() -> Iterator[Json]:
    """Claims of properties that have a bound of their own need not write one."""
    written = {"anyOf": [{"required": [name]} for name in BOUNDS]}
    yield from ({"required": [name], "not": written} for name in PROPERTIES if PROPERTIES.get(name).bound is not None)


def _margin() -> Json:
    """A claim about drift may write its bound as a margin, inside."""
    margins = {"anyOf": [{"required": [name]} for name in ("within", "no_worse_by")]}
    return {"required": ["drift"], "properties": {"drift": margins}}


def _share_options(schema: Json, registry: Registry, key: str) -> None:
    """Refer to one definition, which says what each name of a registry is, wherever the schema lists all of them."""
    _replace(schema, registry.names(), {"$ref": f"#/$defs/{key}"})
    description = ". ".join(f"{name}: {summary(registry, name, imports=False).rstrip('.')}" for name in registry)
    schema["$defs"][key] = {"type": "string", "enum": registry.names(), "description": f"{description}."}


def _replace(schema: Any, names: list[str], reference: Json) -> None:
    for inner in schema if isinstance(schema, list) else schema.values() if isinstance(schema, dict) else ():
        _replace(inner, names, reference)
    if isinstance(schema, dict) and schema.get("enum") == names:
        del schema["enum"]
        schema.pop("type", None)
        schema.update(reference)
