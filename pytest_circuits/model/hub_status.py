"""Whether the hub can be reached. The hub's client would retry for half a minute before it fails."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies


def unreachable() -> str | None:
    """The hub's host where its name does not resolve; None where it does, or where that is unknown (a proxy resolves names)."""
    from huggingface_hub import constants

    host = urlsplit(constants.ENDPOINT).hostname
    if host is None or constants.is_offline_mode() or getproxies().keys() & {"http", "https", "all"}:
        return None
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return host
    return None


@contextmanager
def at_once() -> Iterator[str]:
    """Without a hub use downloaded models, as if HF_HUB_OFFLINE were set; yields a note for error messages, or an empty text."""
    from huggingface_hub import constants

    host = unreachable()
    if host is None:
        yield ""
        return
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield f"; the hub {host} cannot be reached, and the model has not been downloaded"
    finally:
        constants.HF_HUB_OFFLINE = before
