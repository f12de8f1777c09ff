"""Planted models as projects to run pytest in. What inner runs import is imported first: pytester forgets what an inner run imports."""

from __future__ import annotations

import hashlib
import json
import shutil
from types import SimpleNamespace

import pytest

from tests.fakes.project import import_package
from tests.paths import MODELS

PLANTED = MODELS / "planted-circuits"
HEADER = """\
version: 1
models: {candidate: {path: model}}
tasks: {words: {file: model/task.jsonl, scoring: argmax}}
defaults: {attribution: exact, size: 2, draws: 20}
claims:
"""


class Project:
    """A folder with a planted model; `run` gives pytest's result, `mutation` the document's part on mutants."""

    def __init__(self, pytester, folder):
        self.pytester, self.path, self.model = pytester, pytester.path, folder

    def spec(self, claims, name="s.circuits.yaml", header=HEADER):
        body = "".join(f"  {line}\n" for line in claims.strip("\n").split("\n"))
        (self.path / name).write_text(header + body, encoding="utf-8")

    def run(self, *arguments, cached=True):
        (self.path / "report.json").unlink(missing_ok=True)
        self.result = self.pytester.runpytest_inprocess(*map(str, arguments), "--circuits-json=report.json")
        return self.result

    @property
    def report(self):
        return json.loads((self.path / "report.json").read_text(encoding="utf-8"))

    @property
    def mutation(self):
        return self.report["mutation"]

    @property
    def mutants(self):
        return {m["name"]: m for spec in self.mutation["specs"] for m in spec["mutants"]}

    @property
    def digest(self):
        """Of all files of the model's folder, with their times."""
        found = hashlib.sha256()
        for path in sorted(self.model.rglob("*")):
            found.update(f"{path} {path.stat().st_mtime_ns} ".encode() + (path.read_bytes() if path.is_file() else b""))
        return found.hexdigest()


@pytest.fixture(scope="session")
def torch_side():
    import_package(torch_side=True)
    import transformers.models.auto.modeling_auto
    import transformers.models.llama.modeling_llama  # noqa: F401


@pytest.fixture(scope="session")
def planted(tmp_path_factory, torch_side):
    """Copies of the planted models, and one folder of measurements for each, which tests of the same claims share."""
    made = {}

    def copy(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            shutil.copytree(PLANTED / name, folder / "model")
            made[name] = SimpleNamespace(model=folder / "model", cache=folder / "cache")
        return made[name]

    return copy


@pytest.fixture
def project(pytester, planted, monkeypatch):
    """A project with the planted model of that name."""
    for variable in ("GITHUB_ACTIONS", "CI", "BUILD_NUMBER"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def make(name="hero_bloat"):
        source = planted(name)
        (pytester.path / "model").symlink_to(source.model)
        pytester.makeini(f"[pytest]\ncircuits_cache_dir = {source.cache}\n")
        return Project(pytester, source.model)

    return make


@pytest.fixture(autouse=True)
def registrations_end_with_the_test():
    """What an inner run's conftest.py registers in this process is unknown to the tests after it."""
    from pytest_circuits.mutants import OPERATORS
    from pytest_circuits.properties import PROPERTIES

    registries = (OPERATORS, PROPERTIES)
    before = [set(registry) for registry in registries]
    yield
    for registry, known in zip(registries, before, strict=True):
        for name in set(registry) - known:
            registry.remove(name)
