"""Mistakes of a spec file, collected so that all of them are reported together, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import CircuitsError, SpecError
from .yaml_reader import Document, Mark, Where


class SpecErrors(CircuitsError):  # noqa: N818 (several, as in ExceptionGroup)
    """A spec file has mistakes. `errors` holds them in the file's order; the text is one line for each.

    Remedy: mend the file at the lines and columns given.
    """

    def __init__(self, errors: Sequence[SpecError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


@dataclass
class Problems:
    """A collector of mistakes in one document. The same mistake at the same place counts once."""

    document: Document
    _errors: dict[tuple[Mark, str], SpecError] = field(default_factory=dict)

    def at_value(self, where: Where, text: str) -> None:
        """A mistake in the value at `where`."""
        self._add(self.document.value(where), where, text)

    def at_key(self, where: Where, text: str, about: Where | None = None) -> None:
        """A mistake marked at the key `where`; `about` is the path that the text talks of, where that is another."""
        self._add(self.document.key(where), where if about is None else about, text)

    def _add(self, mark: Mark, about: Where, text: str) -> None:
        label = dotted(about)
        text = f"{label}: {text}" if label else text
        self._errors.setdefault((mark, text), SpecError(self.document.path, mark.line, mark.column, text))

    def __bool__(self) -> bool:
        return bool(self._errors)

    def raise_if_any(self) -> None:
        """Raise `SpecErrors` if a mistake was found."""
        if self._errors:
            raise SpecErrors([self._errors[key] for key in sorted(self._errors)])


def dotted(where: Where) -> str:
    """A path as a reader would write it: `claims.core.reuse.p[1]`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where).lstrip(".")
