"""Addition of two numbers: `Compute: 47 + 12 = ` → `59`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws


class Parameters(generated.Parameters):
    """Parameters of `addition`."""

    digits: Annotated[int, Field(ge=1, le=6, description="digits of each operand, without leading zeros")] = 2


class Addition(generated.Generated):
    """Sums, unpadded, scored by argmax over the whole number, which must also end there.

    The corrupt prompt has other operands with as many digits, and another sum with as many digits; that sum is the foil.
    Pairs with the same two operands, in either order, form a group.
    """

    name: ClassVar[str] = "addition"
    Parameters = Parameters
    scoring: ClassVar[Literal["choices", "argmax"]] = "argmax"
    stop: ClassVar[Literal["digits"] | None] = "digits"

    def _operands(self) -> range:
        digits = self.parameters.digits
        return range(0 if digits == 1 else 10 ** (digits - 1), 10**digits)

    def space(self) -> int:
        """All ordered pairs of operands."""
        return len(self._operands()) ** 2

    def draw(self, random: Draws) -> PromptPair | None:
        """Four operands; degenerate when the two sums are equal or differ in length."""
        a, b, c, d = (random.choice(self._operands()) for _ in range(4))
        clean, corrupt = str(a + b), str(c + d)
        if clean == corrupt or len(clean) != len(corrupt):
            return None
        return PromptPair(
            clean=f"Compute: {a} + {b} = ",
            corrupt=f"Compute: {c} + {d} = ",
            answer=clean,
            foils=(corrupt,),
            group=f"{min(a, b)}+{max(a, b)}",
        )
