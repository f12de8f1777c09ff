"""Files that other processes see whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MODE = 0o644


@contextmanager
def replacement(path: Path, suffix: str = ".tmp") -> Iterator[Path]:
    """A path in the same folder to write to; on success it becomes `path`, and on any error nothing is left behind.

    Folders are created. A symbolic link at `path` is replaced, not followed. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{os.urandom(6).hex()}{suffix}")
    try:
        yield temporary
        temporary.chmod(MODE)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, text as UTF-8. Raises `OSError`."""
    data = content.encode() if isinstance(content, str) else content
    with replacement(path) as temporary, temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
