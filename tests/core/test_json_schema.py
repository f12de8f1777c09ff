"""Schemas with repeated parts in one place mean the same."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.core.json_schema import share_repeated, without_noise

LONG = {"type": "string", "enum": ["a" * 60, "b" * 60]}
parts = st.recursive(
    st.sampled_from([LONG, {"type": "integer"}, {"type": "string", "description": "a text that is long " * 6}, True]),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("xyz"), inner, max_size=3)},
        optional={"description": st.sampled_from(["one", "two"]), "anyOf": st.lists(inner, max_size=2), "items": inner},
    ),
    max_leaves=12,
)


def expanded(part, definitions):
    """Without the references that sharing made."""
    if isinstance(part, list):
        return [expanded(inner, definitions) for inner in part]
    if not isinstance(part, dict):
        return part
    name = part.get("$ref", "").removeprefix("#/$defs/") if isinstance(part.get("$ref"), str) else ""
    if name:
        rest = {key: value for key, value in part.items() if key != "$ref"}
        return expanded({**definitions[name], **rest}, definitions)
    return {key: expanded(value, definitions) for key, value in part.items()}


@given(st.dictionaries(st.sampled_from("pqr"), parts, max_size=3), st.dictionaries(st.sampled_from("de"), parts, max_size=2))
def test_sharing_keeps_the_meaning(properties, definitions):
    schema = {"type": "object", "properties": properties, "$defs": {name: part for name, part in definitions.items() if part is not True}}
    before = json.dumps(schema)
    shared = share_repeated(schema)
    assert json.dumps(schema) == before
    back = expanded(shared, shared["$defs"])
    back["$defs"] = {name: part for name, part in back["$defs"].items() if not name.startswith("shared.")}
    assert back == schema


def test_a_repeated_part_stands_once_also_under_other_descriptions():
    schema = {"properties": {"a": LONG, "b": {"description": "other", **LONG}, "c": {"items": LONG}}}
    shared = share_repeated(schema)
    assert json.dumps(shared).count("a" * 60) == 1
    assert shared["properties"]["b"]["description"] == "other"


def test_titles_go_and_properties_of_that_name_stay():
    schema = {"title": "T", "properties": {"title": {"title": "Title", "type": "string", "default": None}}}
    assert without_noise(schema) == {"properties": {"title": {"type": "string"}}}
