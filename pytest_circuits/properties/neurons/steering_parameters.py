"""Parameters of `steering`: the cluster of neurons, its factor, and the probability that is watched."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..parameters import CircuitSize, MethodName, Options, Parameters, TaskName, check_method

Factor = Annotated[float, Field(allow_inf_nan=False)]


class Steering(Parameters):
    """steering = mean P(watched | cluster × factor) − mean P(watched | intact), on evaluation examples; in [−1, 1].

    The inputs of the down projection that belong to a cluster of neurons are multiplied by `factor` at all positions. The cluster is the
    `neurons` of largest |mean score| over the discovery examples, or `units` by name. The watched probability is that of the `answer` or of
    the `foils` (that the answer begins like one of them), of the task itself or of another task with the same prompts, such as capitals
    with target: state. `against: control` subtracts the change under random clusters with as many neurons in each layer, outside the
    cluster, and so the effect of any disturbance of that size. The report has the curve over all `factors`. Every group counts the same.
    Invalid: below the accuracy gate, for a cluster of all neurons, if fewer than `neurons` have a score, if the tasks have no common
    prompts, if the controls cannot be drawn. Source: Language model circuits are sparse in the neuron basis. Interval: betting over groups;
    with controls, betting over groups and t over draws, in quadrature.
    """

    task: TaskName
    factor: Annotated[Factor, Field(description="factor of the cluster; 1 would be the intact model")]
    neurons: Annotated[CircuitSize | None, Field(description="cluster: number of strongest neurons, a count or a share of all")] = None
    units: Annotated[list[str] | None, Field(min_length=1, description="cluster: these neurons, e.g. [L3N17, L4N200]")] = None
    attribution: Annotated[MethodName, Field(description="attribution method that ranks neurons")] = "relp"
    attribution_options: Annotated[Options, Field(description="options of the attribution method")] = Field(default_factory=dict)
    watch: Annotated[Literal["answer", "foils"], Field(description="whether the answer's or the foils' probability is watched")] = "answer"
    watch_task: Annotated[
        str | None, Field(description="watch the answer or foils of this task on the same prompts", json_schema_extra={"circuits": "task"})
    ] = None
    against: Annotated[Literal["intact", "control"], Field(description="compare with the intact model, or with random clusters")] = "intact"
    factors: Annotated[list[Factor], Field(min_length=1, description="factors of the curve in the report")] = Field(
        default_factory=lambda: [-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0]
    )
    draws: Annotated[int, Field(ge=2, description="random control clusters")] = 20
    control_seed: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _fits(self) -> Steering:
        check_method(self.attribution, self.attribution_options, "neuron", self.metric)
        if (self.neurons is None) == (self.units is None):
            raise ValueError("give the cluster either as neurons (the number of strongest) or as units (a list of names)")
        if self.units is not None and len(set(self.units)) < len(self.units):
            raise ValueError("units: a neuron is named twice")
        if self.factor == 1:
            raise ValueError("factor: 1 is the intact model, with which the change is compared; choose another factor")
        if self.watch_task == self.task:
            raise ValueError("watch_task is the task itself; leave it out")
        return self
