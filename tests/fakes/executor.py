"""A torch side that counts its calls and computes nothing. Importable from a subprocess."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from pytest_circuits.core.results import Attribution, ComponentNorms, Conservation, Description, Outcome, SweepOutcome
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.units import Universe
from pytest_circuits.tasks.base import PromptPair, Task

UNIVERSE = Universe(2, 3, 8)
N = 24
TASK = TaskSource.make("swap", "builtin", "swap")


def number(*parts):
    """A seed that depends on the arguments only."""
    return zlib.crc32(repr(parts).encode())


class FakeParameter:
    """A tensor of bytes."""

    device = SimpleNamespace(type="cpu")

    def __init__(self, size):
        self.size = size

    def numel(self):
        return self.size

    def element_size(self):
        return 1


class FakeSubject:
    """Results depend on the request, so that a mix-up shows; `calls` lists what was asked. Its parameters take `size` bytes."""

    size = 100

    @property
    def model(self):
        return SimpleNamespace(parameters=lambda: iter([FakeParameter(self.size)]))

    def __init__(self, where="", log=None):
        self.where, self.calls, self.log = where, [], log
        self.forwards = self.backwards = 0

    @property
    def behaviour(self):
        return ""

    def _called(self, *what):
        self.calls.append(what)
        if self.log:
            with open(self.log, "a", encoding="utf-8") as file:
                file.write(f"{what[0]}\n")

    def describe(self):
        self._called("describe")
        return Description(f"weights of {self.where}", "fake", 10, UNIVERSE, "float32")

    def encode(self, task):
        self._called("encode")
        groups = tuple(f"g{i // 2}" for i in range(len(task)))
        facts = {"regenerated": 1, "notes": ("a note",), "chance": 0.5, "prompts": ()}
        return SimpleNamespace(n=len(task), groups=groups, digest=task.fingerprint[:8], **facts)

    def attribute(self, task, method="eap", level="component", metric="logit_diff", batch_size=None, examples=None, reduce=None, **options):
        self._called("attribute", method, None if examples is None else len(examples), options)
        self.forwards += 2
        self.backwards += 1
        units = UNIVERSE.names(level)
        rng = np.random.default_rng(number(method, options))
        return Attribution(
            rng.normal(size=(N if examples is None else len(examples), len(units))).astype(np.float32), units, method, level, metric
        )

    def ablate_many(
        self,
        task,
        sets,
        mode="remove",
        kind="zero",
        level="component",
        metric="logit_diff",
        batch_size=None,
        examples=None,
        reference=None,
        **options,
    ):
        self._called("ablate", sets, None if examples is None else len(examples), None if reference is None else len(reference))
        self.forwards += len(sets)
        values = np.random.default_rng(number(sets, kind)).normal(size=(len(sets), N if examples is None else len(examples)))
        return Outcome(values > 0, values.astype(np.float32), values.astype(np.float32))

    def sweep(self, task, kind="zero", metric="logit_diff", batch_size=None, examples=None, reference=None, **options):
        self._called("sweep", kind)
        values = np.random.default_rng(3).normal(size=(N, UNIVERSE.components)).astype(np.float32)
        one = Outcome(values[:, 0] > 0, values[:, 0], values[:, 0])
        return SweepOutcome(values > 0, values, values, one, UNIVERSE.component_names)

    def norms(self, task, examples=None, batch_size=None):
        self._called("norms", None if examples is None else len(examples))
        self.forwards += 1
        return ComponentNorms(np.arange(UNIVERSE.components, dtype=np.float32), UNIVERSE.component_names)

    def conserve(self, task, rules="relp", metric="logit_diff", examples=None, batch_size=None):
        self._called("conserve", rules, metric, None if examples is None else len(examples))
        self.forwards += 1
        self.backwards += 1
        totals = np.random.default_rng(number(rules)).normal(size=(N if examples is None else len(examples), UNIVERSE.layers + 1))
        return Conservation(("embeddings", "L0", "L1"), totals, totals[:, 0], None)


class Opener:
    """Stands in for `open_model`: counts what is opened and keeps the subjects."""

    def __init__(self, subject=FakeSubject, error=None, **options):
        self.opened, self.subjects, self.subject, self.error, self.options = [], [], subject, error, options

    def __call__(self, model, tokenizer=None, **options):
        self.opened.append((model, options))
        if self.error is not None:
            raise self.error
        self.subjects.append(self.subject(str(model), **self.options))
        return self.subjects[-1]

    @property
    def calls(self):
        return [call for subject in self.subjects for call in subject.calls]

    def count(self, what):
        return sum(call[0] == what for call in self.calls)


def load_task(source):
    """`n` pairs in groups of two."""
    n = source.options.get("n", N)
    pairs = tuple(PromptPair(f"a{i}", f"b{i}", "x", ("y",), group=f"g{i // 2}") for i in range(n))
    return Task(source.name, pairs)


def model_directory(folder, weights=b"weights", config=None):
    """A directory with the files of a model, filled with nonsense."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    shape = {"num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 8}
    (folder / "config.json").write_text(json.dumps(shape if config is None else config), encoding="utf-8")
    (folder / "model.safetensors").write_bytes(weights)
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    return ModelSource("m", str(folder))
