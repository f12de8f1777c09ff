"""One driver runs properties: it answers what they ask, lets them handle errors, and closes them."""

from __future__ import annotations

import pytest

from pytest_circuits.core.sources import ModelSource
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.driver import catch_invalid, drive, gather
from pytest_circuits.measurement.requests import Describe, ask, ask_all, ask_together

A, B, C = (Describe(ModelSource(name, name)) for name in "abc")


def named(request):
    return request.model.name


def test_requests_and_lists_are_answered_in_their_shape():
    def steps():
        first = yield from ask(A)
        more = yield from ask_all([B, A, B])
        pair = yield from ask_together(C, A)
        none = yield from ask_all([])
        return first, more, pair, none

    assert drive(steps(), named) == ("a", ["b", "a", "b"], ("c", "a"), [])


def test_lists_go_to_answer_all():
    lists = []

    def answer_all(requests):
        lists.append(list(requests))
        return (named(request).upper() for request in requests)

    def steps():
        return [(yield A), (yield [A, B]), (yield (C,))]

    assert drive(steps(), named, answer_all) == ["a", ["A", "B"], ["C"]]
    assert lists == [[A, B], [C]]


def test_errors_of_circuits_are_raised_inside_and_others_end_the_steps():
    closed = []

    def refuse(request):
        raise {"a": Invalid("no"), "b": KeyError("bug")}[named(request)]

    def careful():
        try:
            yield A
        except Invalid as problem:
            return str(problem)

    def steps(request):
        try:
            yield request
        except KeyError:
            closed.append("handled")  # a bug is not an answer
        finally:
            closed.append(named(request))

    assert drive(careful(), refuse) == "no"
    with pytest.raises(Invalid, match="no"):
        drive(steps(A), refuse)
    with pytest.raises(KeyError, match="bug"):
        drive(steps(B), refuse)
    assert closed == ["a", "b"]


def test_steps_side_by_side_ask_for_everything_at_once():
    turns, closed = [], []

    def answer_all(requests):
        turns.append([named(request) for request in requests])
        return turns[-1]

    def short():
        return (yield A)

    def long():
        try:
            first = yield [A, B]
            second = yield C
            return [*first, second]
        finally:
            closed.append(True)

    def both():
        return (yield from gather(short(), long()))

    assert drive(both(), named, answer_all) == ["a", ["a", "b", "c"]]
    assert (turns, closed) == ([["a", "a", "b"], ["c"]], [True])


def test_a_refusal_can_be_a_result():
    """Only `Invalid` is caught; steps that succeed give their own result."""

    def refused():
        yield from ask(A)
        raise Invalid("too few", {"n": 1})

    def both():
        return (yield from catch_invalid(refused())), (yield from catch_invalid(ask(B)))

    refusal, name = drive(both(), named)
    assert (str(refusal), refusal.details, name) == ("too few", {"n": 1}, "b")
