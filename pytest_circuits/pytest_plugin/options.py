"""The options of the plugin: declared, read from the command line or the ini file, and checked before anything is measured."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..baseline.manager import OFF, BaselineManager, ci_variable
from ..core.sources import DTYPES

if TYPE_CHECKING:
    from ..mutation.run import MutationRun

INCONCLUSIVE = ("fail", "skip", "pass")


def add_options(parser: pytest.Parser) -> None:
    """Declare the options and their ini forms; the command line takes precedence over the ini file."""
    group = parser.getgroup("circuits", "claims about the circuits of language models")
    add = group.addoption
    add("--circuits-json", metavar="PATH", help="write the report of all claims as one JSON document")
    add(
        "--circuits-model",
        metavar="NAME=PATH",
        action="append",
        default=[],
        help="run specs on another checkpoint: a directory, a hub id, or loader:pkg.mod:function (repeatable)",
    )
    add("--circuits-device", metavar="DEVICE", help="cpu (default), cuda, cuda:1, mps …")
    add("--circuits-dtype", metavar="DTYPE", help="float32, bfloat16 …; default: the checkpoint's own")
    add("--circuits-batch-size", metavar="N", type=int, help="examples a model call; default: chosen by size")
    add("--circuits-inconclusive", choices=INCONCLUSIVE, help="what an inconclusive claim does to its test (default: fail)")
    add("--circuits-cache-dir", metavar="DIR", help="where measurements are stored (default: .circuits_cache in the root directory)")
    add("--circuits-no-cache", action="store_true", default=None, help="neither read nor store measurements")
    add("--circuits-offline", action="store_true", default=None, help="use stored measurements only; claims that need others are invalid")
    add(
        "--circuits-seed", metavar="N", type=int, default=0,
        help="check the same claims on other prompts: raise the seeds of built-in tasks and of splits by N",
    )  # fmt: skip
    add("--circuits-plan", action="store_true", help="show what would be measured and what it costs; loads no model and runs no test")
    text = "baseline file, or folder of them, to compare with; none: do not compare (default: next to each spec)"
    add("--circuits-baseline", metavar="PATH", help=text)
    add(
        "--circuits-update-baseline", choices=("new", "changed", "all"),
        help="write results to the baselines: missing entries (new), also those whose claim, data or model changed (changed), or all",
    )  # fmt: skip
    add("--circuits-prune-baseline", action="store_true", help="remove the entries of tests that a spec no longer has from its baseline")
    add(
        "--circuits-mutate", metavar="NAMES", nargs="?", const="default",
        help="also evaluate the claims on mutants, damaged copies of each model; NAMES: default, all, or such as zero-head:in,round:bits=4",
    )  # fmt: skip
    add("--circuits-mutate-score", metavar="SHARE", type=float, help="fail if the claims notice a smaller share of the mutants, e.g. 0.8")
    for name, kind, text in (
        ("device", "string", "device to measure on"),
        ("dtype", "string", "precision to measure in"),
        ("batch_size", "string", "examples a model call"),
        ("inconclusive", "string", "fail, skip or pass"),
        ("cache_dir", "string", "where measurements are stored, relative to the root directory"),
        ("baseline", "string", "baseline file or folder to compare with, relative to the root directory; none: do not compare"),
        ("no_cache", "bool", "neither read nor store measurements"),
        ("offline", "bool", "use stored measurements only"),
    ):
        parser.addini(f"circuits_{name}", text, type=kind, default=False if kind == "bool" else None)  # type: ignore[arg-type]


def setting(config: pytest.Config, name: str) -> Any:
    """An option's value: command line, else ini file, else None."""
    option = config.getoption(f"circuits_{name}", None)
    return option if option is not None else (config.getini(f"circuits_{name}") or None)


def inconclusive_outcome(config: pytest.Config) -> str:
    """What an inconclusive claim does to its test: fail, skip or pass."""
    outcome = setting(config, "inconclusive") or "fail"
    if outcome not in INCONCLUSIVE:
        raise pytest.UsageError(f"circuits_inconclusive must be fail, skip or pass, got {outcome!r}")
    return str(outcome)


def dtype(config: pytest.Config) -> str | None:
    """The precision to measure in."""
    name = setting(config, "dtype")
    if name is not None and name not in DTYPES:
        raise pytest.UsageError(f"circuits-dtype must be one of {', '.join(DTYPES)}, got {name!r}")
    return name  # type: ignore[no-any-return]


def seed(config: pytest.Config) -> int:
    """By how much all seeds are raised."""
    number: int = config.getoption("circuits_seed")
    if number < 0:
        raise pytest.UsageError(f"circuits-seed must be a whole number of at least 0, got {number}")
    return number


def report_path(config: pytest.Config) -> Path | None:
    """Where the JSON document goes, checked before anything is measured; None without the option, and for runs without tests."""
    written = config.getoption("circuits_json")
    if written is None:
        return None
    path = Path(config.invocation_params.dir, written).expanduser()
    above = next(folder for folder in path.parents if folder.exists())
    if path.is_dir() or not above.is_dir():
        what = "is a folder; give the name of a file" if path.is_dir() else f"cannot be written: {above} is a file"
        raise pytest.UsageError(f"--circuits-json: {path} {what}")
    return None if config.getoption("collectonly") or config.getoption("circuits_plan") else path


def baseline_manager(config: pytest.Config) -> BaselineManager:
    """Baselines, as the options say. Raises `UsageError` for options that contradict each other, and for writing where `CI` is set."""
    mode, prune = config.getoption("circuits_update_baseline"), bool(config.getoption("circuits_prune_baseline"))
    place = _baseline_place(config)
    writes = [name for name, on in (("--circuits-update-baseline", mode), ("--circuits-prune-baseline", prune)) if on]
    variable = ci_variable(os.environ)
    if writes and variable:
        raise pytest.UsageError(
            f"{writes[0]} is refused under continuous integration (the environment variable {variable} is set): a baseline is measured on "
            f"the release and committed by somebody who has read it; run this on a machine of your own, or unset {variable}"
        )
    if mode and config.getoption("circuits_seed"):
        raise pytest.UsageError(
            "--circuits-update-baseline with --circuits-seed would keep the results of other prompts than the spec's; leave one of them out"
        )
    if writes and place == OFF:
        raise pytest.UsageError(f"--circuits-baseline=none and {writes[0]} contradict each other")
    if isinstance(place, Path) and not place.exists() and not mode:
        raise pytest.UsageError(f"--circuits-baseline: there is no {place}; give a baseline file, the folder that has it, or none")
    idle = config.getoption("collectonly") or config.getoption("circuits_plan")
    return BaselineManager(config.rootpath, place, None if idle else mode, prune and not idle)


def _baseline_place(config: pytest.Config) -> Path | str | None:
    """Where baselines are: the command line counts from the working directory, the ini file from the root directory."""
    option, ini = config.getoption("circuits_baseline"), setting(config, "baseline")
    if option is not None:
        return OFF if option == OFF else Path(config.invocation_params.dir, option).expanduser()
    if ini is not None:
        return OFF if ini == OFF else Path(config.rootpath, ini).expanduser()
    return None


def mutation_run(config: pytest.Config) -> MutationRun | None:
    """What `--circuits-mutate` asks for; None without it."""
    wanted, threshold = config.getoption("circuits_mutate"), config.getoption("circuits_mutate_score")
    if wanted is None:
        if threshold is not None:
            raise pytest.UsageError("--circuits-mutate-score says how many mutants have to be noticed; add --circuits-mutate to make them")
        return None
    if config.getoption("circuits_update_baseline"):
        raise pytest.UsageError(
            "--circuits-mutate with --circuits-update-baseline would compare mutants with a baseline that this run writes; "
            "run one after the other"
        )
    from ..errors import OptionError
    from ..mutation.run import MutationRun

    try:
        return MutationRun(wanted, threshold)
    except OptionError as problem:
        raise pytest.UsageError(f"--circuits-mutate: {problem}") from None


def model_overrides(config: pytest.Config) -> dict[str, str]:
    """Models that replace those of specs, by name, as `--circuits-model NAME=PATH` gives them."""
    overrides: dict[str, str] = {}
    for text in config.getoption("circuits_model"):
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise pytest.UsageError(f"--circuits-model needs NAME=PATH, got {text!r}")
        if name in overrides:
            raise pytest.UsageError(f"--circuits-model: {name!r} is given twice")
        overrides[name] = path
    return overrides


def batch_size(config: pytest.Config) -> int | None:
    """Examples a model call; None leaves it to the torch side."""
    text = setting(config, "batch_size")
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise pytest.UsageError(f"circuits-batch-size must be a whole number of at least 1, got {text!r}")
    return number
