"""The command `pytest-circuits`: write a first spec, print JSON Schemas, list what specs can name, draw figures of reports."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ..errors import CircuitsError, OptionError, suggestion
from ..registry import Registry
from .init import command

_LISTS = {
    "properties": "what a claim can assert",
    "tasks": "built-in tasks",
    "methods": "attribution methods, with the levels they support",
    "ablations": "replacements for ablated units",
    "mutants": "mutation operators for --circuits-mutate",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Returns the exit code: 0, 1 after an error (one line on stderr), or 130 when interrupted."""
    argv = sys.argv[1:] if arguments is None else list(arguments)
    chosen = _parser().parse_args(argv)
    chosen.arguments = argv
    run: Callable[[argparse.Namespace], None] = chosen.run
    try:
        run(chosen)
    except (CircuitsError, OSError) as problem:
        print(f"pytest-circuits: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("pytest-circuits: interrupted; no file was written", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pytest-circuits", description="Tools for writing specs; pytest runs them.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    first = commands.add_parser("init", help="measure a model on a few tasks, and write a spec with bounds that the model meets")
    command.add_arguments(first)
    first.set_defaults(run=command.run)
    schema = commands.add_parser("schema", help="print the JSON Schema of spec files, or of the JSON report")
    schema.add_argument("--report", action="store_true", help="print the schema of the report that --circuits-json writes")
    schema.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of stdout")
    schema.set_defaults(run=_schema)
    figure = commands.add_parser("figure", help="plot the claims of a report over a series of checkpoints (requires matplotlib)")
    figure.add_argument("report", type=Path, metavar="REPORT.json", help="a report written by pytest --circuits-json=REPORT.json")
    figure.add_argument(
        "--out", type=Path, default=Path("trajectory.svg"), metavar="FILE", help=".svg, .pdf or .png (default: %(default)s)"
    )
    figure.set_defaults(run=_figure)
    for name, description in _LISTS.items():
        listing = commands.add_parser(name, help=f"list {description}")
        listing.add_argument("name", nargs="?", metavar="NAME", help="show NAME with its parameters")
        listing.set_defaults(run=_list, which=name)
    return parser


def schema_text(of_report: bool = False) -> str:
    """The JSON Schema of specs, or of reports, as it is printed and shipped."""
    if of_report:
        from ..report.model import json_schema
    else:
        from ..spec.schema import json_schema
    return json.dumps(json_schema(), indent=2) + "\n"


def _schema(chosen: argparse.Namespace) -> None:
    text = schema_text(of_report=chosen.report)
    if chosen.out is None:
        print(text, end="")
    else:
        chosen.out.write_text(text, encoding="utf-8")


def _figure(chosen: argparse.Namespace) -> None:
    from ..report.renderers import RENDERERS
    from ..report.renderers.json_file import read_report

    panels = RENDERERS.get("figure")().write(read_report(chosen.report), chosen.out)
    print(f"{chosen.out}: {panels} panel{'s' * (panels != 1)}")


def _list(chosen: argparse.Namespace) -> None:
    from ..ablation import ABLATIONS
    from ..attribution import METHODS
    from ..core.summaries import described, summary
    from ..mutants import OPERATORS
    from ..properties import PROPERTIES
    from ..tasks import TASKS

    known = {"properties": PROPERTIES, "tasks": TASKS, "methods": METHODS, "ablations": ABLATIONS, "mutants": OPERATORS}
    registry: Registry = known[chosen.which]
    heavy = registry in (METHODS, ABLATIONS, OPERATORS)
    if chosen.name is not None:
        if chosen.name not in registry:
            raise OptionError(f"unknown {registry.what} {chosen.name!r}; {suggestion(chosen.name, registry)}")
        print(described(registry, chosen.name, imports=not heavy))
        return
    names = registry.names()
    for name in names:
        levels = registry.fact(name, "levels", ())
        description = summary(registry, name, imports=not heavy) + (f" ({', '.join(levels)})" if levels else "")
        print(f"{name:<{max(map(len, names))}}  {description}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
