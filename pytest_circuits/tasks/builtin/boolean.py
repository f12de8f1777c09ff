"""Boolean logic: `Evaluate: (true and not false) or true = ` → `true`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Annotated, ClassVar

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

Operators = Annotated[int, Field(ge=1, le=6)]


@dataclass(frozen=True)
class Leaf:
    """A literal, possibly negated; `place` is its number from the left."""

    place: int
    negated: bool


@dataclass(frozen=True)
class Node:
    """`left operator right` with operator `and` or `or`."""

    operator: str
    left: Tree
    right: Tree


Tree = Leaf | Node
WORD = {True: "true", False: "false"}


def value(tree: Tree, literals: list[bool]) -> bool:
    """The value of the expression."""
    if isinstance(tree, Leaf):
        return literals[tree.place] != tree.negated
    left, right = value(tree.left, literals), value(tree.right, literals)
    return (left and right) if tree.operator == "and" else (left or right)


def text(tree: Tree, words: list[str], outermost: bool = True) -> str:
    """The expression written out, every inner operation in parentheses."""
    if isinstance(tree, Leaf):
        return f"{'not ' if tree.negated else ''}{words[tree.place]}"
    inner = f"{text(tree.left, words, False)} {tree.operator} {text(tree.right, words, False)}"
    return inner if outermost else f"({inner})"


class Parameters(generated.Parameters):
    """Parameters of `boolean`."""

    operators: Annotated[
        Operators | Annotated[list[Operators], Field(min_length=1)],
        Field(description="number of `and` and `or` in an expression (without `not`), or a list of numbers"),
    ] = Field(default_factory=lambda: [2, 3])
    negations: Annotated[bool, Field(description="whether a literal may be negated")] = True


class Boolean(generated.Generated):
    """Expressions over and, or, not; the answer is true or false, the foil the other.

    The corrupt prompt flips one literal; only flips that change the answer are used. Pairs whose expressions
    differ only in the values of the literals form a group.
    """

    name: ClassVar[str] = "boolean"
    Parameters = Parameters

    def space(self) -> int:
        """Expressions with at least one literal whose flip changes the answer."""
        return sum(_flippable(k, self.parameters.negations) for k in generated.several(self.parameters.operators))

    def draw(self, random: Draws) -> PromptPair | None:
        """A random expression and a literal to flip; degenerate when no flip of a literal changes the answer."""
        operators = random.choice(generated.several(self.parameters.operators))
        tree = self._tree(random, operators, 0)
        literals = [random.coin() for _ in range(operators + 1)]
        answer = value(tree, literals)
        flips = [[v != (i == at) for i, v in enumerate(literals)] for at in range(len(literals))]
        decisive = [flip for flip in flips if value(tree, flip) != answer]
        if not decisive:
            return None
        return PromptPair(
            clean=_prompt(tree, literals),
            corrupt=_prompt(tree, random.choice(decisive)),
            answer=WORD[answer],
            foils=(WORD[not answer],),
            group=text(tree, ["_"] * len(literals)),
        )

    def _tree(self, random: Draws, operators: int, first: int) -> Tree:
        if operators == 0:
            return Leaf(first, self.parameters.negations and random.coin())
        left = random.randrange(operators)
        operator = random.choice(("and", "or"))
        return Node(operator, self._tree(random, left, first), self._tree(random, operators - 1 - left, first + left + 1))


def _prompt(tree: Tree, literals: list[bool]) -> str:
    return f"Evaluate: {text(tree, [WORD[v] for v in literals])} = "


def _flippable(operators: int, negations: bool) -> int:
    return sum(count for (_, flippable), count in _census(operators, negations).items() if flippable)


@cache
def _census(operators: int, negations: bool) -> Counter[tuple[bool, bool]]:
    """How many expressions have each (value, some flip of one literal changes it).

    No literal occurs twice, so `and` and `or` depend on one side only where the other does not decide the result.
    """
    if operators == 0:
        return Counter({(v, True): 2 if negations else 1 for v in (True, False)})
    total: Counter[tuple[bool, bool]] = Counter()
    for left in range(operators):
        for (a, a_flips), m in _census(left, negations).items():
            for (b, b_flips), n in _census(operators - 1 - left, negations).items():
                for deciding in (False, True):  # the value that settles the operation alone: false for and, true for or
                    result = deciding if deciding in (a, b) else not deciding
                    flips = (b != deciding and a_flips) or (a != deciding and b_flips)
                    total[result, flips] += m * n
    return total
