"""Self-check: whether an anatomy describes a model, numerically, on a few tokens, before anything is measured.

Everything is compared with the plain model or with weight surgery by `torch.func.functional_call`, within the rounding of the
model's precision. The user's hooks are removed meanwhile: the check is about the parts, not about what hooks do to them.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.func import functional_call
from transformers.pytorch_utils import Conv1D

from ..errors import CircuitsError, MeasurementError, ModelError
from ..model.hooks import Hooks, measuring
from ..model.layout import Anatomy
from ..model.module_trace import Trace, random_prompt, trace, without_user_hooks
from ..model.precision import upcast
from ..model.runner import Runner
from ..model.sites import Site, sites_of
from .additivity_check import check_sums
from .attention_check import ROWS, check_wiring, overwrite_with_noise
from .tolerance import Examiner, rounding

TOKENS = 6
ATTEMPTS = 8  # draws of noise, until every reader has shown a change
ADVICE = (
    "The modules named in its Family (pytest_circuits.model.architectures) are not the right ones; describe the architecture with "
    "register_family(model_type, Family(…)), or open the model with check=False if you know why this does not matter"
)


def self_check(anatomy: Anatomy, seed: int = 0) -> None:
    """Raise `ModelError` unless, on a random prompt,

    every hook fires; an intervention that changes nothing leaves the logits bit-identical; residual, heads, biases and MLPs add up
    to each layer's output, through post-norms; layers can be skipped where the stream is known; queries, keys, values and gates
    are wired as named; and removing a random head, MLP and neuron equals surgery on a copy of the weight.
    """
    examiner = Examiner(anatomy.architecture, ADVICE)
    ids = random_prompt(anatomy.model, TOKENS, seed)
    try:
        with measuring(anatomy.model), torch.no_grad(), without_user_hooks(anatomy.model):
            plain = _logits(anatomy.model, ids)
            if not bool(torch.isfinite(plain).all()):
                raise ModelError(
                    f"the logits of this {anatomy.architecture} model are not finite numbers even on {TOKENS} random tokens; "
                    "check the checkpoint for NaN weights, or try dtype: float32"
                )
            recorded = _check_untouched(anatomy, ids, plain, examiner)
            runner = Runner(anatomy.model, anatomy)
            _check_reuse(runner, recorded, ids, plain, examiner)
            _check_wiring(runner, ids, seed, examiner)
            for site, unit in _some_units(anatomy, seed):
                _check_removal(runner, site, unit, recorded, ids, examiner)
    except ModelError:
        raise
    except MeasurementError as problem:
        raise examiner.fail(str(problem)) from problem
    except CircuitsError:
        raise
    except Exception as problem:  # a forward of an arbitrary model may raise anything
        first = (str(problem).strip().splitlines() or ["no reason given"])[0]
        raise examiner.fail(f"it cannot be run on {TOKENS} tokens with hooks on its parts: {first} ({type(problem).__name__})") from problem


def _logits(model: nn.Module, ids: Tensor) -> Tensor:
    logits: Tensor = model(input_ids=ids, use_cache=False).logits
    return logits


def _last_logits(model: nn.Module, ids: Tensor, weights: dict[str, Tensor] | None = None) -> Tensor:
    """Logits of the last position, with some weights replaced during the call; [1, vocabulary]."""
    keep = {"logits_to_keep": 1} if "logits_to_keep" in inspect.signature(model.forward).parameters else {}
    logits: Tensor = functional_call(model, weights or {}, (), {"input_ids": ids, "use_cache": False, **keep}).logits[:, -1]
    return logits


def _check_untouched(anatomy: Anatomy, ids: Tensor, plain: Tensor, examiner: Examiner) -> Trace:
    """A forward with all hooks, where every site is replaced with itself; returns the trace."""
    with Hooks() as hooks:
        for level in ("component", "neuron") if anatomy.neurons else ("component",):
            for site in sites_of(anatomy, level)[0]:
                site.hook(hooks, lambda x: x.clone())
        recorded = trace(anatomy, hooks)
        logits = _logits(anatomy.model, ids)
    if not torch.equal(logits, plain):
        gap = float((upcast(logits) - upcast(plain)).abs().max())
        raise examiner.fail(f"replacing every head, MLP and neuron with itself changes the logits by {gap:.3g}; nothing may change")
    check_sums(anatomy, recorded, logits, examiner)
    return recorded


def _prefix(runner: Runner, recorded: Trace, layer: int) -> AbstractContextManager[None]:
    """Forwards start at this layer, where they may."""
    return runner.starting_at(layer, recorded.outputs["module", layer - 1]) if layer and runner.can_skip else nullcontext()


def _check_reuse(runner: Runner, recorded: Trace, ids: Tensor, plain: Tensor, examiner: Examiner) -> None:
    """Starting from the stream before the last layer gives the logits of a full forward."""
    last = len(runner.anatomy.blocks) - 1
    with _prefix(runner, recorded, last):
        reused = _last_logits(runner.model, ids)
    plain = plain[:, -1]
    allowed = 16 * rounding(plain) * float(upcast(plain).abs().max())
    examiner.same(reused, plain, allowed, f"logits from the stream before layer {last} on (does a layer give a tuple? layer_tuple) differ")


def _check_wiring(runner: Runner, ids: Tensor, seed: int, examiner: Examiner) -> None:
    """Readers, heads and gates under noise, repeated with other noise while a reader's change is lost in rounding."""
    silent = None
    for attempt in range(ATTEMPTS):
        with Hooks() as hooks:
            recorded = overwrite_with_noise(runner.anatomy, hooks, TOKENS, seed, attempt)
            runner.logits(ids.repeat(ROWS, 1), 1)
        unseen = check_wiring(runner.anatomy, recorded, examiner)
        silent = unseen if silent is None else silent & unseen
        if not silent:
            return
    layer, what = min(silent or ())
    raise examiner.fail(
        f"replacing a part of a {what} in layer {layer} does not change the whole of its head's output: its columns are not where the "
        "anatomy says, or queries and keys are exchanged, or heads are cut at the wrong places"
    )


def _some_units(anatomy: Anatomy, seed: int) -> list[tuple[Site, int]]:
    """A random head, a random MLP and, where there are any, a random neuron."""
    r = random.Random(seed)
    components, _ = sites_of(anatomy)
    kinds = [[s for s in components if s.kind == kind] for kind in ("heads", "mlp")]
    if anatomy.neurons:
        kinds.append(sites_of(anatomy, "neuron")[0])
    return [(site, r.randrange(site.units)) for site in (r.choice(sites) for sites in kinds)]


def _check_removal(runner: Runner, site: Site, unit: int, recorded: Trace, ids: Tensor, examiner: Examiner) -> None:
    """Logits with a unit zeroed by a hook, and with its weights zeroed in a copy."""

    def zero(x: Tensor) -> Tensor:
        x = x.clone()
        x[:, :, unit] = 0
        return x

    with _prefix(runner, recorded, site.layer), Hooks() as hooks:
        site.hook(hooks, zero)
        hooked = _last_logits(runner.model, ids)
    operated = _last_logits(runner.model, ids, _operated(runner.anatomy, site, unit, examiner))
    name = {"heads": f"head {unit}", "mlp": "the MLP", "neurons": f"neuron {unit}"}[site.kind]
    allowed = 16 * rounding(operated) * float(upcast(operated).abs().max())
    examiner.same(
        hooked, operated, allowed, f"removing {name} of layer {site.layer} by a hook and by weight surgery give other logits; they differ"
    )


def _operated(anatomy: Anatomy, site: Site, unit: int, examiner: Examiner) -> dict[str, Tensor]:
    """Copies of the parameters that a unit lives in, with its part zeroed, by parameter name."""
    names = {id(p): name for name, p in anatomy.model.named_parameters()}
    if site.kind == "mlp":
        owners = list(site.module.parameters())
        edit: Callable[[Tensor], Tensor] = torch.zeros_like
    else:
        owners = [site.module.weight]  # type: ignore[list-item]
        inputs = slice(unit * site.width, (unit + 1) * site.width)

        def edit(weight: Tensor) -> Tensor:
            copy = weight.detach().clone()
            (copy if isinstance(site.module, Conv1D) else copy.T)[inputs] = 0
            return copy

    missing = next((p for p in owners if id(p) not in names), None)
    if missing is not None or not owners:
        raise examiner.fail(
            f"the weight of a projection in layer {site.layer} is not a parameter of the model (pruned or parametrised?): make it "
            "permanent first, for instance with torch.nn.utils.prune.remove"
        )
    return {names[id(p)]: edit(p) for p in owners}
