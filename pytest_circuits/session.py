"""What one pytest process keeps while it runs: the lab, and the records of the claims judged so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .lab.judge import Judgement
    from .lab.lab import Lab
    from .lab.store import Store

Setting = Callable[[pytest.Config, str], Any]


class Session:
    """State of one process, also registered as a plugin: on the controller it hears of every report, wherever it was made."""

    def __init__(self, config: pytest.Config, setting: Setting) -> None:
        self.config, self._setting = config, setting
        self.item: pytest.Item | None = None
        self.overrides = _overrides(config.getoption("circuits_model"))
        self.used_overrides: set[str] = set()
        self.inconclusive: str = setting(config, "inconclusive") or "fail"
        if self.inconclusive not in ("fail", "skip", "pass"):
            raise pytest.UsageError(f"circuits_inconclusive must be fail, skip or pass, got {self.inconclusive!r}")
        self.batch_size = _whole(setting(config, "batch_size"))
        self._started = time.perf_counter()
        self._pending: dict[str, list[dict[str, Any]]] = {}
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._lab: Lab | None = None
        self._scratch: Store | None = None

    @property
    def lab(self) -> Lab:
        """The lab, made when the first claim runs."""
        if self._lab is None:
            from .lab.lab import Lab

            setting = self._setting
            self._lab = Lab(
                self._store(),
                device=setting(self.config, "device"),
                dtype=setting(self.config, "dtype"),
                batch_size=self.batch_size,
                offline=bool(setting(self.config, "offline")),
            )
        return self._lab

    def _store(self) -> Store:
        from .lab.store import Store

        scratch = self.scratch()
        if scratch is not None:
            return Store(scratch)
        return Store(Path(self.config.rootpath, self._setting(self.config, "cache_dir") or ".circuits_cache"))

    def scratch(self) -> str | None:
        """The folder of measurements that are not kept, the same for all workers; None when they are kept."""
        if not self._setting(self.config, "no_cache"):
            return None
        given = getattr(self.config, "workerinput", {}).get("circuits_scratch")
        if given is not None:
            return str(given)
        if self._scratch is None:
            from .lab.store import Store

            self._scratch = Store.temporary()
        return str(self._scratch.folder)

    def close(self) -> None:
        """Remove the scratch folder; only the process that made it does."""
        if self._scratch is not None:
            self._scratch.discard()
            self._scratch = None

    def record(self, judgement: Judgement, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Keep the record of a claim of the running test."""
        from .report.record import claim_record

        assert self.item is not None
        made = claim_record(self.item.nodeid, judgement, facts)
        self._pending.setdefault(self.item.nodeid, []).append(made)
        return made

    def take(self, nodeid: str) -> list[dict[str, Any]]:
        """The records that a test made, once."""
        return self._pending.pop(nodeid, [])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect records; a rerun of a test replaces what it said before."""
        records = getattr(report, "circuits", None)
        if records:
            self._records[report.nodeid] = records

    def document(self) -> dict[str, Any]:
        """The JSON document of all claims so far, in the order of the files."""
        from .report.document import document

        records = sorted(
            (r for made in self._records.values() for r in made), key=lambda r: (r["file"], r["line"], r["nodeid"], r["claim"])
        )
        return document(records, time.perf_counter() - self._started)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """A model given on the command line that no spec has is a mistake, not a no-op."""
        unused = sorted(set(self.overrides) - self.used_overrides)
        if unused and not session.testsfailed:
            raise pytest.UsageError(f"--circuits-model {unused[0]}=…: no collected spec has a model of that name")


def _overrides(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise pytest.UsageError(f"--circuits-model needs NAME=PATH, got {text!r}")
        if name in found:
            raise pytest.UsageError(f"--circuits-model: {name!r} is given twice")
        found[name] = path
    return found


def _whole(text: Any) -> int | None:
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise pytest.UsageError(f"circuits-batch-size must be a whole number of at least 1, got {text!r}")
    return number


