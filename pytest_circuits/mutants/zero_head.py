"""A head is zeroed: it writes nothing."""

from __future__ import annotations

from .surgery import Surgery

FACTS = {"of": "head", "options": {}}


def zero_head(surgery: Surgery, head: str) -> None:
    """Zero the rows of the output projection that read the head: zero ablation of the head, in the weights."""
    surgery.head(head).zero_()
