"""The shape of the package: no import cycles, no loose modules at the top, short files, and no names that were given up."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGE = ROOT / "pytest_circuits"
AT_THE_TOP = {"__init__.py", "__main__.py", "errors.py", "registry.py", "subject.py"}
LONGEST = 400
RETIRED = {
    "Able", "Asked", "Bench", "Call", "ClaimCase", "ClaimEntry", "Combination", "Desk", "Discovered", "Doubt", "Footing", "Judgement",
    "Kind", "Lab", "Ledger", "Norms", "Place", "Prospect", "Question", "Read", "Recorded", "Setting", "Sides", "Stage", "These",
    "Tried", "Unforeseen", "amounts", "asked", "bench", "closeness", "coder", "desk", "doubts", "engine", "found", "growing",
    "invented", "judge", "judging", "lab", "made", "mover", "nearby", "one", "reaching_hub", "skewed", "taps", "telling", "these",
    "this", "told", "tried", "wiring",
}  # fmt: skip
"""Words that meant something in this project only."""


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted names of the package's modules; a package goes by its own name."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports_of(name: str, modules: dict[str, Path]) -> Iterator[str]:
    """Modules that a module imports anywhere in its file: at the top, for types only, or inside a function."""
    here = name.split(".") if modules[name].name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(modules[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = here[: len(here) - node.level + 1] if node.level else []
            source = ".".join([*start, *(node.module or "").split(".")]).rstrip(".")
            wanted = [f"{source}.{alias.name}" if f"{source}.{alias.name}" in modules else source for alias in node.names]
        else:
            continue
        yield from (module for module in wanted if module in modules and module != name)


def cycles_of(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other (Tarjan), each sorted."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups = []
    for root in graph:
        if root in order:
            continue
        path = [(root, iter(sorted(graph[root])))]
        order[root] = lowest[root] = len(order)
        stack.append(root)
        while path:
            node, rest = path[-1]
            for child in rest:
                if child not in order:
                    order[child] = lowest[child] = len(order)
                    stack.append(child)
                    path.append((child, iter(sorted(graph[child]))))
                    break
                if child in stack:
                    lowest[node] = min(lowest[node], order[child])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    group = stack[stack.index(node) :]
                    del stack[stack.index(node) :]
                    if len(group) > 1:
                        groups.append(sorted(group))
    return sorted(groups)


def cycles(package: Path) -> list[list[str]]:
    modules = modules_of(package)
    return cycles_of({name: set(imports_of(name, modules)) for name in modules})


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every name in a file; strings and comments are not names."""
    with path.open("rb") as file:
        yield from ((token.start[0], token.string) for token in tokenize.tokenize(file.readline) if token.type == tokenize.NAME)


def retired_in(package: Path, words: set[str]) -> list[str]:
    return [
        f"{path.relative_to(package.parent)}:{line}: {name}"
        for path in sorted(package.rglob("*.py"))
        for line, name in names_in(path)
        if name in words
    ]


def too_long(package: Path) -> list[str]:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in package.rglob("*.py")}
    return sorted(f"{path.relative_to(package.parent)}: {count} lines" for path, count in lines.items() if count > LONGEST)


def test_no_module_of_the_package_imports_itself_by_way_of_others():
    assert cycles(PACKAGE) == []


def test_only_shared_modules_lie_at_the_top_of_the_package():
    assert {path.name for path in PACKAGE.glob("*.py")} - AT_THE_TOP == set()


@pytest.mark.parametrize("folder", ["pytest_circuits", "benchmarks", "models"])
def test_no_file_is_long(folder):
    assert too_long(ROOT / folder) == []


def test_retired_words_name_nothing_in_the_package():
    assert retired_in(PACKAGE, RETIRED) == []


def test_the_tests_lie_in_the_rooms_of_the_package():
    """Besides tests of the repository's artefacts, and what tests share."""
    shared = {"artefacts", "data", "fakes", "snapshots"}
    tests = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")]
    elsewhere = {str(path.parent) for path in tests if path.parts[0] not in shared and not (PACKAGE / path.parent).is_dir()}
    assert elsewhere == set()
    assert {path.name for path in tests if len(path.parts) == 1} <= {f"test_{name}" for name in AT_THE_TOP}


# the checks themselves, on packages that break the rules


@pytest.fixture
def package(tmp_path):
    """A package of these files."""

    def write(**files: str) -> Path:
        folder = tmp_path / "shop"
        (folder / "inner").mkdir(parents=True)
        for name in ("__init__", "inner/__init__"):
            (folder / f"{name}.py").write_text("", encoding="utf-8")
        for name, text in files.items():
            (folder / f"{name.replace('__', '/')}.py").write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.mark.parametrize(
    "back",
    [
        "from .. import first",
        "from ..first import x",
        "import shop.first",
        "from shop import first",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..first import x",
        "def f():\n    from ..first import x",
    ],
)
def test_every_way_to_import_closes_a_cycle(package, back):
    folder = package(first="from .inner.second import y", inner__second=f"{back}\ny = 1", third="from .first import x")
    assert cycles(folder) == [["shop.first", "shop.inner.second"]]


def test_imports_in_one_direction_are_no_cycle(package):
    assert cycles(package(first="from .inner import second\nfrom . import third", inner__second="from .. import third", third="")) == []


def test_groups_are_told_apart():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a", "f"}}
    assert cycles_of(graph) == [["a", "b", "c"], ["d", "e"]]


def test_names_count_and_strings_and_comments_do_not(package):
    folder = package(first='"""A desk."""\n# a desk\ndesk = 1\nclass Desktop:\n    def f(self, desk): ...\n')
    assert retired_in(folder, {"desk"}) == ["shop/first.py:3: desk", "shop/first.py:5: desk"]


def test_long_files_are_named(package):
    folder = package(first="x = 1\n" * (LONGEST + 1), inner__second="x = 1\n" * LONGEST)
    assert too_long(folder) == ["shop/first.py: 401 lines"]
