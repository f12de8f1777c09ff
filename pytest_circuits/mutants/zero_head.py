"""A head is cut out: it writes nothing any more."""

from __future__ import annotations

from .surgery import Surgery

FACTS = {"of": "head", "options": {}}


def zero_head(surgery: Surgery, head: str) -> None:
    """Zero the rows of the output projection that read the head: what zero ablation of the head gives, in the weights."""
    surgery.head(head).zero_()
