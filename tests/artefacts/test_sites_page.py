"""The page on sites and edges: its example runs, and its table is the list of known architectures."""

from __future__ import annotations

import re

import pytest

from pytest_circuits.errors import ModelError
from pytest_circuits.model.architectures import FAMILIES
from tests.paths import DOCS

PAGE = (DOCS / "explanation" / "sites-and-edges.md").read_text(encoding="utf-8")


def test_the_example_registers_an_architecture():
    """As written; with a wrong path in it, opening names the part."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    try:
        exec(compile(code, "sites-and-edges.md", "exec"), {})
        del FAMILIES["stablelm"]
        with pytest.raises(ModelError, match="attention norm of layer 0"):
            exec(compile(code.replace("input_layernorm", "post_attention_layernorm"), "wrong", "exec"), {})
    finally:
        FAMILIES.pop("stablelm", None)


def test_the_table_lists_the_known_architectures():
    """Every one, and no other."""
    table = PAGE.split("## Which architectures are known")[1].split("\n\n")[1]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert named == set(FAMILIES)
