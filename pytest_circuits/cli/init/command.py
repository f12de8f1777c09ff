"""`pytest-circuits init`: measure a model on a few tasks, and write a spec that the model meets."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Any

from ...core.atomic import write_atomic
from ...core.spec_files import SUFFIX
from ...errors import OptionError
from ...spec.document import name_problem
from .arguments import DRAWN, RequestedTask, parse_model, parse_tasks
from .candidates import PROPERTIES

if TYPE_CHECKING:
    from ...measurement.executor import Executor
    from ...pytest_plugin.session import Session
    from .measure import Proposal, Study


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `init`."""
    add = parser.add_argument
    add("model", metavar="MODEL", help="a model directory or a hub id")
    add(
        "--task", action="append", default=[], metavar="[NAME=]TASK[:KEY=VALUE,…]",
        help="a built-in task, a .jsonl or .csv file, or pkg.mod:function, with parameters; repeatable",
    )  # fmt: skip
    add("--out", type=Path, default=Path(f"core{SUFFIX}"), metavar="FILE", help="the spec to write (default: %(default)s)")
    add("--force", action="store_true", help="overwrite an existing file")
    add("--seed", type=int, default=0, metavar="N", help="seed of the prompts of built-in tasks and of all splits (default: %(default)s)")
    add("-n", "--prompts", type=int, default=DRAWN, metavar="N", help="number of prompts of each built-in task (default: %(default)s)")
    add("--property", action="append", choices=PROPERTIES, metavar="NAME", help=f"only this property ({', '.join(PROPERTIES)}); repeatable")
    add("--slack", type=float, default=0.0, metavar="X", help="loosen each bound by X half-widths of its interval")
    add("--size", metavar="K", help="circuit size, such as 10%% or 7 (default: 10%%, 20%% for small models)")
    add("--share", type=float, default=0.8, metavar="P", help="share of prompts whose circuits contain a component (default: %(default)s)")
    add("--attribution", default="eap", metavar="METHOD", help="attribution method (default: %(default)s)")
    add("--ablation", default="zero", metavar="KIND", help="replacement for ablated units (default: %(default)s)")
    add("--min-accuracy", type=float, default=0.6, metavar="A", help="tasks with a lower accuracy get no claims (default: %(default)s)")
    add("--name", default="candidate", metavar="NAME", help="the model's name in the spec (default: %(default)s)")
    add("--revision", metavar="REVISION", help="branch, tag or commit of a hub id")
    add("--dtype", metavar="DTYPE", help="precision to measure in (default: the checkpoint's own)")
    add("--device", metavar="DEVICE", help="cpu (default), cuda …")
    add("--cache-dir", metavar="DIR", help="where to store measurements; pass the same folder to pytest as --circuits-cache-dir")


def run(chosen: argparse.Namespace) -> None:
    """Measure the model and write the spec, atomically. Raises `CircuitsError` for arguments or measurements that fail."""
    path = _check_arguments(chosen)
    tasks = parse_tasks(chosen.task, chosen.prompts, chosen.seed)
    with _session(path.parent, chosen) as session:
        executor = session.executor()
        study, proposal = _proposal(executor, chosen, tasks)
        text = _text(executor, study, proposal, path, chosen)
        _check_certified(executor, path, text)
    if path.exists() and not chosen.force:
        raise OptionError(f"{chosen.out} was created meanwhile; nothing was written")
    write_atomic(path, text)
    _print_summary(chosen, path, proposal)


def _check_arguments(chosen: argparse.Namespace) -> Path:
    """The path of the spec. Raises `OptionError` for mistakes that show before anything is measured."""
    path = Path(chosen.out).expanduser().absolute()
    if not path.name.endswith(SUFFIX) or path.name == SUFFIX:
        raise OptionError(f"--out {chosen.out}: pytest collects files named NAME{SUFFIX}; use such a name")
    if path.is_dir() or not path.parent.is_dir():
        raise OptionError(f"--out {chosen.out}: {'it is a folder' if path.is_dir() else f'there is no folder {path.parent}'}")
    if path.exists() and not chosen.force:
        raise OptionError(f"{chosen.out} exists; choose another --out, or pass --force to overwrite it")
    problem = name_problem(chosen.name)
    if problem:
        raise OptionError(f"--name: {problem}")
    if chosen.seed < 0:
        raise OptionError(f"--seed must be a whole number of at least 0, got {chosen.seed}")
    if chosen.prompts < 1:
        raise OptionError(f"--prompts must be at least 1, got {chosen.prompts}")
    if not 0 <= chosen.slack < 100:
        raise OptionError(f"--slack is a number of half-widths, 0 or more, got {chosen.slack:g}")
    return path


def _proposal(executor: Executor, chosen: argparse.Namespace, tasks: Sequence[RequestedTask]) -> tuple[Study, Proposal]:
    from pydantic import ValidationError

    from .measure import Study, circuit_size, propose

    for task in tasks:
        executor.task(task.source)  # report mistakes in tasks before a model is loaded
    model = parse_model(chosen.name, chosen.model, revision=chosen.revision, dtype=chosen.dtype, device=chosen.device)
    described = executor.describe(model)
    defaults: dict[str, Any] = {
        "attribution": chosen.attribution,
        "size": circuit_size(described) if chosen.size is None else _size(chosen.size),
        "p": chosen.share,
        "ablation": chosen.ablation,
        "confidence": 0.95,
        "min_accuracy": chosen.min_accuracy,
        "split_seed": chosen.seed,
    }
    study = Study(executor, model, {task.name: task for task in tasks}, defaults, chosen.slack, _report_progress)
    try:
        return study, propose(study, described, chosen.property or PROPERTIES)
    except ValidationError as problem:
        first = problem.errors()[0]
        message = str(first["msg"]).removeprefix("Value error, ")
        where = ".".join(map(str, first["loc"])) or "these parameters"
        raise OptionError(f"{_GIVEN_BY.get(where, where)}: {message}, got {first['input']!r}") from None


_GIVEN_BY = {"p": "--share", **{name: f"--{name.replace('_', '-')}" for name in ("size", "attribution", "ablation", "min_accuracy")}}


def _size(written: str) -> str | int:
    """A circuit size as in a spec: digits are a count."""
    return int(written) if written.isdecimal() else written


def _text(executor: Executor, study: Study, proposal: Proposal, path: Path, chosen: argparse.Namespace) -> str:
    from ...measurement.requests import Encode
    from .write import spec_text

    encoded = {
        ability.task.name: executor.stored(Encode(study.model, ability.task.source))
        for ability in proposal.abilities
        if ability.accuracy is not None
    }
    return spec_text(proposal, path, join(["pytest-circuits", *chosen.arguments]), encoded)


def _check_certified(executor: Executor, path: Path, text: str) -> None:
    """Check that the text is a valid spec whose claims are all certified by stored measurements. Anything else is a bug."""
    from ...claims.evaluation import evaluate_claim
    from ...core.verdict import CERTIFIED
    from ...report.messages.verdicts import reason
    from ...spec.load import load_suite

    for claim in load_suite(path, content=text.encode()).claims:
        evaluation = evaluate_claim(executor, claim)
        if evaluation.verdict.kind != CERTIFIED or evaluation.cost.measured:
            raise AssertionError(f"{claim.name} is {evaluation.verdict.kind} when measured again: {reason(evaluation.verdict)}")


def _print_summary(chosen: argparse.Namespace, path: Path, proposal: Proposal) -> None:
    left, unable = len(proposal.open), [ability.task.name for ability in proposal.abilities if ability.reason]
    print(f"{chosen.out}: {len(proposal.claims)} claims, all certified by these measurements")
    if left:
        print(f"{left} could not be settled; the file lists them as comments with the reason")
    if unable:
        print(f"no claims about {', '.join(unable)}, which the model cannot do")
    cache = f" --circuits-cache-dir {quote(chosen.cache_dir)}" if chosen.cache_dir else ""
    command = f"pytest {quote(str(chosen.out))}{cache}"
    print(f"\n{command}                    # from the cache: all claims are certified")
    if proposal.redrawn:
        some = f" ({', '.join(proposal.fixed)}: only split again)" if proposal.fixed else ""
        print(f"{command} --circuits-seed 1  # do the bounds hold on other prompts{some}?")
    else:
        print(f"{command} --circuits-seed 1  # the same prompts, split again; only other prompts can test the bounds")


def _report_progress(text: str) -> None:
    """Print a line of progress, if stderr is a terminal."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


@contextlib.contextmanager
def _session(folder: Path, chosen: argparse.Namespace) -> Iterator[Session]:
    """The session that pytest would create for specs in a folder, so with the cache, device and batch size of its ini file."""
    import pytest

    from ...pytest_plugin.session import Session

    configs: list[pytest.Config] = []

    class Probe:
        @pytest.hookimpl(tryfirst=True)
        def pytest_cmdline_main(self, config: pytest.Config) -> int:
            configs.append(config)
            return 0

    settings: Mapping[str, str | None] = {"cache-dir": chosen.cache_dir}
    options = [f"--circuits-{name}={value}" for name, value in settings.items() if value is not None]
    code = pytest.main([str(folder), *options], plugins=[Probe()])
    if not configs:
        raise OptionError(f"pytest does not start in {folder} (exit code {int(code)}); see its message above")
    try:
        session = Session(configs[0])
    except pytest.UsageError as problem:
        raise OptionError(str(problem)) from None
    from ...measurement.progress import listener

    session.watch(listener(2))
    try:
        yield session
    finally:
        session.close()
