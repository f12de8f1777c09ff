"""The driver of steps that ask for measurements. Measuring, planning, tests and calibration all run properties with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..errors import CircuitsError, Invalid
from .requests.base import Request
from .requests.steps import Steps

T = TypeVar("T")
Answer = Callable[[Request[Any]], Any]
AnswerAll = Callable[[Sequence[Request[Any]]], Sequence[Any]]


def drive(steps: Steps[T], answer: Answer, answer_all: AnswerAll | None = None) -> T:
    """Run steps to their end and return their result: each request that they yield is answered by `answer(request)`.

    For a list of requests the answers come from `answer_all`, by default `answer` for each of them, in order. A `CircuitsError` of
    answering is raised inside the steps, at their `yield`, and leaves from here unless they handle it; other exceptions end the steps.
    The steps are closed whatever happens.
    """

    def answer_each(requests: Sequence[Request[Any]]) -> Sequence[Any]:
        return [answer(request) for request in requests]

    try:
        requested = next(steps)
        while True:
            try:
                if isinstance(requested, (list, tuple)):
                    answered: Any = list((answer_all or answer_each)(requested))
                else:
                    answered = answer(requested)  # type: ignore[arg-type]  # or something else, which `answer` refuses
            except CircuitsError as problem:
                requested = steps.throw(problem)
            else:
                requested = steps.send(answered)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


def gather(*steps: Steps[Any]) -> Steps[list[Any]]:
    """Run steps side by side: the next requests of all of them are made at once. Returns their results in order."""
    results: list[Any] = [None] * len(steps)
    waiting: dict[int, Any] = {}

    def advance(i: int, answer: Any) -> None:
        waiting.pop(i, None)
        try:
            waiting[i] = steps[i].send(answer)
        except StopIteration as end:
            results[i] = end.value

    try:
        for i in range(len(steps)):
            advance(i, None)
        while waiting:
            turn = list(waiting.items())
            answers = iter((yield [request for _, wanted in turn for request in (wanted if isinstance(wanted, list) else [wanted])]))
            for i, wanted in turn:
                advance(i, [next(answers) for _ in wanted] if isinstance(wanted, list) else next(answers))
    finally:
        for step in steps:
            step.close()
    return results


def catch_invalid(steps: Steps[T]) -> Steps[T | Invalid]:
    """The result of `steps`, or the `Invalid` that they raise: for results that are reported but decide nothing."""
    try:
        return (yield from steps)
    except Invalid as problem:
        return problem
