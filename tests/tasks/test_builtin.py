"""Built-in tasks, held against oracles that share no code with them."""

from __future__ import annotations

import ast
import itertools
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_circuits.core.sources import TaskSource
from pytest_circuits.errors import OptionError, TaskError
from pytest_circuits.tasks import TASKS
from pytest_circuits.tasks.load import builtin_parameters, load_source, load_task

NAMES = ("addition", "boolean", "capitals", "copycolors", "ioi", "reversal", "sorting", "sva")


def truth(expression: str) -> bool:
    """Evaluates a boolean expression with Python's own parser."""
    tree = ast.parse(expression.replace("true", "True").replace("false", "False"), mode="eval")
    return bool(eval(compile(tree, "expression", "eval"), {}))


def elsewhere(code: str, **environment: str) -> str:
    """What this code prints in a fresh interpreter, with the names of the tasks as its arguments."""
    command = [sys.executable, "-c", f"import sys; from pytest_circuits.tasks.load import load_task; {code}", *NAMES]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True).stdout.strip()


def words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def differences(clean: str, corrupt: str) -> list[tuple[str, str]]:
    return [(a, b) for a, b in zip(words(clean), words(corrupt), strict=True) if a != b]


def test_these_are_the_built_in_tasks():
    others = ("arc_challenge", "arc_easy", "template")  # of data that is not here, or of words: tests of their own
    assert sorted((*NAMES, *others)) == TASKS.names()


@pytest.mark.parametrize("name", NAMES)
def test_a_task_has_256_different_pairs_by_default_and_nothing_degenerate(name):
    task = load_task(name)
    assert 256 == len(task) == len({p.clean for p in task})
    assert all(p.clean != p.corrupt and p.answer not in p.foils and p.foils for p in task)
    assert name == task.name


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_pairs_and_other_seeds_others(name):
    assert load_task(name, n=50, seed=3).pairs == load_task(name, n=50, seed=3).pairs
    assert load_task(name, n=50, seed=3).pairs != load_task(name, n=50, seed=4).pairs
    assert load_task(name, n=50, seed=3).fingerprint != load_task(name, n=50, seed=4).fingerprint


@pytest.mark.parametrize("name", NAMES)
def test_a_longer_task_begins_with_the_shorter_one(name):
    assert load_task(name, n=20).pairs == load_task(name, n=60).take(20).pairs


@pytest.mark.parametrize("name", NAMES)
def test_the_continuation_has_new_pairs_only_and_is_the_same_each_time(name):
    task = load_task(name, n=100)
    further, again = (list(itertools.islice(task.more(), 150)) for _ in range(2))
    assert further == again
    everything = [(p.clean, p.corrupt) for p in (*task, *further)]
    assert len(set(everything)) == 250


FROZEN = {
    "addition": "f0b966af5a390263", "boolean": "63bf6d3157fa3a23", "capitals": "097c1a5a4b0248d4", "copycolors": "4c4ba245e6468887",
    "ioi": "4e4563169c0dccbc", "reversal": "3c374b1bab3d082f", "sorting": "e36ea001c167a291", "sva": "0ac462d2f308e0ee",
}  # fmt: skip


def test_a_seed_gives_the_pairs_that_it_always_gave():
    """Stored reports and baselines are about these very prompts."""
    assert {name: load_task(name, n=64, seed=5).fingerprint[:16] for name in NAMES} == FROZEN


def test_pairs_do_not_depend_on_the_hash_seed():
    code = "print([load_task(n, n=30).fingerprint for n in sys.argv[1:]])"
    expected = str([load_task(n, n=30).fingerprint for n in NAMES])
    assert [expected, expected] == [elsewhere(code, PYTHONHASHSEED=seed) for seed in ("1", "2")]


def test_tasks_are_opened_without_torch_transformers_and_numpy():
    code = "[load_task(n) for n in sys.argv[1:]]; print(sorted({'torch', 'transformers', 'numpy', 'scipy'} & set(sys.modules)))"
    assert elsewhere(code) == "[]"


# addition


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(0, 1000))
def test_sums_are_right_and_corrupt_sums_are_as_long_and_different(digits, seed):
    for pair in load_task("addition", n=20, seed=seed, digits=digits):
        (a, b), (c, d) = (re.fullmatch(r"Compute: (\d+) \+ (\d+) = ", text).groups() for text in (pair.clean, pair.corrupt))
        assert [digits] * 4 == [len(n) for n in (a, b, c, d)]
        assert not any(n.startswith("0") and n != "0" for n in (a, b, c, d))
        assert (str(int(a) + int(b)), (str(int(c) + int(d)),)) == (pair.answer, pair.foils)
        assert pair.answer != pair.foils[0] and len(pair.answer) == len(pair.foils[0])
        assert pair.group == "+".join(sorted((a, b), key=int))


def test_addition_is_scored_as_a_whole_number_that_ends():
    assert (load_task("addition").scoring, load_task("addition").stop) == ("argmax", "digits")


def test_a_task_can_have_all_its_prompts_and_not_one_more():
    assert len({p.clean for p in load_task("addition", n=100, digits=1)}) == 100
    with pytest.raises(TaskError, match=r"only 100 different prompts.*n=101"):
        load_task("addition", n=101, digits=1)


# boolean


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.booleans(), st.integers(0, 1000))
def test_boolean_answers_are_right_and_one_flipped_literal_turns_them(operators, negations, seed):
    task = load_task("boolean", n=10 if negations or max(operators) > 1 else 4, seed=seed, operators=operators, negations=negations)
    for pair in task:
        clean, corrupt = (re.fullmatch(r"Evaluate: (.*) = ", text)[1] for text in (pair.clean, pair.corrupt))
        assert str(truth(clean)).lower() == pair.answer
        assert (str(truth(corrupt)).lower(),) == pair.foils
        assert truth(clean) != truth(corrupt)
        assert differences(clean, corrupt) in ([("true", "false")], [("false", "true")])
        assert len(re.findall("and|or", clean)) in operators
        assert negations or "not" not in clean
        assert pair.group == re.sub("true|false", "_", clean)


@pytest.mark.parametrize(("operators", "negations"), [(1, False), (1, True), (2, False), (2, True), (3, False)])
def test_the_number_of_boolean_prompts_is_that_of_a_full_enumeration(operators, negations):
    def expressions(k):
        if k == 0:
            yield from ["true", "false", *(["not true", "not false"] if negations else [])]
        for left in range(k):
            for a, operator, b in itertools.product(expressions(left), ("and", "or"), expressions(k - 1 - left)):
                yield f"({a} {operator} {b})"

    def flippable(text):
        flips = [text[: m.start()] + {"true": "false", "false": "true"}[m[0]] + text[m.end() :] for m in re.finditer("true|false", text)]
        return any(truth(flip) != truth(text) for flip in flips)

    expected = sum(map(flippable, expressions(operators)))
    boolean = TASKS.get("boolean")
    assert expected == boolean(boolean.Parameters(operators=operators, negations=negations)).space()
    assert expected == len(load_task("boolean", n=expected, operators=operators, negations=negations))


# ioi


@pytest.mark.parametrize("order", ["both", "abba", "baba"])
def test_ioi_asks_for_the_name_that_is_not_repeated(order):
    orders = set()
    for pair in load_task("ioi", order=order, n=100):
        (io,), (subject,) = words(pair.answer), words(pair.foils[0])
        assert (words(pair.clean).count(io), words(pair.clean).count(subject)) == (1, 2)
        assert (words(pair.corrupt).count(io), words(pair.corrupt).count(subject)) == (2, 1)
        assert [(subject, io)] == differences(pair.clean, pair.corrupt)
        assert pair.answer.startswith(" ") and pair.foils[0].startswith(" ")
        assert pair.group == "+".join(sorted([io, subject]))
        orders.add("abba" if words(pair.clean).index(io) < words(pair.clean).index(subject) else "baba")
    assert ({"abba", "baba"} if order == "both" else {order}) == orders


def test_ioi_uses_the_templates_that_are_asked_for():
    assert all(p.clean.startswith("After ") for p in load_task("ioi", templates="left", n=40))
    starts = {words(p.clean)[0] for p in load_task("ioi", templates=["left", "went"], n=40)}
    assert {"After", "When"} == starts


# copycolors


@pytest.mark.parametrize("options", [2, 4, 8, [2, 3]])
def test_copycolors_asks_for_the_letter_of_the_things_colour(options):
    for pair in load_task("copycolors", options=options, n=100):
        answers = []
        for text in (pair.clean, pair.corrupt):
            thing, color, asked = re.match(r"The (\w+) is (\w+)\. What color is the (\w+)\?\n", text).groups()
            lettered = re.findall(r"^([A-H])\. (\w+)$", text, re.M)
            assert thing == asked and len({c for _, c in lettered}) == len(lettered)
            assert [*"ABCDEFGH"][: len(lettered)] == [letter for letter, _ in lettered]
            answers.append(" " + {c: letter for letter, c in lettered}[color])
            assert pair.group == f"{color} {thing}"
        assert [pair.answer, pair.foils[0]] == answers
        assert {f" {letter}" for letter, _ in lettered} == {pair.answer, *pair.foils}
        assert len(lettered) in (options if isinstance(options, list) else [options])
        assert text.endswith("\nAnswer:")


# sva

SENTENCES = {
    "simple": r"(?P<lead>.+) the (?P<noun>\w+)",
    "nounpp": r"(?P<lead>.+) the (?P<noun>\w+) (near|behind|by|beside|under|above) the \w+",
    "rc": r"(?P<lead>.+) the (?P<noun>\w+) that the \w+ (helped|liked|knew|saw)",
    "within_rc": r"(?P<lead>.+) the \w+ that the (?P<noun>\w+)",
}


@pytest.mark.parametrize("form", list(SENTENCES))
def test_the_verb_agrees_with_its_subject_in_number_and_with_the_lead_in_tense(form):
    for pair in load_task("sva", form=form, n=100):
        found, other = (re.fullmatch(SENTENCES[form], text) for text in (pair.clean, pair.corrupt))
        noun = found["noun"]
        plural = noun.endswith("s")
        past = found["lead"] in ("Yesterday", "Last week", "Last year", "Back then")
        assert [" is", " are", " was", " were"][2 * past + plural] == pair.answer
        assert ([" is", " are", " was", " were"][2 * past + (not plural)],) == pair.foils
        assert other["noun"] == (noun[:-1] if plural else noun + "s")
        assert [(noun, other["noun"])] == differences(pair.clean, pair.corrupt)
        assert pair.group == noun.removesuffix("s")


def test_all_forms_of_agreement_occur_by_default():
    assert {True, False} == {" that " in p.clean for p in load_task("sva")}
    assert len({p.group for p in load_task("sva")}) >= 30


# capitals

KNOWN = {"Dallas": "Austin", "Chicago": "Springfield", "Seattle": "Olympia", "Miami": "Tallahassee", "Buffalo": "Albany"}


def test_capitals_are_those_of_the_citys_state():
    seen = set()
    for pair in load_task("capitals", n=600):
        for city, capital in KNOWN.items():
            if city in words(pair.clean):
                assert f" {capital}" == pair.answer
                seen.add(city)
            if city in words(pair.corrupt):
                assert (f" {capital}",) == pair.foils
    assert set(KNOWN) == seen
    assert len({p.group for p in load_task("capitals", n=600)}) == 40


def test_capitals_ask_for_the_state_on_the_same_prompts():
    capitals, states = load_task("capitals", n=300), load_task("capitals", n=300, target="state")
    assert [(p.clean, p.corrupt, p.group) for p in capitals] == [(p.clean, p.corrupt, p.group) for p in states]
    assert all(p.answer == f" {p.group}" and p.foils[0] != p.answer for p in states)


def test_more_foils_of_capitals_are_other_capitals_and_the_first_stays_the_corrupt_ones():
    one, all_of_them = load_task("capitals", n=100), load_task("capitals", n=100, foils=39)
    for few, many in zip(one, all_of_them, strict=True):
        assert (few.clean, few.answer, few.foils[0]) == (many.clean, many.answer, many.foils[0])
        assert len({many.answer, *many.foils}) == 40


# parameters


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"name_or_file": "adition"}, "did you mean 'addition'"),
        ({"name_or_file": "addition", "digit": 3}, "no parameter 'digit'; did you mean 'digits'"),
        ({"name_or_file": "addition", "digits": 7}, "digits=7"),
        ({"name_or_file": "addition", "digits": 2.0}, "digits=2.0"),
        ({"name_or_file": "addition", "n": 0}, "n=0"),
        ({"name_or_file": "addition", "n": True}, "n=True"),
        ({"name_or_file": "boolean", "operators": []}, "operators"),
        ({"name_or_file": "ioi", "templates": "met,left"}, "templates"),
        ({"name_or_file": "copycolors", "options": 1}, "options=1"),
        ({"name_or_file": "sva", "form": "relative"}, "form"),
    ],
)
def test_a_wrong_parameter_is_named_with_what_is_allowed(call, message):
    with pytest.raises(OptionError, match=re.escape(message)):
        load_task(**call)


def test_a_spec_names_the_task():
    task = load_source(TaskSource.make("sums", "builtin", "addition", {"digits": 3, "n": 5}))
    assert ("sums", load_task("addition", digits=3, n=5).pairs) == (task.name, task.pairs)
    assert {"n", "seed", "digits"} == set(builtin_parameters("addition").model_fields)
