"""The state of one pytest process: the executor, and the records of the claims evaluated so far."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.spec_files import SUFFIX
from . import options

if TYPE_CHECKING:
    from ..claims.outcome import Evaluation
    from ..claims.stored_evaluations import StoredEvaluations
    from ..core.claim import BaselineReference, Claim
    from ..core.sources import ModelSource
    from ..measurement.events import Listener
    from ..measurement.executor import Executor
    from ..measurement.store import Store
    from ..report.model import ClaimRecord, Report
    from ..report.record import RecordedClaim


class Session:
    """State of one process, also registered as a plugin: the controller gets the report of every test, whichever worker ran it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.item: pytest.Item | None = None
        self.overrides = options.model_overrides(config)
        self.used_overrides: set[str] = set()
        self.inconclusive = options.inconclusive_outcome(config)
        self.batch_size, self.dtype, self.seed = options.batch_size(config), options.dtype(config), options.seed(config)
        self.report_path = options.report_path(config)
        self.baselines = options.baseline_manager(config)
        self.unwritten: str | None = None
        self.mutation = options.mutation_run(config)
        self.undistributed = False
        self._started = time.perf_counter()
        self._pending: dict[str, list[RecordedClaim]] = {}
        self._order: dict[str, int] = {}
        self._recorded: dict[str, list[RecordedClaim]] = {}
        self._errors: list[dict[str, Any]] = []
        self._report: Report | None = None
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
        """Send the events of the executor and its store to this listener; call it before the first claim runs."""
        self._listener = listener

    def _listen(self) -> Listener:
        from ..measurement.events import warn

        return self._listener or warn

    def _store(self) -> Store:
        from ..measurement.store import Store

        return Store(self.scratch() or self._folder(), on_event=self._listen())

    def _folder(self) -> Path:
        """Where results are stored, unless --circuits-no-cache is given."""
        on_command_line = self.config.getoption("circuits_cache_dir")
        if on_command_line is not None:  # as every path on the command line, from the working directory
            return Path(self.config.invocation_params.dir, on_command_line).expanduser()
        return Path(self.config.rootpath, options.setting(self.config, "cache_dir") or ".circuits_cache").expanduser()

    def stored_evaluations(self) -> StoredEvaluations | None:
        """The evaluations of earlier runs with the same settings; None with --circuits-no-cache."""
        if options.setting(self.config, "no_cache"):
            return None
        from ..claims.stored_evaluations import StoredEvaluations

        device = options.setting(self.config, "device")
        settings = {"device": device, "dtype": self.dtype, "batch_size": self.batch_size, "seed": self.seed}
        return StoredEvaluations(self._folder(), settings)

    def scratch(self) -> str | None:
        """The folder of measurements that go when the session ends, the same for all workers; None when they stay in the cache."""
        if not options.setting(self.config, "no_cache"):
            return None
        shared = getattr(self.config, "workerinput", {}).get("circuits_scratch")
        if shared is not None:
            return str(shared)
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
        """A text with paths relative to the working directory, so that its first line fits a terminal."""
        return text.replace(f"{self.config.invocation_params.dir}{os.sep}", "")

    def record(
        self, evaluation: Evaluation, claim: Claim, *, line: int | None = None, measured_on: Mapping[str, Any] | None = None
    ) -> ClaimRecord:
        """Record a claim of the running test."""
        from ..baseline.entries import payload_of
        from ..report.record import record_claim

        assert self.item is not None
        payload = None
        if measured_on is not None:
            payload = {} if evaluation.estimate is None else payload_of(evaluation.estimate)
        recorded = record_claim(
            self.item.nodeid, claim, evaluation, seed=self.seed, line=line, payload=payload, measured_on=measured_on
        )  # fmt: skip
        self._pending.setdefault(self.item.nodeid, []).append(recorded)
        return recorded.record

    def record_failure(self, nodeid: str, claim: Claim, message: str, error: str) -> RecordedClaim:
        """The record of a claim that an unexpected exception stopped."""
        from ..claims.outcome import Evaluation
        from ..core.verdict import invalid
        from ..errors import ReasonCode
        from ..measurement.cost import Cost
        from ..report.record import record_claim

        evaluation = Evaluation(invalid(ReasonCode.INTERNAL_ERROR, message), None, Cost(), None, {"error": error})
        return record_claim(nodeid, claim, evaluation, seed=self.seed, passed=False)

    def baseline_reference(self, nodeid: str, claim: Claim) -> BaselineReference | None:
        """What a claim about drift is compared with; None for any other claim. Raises `BaselineError`."""
        if claim.property != "drift":
            return None
        from ..baseline.entries import measured_on

        on = measured_on(self.executor(), claim)
        return self.baselines.reference(nodeid, self.shown(nodeid), claim.related, on["tokenizer"], on["versions"])

    def take(self, nodeid: str) -> list[RecordedClaim]:
        """The records of a test's claims, once."""
        return self._pending.pop(nodeid, [])

    def attach(self, report: pytest.TestReport, recorded: list[RecordedClaim]) -> None:
        """Put records on the report of their test, as plain values: so they reach the controller from any worker."""
        order = self._order.get(report.nodeid, 0)
        report.circuits = [entry.model_copy(update={"order": order}).as_json() for entry in recorded]  # type: ignore[attr-defined]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect records; a rerun of a test replaces those of the run before."""
        if report.when == "setup":
            self._recorded.pop(report.nodeid, None)
        for recorded in attached(report):
            record = recorded.record.model_copy(update={"outcome": _outcome(report)})
            self._recorded.setdefault(report.nodeid, []).append(recorded.model_copy(update={"record": record}))

    @pytest.hookimpl(tryfirst=True)
    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Collect mistakes of spec files; several workers report the same ones."""
        if not self.is_worker and getattr(report, "circuits_usage", None):
            raise pytest.UsageError(report.circuits_usage)
        self._errors += [error for error in getattr(report, "circuits_errors", ()) if error not in self._errors]

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Refuse a model on the command line that no spec has; a worker leaves that to the controller."""
        self._order = {item.nodeid: i for i, item in enumerate(items)}
        unused = sorted(set(self.overrides) - self.used_overrides)
        if unused and not session.testsfailed:
            problem = f"--circuits-model {unused[0]}=…: no collected spec has a model of that name"
            report = pytest.CollectReport("--circuits-model", "failed", problem, [])
            report.circuits_usage = problem  # type: ignore[attr-defined]
            self.config.hook.pytest_collectreport(report=report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Stop after mistakes in specs: xdist would otherwise run the tests of the other files and end with exit code 1."""
        if self._errors and not self.config.getoption("continue_on_collection_errors"):
            from ..report.messages.suite import errors_during_collection

            raise pytest.Session.Interrupted(errors_during_collection(len({error["file"] for error in self._errors})))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Evaluate the mutants after the tests, unless the run was stopped."""
        result = yield
        if self.mutation is not None and not self.config.getoption("circuits_plan") and not self.config.getoption("collectonly"):
            reporter = self.config.pluginmanager.get_plugin("terminalreporter")
            quiet = reporter is None or self.config.get_verbosity() < 0
            notes = ("-n was not used: mutants are made in one process, which the tests ran in as well",) if self.undistributed else ()
            if not quiet:
                reporter.write_line("")  # type: ignore[union-attr]
            self.mutation.run(self.executor(), self.inconclusive != "fail", (lambda line: None) if quiet else reporter.write_line, notes)  # type: ignore[union-attr]
        return result

    def has_report(self) -> bool:
        """Whether there is anything to report: claims, mistakes in specs, or a file that has to be written whatever happened."""
        return bool(self._recorded or self._errors or self.report_path)

    def finished_report(self) -> Report:
        """The report of all claims, in the order of the files. Built once, so that all renderers show the same."""
        if self._report is None:
            from ..baseline.compare import summarize
            from ..report.build import build_report
            from ..report.model import SpecMistake

            entries = [entry for recorded in self._recorded.values() for entry in recorded]
            entries.sort(key=lambda entry: (entry.record.file, entry.record.line, entry.order))
            compared = []
            for entry in entries:
                record = entry.record.model_copy(update={"baseline": self.baselines.compare(entry)})
                compared.append(entry.model_copy(update={"record": record}))
            self._report = build_report(
                compared,
                time.perf_counter() - self._started,
                map(SpecMistake.model_validate, self._errors),
                seed=self.seed,
                drift=summarize([entry.record for entry in compared]),
                mutation=None if self.mutation is None else self.mutation.result,
            )
        return self._report

    def write(self) -> bool:
        """Write the JSON report and the baselines where the options say. False when that is not possible: `unwritten` and the
        baselines' `problems` say why.
        """
        if self.is_worker or not self.has_report():
            return True
        report = self.finished_report()
        if self.baselines.writes:
            self.baselines.finish(self._all_tests() if self.baselines.prune else {})
        if self.report_path is not None:
            from ..report.renderers import RENDERERS

            try:
                RENDERERS.get("json")().write(report, self.report_path)
            except OSError as problem:
                self.unwritten = f"the report cannot be written: {problem}"
        self.config.hook.pytest_circuits_report(report=report, config=self.config)
        return self.unwritten is None and not self.baselines.problems

    def _all_tests(self) -> dict[str, list[str]]:
        """The node ids of all tests of the specs that ran, including deselected ones: the entries that a baseline may hold."""
        from ..spec.load import load_suite

        files = {entry.record.file for recorded in self._recorded.values() for entry in recorded if entry.record.file.endswith(SUFFIX)}
        suites = {file: load_suite(self.config.rootpath / file, models=self.overrides, unknown="ignore") for file in sorted(files)}
        return {file: ["::".join((file, claim.name, *claim.ids)) for claim in suite.claims] for file, suite in suites.items()}


def attached(report: Any) -> Iterator[RecordedClaim]:
    """The records that `Session.attach` put on the report of a test."""
    if getattr(report, "circuits", None):
        from ..report.record import RecordedClaim

        yield from map(RecordedClaim.model_validate, report.circuits)


def _outcome(report: pytest.TestReport) -> str:
    """As pytest's summary line counts it."""
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome
