"""What one pytest process keeps while it runs: the lab, and the records of the claims judged so far."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.spec_files import SUFFIX
from . import options

if TYPE_CHECKING:
    from ..claims.evaluation import Evaluation
    from ..core.claim import BaselineReference, Claim
    from ..core.sources import ModelSource
    from ..measurement.events import Listener
    from ..measurement.executor import Executor
    from ..measurement.store import Store

Record = dict[str, Any]


class Session:
    """State of one process, also registered as a plugin: on the controller it hears of every report, wherever it was made."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.item: pytest.Item | None = None
        self.overrides = options.model_overrides(config)
        self.used_overrides: set[str] = set()
        self.inconclusive = options.inconclusive_outcome(config)
        self.batch_size, self.dtype, self.seed = options.batch_size(config), options.dtype(config), options.seed(config)
        self.report = options.report_path(config)
        self.baselines = options.baseline_manager(config)
        self.unwritten: str | None = None
        self.mutation = options.mutation_run(config)
        self.undistributed = False
        self._started = time.perf_counter()
        self._pending: dict[str, list[Record]] = {}
        self._places: dict[str, int] = {}
        self._records: dict[str, list[Record]] = {}
        self._errors: list[Record] = []
        self._document: Record | None = None
        self.handed_over: dict[ModelSource, Any] = {}
        self._executor: Executor | None = None
        self._listener: Listener | None = None
        self._scratch: Store | None = None

    @property
    def is_worker(self) -> bool:
        """Whether this process runs tests for another one (xdist)."""
        return hasattr(self.config, "workerinput")

    def executor(self) -> Executor:
        """The executor, made when the first claim runs. Not a property: pytest 8 evaluates properties when it looks for fixtures."""
        if self._executor is None:
            from ..measurement.executor import Executor

            self._executor = Executor(
                self._store(),
                device=options.setting(self.config, "device"),
                dtype=self.dtype,
                batch_size=self.batch_size,
                offline=bool(options.setting(self.config, "offline")),
                on_event=self._listen(),
            )
        return self._executor

    def watch(self, listener: Listener) -> None:
        """Have the lab and its store tell this listener what they do; before the lab is made."""
        self._listener = listener

    def _listen(self) -> Listener:
        from ..measurement.events import warn

        return self._listener or warn

    def _store(self) -> Store:
        from ..measurement.store import Store

        scratch = self.scratch()
        if scratch is not None:
            return Store(scratch, on_event=self._listen())
        given = self.config.getoption("circuits_cache_dir")
        if given is not None:  # as every path on the command line, from the working directory
            return Store(Path(self.config.invocation_params.dir, given).expanduser(), on_event=self._listen())
        folder = Path(self.config.rootpath, options.setting(self.config, "cache_dir") or ".circuits_cache").expanduser()
        return Store(folder, on_event=self._listen())

    def scratch(self) -> str | None:
        """The folder of measurements that are not kept, the same for all workers; None when they are kept."""
        if not options.setting(self.config, "no_cache"):
            return None
        given = getattr(self.config, "workerinput", {}).get("circuits_scratch")
        if given is not None:
            return str(given)
        if self._scratch is None:
            from ..measurement.store import Store

            self._scratch = Store.temporary()
        return str(self._scratch.folder)

    def close(self) -> None:
        """Remove the scratch folder; only the process that made it does."""
        if self._scratch is not None:
            self._scratch.discard()
            self._scratch = None

    def shown(self, nodeid: str) -> str:
        """A node id as it has to be typed in the working directory."""
        file, colons, rest = nodeid.partition("::")
        return os.path.relpath(self.config.rootpath / file, self.config.invocation_params.dir) + colons + rest

    def shortened(self, text: str) -> str:
        """A text with paths below the working directory written from there: the first line has to fit a terminal."""
        return text.replace(f"{self.config.invocation_params.dir}{os.sep}", "")

    def record(
        self, evaluation: Evaluation, claim: Claim, *, line: int | None = None, measured_on: Mapping[str, Any] | None = None
    ) -> Record:
        """Keep the record of a claim of the running test."""
        from ..report.record import claim_record

        assert self.item is not None
        record = claim_record(self.item.nodeid, claim, evaluation, seed=self.seed, line=line, measured_on=measured_on)
        self._pending.setdefault(self.item.nodeid, []).append(record)
        return record

    def record_failure(self, nodeid: str, claim: Claim, reason: str, error: str) -> Record:
        """The record of a claim that an unforeseen exception stopped."""
        from ..claims.evaluation import Evaluation
        from ..core.verdict import INVALID, Verdict
        from ..measurement.cost import Cost
        from ..report.record import claim_record

        evaluation = Evaluation(Verdict(INVALID, reason), None, Cost(), None, {"error": error})
        return claim_record(nodeid, claim, evaluation, seed=self.seed, passed=False)

    def baseline_reference(self, nodeid: str, claim: Claim) -> BaselineReference | None:
        """What a claim about drift is compared with; None for any other claim. Raises `BaselineError`."""
        if claim.property != "drift":
            return None
        from ..baseline.entries import measured_on

        on = measured_on(self.executor(), claim)
        return self.baselines.recorded(nodeid, self.shown(nodeid), claim.related, on["tokenizer"], on["versions"])

    def take(self, nodeid: str) -> list[Record]:
        """The records that a test made, once."""
        return self._pending.pop(nodeid, [])

    def place(self, nodeid: str) -> int:
        """Where a test stands in the order of collection, which is the same in every worker."""
        return self._places.get(nodeid, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect records; a rerun of a test replaces what it said before."""
        if report.when == "setup":
            self._records.pop(report.nodeid, None)
        for record in getattr(report, "circuits", ()):
            self._records.setdefault(report.nodeid, []).append(record | {"outcome": _outcome(report)})

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Collect mistakes of spec files; several workers report the same ones."""
        if not self.is_worker and getattr(report, "circuits_usage", None):
            raise pytest.UsageError(report.circuits_usage)
        self._errors += [error for error in getattr(report, "circuits_errors", ()) if error not in self._errors]

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """A model on the command line that no spec has is a mistake, not a no-op; a worker leaves it to the controller to say so."""
        self._places = {item.nodeid: i for i, item in enumerate(items)}
        unused = sorted(set(self.overrides) - self.used_overrides)
        if unused and not session.testsfailed:
            told = f"--circuits-model {unused[0]}=…: no collected spec has a model of that name"
            report = pytest.CollectReport("--circuits-model", "failed", told, [])
            report.circuits_usage = told  # type: ignore[attr-defined]
            self.config.hook.pytest_collectreport(report=report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Left to itself, xdist would run the tests of the other files and end with exit code 1."""
        if self._errors and not self.config.getoption("continue_on_collection_errors"):
            files = len({error["file"] for error in self._errors})
            raise pytest.Session.Interrupted(f"{files} error{'s' * (files != 1)} during collection")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """After the tests, the mutants; not after a run that was stopped."""
        result = yield
        if self.mutation is not None and not self.config.getoption("circuits_plan") and not self.config.getoption("collectonly"):
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            quiet = reporter is None or self.config.get_verbosity() < 0
            notes = ("-n was not used: mutants are made in one process, which the tests ran in as well",) if self.undistributed else ()
            if not quiet:
                reporter.write_line("")  # type: ignore[union-attr]
            self.mutation.run(self.executor(), self.inconclusive != "fail", (lambda line: None) if quiet else reporter.write_line, notes)  # type: ignore[union-attr]
        return result

    def document(self) -> Record:
        """The JSON document of all claims, in the order of the files. Made once, so that all reports say the same."""
        if self._document is None:
            from ..baseline.compare import summary
            from ..report.document import document

            records = sorted((r for made in self._records.values() for r in made), key=lambda r: (r["file"], r["line"], r["place"]))
            for record in records:
                record.pop("place")
            self.baselines.settle(records)
            self._document = document(records, time.perf_counter() - self._started, self._errors, seed=self.seed)
            self._document["suite"]["drift"] = summary(self._document["claims"])
            if self.mutation is not None and self.mutation.result is not None:
                self._document["mutation"] = self.mutation.result
        return self._document

    def write(self) -> bool:
        """Write the JSON document and the baselines where the options say. False when that is not possible: `unwritten` and the
        desk's `problems` say why.
        """
        if self.is_worker:
            return True
        self.document()
        if self.baselines.writes:
            self.baselines.finish(self._all_tests() if self.baselines.prune else {})
        if self.report is None:
            return not self.baselines.problems
        from ..report.document import write

        try:
            write(self.report, self.document())
        except OSError as problem:
            self.unwritten = f"the report cannot be written: {problem}"
        return self.unwritten is None and not self.baselines.problems

    def _all_tests(self) -> dict[str, list[str]]:
        """The node ids of all tests of the specs that ran, those that were not selected as well: what a baseline may hold."""
        from ..spec.load import load_suite

        files = {record["file"] for made in self._records.values() for record in made if record["file"].endswith(SUFFIX)}
        suites = {file: load_suite(self.config.rootpath / file, models=self.overrides, unknown="ignore") for file in sorted(files)}
        return {file: ["::".join((file, claim.name, *claim.ids)) for claim in suite.claims] for file, suite in suites.items()}


def _outcome(report: pytest.TestReport) -> str:
    """As pytest's summary line counts it."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome
