"""Strategies, held against oracles that draw nothing: all pairs of a small grammar, sets by counting, shared sets by counting."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from pytest_circuits import strategies as cs
from pytest_circuits.core.results import Attribution, CircuitSet
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import OptionError, TaskError, UnitError
from pytest_circuits.tasks.base import PromptPair, Task
from pytest_circuits.tasks.grammar.draws import Independent, Seeded
from pytest_circuits.tasks.grammar.spaces import space_of
from pytest_circuits.tasks.load import load_task
from tests.waiting import HANG

UNIVERSE = Universe(3, 2)
SMALL = {  # grammars of few pairs: parameters, and how many different clean prompts there are
    "addition": ({"digits": 1}, 100),
    "boolean": ({"operators": 1, "negations": False}, 8),
    "capitals": ({"templates": "lies"}, 120),
    "copycolors": ({"options": 2}, 5280),
    "ioi": ({"templates": "went", "order": "abba"}, 151200),
    "reversal": ({"length": 2, "largest": 3}, 9),
    "sorting": ({"length": 2, "largest": 3}, 9),
    "sva": ({"form": "simple"}, 1072),
}
QUICK = settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def smallest(strategy, condition=lambda value: True):
    """The smallest value of the strategy that meets the condition, searched with a seed and until it is certain to come up."""
    effort = settings(max_examples=20_000, database=None, deadline=None, phases=[Phase.generate, Phase.shrink])
    return find(strategy, condition, settings=effort, random=Random(0))


@pytest.fixture(scope="module")
def streams():
    """What the built-in task itself makes of its seed, a good deal of it."""

    def pairs(name):
        task = load_task(name, n=1, **SMALL[name][0])
        return {*task, *itertools.islice(task.more(), 4000)}

    return {name: pairs(name) for name in SMALL}


@pytest.mark.extensive
@pytest.mark.parametrize("name", SMALL)
def test_what_is_drawn_is_what_the_task_could_have_made(name, streams):
    """All of it where the stream has the whole grammar, else each in form and content but for the words."""
    parameters, prompts = SMALL[name]
    known, seen = streams[name], set()

    @QUICK
    @given(cs.prompt_pairs(name, **parameters))
    def draw(pair):
        seen.add(pair)

    draw()
    assert len(seen) >= min(25, prompts - 2)
    if prompts < 10:
        assert seen <= known
        return
    assert {shape(pair) for pair in seen} <= {shape(pair) for pair in known}
    assert {word for pair in seen for word in words(pair)} <= {word for pair in known for word in words(pair)}
    if name == "addition":
        for pair in seen:
            a, b, c, d = (int(n) for text in (pair.clean, pair.corrupt) for n in re.findall(r"\d+", text))
            assert (str(a + b), (str(c + d),)) == (pair.answer, pair.foils) and len(str(a + b)) == len(str(c + d)) and a + b != c + d


def words(pair):
    return {w for text in (pair.clean, pair.corrupt, pair.answer, *pair.foils) for w in re.findall(r"\w+", text)}


def shape(pair):
    """Where the same words stand in clean prompt, corrupt prompt, answer and foils."""
    texts = [re.findall(r"\w+", text) for text in (pair.clean, pair.corrupt, pair.answer, *pair.foils)]
    place = {}
    return tuple(tuple(place.setdefault(w, len(place)) for w in text if w[0].isupper()) for text in texts)


@pytest.mark.parametrize(
    ("name", "parameters", "clean", "answer"),
    [
        ("ioi", {}, "When Mary and John went to the store, Mary gave a drink to", " John"),
        ("ioi", {"order": "abba"}, "When John and Mary went to the store, Mary gave a drink to", " John"),
        ("addition", {}, "Compute: 10 + 10 = ", "20"),
        ("addition", {"digits": 1}, "Compute: 0 + 0 = ", "0"),
        ("boolean", {}, "Evaluate: false or (false and false) = ", "false"),
        ("capitals", {}, "The capital of the state containing Birmingham is", " Montgomery"),
        ("copycolors", {"options": 3}, "The box is red. What color is the box?\nA. red\nB. blue\nC. green\nAnswer:", " A"),
        ("reversal", {"length": 5}, "[START] 1 1 1 1 1 [SEP]", " 1 1 1 1 1 [END]"),
        ("sorting", {"length": 2}, "[START] 1 1 [SEP]", " 1 1 [END]"),
        ("sva", {}, "Today the boy", " is"),
    ],
)
def test_pairs_shrink_to_the_first_words_and_the_smallest_numbers(name, parameters, clean, answer):
    found = smallest(cs.prompt_pairs(name, **parameters))
    assert (found.clean, found.answer) == (clean, answer)


@pytest.mark.extensive
def test_shrinking_keeps_what_matters_and_drops_the_rest():
    found = smallest(cs.prompt_pairs("ioi"), lambda pair: "Rose" in pair.clean and "library" in pair.clean)
    assert found.clean == "When Mary and Rose went to the library, Mary gave a drink to"
    total = smallest(cs.prompt_pairs("addition"), lambda pair: int(pair.answer) > 150)
    a, b = map(int, re.findall(r"\d+", total.clean))
    assert a + b == 151


def test_a_fixed_task_is_drawn_by_rows_and_shrinks_to_the_first(tmp_path):
    rows = [{"clean": f"w{i} x", "corrupt": f"v{i} x", "answer": " a", "foil": " b"} for i in range(12)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    of_file = cs.prompt_pairs(str(tmp_path / "pairs.jsonl"))
    assert smallest(of_file).clean == "w0 x" and smallest(of_file, lambda p: p.clean > "w5").clean in ("w6 x", "w5 x")
    assert smallest(cs.prompt_pairs(rows), lambda p: p.clean == "w7 x").clean == "w7 x"
    task = Task("mine", (PromptPair((1, 2), (1, 3), (4,), ((5,),)),))
    assert smallest(cs.prompt_pairs(task)) == task.pairs[0]
    with pytest.raises(NoSuchExample):
        smallest(of_file, lambda p: p.clean == "w12 x")


def test_templates_shrink_to_their_first_words():
    names = ["Ann", "Bob", "Cid"]
    strategy = cs.template_pairs(
        "When {A} and {B} went to the {PLACE}, {B} gave a drink to", {"A": names, "B": names, "PLACE": ["store", "park"]},
        answer=" {A}", foil=" {B}", corrupt="When {A} and {B} went to the {PLACE}, {A} gave a drink to",
    )  # fmt: skip
    assert smallest(strategy).clean == "When Ann and Bob went to the store, Bob gave a drink to"
    assert smallest(strategy, lambda p: p.answer == " Cid").clean == "When Cid and Ann went to the store, Ann gave a drink to"
    with pytest.raises(OptionError, match="slot 'Z', which has no words"):
        cs.template_pairs("{Z}", {"A": names}, answer="{A}", foil="x", corrupt="{A}")


def test_mistakes_in_the_name_or_parameters_of_a_task():
    with pytest.raises(OptionError, match=r"unknown task 'ioy'.*did you mean 'ioi'"):
        cs.prompt_pairs("ioy")
    with pytest.raises(OptionError, match="has no parameter 'tempates'; did you mean 'templates'"):
        cs.prompt_pairs("ioi", tempates="went")
    for name, value in (("n", 10), ("seed", 1)):
        with pytest.raises(OptionError, match=f"{name} selects pairs of task 'ioi'"):
            cs.prompt_pairs("ioi", **{name: value})
    with pytest.raises(TaskError, match="no prompt pairs"):
        cs.prompt_pairs([])


@QUICK
@given(st.data())
def test_component_sets_are_those_that_were_asked_for(data):
    names = UNIVERSE.component_names
    inside = data.draw(st.sets(st.sampled_from(names), min_size=3))
    outside = data.draw(st.sets(st.sampled_from(sorted(set(names) - inside) or ["L0H0"])).map(lambda s: s - inside))
    pool = sorted(inside)
    including = set(pool[: data.draw(st.integers(0, 1))])
    least = data.draw(st.integers(max(1, len(including)), len(pool)))
    most = data.draw(st.integers(least, len(pool)))
    found = data.draw(cs.component_sets(UNIVERSE, (least, most), inside=inside, outside=outside, including=including))
    assert least <= len(found) <= most and including <= set(found) <= inside - outside
    assert list(found) == sorted(found, key=names.index) and len(set(found)) == len(found)


def test_component_sets_shrink_to_the_fewest_and_first():
    assert smallest(cs.component_sets(UNIVERSE, (1, 4))) == ("L0H0",)
    assert smallest(cs.component_sets(UNIVERSE, (1, 6)), lambda s: {"L1H1", "L2MLP"} <= set(s)) == ("L1H1", "L2MLP")
    assert smallest(cs.component_sets(UNIVERSE, 2, of="mlps", outside=["L0MLP"])) == ("L1MLP", "L2MLP")
    assert smallest(cs.component_sets(UNIVERSE, (2, 5), including=["L2H0"])) == ("L0H0", "L2H0")
    assert smallest(cs.component_sets(["L0H0", "L5H1"], "50%")) == ("L0H0",)
    assert len(smallest(cs.component_sets(UNIVERSE, ("10%", "50%")), lambda s: len(s) > 3)) == 4


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"size": 10}, OptionError, "sets of 10 components cannot be drawn: there are 9 components"),
        ({"size": 4, "of": "mlps"}, OptionError, "sets of 4 components cannot be drawn: there are 3 MLPs"),
        ({"size": (2, 9), "outside": ["L0H0"]}, OptionError, "sets of 2 to 9 components cannot be drawn: there are 8 components"),
        ({"size": (3, 1)}, OptionError, "the range of sizes from 3 to 1 is empty"),
        ({"size": (1, 2, 3)}, OptionError, "a range of sizes has two ends"),
        ({"size": 0}, OptionError, "a circuit size is a percentage"),
        ({"size": 1, "inside": ["L7H0"]}, UnitError, "'L7H0' is not one of the 9 components"),
        ({"size": 1, "inside": "L0H0"}, UnitError, r"write \['L0H0'\]"),
        ({"size": 2, "including": ["L0H0"], "outside": ["L0H0"]}, OptionError, "L0H0 is in both including and outside"),
        ({"size": 1, "including": ["L0H0", "L0H1"]}, OptionError, "besides the 2 that are included"),
        ({"size": 1, "of": "neurons"}, OptionError, "of says which components may be drawn"),
    ],
)
def test_sets_that_cannot_be_are_refused_when_asked_for(arguments, error, message):
    with pytest.raises(error, match=message):
        cs.component_sets(UNIVERSE, **arguments)


def test_every_member_of_a_full_set_can_be_left_out():
    """From {0, k, 5} of at most three, k goes: also where no smaller set is generated by chance, and a full one ends the drawing."""
    from pytest_circuits.strategies.choices import ReplayedChoices
    from pytest_circuits.strategies.search import Effort, Example, draw_example, shrink
    from pytest_circuits.strategies.sets import set_space

    names = [f"L0H{i}" for i in range(9)]
    space, pair = set_space(names, (1, 3)), PromptPair("a", "b", "c", ("d",))
    every = [Example(pair, units) for n in (1, 2, 3) for units in itertools.combinations(names, n)]
    known = {one: not {"L0H0", "L0H5"} <= set(one.units) for one in every}

    def make(draws):
        return Example(pair, space.draw(draws))

    for middle in (1, 2, 3, 4):
        start = next(
            one
            for seed in range(10**5)
            for one in [draw_example(make, Independent(Random(seed)))]
            if one.units == ("L0H0", f"L0H{middle}", "L0H5") and one.choices[0] == 0 and one.choices[2] == middle
        )
        assert draw_example(make, ReplayedChoices(start.choices)) == start
        found = shrink(make, known, Effort(settings.get_profile("default"), 0, False), start)
        assert found.failing.units == ("L0H0", "L0H5") and not found.unknown


@pytest.mark.parametrize(("size", "including"), [(1, ()), ((1, 3), ()), ((2, 4), ("L0H0",)), ((3, 3), ("L1H1", "L2MLP"))])
def test_sets_that_can_be_drawn_are_told_from_others(size, including):
    from pytest_circuits.strategies.sets import set_space

    space = set_space(UNIVERSE.component_names, size, outside=["L1MLP"], including=including)
    least, most = size if isinstance(size, tuple) else (size, size)
    for n in range(5):
        for units in itertools.combinations(UNIVERSE.component_names, n):
            fits = least <= n <= most and "L1MLP" not in units and set(including) <= set(units)
            assert (units in space) is fits
    assert ("L0H0", "L0H0") not in space and ("L9H9",) not in space


def test_components_come_from_a_model_a_universe_or_names():
    with pytest.raises(OptionError, match="a model, its universe or a list of names; got int"):
        cs.component_sets(3, 1)
    with pytest.raises(OptionError):
        cs.component_sets([], 1)


SCORES = np.random.default_rng(0).normal(size=(20, 9)).astype(np.float32) * np.array([9, 1, 5, 1, 1, 1, 7, 1, 1], np.float32)
FOUND = Attribution(SCORES, UNIVERSE.component_names, "eap", "component", "logit_diff")


def shared_by_counting(k, p):
    """Top k by absolute score on each example, counted."""
    counts = dict.fromkeys(UNIVERSE.component_names, 0)
    for row in np.abs(SCORES):
        for column in sorted(range(9), key=lambda c: -row[c])[:k]:
            counts[UNIVERSE.component_names[column]] += 1
    return tuple(name for name, count in counts.items() if count >= p * len(SCORES))


@QUICK
@given(cs.circuits(FOUND, size=(1, 5), p=[0.5, 0.9]))
def test_circuits_are_shared_sets_of_some_size_and_share(found):
    assert found and found in {shared_by_counting(k, p) for k in range(1, 6) for p in (0.5, 0.9)}


def test_circuits_with_more_or_less_of_them():
    shared = shared_by_counting(3, 0.5)
    cut = FOUND.circuits(3)
    seen = set()

    @QUICK
    @given(cs.circuits(cut, p=0.5, beyond=(0, 2), without=(0, 1)))
    def draw(found):
        seen.add((len(set(found) - set(shared)), len(set(shared) - set(found))))

    draw()
    assert seen == {(more, fewer) for more in range(3) for fewer in range(2)} - ({(0, len(shared))} if len(shared) == 1 else set())
    assert smallest(cs.circuits(cut, p=0.5, beyond=(0, 2), without=(0, 1))) == shared
    with pytest.raises(OptionError, match="size cuts circuits from scores"):
        cs.circuits(cut, size=3)
    with pytest.raises(OptionError, match="size cuts circuits from scores"):
        cs.circuits(FOUND)
    with pytest.raises(OptionError, match="beyond is a number of components"):
        cs.circuits(cut, beyond=(2, 1))
    empty = CircuitSet(np.eye(9, dtype=bool), UNIVERSE.component_names)
    with pytest.raises(Exception, match=r"[Uu]nable to satisfy"):
        smallest(cs.circuits(empty, p=0.9))


def test_independent_draws_have_the_distribution_of_the_seeded_ones():
    """First name, order and template of IOI; chi-squared-like: no count further than five standard deviations from what is expected."""
    space, random = space_of("ioi", {}), Random("here")
    independent = [space.draw(Independent(random)) for _ in range(2000)]
    generator = Seeded("there")
    seeded = [space.draw(generator) for _ in range(2000)]
    for pairs in (independent, seeded):
        for values in ([p.answer for p in pairs], [p.clean.split()[0] for p in pairs], [p.clean.index(p.answer) < 20 for p in pairs]):
            kinds = {v: values.count(v) for v in set(values)}
            expected = 2000 / len(kinds)
            assert all(abs(count - expected) < 5 * expected**0.5 + 1 for count in kinds.values()), kinds


def test_only_the_strategies_import_hypothesis():
    code = """
import sys
import pytest_circuits.pytest_plugin.api.circuits, pytest_circuits.spec.load, pytest_circuits.measurement.planner
import pytest_circuits.claims.evaluation, pytest_circuits.tasks.load
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.tasks import TASKS
[registry.get(name) for registry in (PROPERTIES, TASKS) for name in registry]
assert "hypothesis" not in sys.modules
assert "strategies" not in pytest_circuits.__all__
assert pytest_circuits.strategies.prompt_pairs("ioi") is not None and "hypothesis" in sys.modules
assert not {"torch", "transformers"} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr


def test_without_hypothesis_the_message_says_what_to_install():
    code = """
import sys
sys.modules["hypothesis"] = None
try:
    import pytest_circuits.strategies
except ImportError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG)
    assert "needs the package hypothesis: pip install hypothesis" in done.stdout
