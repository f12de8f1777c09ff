"""A model opened for measuring: the entry point of the torch side.

subject = open_model("models/multitask-llama")
attribution = subject.attribute(load_task("ioi", n=64), method="eap")
attribution.circuits("10%").shared(0.95)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

from torch import nn

from .ablation import ABLATIONS
from .ablation.each import ablate_each
from .ablation.run import ablate
from .ablation.sweep import sweep
from .ablation.trial import TrialAnswer, answer_of, trial_of
from .attribution import METHODS
from .attribution.conservation import conservation
from .attribution.method import AttributeOptions, attribute
from .core.results import Attribution, ComponentNorms, Conservation, Description, Outcome, SweepOutcome
from .core.units import level_of
from .errors import ModelError, OptionError, TaskError, UnitError
from .inspection.locate import anatomy_of
from .inspection.self_check import self_check
from .model.contributions import contribution_norms
from .model.encoded_task import EncodedTask, encode
from .model.loading import Digest, behaviour_digest, dtype_of, load_model, load_tokenizer
from .model.model_guards import plain_state, refuse_compiled
from .model.runner import Runner
from .registry import with_options
from .tasks.base import PromptPair, Task

Examples = Sequence[int] | None


class Subject:
    """An unmodified Hugging Face model with its tokenizer, and the measurements on it.

    `anatomy` locates heads, MLPs and neurons; `fingerprint` is a digest of config and weights. Every measurement
    leaves the model unchanged: hooks, mode, flags, gradients, weights.
    """

    def __init__(self, model: nn.Module, tokenizer: Any = None, name: str = "") -> None:
        self.model, self.tokenizer = model, tokenizer
        self.name = name or type(model).__name__
        refuse_compiled(model)
        plain_state(model)
        self.anatomy = anatomy_of(model)
        self._digest = Digest(model)
        self._runner = Runner(model, self.anatomy)
        self._encoded: dict[str, EncodedTask] = {}

    @property
    def fingerprint(self) -> str:
        """A digest of the current config and weights, recomputed only when they may have changed."""
        return self._digest.now()

    def __repr__(self) -> str:
        u = self.anatomy.universe
        return f"Subject({self.name!r}, {self.anatomy.architecture}, {u.layers} layers × {u.heads} heads)"

    @property
    def behaviour(self) -> str:
        """A digest of buffers, attributes and hooks, which distinguishes models in memory with equal weights and config."""
        return behaviour_digest(self.model)

    @property
    def forwards(self) -> int:
        """Batched forward calls so far."""
        return self._runner.forwards

    @property
    def backwards(self) -> int:
        """Batched backward calls so far."""
        return self._runner.backwards

    def describe(self) -> Description:
        """Fingerprint, architecture, size and universe."""
        parameters = sum(p.numel() for p in self.model.parameters())
        dtype = str(next(self.model.parameters()).dtype).removeprefix("torch.")
        return Description(self.fingerprint, self.anatomy.architecture, parameters, self.anatomy.universe, dtype)

    def encode(self, task: Task) -> EncodedTask:
        """The task as this model's tokenizer sees it. Raises `TaskError` when they do not fit."""
        if not isinstance(task, Task):
            raise TaskError(f"a task is needed, got {type(task).__name__}; make one with load_task(…)")
        if task.fingerprint not in self._encoded:
            config: Any = self.model.config
            longest = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None)
            self._encoded[task.fingerprint] = encode(task, self.tokenizer, self._runner.vocabulary, longest)
        return self._encoded[task.fingerprint]

    def attribute(
        self,
        task: Task,
        method: str = "eap",
        level: str = "component",
        metric: str = "logit_diff",
        batch_size: int | None = None,
        examples: Examples = None,
        reduce: str | None = None,
        top: int | None = None,
        **options: Any,
    ) -> Attribution:
        """Attribution scores of every unit on every example; see `pytest_circuits.attribution` for the methods.

        Returns scores float32 [n_examples, n_units]; with `reduce="mean"` one row, the signed mean; with `top` only the
        strongest units of each example are stored, so memory does not grow with all units. `examples` selects examples of the
        task by index; `options` are those of the method (steps, positions, normalisation …). Scores do not depend on the
        batch size. Raises `OptionError`, `TaskError`, `MeasurementError`.
        """
        encoded = self.encode(task)
        call = AttributeOptions(metric, level, batch_size, _chosen(encoded, examples), reduce, options, top)
        return attribute(self._runner, encoded, METHODS.get(method), call)

    def ablate(
        self,
        task: Task,
        remove: Iterable[str] | None = None,
        keep: Iterable[str] | None = None,
        kind: str = "zero",
        metric: str = "logit_diff",
        batch_size: int | None = None,
        examples: Examples = None,
        reference: Examples = None,
        **options: Any,
    ) -> Outcome:
        """Ablate a set of units (`remove`), or everything but a set (`keep`), on every example.

        Units are all components, all neurons, or all edges; `keep=[]` is at the level in the option `level` (component).
        With neurons the universe of `keep` is the MLP neurons and attention stays live. A name with a position, `L1N7@-1`, is
        replaced at that position only. The reader of a removed edge, and no other, reads the stream with the source's current
        contribution replaced; what follows is recomputed. Returns an `Outcome` of [n_examples] arrays
        with the intact model as its `baseline`. `reference` are the examples that a mean ablation takes its means over (default:
        the ablated ones). Raises `UnitError` for an unknown name.
        """
        if (remove is None) == (keep is None):
            raise OptionError("give exactly one of remove=… and keep=…")
        names = _names(remove if remove is not None else keep)
        level = options.pop("level", None) or level_of(names)
        shared: dict[str, Any] = {"level": level, "metric": metric, "batch_size": batch_size, "examples": examples, "reference": reference}
        mode = "remove" if remove is not None else "keep"
        outcome = self.ablate_many(task, [names], mode, kind, **shared, **options)
        intact = self.ablate_many(task, [()], "remove", "zero", **{**shared, "level": "component"})
        return Outcome(
            outcome.correct[0], outcome.metric[0], outcome.log_prob[0], Outcome(intact.correct[0], intact.metric[0], intact.log_prob[0])
        )

    def ablate_many(
        self,
        task: Task,
        sets: Sequence[Sequence[str]],
        mode: str = "remove",
        kind: str = "zero",
        level: str = "component",
        metric: str = "logit_diff",
        batch_size: int | None = None,
        examples: Examples = None,
        reference: Examples = None,
        **options: Any,
    ) -> Outcome:
        """Several sets at once, stacked in one batch; arrays [n_sets, n_examples]. An empty removed set is the intact model bit for bit.

        With the option `each` the i-th set is ablated on the i-th example only; arrays [1, n_examples].
        """
        site, each = options.pop("site", "mlp_activation"), options.pop("each", False)
        chosen, encoded = with_options(ABLATIONS.get(kind), options), self.encode(task)
        rows, others = _chosen(encoded, examples), _chosen(encoded, examples if reference is None else reference)
        run = ablate_each if each else ablate
        return run(self._runner, encoded, [_names(s) for s in sets], mode, chosen, level, metric, batch_size, rows, others, site)

    def answer(
        self,
        pair: PromptPair,
        remove: Iterable[str] | None = None,
        keep: Iterable[str] | None = None,
        like: Task | None = None,
        kind: str = "zero",
        metric: str = "logit_diff",
        **options: Any,
    ) -> TrialAnswer:
        """The model's answer to one pair with some components removed, or all others; `.intact` is that of the intact model.

        `like`: the task whose scoring applies; without it the answer is compared with the foils if there are any, else with the
        whole vocabulary. Raises as `ablate`, and `OptionError` for kinds that take values from other prompts.
        """
        units = {"remove": None if remove is None else _names(remove), "keep": None if keep is None else _names(keep)}
        trial = trial_of(pair, units["remove"], units["keep"], kind, metric, options, like)
        task = Task("pair", (pair,), trial.scoring, trial.stop)
        intact = answer_of(self.ablate_many(task, [()], "remove", "zero", metric=metric))
        changed = self.ablate_many(task, [trial.units], trial.mode, kind, metric=metric, **options)
        return answer_of(changed, intact=intact)

    def sweep(
        self,
        task: Task,
        kind: str = "zero",
        metric: str = "logit_diff",
        batch_size: int | None = None,
        examples: Examples = None,
        reference: Examples = None,
        **options: Any,
    ) -> SweepOutcome:
        """Exact effect of every component by itself; arrays [n_examples, n_components] with the intact model as `baseline`."""
        chosen, encoded = with_options(ABLATIONS.get(kind), options), self.encode(task)
        rows, others = _chosen(encoded, examples), _chosen(encoded, examples if reference is None else reference)
        return sweep(self._runner, encoded, chosen, metric, batch_size, rows, others)

    def norms(self, task: Task, examples: Examples = None, batch_size: int | None = None) -> ComponentNorms:
        """Mean L2 norm of each component's own contribution, over all positions of the clean prompts; values [n_components].

        A head contributes its slice of the output projection's input through its rows of that projection, an MLP its down projection's
        output; both before any post-norm.
        """
        encoded = self.encode(task)
        return contribution_norms(self._runner, encoded, batch_size, _chosen(encoded, examples))

    def conserve(
        self,
        task: Task,
        rules: str = "relp",
        metric: str = "logit_diff",
        examples: Examples = None,
        batch_size: int | None = None,
    ) -> Conservation:
        """Whether relevance in the residual stream adds up to the metric: Σ x·∂f/∂x at every layer boundary, and the biases' terms.

        rules: relp (the replacement model, where they add up) or none (the model's own gradient, where they do not). Raises
        `OptionError` for metrics that are not homogeneous in the logits.
        """
        encoded = self.encode(task)
        return conservation(self._runner, encoded, metric, rules, batch_size, _chosen(encoded, examples))


def _chosen(task: EncodedTask, examples: Examples) -> Examples:
    """Example numbers as plain ints. Raises `OptionError` for an empty selection, and for a number that the task does not have."""
    if examples is None:
        return None
    if any(type(i).__name__ in ("bool", "bool_") for i in examples):
        raise OptionError("examples are selected by number, not by a mask; use numpy.flatnonzero(mask)")
    try:
        rows = [index(i) for i in examples]
    except TypeError as problem:
        raise OptionError(f"examples are selected by number, with a list of integers: {problem}") from None
    wrong = next((i for i in rows if not 0 <= i < task.n), None)
    if wrong is not None:
        raise OptionError(f"example {wrong} does not exist: task {task.name!r} has examples 0–{task.n - 1}")
    if not rows:
        raise OptionError(f"no examples are selected: task {task.name!r} has {task.n}; leave out examples to take all of them")
    return rows


def _names(units: Iterable[str] | None) -> tuple[str, ...]:
    """A set of unit names. Raises `UnitError` for a single name instead of a list."""
    if isinstance(units, str):
        raise UnitError(f"a set of units is a list of names, write [{units!r}]")
    return tuple(units if units is not None else ())


def open_model(
    path_or_module: str | nn.Module,
    tokenizer: Any = None,
    *,
    revision: str | None = None,
    dtype: Any = None,
    device: str | None = None,
    check: bool = True,
) -> Subject:
    """Open a directory, a hub id, or a model that is already in memory.

    dtype: name of a torch dtype; default the checkpoint's own. device: default the CPU. A module in memory is used as it is:
    another dtype, device or revision is refused, since it would change the caller's model. `check` compares the model with
    its anatomy numerically, on a few tokens (see `pytest_circuits.inspection.self_check`). Raises `ModelError` for a model that is missing,
    incomplete, of an architecture that is neither known nor can be probed, or that fails the check.
    """
    if isinstance(path_or_module, nn.Module):
        if revision is not None:
            raise OptionError(f"a model in memory has no revisions: remove revision {revision!r}")
        first = next(path_or_module.parameters(), None)
        if first is None:
            raise ModelError(f"{type(path_or_module).__name__} has no parameters: it is not a language model")
        wanted = dtype_of(dtype)
        if (device is not None and first.device.type != str(device).split(":")[0]) or wanted not in (None, first.dtype):
            raise OptionError(
                f"the model in memory is {first.dtype} on {first.device}; convert it first, since the caller's model is never changed"
            )
        return _checked(Subject(path_or_module, tokenizer), check)
    if not isinstance(path_or_module, (str,)) and not hasattr(path_or_module, "__fspath__"):
        raise ModelError(f"a model is a path, a hub id or a torch module, not a {type(path_or_module).__name__}")
    path = str(path_or_module)
    model = load_model(path, revision, dtype, device)
    return _checked(Subject(model, tokenizer if tokenizer is not None else load_tokenizer(path, revision), path), check)


def _checked(subject: Subject, check: bool) -> Subject:
    if check and not subject.anatomy.probed:  # probing includes the check
        self_check(subject.anatomy)
    return subject
