"""A healthy made-up study of every property, and the ways in which a study can be degenerate.

A `Setting` says what the model and its tasks are; each situation changes a healthy one. `outcome(name, setting)` is what becomes of the
property there: its estimate, or the `Invalid` that it raises; any other exception or warning gets through.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.calibration.world import Behaviour, Sample, World
from pytest_circuits.core.units import Universe
from pytest_circuits.errors import Invalid

CORE = {"t": (1, 6, 7), "u": (1, 6, 9)}  # L0H1, L1H2, L1MLP; L0H1, L1H2, L2H1
COMPONENT = {"size": 3}
SHARED = {**COMPONENT, "p": 0.8}
FAST = {"resamples": 200}
HEALTHY: dict[str, dict[str, Any]] = {
    "accuracy": {"task": "t"},
    "reuse": {"task": "t", "beside": ["u"], **SHARED},
    "shared_size": {"task": "t", **SHARED, **FAST},
    "necessity": {"task": "t", **SHARED, "draws": 20},
    "sufficiency": {"task": "t", **SHARED, "draws": 20},
    "jaccard": {"tasks": ["t", "u"], **SHARED, **FAST},
    "composition": {"task": "t", **COMPONENT},
    "layer_profile": {"task": "t", "part": "early", **COMPONENT},
    "circuit_match": {"task": "t", "known": ["L0H1", "L1H2"], **SHARED, **FAST},
    "cross_task_ablation": {"task": "t", "circuit": {"task": "u"}, "definition": "relative", **SHARED},
    "specificity": {"task": "t", "tasks": ["u"], **SHARED},
    "decomposition": {"tasks": ["t", "u"], "part": "core", "against": "control", "draws": 20, **SHARED},
    "stability": {"task": "t", "under": "method", "other": "atp", **SHARED, **FAST},
    "gradient_ablation_agreement": {"task": "t", **FAST},
    "hidden_heroes": {"task": "t", **FAST},
    "gradient_bloats": {"task": "t", **FAST},
    "superadditivity": {"task": "t", "set": "shared", **SHARED, **FAST},
    "joint_ablation": {"task": "t", "set": "shared", "control": "c3", "draws": 20, **SHARED},
    "neuron_faithfulness": {"task": "t", "neurons": 6},
    "neuron_completeness": {"task": "t", "neurons": 6},
    "neurons_to_reach": {"task": "t"},
    "sparsity_ratio": {"task": "t"},
    "cpr": {"task": "t", "attribution": "relp", "ablation": "zero"},
    "cmd": {"task": "t", "ablation": "zero", **FAST},
    "conservation": {"task": "t"},
    "role_stability": {"task": "t", **FAST},
    "trajectory": {"of": {"reuse": {"task": "t", **SHARED}}, "shape": "spread"},
    "drift": {"of": {"reuse": {"task": "t", **SHARED}}, "against": "m1"},
    "steering": {"task": "t", "neurons": 3, "factor": 0.0, "against": "control"},
    "for_all": {"prompts": {"task": "t"}, "remove": {"task": "t", "p": 0.8}, "check": "answer_changes", "examples": 20, **COMPONENT},
}


def removing(p: float) -> dict[str, Any]:
    """What `for_all` removes, with another share."""
    return {"for_all": {"remove": {"task": "t", "p": p}}}


Table = np.ndarray[Any, Any]


SMALL = Universe(3, 3, 8)


@dataclass(frozen=True)
class Setting:
    """What the model and its tasks are.

    scores(values, task) changes attribution scores; outcome(behaviour, intervention) what comes of an ablation; `members` the number of
    the components that score highly, by task; `strengths` how much metric all components, and all neurons, carry together;
    `parameters` are changed for all properties that have them, and `own` for one; `models` is how long a series is.
    """

    universe: Universe = SMALL
    n: int = 40
    seed: int = 0
    models: int = 3
    scores: Callable[[Table, str], Table] = lambda values, task: values
    outcome: Callable[[Behaviour, Any], Behaviour] = lambda found, done: found
    group: Callable[[int], str] = "g{}".format
    prompts: Callable[[str, int], str] = "{} {}".format
    digest: Callable[[str], str] = str
    strengths: tuple[float, float] = (3.0, 3.0)
    chance: float = 0.0
    parameters: dict[str, Any] = field(default_factory=dict)
    own: dict[str, dict[str, Any]] = field(default_factory=dict)

    def sample(self, task: str, seed: int) -> Sample:
        """One task of one model: a metric that adds up over what is live, answers that are right where it is above 0."""
        rng = np.random.default_rng([seed, *task.encode()])
        total, neurons = self.universe.components, self.universe.size("neuron")
        weights = rng.uniform(0.5, 1.5, (self.n, total)) * np.linspace(0.05, 0.1, total)
        weights[:, [i for i in CORE[task] if i < total]] += 1.0
        fine = rng.uniform(0.5, 1.5, (self.n, neurons)) * np.linspace(2, 0.05, neurons) ** 2
        tables = {"component": weights, "neuron": fine}
        for table, strength in zip(tables.values(), self.strengths, strict=True):
            table *= strength / table.sum(1).mean()
        floor = rng.normal(-1, 0.2, self.n)
        noise = rng.uniform(0.8, 1.2, (2, self.n, total))

        def behave(done: Any) -> Behaviour:
            left = np.where(done.live, 1.0, done.factor if done.factor is not None else 0.0)
            metric = floor + tables[done.level] @ left
            log_prob = -np.log1p(np.exp(-np.clip(metric, -30, 30)))
            watched = 1 - np.exp(log_prob) if done.metric == "foil_prob" else metric
            return self.outcome(Behaviour(metric > 0, watched, log_prob), done)

        by_method = {name: self.scores(weights * noise[i], task) for i, name in enumerate(("eap", "atp"))}
        methods = {**dict.fromkeys(("weight_gradient", "gradient", "relp"), by_method["eap"]), **by_method}
        ones = np.ones(self.n, bool)
        f = self.outcome(Behaviour(ones, rng.uniform(1, 2, self.n), -ones.astype(float)), None).metric
        return Sample(
            methods, behave, tuple(map(self.group, range(self.n))), self.scores(fine.copy(), task),
            tuple(self.prompts(task, i) for i in range(self.n)), self.chance, self.digest(task),
            totals=f[:, None] * (1 + rng.normal(0, 0.01, (self.n, self.universe.layers + 1))), metric=f,
        )  # fmt: skip

    def world(self, seed: int = 0) -> World:
        """The model with both tasks."""
        return World(self.universe, {task: self.sample(task, 100 * self.seed + seed) for task in CORE}, f"weights {seed}")

    def parameters_of(self, name: str) -> dict[str, Any]:
        """The parameters of a property here."""
        from pytest_circuits.properties import PROPERTIES

        found = {**HEALTHY[name], **self.own.get(name, {})}
        inner = found.get("of")
        fields = PROPERTIES.get(name).parameters.model_fields
        found |= {key: value for key, value in self.parameters.items() if key in fields}
        if inner:
            ((what, given),) = inner.items()
            known = PROPERTIES.get(what).parameters.model_fields
            found["of"] = {what: {**given, **{key: value for key, value in self.parameters.items() if key in known}}}
        return found


def outcome(name: str, setting: Setting) -> Any:
    """The estimate of a property in this setting, or the `Invalid` that it raised. Numerical warnings are errors."""
    others = {"trajectory": range(setting.models), "role_stability": range(setting.models), "drift": [1]}
    series = {f"m{i}": setting.world(i) for i in others[name]} if name in others else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return setting.world().ask(name, series, **setting.parameters_of(name))
        except Invalid as problem:
            return problem


def _scattered(values: Table, task: str) -> Table:
    """Other components on every example."""
    return np.stack([np.roll(row, 5 * i) for i, row in enumerate(values)])


def _all_but_one(values: Table, task: str) -> Table:
    """All components score alike but for one, another on each example."""
    left_out = np.arange(len(values)) % values.shape[1]
    return np.where(np.arange(values.shape[1]) == left_out[:, None], 0.0, 1.0 + values)


def _mlps(values: Table, task: str) -> Table:
    """The MLPs of three layers score highest."""
    found = values.copy()
    if found.shape[1] == 12:
        found[:, 3::4] += 10
    return found


def _broken(what: float) -> Callable[[Table, str], Table]:
    def scores(values: Table, task: str) -> Table:
        found = values.copy()
        found[3, 2] = what
        return found

    return scores


def _changed(**fields: Callable[[Behaviour], Table]) -> Callable[[Behaviour, Any], Behaviour]:
    return lambda found, done: found._replace(**{name: make(found) for name, make in fields.items()})


def _constant(found: Behaviour, done: Any) -> Behaviour:
    return Behaviour(np.ones(len(found.correct), bool), np.ones(len(found.metric)), -np.ones(len(found.metric)))


def _at_chance(found: Behaviour, done: Any) -> Behaviour:
    """Right on 26 of 40 examples, whatever is ablated."""
    return found._replace(correct=np.arange(len(found.correct)) % 20 < 13)


def _nothing_to_keep(found: Behaviour, done: Any) -> Behaviour:
    """The metric moves by noise alone when something is ablated."""
    if done is None or not isinstance(done.live, np.ndarray) or done.live.all():
        return found
    seed = np.packbits(done.live).tolist()
    return found._replace(metric=found.metric * 0 + 2 + np.random.default_rng(seed).normal(0, 1, len(found.metric)))


def _hardly_anything(found: Behaviour, done: Any) -> Behaviour:
    """Intact, the metric is better by a tenth of what it varies by."""
    if done is None:
        return found
    noise = np.random.default_rng(9).normal(0, 1, len(found.metric))
    return found._replace(metric=2 + 0.1 * np.mean(done.live) + (noise - noise.mean()) * (1 - np.mean(done.live)))


NAMED_ALL = {"set": {"units": list(Universe(3, 3).component_names)}}
EVERY_NEURON = [f"L{layer}N{i}" for layer in range(3) for i in range(8)]
HEALTHY_SETTING = Setting()
SITUATIONS: dict[str, Setting] = {
    "empty shared set": Setting(scores=_scattered),
    "all scores zero": Setting(scores=lambda values, task: values * 0),
    "a score is NaN": Setting(scores=_broken(np.nan)),
    "a score is infinite": Setting(scores=_broken(-np.inf)),
    "metrics are NaN": Setting(outcome=_changed(metric=lambda b: b.metric * np.nan, log_prob=lambda b: b.log_prob * np.nan)),
    "the same prompts": Setting(
        prompts=lambda task, i: f"prompt {i}",
        digest=lambda task: "the same",
        own={"stability": {"under": "corruption", "other": None, "other_task": "u"}},
    ),
    "one component": Setting(universe=Universe(1, 0, 1), own={"circuit_match": {"known": ["L0MLP"]}, "steering": {"neurons": 1}}),
    "one example": Setting(n=1),
    "one example, in sample": Setting(n=1, parameters={"split": "in_sample"}),
    "one group": Setting(group=lambda i: "template"),
    "K is N": Setting(
        parameters={"size": "100%", "neurons": "100%"},
        own={"superadditivity": NAMED_ALL, "joint_ablation": NAMED_ALL, "circuit_match": {"known": list(Universe(3, 3).component_names)}},
    ),
    "K is above N": Setting(parameters={"size": 99, "neurons": 99}),
    "nothing changes anything": Setting(outcome=_constant),
    "accuracy at chance": Setting(outcome=_at_chance, chance=0.5),
    "nothing to keep": Setting(outcome=_nothing_to_keep),
    "hardly anything to keep": Setting(outcome=_hardly_anything),
    "no answer is right": Setting(outcome=_changed(correct=lambda b: b.correct & False)),
    "no answer is right, and no gate": Setting(
        outcome=_changed(correct=lambda b: b.correct & False),
        parameters={"min_accuracy": 0.0},
        own={
            "necessity": {"definition": "relative"},
            "sufficiency": {"definition": "relative", "control": "none"},
            "superadditivity": {"effect": "accuracy", "against": "independence"},
        },
    ),
    "the shared set is everything": Setting(
        scores=_all_but_one,
        parameters={"size": 11},
        own={"layer_profile": {"part": None, "layers": [0, 2]}, "steering": {"neurons": None, "units": EVERY_NEURON}},
    ),
    "no control can be drawn": Setting(scores=_mlps, own={"steering": {"neurons": None, "units": EVERY_NEURON[:5]}}),
    "p asks for one example": Setting(parameters={"p": 0.01}, own=removing(0.01)),
    "p asks for all": Setting(parameters={"p": 1.0}, own=removing(1.0)),
}


def with_seed(setting: Setting, seed: int) -> Setting:
    """The same in another made-up study."""
    return replace(setting, seed=seed)
