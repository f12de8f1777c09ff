"""The reference pages name everything that there is and nothing else; links inside the documentation lead somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pytest_circuits import errors
from pytest_circuits.core.metric_names import METRICS
from pytest_circuits.report import model
from pytest_circuits.spec.document import CLAIM_KEYS, TOP_LEVEL, ModelEntry
from pytest_circuits.stats import CONTROLS
from pytest_circuits.tasks import files
from tests.paths import DOCS, ROOT
from tests.waiting import HANG

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "models").rglob("*.md"), *(ROOT / "specs").rglob("*.md")])


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """A section, without those that follow it at the same level or above."""
    level, rest = re.search(rf"^(#+) {re.escape(title)}\n(.*)", text, re.M | re.S).groups()
    return re.split(rf"^#{{1,{len(level)}}} ", rest, maxsplit=1, flags=re.M)[0]


def named(text: str) -> list[str]:
    """The names in code type in the first column of the tables of a text, without their heads."""
    text = re.sub(r"^\|.*\n\|---", "", text, flags=re.M)
    return [name for cell in re.findall(r"^\| (`.*?) \|", text, re.M) for name in re.findall(r"`([^`]*)`", cell)]


def output(*command: str) -> str:
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=HANG)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def help_text() -> str:
    return output("-m", "pytest", "--help")


@pytest.fixture(scope="module")
def registered() -> dict[str, list[str]]:
    """The names in the registries, asked of a process of its own: other tests register what they like."""
    return json.loads(
        output(
            "-c",
            "import json\n"
            "from pytest_circuits.ablation import ABLATIONS\n"
            "from pytest_circuits.attribution import METHODS\n"
            "from pytest_circuits.properties import PROPERTIES\n"
            "from pytest_circuits.tasks import TASKS\n"
            "registries = {'methods': METHODS, 'ablations': ABLATIONS, 'tasks': TASKS, 'properties': PROPERTIES}\n"
            "print(json.dumps({name: list(registry) for name, registry in registries.items()}))",
        )
    )


def test_the_options_page_names_every_option_and_no_other(help_text):
    text = page("reference/options.md")
    existing = set(re.findall(r"--circuits-[a-z-]+", help_text))
    rows = {re.match(r"--circuits-[a-z-]+", name)[0] for name in named(section(text, "pytest options"))}
    assert rows == set(re.findall(r"--circuits-[a-z-]+", text)) == existing


def test_the_options_page_names_every_ini_setting_and_no_other(help_text):
    existing = set(re.findall(r"^  (circuits_[a-z_]+) \((?:string|bool)\)", help_text, re.M))
    assert len(existing) == 8
    assert set(named(section(page("reference/options.md"), "ini settings"))) == existing


def test_the_options_page_names_every_command_and_no_other():
    existing = set(re.search(r"\{(.*?)\}", output("-c", "from pytest_circuits.cli.commands import _parser; p = _parser();"
        "print(*('{' + ','.join(a.choices) + '}' for a in p._actions if a.choices))"))[1].split(","))  # fmt: skip
    shown = named(section(page("reference/options.md"), "The `pytest-circuits` command"))
    assert {command.split()[1] for command in shown} == existing


@pytest.mark.parametrize(
    ("title", "kind"), [("Built-in tasks", "tasks"), ("Attribution methods", "methods"), ("Ablations", "ablations")], ids=str
)
def test_the_spec_page_lists_what_is_registered_and_nothing_else(title, kind, registered):
    assert sorted(named(section(page("reference/spec-files.md"), title))) == sorted(registered[kind])


def test_the_spec_page_lists_controls_keys_and_metrics():
    text = page("reference/spec-files.md")
    assert set(named(section(text, "Controls"))) == set(CONTROLS)
    assert set(named(section(text, "Models"))) == set(ModelEntry.model_fields)
    assert set(named(section(text, "Files"))) >= set(files.Parameters.model_fields)
    top = section(text, "Spec files").partition("## ")[0]
    assert set(named(top)) == set(TOP_LEVEL)
    keys = section(text, "Claims").partition("### ")[0]
    assert {name.partition(":")[0] for name in named(keys)} == set(CLAIM_KEYS)
    assert all(f"`{name}`" in section(text, "Parameters, lists and defaults") for name in METRICS)


def test_every_property_has_a_section(registered):
    assert sorted(re.findall(r"^## ([a-z_]+)$", page("reference/properties.md"), re.M)) == sorted(registered["properties"])


def test_every_error_has_a_section():
    classes = {name for name, thing in vars(errors).items() if isinstance(thing, type) and issubclass(thing, errors.CircuitsError)}
    assert set(re.findall(r"^## (\w+)$", page("reference/errors.md"), re.M)) == classes


def anchors(text: str) -> set[str]:
    """The addresses of the headings of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.S), re.M)
    return {"".join(c for c in title.lower() if c.isalnum() or c in " -_").replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(path):
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        file, _, heading = target.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        other = path if not file else (path.parent / file).resolve()
        if not other.exists() or (heading and heading not in anchors(other.read_text(encoding="utf-8"))):
            broken.append(target)
    assert broken == []


def test_every_page_is_in_the_index():
    linked = set(re.findall(r"\]\(([^)#\s]+)\)", page("index.md")))
    assert {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")} - {"index.md"} == linked


def fields(part: type) -> set[str]:
    """The names of a part of the report, as they stand in the JSON document."""
    return {info.alias or name for name, info in part.model_fields.items()}


def test_the_report_page_names_every_field_and_no_other():
    text = page("reference/report.md")
    assert set(re.findall(r"^## (\w+)$", text, re.M)) == fields(model.Report) - {"schema"}
    claims = section(text, "claims").partition("### ")[0]
    parts = {"suite": model.Suite, "baseline": model.BaselineComparison, "mutation": model.MutationReport}
    assert {title: set(named(section(text, title))) for title in parts} == {title: fields(part) for title, part in parts.items()}
    assert set(named(claims)) == fields(model.ClaimRecord)
    assert all(f"`{name}`" in claims for name in fields(model.Cost))
    assert all(f"`{name}`" in section(text, "models") for name in fields(model.ModelInfo))
    assert all(f"`{name}`" in section(text, "circuits") for name in ("tier", "evidence", "refuted", "missing"))


@pytest.mark.parametrize("name", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_is_named_exists(name):
    """Relative to the repository or to the package; words in capitals stand for any name."""
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.S)
    named = {part for code in re.findall(r"`([^`]+)`", text) for part in code.split() if re.fullmatch(r"\.?[\w./-]*/[\w./-]*", part)}
    assert len(named) > 20
    patterns = {path: re.sub(r"\b(NAME|FAMILY|ROOM|MODULE)\b|(?<=test_)(NAME|MODULE)", "*", path) for path in named}
    missing = [path for path, pattern in patterns.items() if not any(list(base.glob(pattern)) for base in (ROOT, ROOT / "pytest_circuits"))]
    assert missing == []


def test_the_rooms_of_the_architecture_are_those_of_the_contract_in_order():
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"][0]
    rooms = [Path(name).stem for name in named(section((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), "Rooms"))]
    assert rooms == contract["layers"]
