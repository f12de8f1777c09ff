"""Specificity, decomposition, stability and the near controls on real models, against the library's own calls one by one."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from pytest_circuits import Task, open_model
from pytest_circuits.core.sources import ModelSource, TaskSource
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.planner import Planner
from pytest_circuits.measurement.requests import MeasureNorms, Part
from pytest_circuits.measurement.store import Store
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.properties.parameters import task_names
from pytest_circuits.properties.protocol import Claim
from pytest_circuits.stats.groups import group_means
from pytest_circuits.stats.split import split_by_group
from tests.fakes import tiny

MODEL = ModelSource("m", loader="memory:fixed")
LOOSE = {"min_accuracy": 0.0, "size": "20%", "p": 0.4}


class Measured:
    """A model and tasks in an executor, and the same through `Subject`, without executor or property."""

    def __init__(self, module, tokenizer, tasks, folder):
        self.subject = open_model(module, tokenizer)
        self.tasks = tasks
        self.sources = {name: TaskSource.make(name, "fixture", name, {"fingerprint": task.fingerprint}) for name, task in tasks.items()}
        self.executor = Executor(Store(folder))
        self.executor.models.provide(MODEL, lambda: (module, tokenizer))
        for name, task in tasks.items():
            self.executor.provide_task(self.sources[name], task)

    def steps(self, name, **parameters):
        prop = PROPERTIES.get(name)
        checked = prop.parameters.model_validate({**LOOSE, **parameters})
        return prop.estimate(Claim(prop.name, checked, MODEL, {task: self.sources[task] for task in task_names(checked)}))

    def measure(self, name, **parameters):
        return self.executor.run(self.steps(name, **parameters))[0]

    def sides(self, task):
        encoded = self.subject.encode(self.tasks[task])
        return encoded.groups, *split_by_group(encoded.groups, 0.5, 0)

    def shared(self, task, method="eap", size="20%"):
        _, discovery, _ = self.sides(task)
        return self.subject.attribute(self.tasks[task], method).circuits(size).take(discovery).shared(0.4)

    def drop(self, task, removed):
        """By groups: mean over groups of correct before minus after, on the evaluation examples."""
        groups, _, evaluation = self.sides(task)
        found = self.subject.ablate(self.tasks[task], remove=removed, examples=evaluation.tolist())
        return group_means(found.baseline.correct.astype(float) - found.correct, [groups[int(i)] for i in evaluation])[0].mean()


@pytest.fixture(scope="module")
def random_model(tmp_path_factory):
    import torch

    tasks = {name: replace(tiny.task(n=40, seed=seed), name=name) for name, seed in (("a", 0), ("b", 1), ("c", 2))}
    return Measured(tiny.model("llama", 3, torch.float32, num_hidden_layers=5), None, tasks, tmp_path_factory.mktemp("sets"))


def test_cross_task_ablation_and_specificity_of_a_real_model(random_model):
    m = random_model
    sets = {task: m.shared(task) for task in "abc"}
    assert len(set(sets.values())) > 1 and all(sets.values())
    drops = {task: m.drop("b", sets[task]) for task in "abc"}
    for task in "abc":
        found = m.measure("cross_task_ablation", task="b", circuit={"task": task})
        assert found.value == pytest.approx(drops[task])
        assert found.details["shared_sets"][task]["units"] == list(sets[task])
    found = m.measure("specificity", task="b", tasks=["a", "c"])
    assert found.value == pytest.approx(drops["b"] - (drops["a"] + drops["c"]) / 2)


@pytest.mark.parametrize("control", ["c3", "c3_any", "c3_typed_layer", "c3_matched", "none"])
def test_decomposition_of_a_real_model_under_every_control(random_model, control):
    m = random_model
    a, b = set(m.shared("a")), set(m.shared("b"))
    part = [u for u in m.subject.anatomy.universe.component_names if u in a & b]
    found = m.measure("decomposition", tasks=["a", "b"], part="core", measure_on=["a", "b", "c"], control=control, draws=20, minimum=1)
    assert found.value == pytest.approx(m.drop("a", part) - (m.drop("b", part) + m.drop("c", part)) / 2)
    assert len(found.details["control"]["sets"]) == (0 if control == "none" else 20)


def test_a_matched_control_of_necessity_uses_the_norms_of_the_model(random_model):
    m = random_model
    shared = m.shared("a", size="12%")
    assert any("H" in u for u in shared)
    norms = m.executor.result(MeasureNorms(MODEL, m.sources["a"], Part("discovery", 0.5, 0)))
    assert norms.values.shape == (25,) and (norms.values > 0).all()
    found = m.measure("necessity", task="a", control="c3_matched", draws=20, size="12%")
    universe = m.subject.anatomy.universe
    for one in found.details["control"]["sets"]:
        assert len(one) == len(shared) and not set(one) & set(shared)
        for layer in range(5):
            heads = [u for u in one if u.startswith(f"L{layer}H")]
            members = [u for u in shared if u.startswith(f"L{layer}H")]
            assert len(members) > 2 or len(heads) >= len(members)
    assert found.details["shared_set"]["units"] == [u for u in universe.component_names if u in shared]


def test_stability_between_methods_of_a_real_model(random_model):
    m = random_model
    eap, atp = set(m.shared("a")), set(m.shared("a", "atp"))
    found = m.measure("stability", task="a", under="method", other="atp", resamples=200)
    assert found.value == pytest.approx(len(eap & atp) / len(eap | atp))


CLAIMS = [
    ("cross_task_ablation", {"task": "b", "circuit": {"task": "a"}, "normalised": "row"}),
    ("specificity", {"task": "a", "tasks": ["b", "c"]}),
    ("decomposition", {"tasks": ["a", "b"], "part": "core", "control": "c3_matched"}),
    ("stability", {"task": "a", "under": "resampling"}),
    ("reuse", {"task": "a", "beside": ["b", "c"]}),
    ("necessity", {"task": "a", "control": "c3_typed_layer"}),
]


@pytest.mark.parametrize(("name", "parameters"), CLAIMS, ids=[name for name, _ in CLAIMS])
def test_a_plan_gets_through_on_invented_results(tmp_path, name, parameters):
    """Without opening the model."""
    (tmp_path / "config.json").write_text(json.dumps({"num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    directory = ModelSource("m", str(tmp_path))
    executor = Executor(Store(tmp_path / "cache"))
    sources = {}
    for seed, task in enumerate("abc"):
        made = tiny.task(n=40, seed=seed)
        sources[task] = TaskSource.make(task, "fixture", task, {"fingerprint": made.fingerprint})
        executor.provide_task(sources[task], made)
    prop = PROPERTIES.get(name)
    checked = prop.parameters.model_validate({**LOOSE, **parameters})
    forecast = Planner(executor).add(
        prop.estimate(Claim(prop.name, checked, directory, {task: sources[task] for task in task_names(checked)}))
    )
    assert forecast.requests.total() >= 3 and forecast.requests["Attribute"] >= 1
    assert not forecast.notes, forecast.notes


@pytest.fixture(scope="module")
def copy_head(tmp_path_factory):
    from models.planted import plant

    case = plant("copy_head")
    tasks = {"copy": case.task, "tail": Task("tail", case.task.pairs[::-1], "argmax")}
    return case, Measured(case.model, case.tokenizer, tasks, tmp_path_factory.mktemp("planted"))


def test_the_planted_head_is_found_by_every_method_in_every_half_and_carries_the_task(copy_head):
    case, m = copy_head
    strict = {"min_accuracy": 0.9, "size": 1, "p": 0.95}
    drop = m.measure("cross_task_ablation", task="copy", **strict)
    assert drop.details["shared_sets"]["copy"]["units"] == list(case.truth.causal)
    assert drop.value == 1 and drop.interval[0] > 0.3
    relative = m.measure("cross_task_ablation", task="copy", definition="relative", **strict)
    assert relative.value == 1 and relative.interval[0] > 0.3
    for under in ({"under": "resampling"}, {"under": "method", "other": "exact"}, {"under": "method", "other": "relp"}):
        assert m.measure("stability", task="copy", resamples=200, **strict, **under).value == 1
    over = m.measure("stability", task="copy", under="resampling", over_chance=True, resamples=200, **strict)
    assert over.value == pytest.approx(1 - 1 / 8)  # one of eight heads
    reuse = m.measure("reuse", task="copy", **strict)
    assert (reuse.value, reuse.details["noise_ceiling"], reuse.details["chance"]) == (1, 1, pytest.approx(1 / 8))


def test_another_name_for_the_planted_task_is_no_other_task(copy_head):
    from pytest_circuits.errors import Invalid

    _, m = copy_head
    strict = {"min_accuracy": 0.9, "size": 1, "p": 0.95}
    with pytest.raises(Invalid, match="24 clean prompts in common"):
        m.measure("specificity", task="copy", tasks=["tail"], **strict)
    assert np.isfinite(m.measure("cross_task_ablation", task="copy", circuit={"task": "copy"}, **strict).value)
