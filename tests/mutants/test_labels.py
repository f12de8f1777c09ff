"""Relabelled tasks: prompts stay, labels are others, and a task that was extended keeps what it had."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_circuits import PromptPair, Task, load_task
from pytest_circuits.errors import MutationError
from pytest_circuits.mutants import mutant
from pytest_circuits.mutants.base import Mutation
from pytest_circuits.mutants.labels import relabelled
from pytest_circuits.tasks.growth import grown

SWAP, SHUFFLE = Mutation("swap-labels"), Mutation("shuffle-labels")


def pairs(n, foils=1, answers=7):
    return tuple(
        PromptPair(f"c{i}", f"d{i}", f"a{i % answers}", tuple(f"f{i % answers}.{k}" for k in range(foils)), group=f"g{i % 3}")
        for i in range(n)
    )


def prompts(task):
    return [(p.clean, p.corrupt, p.group) for p in task]


def labels(task):
    return [(p.answer, p.foils) for p in task]


@given(st.integers(2, 30), st.integers(1, 3))
def test_swapped_labels_trade_the_answer_for_the_first_foil_and_back(n, foils):
    task = Task("t", pairs(n, foils))
    made = relabelled(task, SWAP)
    assert prompts(made) == prompts(task) and made.fingerprint != task.fingerprint
    assert all(new.answer == old.foils[0] and new.foils == (old.answer, *old.foils[1:]) for new, old in zip(made, task, strict=True))
    assert labels(relabelled(made, SWAP)) == labels(task)


@given(st.integers(2, 40), st.integers(0, 3))
def test_shuffled_labels_are_the_same_labels_on_other_examples(n, seed):
    task = Task("t", pairs(n, answers=n))
    made = relabelled(task, Mutation.make("shuffle-labels", (), {"seed": seed}))
    assert prompts(made) == prompts(task) and sorted(labels(made)) == sorted(labels(task))
    assert not any(new == old for new, old in zip(labels(made), labels(task), strict=True)), "a cycle through all examples"
    assert labels(made) == labels(relabelled(task, Mutation.make("shuffle-labels", (), {"seed": seed})))


@pytest.mark.parametrize("mutation", [SWAP, SHUFFLE], ids=["swap", "shuffle"])
def test_a_task_that_was_extended_keeps_the_labels_that_it_had(mutation):
    """Else its discovery examples would be others at the second look."""
    task = load_task("ioi", n=20)
    longer = grown(grown(task, 40), 80)
    short, long = relabelled(task, mutation), relabelled(longer, mutation)
    assert long.pairs[:20] == short.pairs and labels(long) != labels(longer)
    assert long.base is not None and long.base.pairs == long.pairs[:40] and long.base.fingerprint != longer.base.fingerprint


def test_labels_that_cannot_change_are_refused():
    bare = Task("bare", tuple(PromptPair(f"c{i}", f"d{i}", f"a{i}") for i in range(4)))
    same = Task("same", pairs(5, answers=1))
    for task, mutation, told in ((bare, SWAP, "'bare' has examples without foils"), (same, SHUFFLE, "have the same answer and foils")):
        with pytest.raises(MutationError, match=told):
            relabelled(task, mutation)
    assert labels(relabelled(bare, SHUFFLE)) != labels(bare)


def test_an_operator_on_labels_of_ones_own_has_to_return_another_task():
    mutant("labels-kept", of="labels")(lambda task, random: task)
    mutant("labels-lost", of="labels")(lambda task, random: None)
    task = Task("t", pairs(4))
    with pytest.raises(MutationError, match="does not change task 't'"):
        relabelled(task, Mutation("labels-kept"))
    with pytest.raises(MutationError, match="returned a NoneType, not a Task"):
        relabelled(task, Mutation("labels-lost"))
    mutant("labels-broken", of="labels")(lambda task, random: task.pears)
    with pytest.raises(MutationError, match=r"labels-broken: the operator raised AttributeError: .*pears"):
        relabelled(task, Mutation("labels-broken"))
