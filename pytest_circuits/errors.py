"""Errors. Each message says what is wrong, where, and what to do about it.

Everything that pytest-circuits raises on purpose derives from `CircuitsError`. Such an error makes the claim that is being
evaluated *invalid*; the other claims go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Any


class ReasonCode(StrEnum):
    """Why a claim is invalid, for programs; the message of `Invalid` says it to people."""

    INVALID = "invalid"  # no code of its own; see the message
    ACCURACY_BELOW_GATE = "accuracy-below-gate"  # the intact model's accuracy is below min_accuracy
    ACCURACY_NOT_ABOVE_CHANCE = "accuracy-not-above-chance"  # the intact model may be guessing
    TOO_FEW_GROUPS = "too-few-groups"  # too few independent groups of examples for a split or an interval
    NOT_FINITE = "not-finite"  # measured values are NaN or infinite
    NO_CIRCUIT = "no-circuit"  # no example has a circuit: scores are zero or below the threshold
    CIRCUIT_IS_EVERYTHING = "circuit-is-everything"  # a circuit or set holds all units, so nothing is left to compare it with
    SHARE_OF_ONE_EXAMPLE = "share-of-one-example"  # a single discovery example reaches the share P
    EMPTY_SHARED_SET = "empty-shared-set"  # no component is in a share P of the circuits
    EMPTY_SET = "empty-set"  # another set, or a part of one, has no or too few members
    SAME_PROMPTS = "same-prompts"  # two tasks, or discovery and evaluation, have prompts in common
    SAME_TASK = "same-task"  # a task is compared with itself
    DIFFERENT_PROMPTS = "different-prompts"  # the prompts of two tasks do not match where they must
    NOTHING_TO_CONTRAST = "nothing-to-contrast"  # contrast names no other task with scores
    CONTROL_CANNOT_BE_DRAWN = "control-cannot-be-drawn"  # too few components are left outside the set for a control
    CONTROL_IS_THE_SET = "control-is-the-set"  # the control rule allows the set itself and no other
    ZERO_DENOMINATOR = "zero-denominator"  # a ratio divides by a value that is zero or not clearly away from it
    UNDEFINED_STATISTIC = "undefined-statistic"  # a statistic is undefined on the data, or on too many resamples
    NOTHING_TO_EXPLAIN = "nothing-to-explain"  # ablating everything does not lower the metric
    NOTHING_TO_RANK = "nothing-to-rank"  # all scores of a ranking are zero
    UNKNOWN_UNIT = "unknown-unit"  # the model does not have a component that the claim names
    TOO_FEW_UNITS = "too-few-units"  # the model, the set or the ranking has fewer units than the claim needs
    CONSTANT_RANKING = "constant-ranking"  # all components rank alike
    GAP_OUT_OF_REACH = "gap-out-of-reach"  # no two components can differ by as many ranks as `gap`
    NO_EFFECT = "no-effect"  # no ablation changes anything
    NO_NEURONS = "no-neurons"  # the model's MLPs are mixtures of experts
    NO_FOILS = "no-foils"  # a task has no foils, and the claim needs them
    FAITHFULNESS_NOT_REACHED = "faithfulness-not-reached"  # no circuit of units with a score is faithful enough
    TOO_FEW_MODELS = "too-few-models"  # a series has too few models, or none on one side of `at`
    MODEL_CANNOT_BE_MEASURED = "model-cannot-be-measured"  # the property is invalid for a model of a series
    DIFFERENT_COMPONENTS = "different-components"  # the components of two models do not correspond
    SAME_WEIGHTS = "same-weights"  # two models of a series are the same
    NO_RELEASE = "no-release"  # there is no release to compare with, or it was measured differently
    BASELINE_CONTRADICTS_ITSELF = "baseline-contradicts-itself"  # an entry of a baseline was edited
    MISSING_PACKAGE = "missing-package"  # an optional package is not installed
    NO_SEARCH = "no-search"  # hypothesis cannot search: its profile, a health check, or no example that can be tested
    NO_SET_TO_DRAW = "no-set-to-draw"  # no set of components has the size that the claim needs
    NO_PROMPTS_TO_DRAW = "no-prompts-to-draw"  # hardly any draw of a grammar makes a prompt pair
    TOO_FEW_FITTING_PROMPTS = "too-few-fitting-prompts"  # too many drawn prompts do not fit the tokenizer
    MODEL_ERROR = "model-error"  # the model cannot be opened or is not supported
    TASK_ERROR = "task-error"  # the task's data cannot be read, or does not fit the tokenizer
    OPTION_ERROR = "option-error"  # a parameter has a value that is not allowed
    MEASUREMENT_ERROR = "measurement-error"  # a measurement ran, but its result cannot be trusted
    OFFLINE = "offline"  # not measured, and --circuits-offline forbids it
    INTERNAL_ERROR = "internal-error"  # an unexpected exception
    NO_LAYERS = "no-layers"  # the layers that the claim names are none, or all, of the model's


class CircuitsError(Exception):
    """Base of all errors raised on purpose. `code` is the reason code in reports of a claim that the error made invalid."""

    code: str = ReasonCode.INVALID.value


class SpecError(CircuitsError):
    """A mistake in a spec file. Remedy: correct the file at the line and column in the message."""

    def __init__(self, path: str, line: int, column: int, problem: str) -> None:
        super().__init__(f"{path}:{line}:{column}: {problem}")
        self.path, self.line, self.column, self.problem = path, line, column, problem


class ModelError(CircuitsError):
    """A model cannot be opened or is not supported."""

    code = ReasonCode.MODEL_ERROR.value


class TaskError(CircuitsError):
    """A task's data cannot be read, or does not fit the model's tokenizer."""

    code = ReasonCode.TASK_ERROR.value


class UnitError(CircuitsError, ValueError):
    """A component, neuron or set name that does not exist in the model."""

    code = ReasonCode.UNKNOWN_UNIT.value


class OptionError(CircuitsError, ValueError):
    """A parameter of a library call has a value that is not allowed."""

    code = ReasonCode.OPTION_ERROR.value


class MeasurementError(CircuitsError):
    """A measurement ran, but its result cannot be trusted (a hook did not fire, values are not finite …)."""

    code = ReasonCode.MEASUREMENT_ERROR.value


class MutationError(CircuitsError):
    """A mutant cannot be built: its operator does not fit the model or the task. The other mutants go on."""


class Offline(CircuitsError):  # noqa: N818
    """A measurement is not in the cache and `--circuits-offline` forbids making it."""

    code = ReasonCode.OFFLINE.value


class Invalid(CircuitsError):  # noqa: N818
    """A claim cannot be evaluated: there is nothing to measure, or the measurement would mean nothing.

    `details` go into the report, so that a reader sees the numbers behind the reason. `code` names the reason for
    programs; properties of other packages may use words of their own.
    """

    def __init__(self, reason: str, details: Mapping[str, Any] | None = None, *, code: str = ReasonCode.INVALID) -> None:
        super().__init__(reason)
        self.details: dict[str, Any] = dict(details or {})
        self.code = str(code)


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """`did you mean 'x'?` followed by what is allowed, for the end of an error message."""
    options = sorted(str(a) for a in allowed)
    near = get_close_matches(str(word), options, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}allowed: {', '.join(options)}" if options else "nothing is allowed here"
