"""Whether the hub can be reached at all: the hub's client asks six times, for half a minute, before it says that it cannot."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import getproxies


def unreachable() -> str | None:
    """The hub's host where its name means nothing here; None where it may be reached, as far as can be told (a proxy resolves names)."""
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
    """Where the hub cannot be reached, use what is downloaded, as if HF_HUB_OFFLINE were set; gives what to say of it, or ""."""
    from huggingface_hub import constants

    host = unreachable()
    if host is None:
        yield ""
        return
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield f"; the hub {host} cannot be reached from here, and the model is not among those downloaded"
    finally:
        constants.HF_HUB_OFFLINE = before
