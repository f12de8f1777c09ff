"""Summaries of registered entries, for help texts and the JSON Schema."""

from __future__ import annotations

import ast
import inspect
from importlib.util import find_spec
from pathlib import Path

from ..registry import Registry


def summary(registry: Registry, name: str, *, imports: bool = True) -> str:
    """The `summary` of an entry, or the first line of its docstring or of its module's; empty if there is none.

    With `imports=False` a built-in entry is read as source, since importing it may import torch.
    """
    if name in registry.builtin and not imports:
        module, _, attribute = registry.builtin[name].partition(":")
        return _from_source(module, attribute)
    thing = registry.get(name)
    return str(getattr(thing, "summary", "") or "") or _first(inspect.getdoc(thing)) or _first(inspect.getdoc(inspect.getmodule(thing)))


def described(registry: Registry, name: str, *, imports: bool = True) -> str:
    """The docstring of an entry, and its parameters, one per line with default and meaning, or the names of its options."""
    if name in registry.builtin and not imports:
        module, _, attribute = registry.builtin[name].partition(":")
        options = registry.fact(name, "options", ())
        return (_docstring(module, attribute) or _docstring(module, None)) + (f"\n\noptions: {', '.join(options)}" if options else "")
    thing = registry.get(name)
    model = getattr(thing, "parameters", None) or getattr(thing, "Parameters", None)
    doc = inspect.getdoc(model) if hasattr(thing, "estimate") else inspect.getdoc(thing)
    lines = [doc or summary(registry, name)]
    if model is not None:
        lines += ["", "parameters:"]
        for key, field in model.model_fields.items():
            default = "required" if field.is_required() else f"default {field.get_default(call_default_factory=True)!r}"
            lines.append(f"  {key} ({default}){': ' + field.description if field.description else ''}")
    return "\n".join(lines)


def _from_source(module: str, attribute: str) -> str:
    return _first(_docstring(module, attribute)) or _first(_docstring(module, None))


def _docstring(module: str, attribute: str | None) -> str:
    """The docstring of a class or function of a module, or of the module itself (None), read as source."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    if attribute is None:
        return ast.get_docstring(tree) or ""
    definitions = [n for n in tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef)) and n.name == attribute]
    return (ast.get_docstring(definitions[0]) or "") if definitions else ""


def _first(text: str | None) -> str:
    return text.strip().splitlines()[0] if text and text.strip() else ""
