"""Claims about real models whose truth is known in part: untrained ones, trained ones with shuffled answers, planted circuits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.core.verdict import CERTIFIED, INVALID, Bound, decide
from pytest_circuits.errors import Invalid
from pytest_circuits.measurement.driver import drive
from pytest_circuits.measurement.example_selection import Rows
from pytest_circuits.measurement.requests import Describe, Encode
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.protocol import Claim
from pytest_circuits.report.messages.verdicts import reason
from pytest_circuits.stats.binomial import binomial_interval
from pytest_circuits.tasks import PromptPair, Task

MODELS = Path(__file__).parents[2] / "models"
VOCABULARY, LENGTH = 40, 6
NO_GATE = {"min_accuracy": 0.0}
CORE: dict[str, tuple[dict[str, Any], Bound]] = {
    "necessity": ({"task": "t", "p": 0.6, "size": "20%", "control": "c3_parity"}, Bound(at_least=0.2)),
    "sufficiency": ({"task": "t", "p": 0.6, "size": "20%", "control": "c3_parity"}, Bound(at_least=0.2)),
    "gradient_ablation_agreement": ({"task": "t", "gradient": "atp", "resamples": 400}, Bound(at_least=0.5)),
    "neuron_faithfulness": ({"task": "t", "neurons": "10%"}, Bound(0.9, 1.1)),
    "circuit_match": ({"task": "t", "known": ["L0H0", "L1MLP"], "p": 0.8, "resamples": 400}, Bound(at_least=0.9)),
    "reuse": ({"task": "t", "p": 0.6, "size": "20%"}, Bound(at_least=0.8)),
}
"""Core claims. The first four say that a model does the task in a certain way; the last two say where attribution falls."""
ABOUT_BEHAVIOUR = tuple(CORE)[:4]


@dataclass(frozen=True)
class Row:
    """One claim on several models: how many verdicts of each kind."""

    models: str
    claim: str
    gate: bool
    n: int
    studies: int
    certified: int
    invalid: int
    reason: str = ""
    error: bool = True  # whether a certificate is a false one

    def as_dict(self) -> dict[str, Any]:
        """For the page."""
        return asdict(self) | {"rate": self.certified / self.studies, "interval": binomial_interval(self.certified, self.studies, 0.95)}


class Opened:
    """A model that is really run, each measurement once."""

    def __init__(self, subject: Any, tasks: Mapping[str, Task]) -> None:
        self.subject, self.tasks = subject, tasks
        self._known: dict[Any, Any] = {}

    def verdict(self, name: str, parameters: Mapping[str, Any], bound: Bound) -> tuple[str, str]:
        """Verdict and reason of a claim."""
        prop = PROPERTIES.get(name)
        checked = prop.parameters.model_validate(dict(parameters))
        sources = {task: TaskSource.make(task, "fixture", task) for task in task_names(checked)}
        steps = prop.estimate(Claim(prop.name, checked, ModelSource("m", "m"), sources))
        try:
            verdict = decide(drive(steps, self._answer), bound)
            return verdict.kind, reason(verdict)
        except Invalid as problem:
            return INVALID, str(problem)

    def _answer(self, request: Any) -> Any:
        if request not in self._known:
            self._known[request] = self._measure(request)
        return self._known[request]

    def _measure(self, request: Any) -> Any:
        if isinstance(request, Describe):
            return request.execute(self.subject, None, Rows(), None)
        task = self.tasks[request.task.name]
        if isinstance(request, Encode):
            return request.execute(self.subject, task, Rows(), None)
        encoded = self._answer(Encode(request.model, request.task))
        return request.execute(self.subject, task, request.rows(encoded), 64)


def untrained(seed: int) -> Any:
    """A small Llama, or GPT-2, with random weights."""
    import torch
    import transformers as tf

    from pytest_circuits import open_model

    torch.manual_seed(seed)
    common = {"vocab_size": VOCABULARY, "num_attention_heads": 4, "num_hidden_layers": 3}
    config = (
        tf.LlamaConfig(**common, hidden_size=32, intermediate_size=48, num_key_value_heads=4, max_position_embeddings=LENGTH + 2)
        if seed % 2
        else tf.GPT2Config(vocab_size=VOCABULARY, n_embd=32, n_layer=3, n_head=4, n_positions=LENGTH + 2, bos_token_id=0, eos_token_id=0)
    )
    model = tf.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:  # at the usual 0.02 nothing depends on anything
                parameter.normal_(0, 0.3)
    return open_model(model.eval())


def random_task(n: int, seed: int) -> Task:
    """Random tokens; the answer is one of two random tokens."""
    r = random.Random(seed)
    pairs = []
    for _ in range(n):
        clean = tuple(r.randrange(VOCABULARY) for _ in range(LENGTH))
        corrupt = tuple(r.randrange(VOCABULARY) for _ in range(LENGTH))
        answer, foil = r.sample(range(VOCABULARY), 2)
        pairs.append(PromptPair(clean, corrupt, (answer,), ((foil,),)))
    return Task("random", tuple(pairs))


def shuffled(task: Task, seed: int) -> Task:
    """The answers, with their foils, of other prompts."""
    places = list(range(len(task)))
    random.Random(seed).shuffle(places)
    pairs = [replace(pair, answer=task.pairs[j].answer, foils=task.pairs[j].foils) for pair, j in zip(task.pairs, places, strict=True)]
    return replace(task, pairs=tuple(pairs), more=None)


def null_rows(models: int, n: int, tell: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """Core claims on untrained models and on shuffled answers, with the accuracy gate and without it."""
    return [*_core("untrained", n, _untrained(models, n), tell), *_core("shuffled answers", n, _shuffled(models, n), tell)]


def _untrained(models: int, n: int) -> Iterator[Opened]:
    for seed in range(models):
        yield Opened(untrained(seed), {"t": random_task(n, seed)})


def _shuffled(models: int, n: int) -> Iterator[Opened]:
    """One trained model; the answers of three of its tasks shuffled."""
    from pytest_circuits import load_task, open_model

    subject = open_model(str(MODELS / "multitask-llama"))
    for seed in range(max(3, models // 2)):
        name = ("ioi", "sva", "copycolors")[seed % 3]
        yield Opened(subject, {"t": shuffled(load_task(name, n=n, seed=seed), seed)})


def _core(what: str, n: int, opened: Iterator[Opened], tell: Callable[[Row], None]) -> list[Row]:
    verdicts: dict[tuple[str, bool], list[tuple[str, str]]] = {}
    for one in opened:
        for name, (parameters, bound) in CORE.items():
            for gate in (True, False):
                verdicts.setdefault((name, gate), []).append(one.verdict(name, parameters if gate else {**parameters, **NO_GATE}, bound))
    rows = []
    for (name, gate), found in verdicts.items():
        kinds = [kind for kind, _ in found]
        reasons = [reason for kind, reason in found if kind == INVALID]
        rows.append(
            Row(what, f"{name} {CORE[name][1]}", gate, n, len(found), kinds.count(CERTIFIED), kinds.count(INVALID),
                max(set(reasons), key=reasons.count)[:120] if reasons else "", name in ABOUT_BEHAVIOUR)
        )  # fmt: skip
        tell(rows[-1])
    return rows


PLANTED: tuple[tuple[str, str, dict[str, Any], Bound], ...] = (
    ("copy_head", "necessity", {"task": "t", "size": 1}, Bound(at_least=0.2)),
    ("copy_head", "circuit_match", {"task": "t", "size": 1, "p": 0.9, "known": ["L1H2"], "resamples": 400}, Bound(at_least=0.9)),
    ("two_step", "circuit_match", {"task": "t", "size": 2, "p": 0.8, "known": ["L0H1", "L1MLP"], "measure": "contains"}, Bound(at_least=1)),
    ("backup", "superadditivity", {"task": "t", "set": {"units": ["L0H1", "L1H3"]}}, Bound(at_least=1)),
    ("hero_bloat", "hidden_heroes", {"task": "t", "gradient": "atp"}, Bound(at_least=1)),
    ("two_step", "gradient_ablation_agreement", {"task": "t", "gradient": "atp", "resamples": 400}, Bound(at_least=0.5)),
    ("memory", "neuron_faithfulness", {"task": "t", "neurons": 8}, Bound(0.9, 1.1)),
    ("memory", "neurons_to_reach", {"task": "t", "reach": 0.9}, Bound(at_most=8)),
)
"""True claims about planted circuits."""


def variants(task: Task, n: int, seed: int) -> Task:
    """n different prompts of a planted task, or as many as there are.

    Words between the first and the sign at the end are put into another order, in both prompts alike; prompts without that sign stay.
    """
    r = random.Random(seed)
    if not str(task.pairs[0].clean).endswith("="):
        return replace(task, pairs=tuple(r.sample(task.pairs, min(n, len(task)))), more=None)
    found: dict[str, PromptPair] = {}
    for _ in range(200 * n):
        pair = r.choice(task.pairs)
        clean, corrupt = str(pair.clean).split(), str(pair.corrupt).split()
        last = len(clean) - 1
        order = list(range(1, last))
        r.shuffle(order)
        places = [0, *order, *range(last, len(clean))]
        text = " ".join(clean[i] for i in places)
        found.setdefault(text, replace(pair, clean=text, corrupt=" ".join(corrupt[i] for i in places), group=None))
        if len(found) == n:
            break
    return replace(task, pairs=tuple(found.values()), more=None)


def planted_rows(sizes: tuple[int, ...], repeats: int, tell: Callable[[Row], None] = lambda row: None) -> list[Row]:
    """Power: how often true claims about planted circuits are certified, over draws of prompts, splits and controls."""
    from models.planted import plant
    from pytest_circuits import open_model

    rows = []
    opened: dict[str, Any] = {}
    for circuit, name, parameters, bound in PLANTED:
        if circuit not in opened:
            case = plant(circuit)
            opened[circuit] = (open_model(case.model, case.tokenizer), case.task)
        subject, task = opened[circuit]
        for n in sizes:
            found = []
            for seed in range(repeats):
                prompts = variants(task, n, seed)
                if len(prompts) < n:
                    break
                more = {"control_seed": seed} if "control_seed" in PROPERTIES.get(name).parameters.model_fields else {}
                found.append(Opened(subject, {"t": prompts}).verdict(name, {**parameters, **more, "split_seed": seed}, bound))
            if not found:
                continue
            kinds = [kind for kind, _ in found]
            reasons = [reason for kind, reason in found if kind != CERTIFIED]
            rows.append(Row(circuit, f"{name} {bound}", True, n, len(found), kinds.count(CERTIFIED), kinds.count(INVALID),
                            max(set(reasons), key=reasons.count)[:200] if reasons else "", False))  # fmt: skip
            tell(rows[-1])
    return rows
