"""Counts with their nouns, for messages."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """`1 head`, `2 heads`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
