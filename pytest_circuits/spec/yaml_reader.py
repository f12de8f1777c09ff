"""Reads a spec's YAML: plain data, and the line and column of every key and value.

A strict subset of YAML 1.2 is read, always as UTF-8: one document, no tags, no merge keys, no duplicate keys,
names as keys. PyYAML only supplies the tokens; its classes and shared loaders stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from yaml import error as yaml_error
from yaml import events as ev
from yaml import parser as yaml_parser
from yaml import reader as yaml_reader
from yaml import scanner as yaml_scanner

from ..errors import SpecError
from .scalars import plain
from .syntax import explain

DEEPEST = 40
MOST_ALIASED = 10_000
_TAB = re.compile(r"^ *\t", re.MULTILINE)
_BREAKS = re.compile("[\x85\u2028\u2029\ufeff]")  # YAML 1.1 ends lines at the first three, editors and YAML 1.2 do not

Where = tuple[str | int, ...]


class Mark(NamedTuple):
    """A place in the file; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Document:
    """Plain data with the place of every value and key, by path from the root, e.g. `("claims", "core", "reuse", "p")`."""

    path: str
    data: dict[str, Any]
    values: Mapping[Where, Mark]
    keys: Mapping[Where, Mark]

    def value(self, where: Where) -> Mark:
        """The place of a value; for a path that is not in the file, of the nearest key above it."""
        return self.values[where] if where in self.values else self.key(where[:-1])

    def key(self, where: Where) -> Mark:
        """The place of a key, or of a list's element; for a path that is not in the file, of the nearest one above it."""
        while where:
            if where in self.keys:
                return self.keys[where]
            if where in self.values:
                return self.values[where]
            where = where[:-1]
        return self.values.get((), Mark(1, 1))


def read_yaml(content: bytes, path: str) -> Document:
    """Parse the bytes of a spec. Raises `SpecError` with the place of the first thing that is wrong."""
    text = _decode(content, path)
    _refuse_characters(text, path)
    tokens = _Tokens(text)
    try:
        root = _Composer(tokens, path).document()
    except (yaml_error.YAMLError, ValueError, OverflowError) as problem:
        refusal = explain(problem, tokens.open, (tokens.line, tokens.column))
        raise SpecError(path, *refusal) from None
    values: dict[Where, Mark] = {}
    keys: dict[Where, Mark] = {}
    return Document(path, _flatten(root, (), values, keys), values, keys)


class _Tokens(yaml_reader.Reader, yaml_scanner.Scanner, yaml_parser.Parser):
    """PyYAML's scanner and parser without its composer, and a memory of which brackets are open."""

    def __init__(self, text: str) -> None:
        yaml_reader.Reader.__init__(self, text)
        yaml_scanner.Scanner.__init__(self)
        yaml_parser.Parser.__init__(self)
        self.open: list[tuple[str, int, int]] = []

    def take(self) -> Any:
        return self.get_event()  # type: ignore[no-untyped-call]

    def ahead(self) -> Any:
        return self.peek_event()  # type: ignore[no-untyped-call]

    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 (the name is PyYAML's)
        self.open.append((self.peek(), self.line, self.column))
        super().fetch_flow_collection_start(TokenClass)

    def fetch_flow_collection_end(self, TokenClass: Any) -> None:  # noqa: N803
        if self.open:
            self.open.pop()
        super().fetch_flow_collection_end(TokenClass)


@dataclass
class _Node:
    mark: Mark
    value: Any = None  # a scalar, a list of nodes, or a dict of name → (mark of the key, node)
    size: int = 1  # how many nodes this one stands for when aliases are written out
    complete: bool = False


@dataclass
class _Composer:
    tokens: _Tokens
    path: str
    anchors: dict[str, _Node] = field(default_factory=dict)
    aliased: int = 0

    def document(self) -> _Node:
        self.tokens.take()  # the stream's start
        if self.tokens.check_event(ev.StreamEndEvent):
            self.refuse(self.tokens.ahead(), "the file is empty; a spec needs version, models and claims", Mark(1, 1))
        self.tokens.take()
        event = self.tokens.ahead()
        root = self.node(0)
        if not isinstance(root.value, dict):
            empty = root.value is None
            text = "the file is empty; a spec needs" if empty else "a spec is a mapping with the keys"
            self.refuse(event, f"{text} version, models and claims", Mark(1, 1) if empty else None)
        self.tokens.take()
        if not self.tokens.check_event(ev.StreamEndEvent):
            self.refuse(self.tokens.ahead(), "a second document starts here ('---'); a spec file holds one")
        return root

    def refuse(self, event: Any, problem: str, mark: Mark | None = None) -> NoReturn:
        line, column = mark or _mark(event)
        raise SpecError(self.path, line, column, problem)

    def node(self, depth: int) -> _Node:
        event = self.tokens.take()
        if isinstance(event, ev.AliasEvent):
            return self.alias(event)
        if depth > DEEPEST:
            self.refuse(event, f"nested more than {DEEPEST} levels deep")
        if getattr(event, "tag", None) is not None:
            shown = re.sub("^tag:yaml.org,2002:", "!!", str(event.tag))
            self.refuse(event, f"the YAML tag {shown!r} is not allowed; write plain values without tags")
        node = _Node(_mark(event))
        if event.anchor is not None:
            if event.anchor in self.anchors:
                self.refuse(event, f"the anchor '&{event.anchor}' is defined twice; choose another name")
            self.anchors[event.anchor] = node
        if isinstance(event, ev.ScalarEvent):
            node.value = self.scalar(event)
        elif isinstance(event, ev.SequenceStartEvent):
            self.sequence(node, depth)
        else:
            self.mapping(node, depth)
        node.complete = True
        return node

    def alias(self, event: Any) -> _Node:
        node = self.anchors.get(event.anchor)
        if node is None:
            self.refuse(event, f"the alias '*{event.anchor}' has no anchor '&{event.anchor}' above it; quote text that starts with '*'")
        if not node.complete:
            self.refuse(event, f"the alias '*{event.anchor}' lies inside the value that it stands for")
        self.aliased += node.size
        if self.aliased > MOST_ALIASED:
            self.refuse(event, f"the aliases of this file stand for more than {MOST_ALIASED} values; write them out or use fewer")
        return node

    def scalar(self, event: Any) -> Any:
        if event.style is not None:
            return self.quoted(event)
        try:
            return plain(event.value)
        except ValueError as problem:
            self.refuse(event, str(problem))

    def quoted(self, event: Any) -> str:
        try:  # JSON writes characters beyond U+FFFF as the escapes of two surrogates
            text: str = event.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self.refuse(event, "half of a surrogate pair is not a character")
        if "\0" in text:
            self.refuse(event, "NUL is not allowed in text")
        return text

    def sequence(self, node: _Node, depth: int) -> None:
        node.value = []
        while not self.tokens.check_event(ev.SequenceEndEvent):
            node.value.append(self.node(depth + 1))
            node.size += node.value[-1].size
        self.tokens.take()

    def mapping(self, node: _Node, depth: int) -> None:
        node.value = {}
        while not self.tokens.check_event(ev.MappingEndEvent):
            event = self.tokens.ahead()
            mark, key = _mark(event), self.node(depth + 1).value
            if key == "<<" and getattr(event, "style", "'") is None:
                self.refuse(event, "merge keys ('<<') are not allowed; write the keys out, or share a whole value with an alias")
            if not isinstance(key, str):
                self.refuse(event, _not_a_name(event, key))
            if key in node.value:
                self.refuse(event, f"duplicate key {key!r}; it is first on line {node.value[key][0].line}")
            value = self.node(depth + 1)
            node.value[key] = (mark, value)
            node.size += 1 + value.size
        self.tokens.take()


def _not_a_name(event: Any, key: Any) -> str:
    if isinstance(key, (list, dict)):
        return f"a {'list' if isinstance(key, list) else 'mapping'} cannot be a key; keys are names"
    written = getattr(event, "value", "")
    shown = f"the key {written} is {'a number' if isinstance(key, (int, float)) and not isinstance(key, bool) else 'no text'}"
    return f'{shown if written else "a key is missing"}; keys are names: write it in quotes, such as "{written or "name"}"'


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)


def _flatten(node: _Node, where: Where, values: dict[Where, Mark], keys: dict[Where, Mark]) -> Any:
    values[where] = node.mark
    if isinstance(node.value, list):
        return [_flatten(child, (*where, i), values, keys) for i, child in enumerate(node.value)]
    if isinstance(node.value, dict):
        for name, (mark, _) in node.value.items():
            keys[*where, name] = mark
        return {name: _flatten(child, (*where, name), values, keys) for name, (_, child) in node.value.items()}
    return node.value


def _decode(content: bytes, path: str) -> str:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as problem:
        before = content[: problem.start].decode("utf-8").removeprefix("\ufeff")
        byte = content[problem.start]
        raise SpecError(path, *_place(before), f"byte 0x{byte:02x} is not UTF-8; save the file with the encoding UTF-8") from None
    return text.removeprefix("\ufeff")


def _refuse_characters(text: str, path: str) -> None:
    match = yaml_reader.Reader.NON_PRINTABLE.search(text) or _BREAKS.search(text)
    if match:
        problem = f'the character U+{ord(match[0]):04X} is not allowed; in double quotes it can be written as an escape such as "\\u2028"'
        raise SpecError(path, *_place(text[: match.start()]), problem)
    tab = _TAB.search(text)
    if tab:
        raise SpecError(path, *_place(text[: tab.end() - 1]), "a tab in the indentation; YAML is indented with spaces")


def _place(before: str) -> tuple[int, int]:
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(lines), len(lines[-1]) + 1
