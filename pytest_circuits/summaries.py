"""One-line summaries of registered things, for help texts and the JSON Schema."""

from __future__ import annotations

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path

from .registry import Registry


def summary(registry: Registry, name: str, *, imports: bool = True) -> str:
    """The `summary` of an entry, or the first line of its docstring, or of its module's; empty if it has none.

    With `imports` False a built-in entry is read as source, since importing it may import torch.
    """
    if name in registry.builtin and not imports:
        module, _, attribute = registry.builtin[name].partition(":")
        return _from_source(module, attribute)
    thing = registry.get(name)
    return str(getattr(thing, "summary", "") or "") or _first(inspect.getdoc(thing)) or _first(inspect.getdoc(inspect.getmodule(thing)))


def _from_source(module: str, attribute: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name == attribute:
            return _first(ast.get_docstring(node)) or _first(ast.get_docstring(tree))
    return _first(ast.get_docstring(tree))


def _first(text: str | None) -> str:
    return text.strip().splitlines()[0] if text and text.strip() else ""
