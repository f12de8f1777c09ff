"""The pytest plugin: options, collection, reports. Thin glue; nothing heavy is imported before it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .fixtures import circuits, circuits_model

if TYPE_CHECKING:
    from collections.abc import Generator

    from .session import Session

__all__ = ["circuits", "circuits_model"]

SUFFIX = ".circuits.yaml"
STATE: pytest.StashKey[Session] = pytest.StashKey()
INCONCLUSIVE = ("fail", "skip", "pass")


def pytest_addoption(parser: pytest.Parser) -> None:
    """All options are called `--circuits-…`, their ini forms `circuits_…`; the command line goes before the ini file."""
    group = parser.getgroup("circuits", "claims about the circuits of language models")
    add = group.addoption
    add("--circuits-json", metavar="PATH", help="write the report of all claims as one JSON document")
    add("--circuits-model", metavar="NAME=PATH", action="append", default=[], help="run specs on another checkpoint (repeatable)")
    add("--circuits-device", metavar="DEVICE", help="cpu (default), cuda, cuda:1, mps …")
    add("--circuits-dtype", metavar="DTYPE", help="float32, bfloat16 …; default: the checkpoint's own")
    add("--circuits-batch-size", metavar="N", type=int, help="examples a model call; default: chosen by size")
    add("--circuits-inconclusive", choices=INCONCLUSIVE, help="what an inconclusive claim does to its test (default: fail)")
    add("--circuits-cache-dir", metavar="DIR", help="where measurements are kept (default: .circuits_cache in the root directory)")
    add("--circuits-no-cache", action="store_true", default=None, help="neither read nor keep measurements")
    add("--circuits-offline", action="store_true", default=None, help="fail rather than measure: use kept measurements only")
    add("--circuits-plan", action="store_true", help="show what would be measured and what it costs; loads no model and runs no test")
    for name, kind, text in (
        ("device", "string", "device to measure on"),
        ("dtype", "string", "precision to measure in"),
        ("batch_size", "string", "examples a model call"),
        ("inconclusive", "string", "fail, skip or pass"),
        ("cache_dir", "string", "where measurements are kept, relative to the root directory"),
        ("no_cache", "bool", "neither read nor keep measurements"),
        ("offline", "bool", "use kept measurements only"),
    ):
        parser.addini(f"circuits_{name}", text, type=kind, default=False if kind == "bool" else None)  # type: ignore[arg-type]


def setting(config: pytest.Config, name: str) -> Any:
    """An option's value: command line, else ini file, else None."""
    given = config.getoption(f"circuits_{name}", None)
    return given if given is not None else (config.getini(f"circuits_{name}") or None)


def pytest_configure(config: pytest.Config) -> None:
    """Check option values that need no model, and register the marker."""
    from .session import Session

    config.addinivalue_line("markers", "circuits: a claim about a model's circuits (set on every claim of a spec file)")
    config.stash[STATE] = Session(config, setting)
    config.pluginmanager.register(config.stash[STATE], "circuits-session")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove what `--circuits-no-cache` kept for the session."""
    state = config.stash.get(STATE, None)
    if state is not None:
        state.close()


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Files called `*.circuits.yaml` are specs."""
    if file_path.name.endswith(SUFFIX):
        from .collect import SpecFile

        return SpecFile.from_parent(parent, path=file_path)  # type: ignore[no-any-return]
    return None


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist: workers share the controller's folder for measurements that are not kept."""
    node.workerinput["circuits_scratch"] = node.config.stash[STATE].scratch()


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """`--circuits-plan` takes the place of running tests."""
    if not session.config.getoption("circuits_plan") or session.testsfailed or hasattr(session.config, "workerinput"):
        return None
    from .planning import show

    show(session)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember which test claims belong to."""
    item.config.stash[STATE].item = item


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the records of the test's claims to its report, so that they reach the controller from any worker."""
    report = yield
    if report.when == "call":
        records = item.config.stash[STATE].take(item.nodeid)
        if records:
            report.circuits = records
            for record in records:
                report.user_properties += [(f"circuits_{k}", record[k]) for k in ("verdict", "estimate", "interval") if record[k] is not None]
    return report


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """Verdicts have words of their own; a claim that is not certified as it should be is a failure."""
    records = getattr(report, "circuits", None)
    if not records or report.skipped or hasattr(report, "wasxfail"):
        return None
    kinds = {r["verdict"] for r in records}
    kind = next(k for k in ("invalid", "refuted", "inconclusive", "certified") if k in kinds)
    if report.passed:
        return "passed", ".", kind.upper() + ("" if kind == "certified" else " (as expected)" if all(r["passed"] for r in records) else "")
    letter = {"invalid": "!", "refuted": "F", "inconclusive": "?", "certified": "F"}[kind]
    return "failed", letter, kind.upper()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The verdict table."""
    content = config.stash[STATE].document()
    if content["claims"]:
        from .report.terminal import table

        terminalreporter.section("circuits")
        for line in table(content):
            terminalreporter.write_line(line)
        where = config.getoption("circuits_json")
        if where:
            terminalreporter.write_line(f"report: {where}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the JSON report; the controller alone does so."""
    state, where = session.config.stash[STATE], session.config.getoption("circuits_json")
    if where and not hasattr(session.config, "workerinput"):
        from .report.document import write

        write(Path(session.config.invocation_params.dir, where), state.document())
