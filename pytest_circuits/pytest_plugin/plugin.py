"""The pytest plugin: options, collection, reports. Thin glue; nothing heavy is imported before it is needed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..core.spec_files import SUFFIX
from .fixtures import circuits, circuits_model
from .keys import STATE
from .options import add_options

if TYPE_CHECKING:
    from collections.abc import Generator


__all__ = ["circuits", "circuits_model"]


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Third parties get the finished report through `pytest_circuits_report`."""
    from . import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_addoption(parser: pytest.Parser) -> None:
    """All options are called `--circuits-…`, their ini forms `circuits_…`."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Check option values that need no model, and register the marker."""
    from .session import Session

    config.addinivalue_line("markers", "circuits: a claim about a model's circuits (set on every claim of a spec file)")
    config.stash[STATE] = Session(config)
    config.pluginmanager.register(config.stash[STATE], "circuits-session")
    _watch(config)
    alone = config.getoption("circuits_plan") or config.getoption("circuits_mutate") is not None
    if alone and hasattr(config.option, "tx"):
        config.stash[STATE].undistributed = bool(config.option.tx)
        config.option.dist, config.option.tx = "no", []  # plans and mutants are made in one process: xdist would run the tests elsewhere


def _watch(config: pytest.Config) -> None:
    """Show progress on a terminal, never in a worker. Set up now: while tests run, pytest captures standard error."""
    if hasattr(config, "workerinput") or not sys.__stderr__ or not os.isatty(2):
        return
    from ..measurement.progress import listener

    def column() -> int:
        reporter = config.pluginmanager.get_plugin("terminalreporter")
        return 0 if reporter is None else int(reporter._tw.width_of_current_line)

    config.stash[STATE].watch(listener(2, column))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the temporary folder of `--circuits-no-cache`."""
    state = config.stash.get(STATE, None)
    if state is not None:
        state.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files called `*.circuits.yaml` are specs."""
    if file_path.name.endswith(SUFFIX):
        from .items import SpecFile

        return SpecFile.from_parent(parent, path=file_path)  # type: ignore[no-any-return]
    return None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Attach the mistakes of a spec to its report, so that they reach the controller from any worker."""
    report = yield
    errors = getattr(collector, "circuits_errors", None)
    if errors:
        report.circuits_errors = errors  # type: ignore[attr-defined]
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist: workers share the controller's folder for measurements that are not kept."""
    node.workerinput["circuits_scratch"] = node.config.stash[STATE].scratch()


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """`--circuits-plan` takes the place of running tests."""
    stopped = session.testsfailed and not session.config.getoption("continue_on_collection_errors")
    if not session.config.getoption("circuits_plan") or stopped:
        return None
    from .plan import show

    show(session)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which test the next claims belong to; a rerun of a test starts without properties."""
    item.config.stash[STATE].item = item
    item.user_properties[:] = [(name, value) for name, value in item.user_properties if not name.startswith("circuits_")]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the records of the test's claims to its report, so that they reach the controller from any worker."""
    report = yield
    state = item.config.stash[STATE]
    records = state.take(item.nodeid)
    if call.excinfo is not None and (report.failed or hasattr(report, "wasxfail")):
        explain_failure = getattr(item, "circuits_failure", None)
        if explain_failure is not None and not records and call.when != "teardown":
            records = explain_failure(call.excinfo)
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None and call.excinfo is not None and getattr(call.excinfo.value, "is_explanation", False):
        crash.message = str(call.excinfo.value)  # the short summary has no room for the exception's name
    if records:
        from ..report.renderers import RENDERERS

        state.attach(report, records)
        properties = RENDERERS.get("junit")().properties([entry.record for entry in records])
        report.user_properties += properties
        item.user_properties += properties  # JUnit takes them from the report of the teardown
    return report


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport, config: pytest.Config) -> tuple[str, str, str] | None:
    """Verdicts have words of their own; a claim that is not certified as it should be is a failure."""
    if not getattr(report, "circuits", None) or report.when != "call" or hasattr(report, "wasxfail"):
        return None
    from ..report.renderers import RENDERERS
    from .session import attached

    status, claims = RENDERERS.get("status")(), [entry.record for entry in attached(report)]
    if report.passed:
        return "passed", ".", status.passed(claims)
    failure = status.failed(claims, config.stash[STATE].inconclusive) if report.failed else None
    return None if failure is None else ("failed", *failure)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """What the renderers for the end of a run print, and what could not be written."""
    state = config.stash[STATE]
    if not state.has_report():
        return
    from ..report.messages.mutation import interrupted
    from ..report.messages.suite import report_path
    from ..report.renderers import RunContext, summary_sections

    report = state.finished_report()
    annotates = config.pluginmanager.hasplugin("pytest_github_actions_annotate_failures")  # it annotates failed tests, not specs
    context = RunContext(config.rootpath, state.baselines.mode is not None, tuple(state.baselines.messages), annotates)
    for section in summary_sections(report, context):
        if section.title:
            terminalreporter.section(section.title)
        for line in section.lines:
            terminalreporter.write_line(line)
    if state.mutation is not None and report.mutation is None and report.claims:
        terminalreporter.write_line(interrupted(), yellow=True)
    for problem in state.baselines.problems:
        terminalreporter.write_line(f"ERROR: {problem}", red=True)
    if state.unwritten:
        terminalreporter.write_line(f"ERROR: {state.unwritten}", red=True)
    elif state.report_path is not None:
        terminalreporter.write_line(report_path(config.getoption("circuits_json")))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the JSON report; the controller alone does so."""
    state = session.config.stash[STATE]
    if not state.write() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.USAGE_ERROR
    if state.mutation is not None and not state.mutation.passed and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
