"""A head writes in the wrong directions, as strongly as before."""

from __future__ import annotations

from ..errors import MutationError
from .surgery import Surgery

FACTS = {"of": "head", "options": {}}


def shuffle_head(surgery: Surgery, head: str) -> None:
    """Permute the rows of the output projection that read the head: each of its features is written where another one belongs."""
    rows = surgery.head(head)
    if len(rows) < 2:
        raise MutationError(f"{head} has {len(rows)} feature: there is nothing to permute")
    rows.copy_(rows[surgery.derangement(len(rows)).to(rows.device)])
