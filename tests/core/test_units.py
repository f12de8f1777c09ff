"""Names of edges and positions, the levels of names, and the page that documents them."""

from __future__ import annotations

import doctest
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits.core.edges import Edges
from pytest_circuits.core.units import Span, Universe, level_of, split_position
from pytest_circuits.errors import UnitError
from tests.paths import DOCS

PAGE = DOCS / "reference" / "units.md"
SMALL = Universe(3, 4, 6, 2)
shapes = st.tuples(st.integers(1, 4), st.sampled_from([(1, 1), (4, 1), (4, 2), (4, 4), (6, 3)]), st.booleans())


def comes_before(source: str, reader: str, parallel: bool) -> bool:
    """By the order in which a model computes things, read off the names."""
    at = int(source[1:].split("H")[0].split("M")[0])
    if reader == "logits":
        return True
    layer = int(reader[1:].split(".")[0].split("H")[0].split("K")[0].split("M")[0])
    return at < layer or (at == layer and reader.endswith("MLP") and not source.endswith("MLP") and not parallel)


@given(shapes)
def test_edges_are_all_pairs_in_order(shape):
    """Every component with every reader after it, once; by reader, then by source; columns and names agree."""
    layers, (heads, kv_heads), parallel = shape
    universe = Universe(layers, heads, 0, kv_heads, parallel)
    targets = []
    for layer in range(layers):
        targets += [f"L{layer}H{h}.q" for h in range(heads)]
        targets += [f"L{layer}KV{h}.{part}" for part in "kv" for h in range(kv_heads)] + [f"L{layer}MLP"]
    expected = [f"{s}->{r}" for r in [*targets, "logits"] for s in universe.names() if comes_before(s, r, parallel)]
    assert list(universe.names("edge")) == expected
    assert universe.size("edge") == len(expected) == universe.edges.count
    assert universe.index(expected, "edge") == list(range(len(expected)))
    for source in universe.names():
        assert list(universe.edges.outgoing(source)) == [e for e in expected if e.startswith(f"{source}->")]


@given(shapes, st.data())
def test_a_pair_that_is_no_edge_is_refused(shape, data):
    """A source that comes after its reader, or a part that the model does not have."""
    layers, (heads, kv_heads), parallel = shape
    edges = Edges(layers, heads, kv_heads, parallel)
    layer = data.draw(st.integers(0, layers))
    source = f"L{data.draw(st.integers(0, layers))}{data.draw(st.sampled_from(['MLP', *(f'H{h}' for h in range(heads + 1))]))}"
    tails = [f"H{h}.{p}" for h in range(heads + 1) for p in "qkv"] + [f"KV{h}.{p}" for h in range(kv_heads + 1) for p in "qkv"]
    reader = f"L{layer}{data.draw(st.sampled_from(['MLP', *tails]))}"
    name = f"{source}->{reader}"
    if name in edges.names:
        assert edges.names[edges.index(name)] == name
    else:
        with pytest.raises(UnitError, match="does not exist"):
            edges.index(name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("L0H1->L2H3", r"does not name the reader: write L2H3\.q"),
        ("L0H1->L2KV1", r"does not name the reader"),
        ("L0H1->L2H3.k", r"those of head 3 are L2KV1\.k"),
        ("L0H1->L2KV0.q", r"queries belong to heads: write L2H0\.q"),
        ("L0H1->L2H4.q", "heads 0–3"),
        ("L0H1->L2KV2.v", "key-value heads 0–1"),
        ("L0H1->L3MLP", "layers 0–2"),
        ("L0H4->L1MLP", "'L0H4' is not a component"),
        ("L3MLP->logits", "'L3MLP' is not a component"),
        ("L1MLP->L1H0.q", "L1MLP does not come before L1H0.q"),
        ("L1MLP->L1MLP", "does not come before"),
        ("L0H1", "not an edge name"),
        ("L0H1→L1MLP", "not an edge name"),
        ("L0H1->L1MLP.q", "not an edge name"),
        ("L0H1->lm_head", "not an edge name"),
        ("L0N1->L1MLP", "not an edge name"),
        ("L0H1->L1MLP->logits", "not an edge name"),
        ("L0H01->L1MLP", "not an edge name"),
        (" L0H1->L1MLP", "not an edge name"),
        ("L0H1->L1MLP\n", "not an edge name"),
        ("", "not an edge name"),
        (7, "not an edge name"),
    ],
)
def test_wrong_edge_names_say_what_is_wrong(name, message):
    """And what is right."""
    with pytest.raises(UnitError, match=message):
        SMALL.index([name], "edge")


def test_a_parallel_block_has_no_edges_from_its_heads_to_its_mlp():
    """The message says why."""
    with pytest.raises(UnitError, match="run in parallel"):
        Universe(3, 4, parallel=True).index(["L1H0->L1MLP"], "edge")
    assert Universe(3, 4).index(["L1H0->L1MLP"], "edge")


def test_names_of_another_level_are_told_apart():
    """An edge among components, and what level a set of names has."""
    with pytest.raises(UnitError, match="is an edge, not a component"):
        SMALL.index(["L0H1->L1MLP"])
    assert [level_of([n]) for n in ("L0H1", "L0MLP@-1", "L1N2@0", "L0H1->L2KV0.k")] == ["component", "component", "neuron", "edge"]
    assert level_of([]) == "component"


@given(st.integers(0, 9), st.integers(0, 9), st.lists(st.sampled_from(["L0H0", "L3MLP", "L10N7"]), max_size=3))
def test_positions_are_named_and_read_back(before, after, units):
    """Innermost, from first to last."""
    span = Span(before, after)
    names = span.names(units)
    assert len(names) == len(units) * len(span) == len(units) * (before + after)
    assert [split_position(n) for n in names] == [(u, p) for u in units for p in [*range(-before, 0), *range(after)]]


@pytest.mark.parametrize("name", ["L0H1@", "L0H1@-0", "L0H1@+1", "L0H1@1.0", "L0H1@01", "L0H1@ 1", "L0H1@x", "L0H1@1@1", "L0H1@١"])
def test_wrong_positions_are_refused(name):
    """A whole number as it is usually written."""
    with pytest.raises(UnitError, match="a position is written"):
        split_position(name)


def test_edges_have_no_positions():
    """Said so."""
    with pytest.raises(UnitError, match="edges have no positions"):
        split_position("L0H1->L1MLP@-1")


def test_the_examples_of_the_documentation_are_what_the_package_prints():
    """Every example of the page."""
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.failed == 0 and found.attempted > 15


def test_names_need_neither_torch_nor_numpy():
    """They are checked when specs are collected."""
    code = "import sys, pytest_circuits.core.units; sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'transformers')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
