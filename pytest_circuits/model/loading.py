"""Opening Hugging Face checkpoints, with a clear message for everything that can go wrong."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from ..errors import ModelError, OptionError
from .architectures import FAMILIES
from .hooks import measuring
from .hub_status import at_once
from .model_guards import content_key, plain_state

DTYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}


def dtype_of(name: Any) -> torch.dtype | None:
    """A torch dtype by name; None stays None (the checkpoint's own). Raises `OptionError`."""
    if name is None or isinstance(name, torch.dtype):
        return name
    short = str(name).removeprefix("torch.")
    if short not in DTYPES:
        raise OptionError(f"unknown dtype {name!r}; allowed: {', '.join(DTYPES)}")
    return DTYPES[short]


def looks_local(path: str) -> bool:
    """Whether a model path means a directory rather than a hub id (`name` or `owner/name`)."""
    return Path(path).exists() or path.startswith((".", "/", "~")) or path.count("/") > 1 or "\\" in path


def _place(path: str) -> str:
    return str(Path(path).expanduser()) if looks_local(path) else path


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppress the progress bars and tables of transformers; problems go into one message."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load_model(path: str, revision: str | None, dtype: Any, device: str | None) -> nn.Module:
    """The model in evaluation mode. Raises `ModelError` for a directory or hub id that cannot be opened as a whole."""
    where, local = _place(path), looks_local(path)
    if local:
        _check_directory(path)
        if revision is not None:
            raise ModelError(f"the model {path!r} is a directory, which has no revisions: remove revision {revision!r}")
    from transformers import AutoConfig, AutoModelForCausalLM

    torch_dtype, note = dtype_of(dtype), ""
    try:
        with _quietly(), nullcontext("") if local else at_once() as note:
            config = AutoConfig.from_pretrained(where, revision=revision or "main")
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                where,
                revision=revision or "main",
                **_implementations(config, torch_dtype),
                dtype=torch_dtype or "auto",
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # reported, and refused below with the names
            )
    except Exception as problem:
        nor = "" if local else "; nor is there a directory of that name"
        raise ModelError(f"the model {path!r}{_at(revision)} cannot be loaded: {_reason(problem)}{note}{nor}") from problem
    model, report = loaded
    _check_report(path, report, model.config)
    if device is not None:
        try:
            model = model.to(torch.device(device))
        except (RuntimeError, AssertionError) as problem:
            raise ModelError(f"the model {path!r} cannot be moved to device {device!r}: {_reason(problem)}") from problem
    return model.eval()  # type: ignore[no-any-return]


def _at(revision: str | None) -> str:
    return f" at revision {revision!r}" if revision else ""


def _check_directory(path: str) -> None:
    folder = Path(path).expanduser()
    if not path:
        raise ModelError("the model's path is empty; give the folder that holds config.json, or a hub id such as 'owner/name'")
    if not folder.exists():
        raise ModelError(
            f"the model directory {str(folder)!r} does not exist; give the folder that holds config.json, or a hub id such as 'owner/name'"
        )
    if not folder.is_dir():
        raise ModelError(f"{str(folder)!r} is a file; a model is the folder that holds config.json")
    if not (folder / "config.json").exists():
        names = sorted(p.name for p in folder.iterdir())[:6]
        raise ModelError(f"the model directory {str(folder)!r} has no config.json; it holds {', '.join(names) or 'nothing'}")


def _check_report(path: str, report: Any, config: Any) -> None:
    entries: dict[str, Any] = report if isinstance(report, dict) else vars(report)
    for key, verb in (("missing_keys", "lacks"), ("mismatched_keys", "has the wrong shape for")):
        names = sorted(str(k[0] if isinstance(k, tuple) else k) for k in entries.get(key) or ())
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ModelError(
                f"the checkpoint {path!r} {verb} {', '.join(names[:3])}{more}: these weights would be random. "
                "Save the complete model again, or check that config.json belongs to it"
            )
    layers = getattr(config, "num_hidden_layers", None)
    left_out = sorted(
        {int(n) for key in entries.get("unexpected_keys") or () for n in re.findall(r"\b(?:layers|h)\.(\d+)\.", key)}
        - set(range(layers or 0))
    )
    if layers is not None and left_out:
        raise ModelError(
            f"the checkpoint {path!r} has weights of layer {left_out[0]}, but config.json names {layers} layers: they would be left out. "
            "Check that config.json belongs to it"
        )


def _implementations(config: Any, dtype: torch.dtype | None) -> dict[str, str]:
    """Implementations that an architecture needs: eager attention where scores are capped, which sdpa ignores; eager experts in
    float64, which grouped matrix products do not support.
    """
    family = FAMILIES.get(getattr(config, "model_type", ""))
    implementations = {}
    if family is not None and family.attention_softcap and getattr(config, family.attention_softcap, None) is not None:
        implementations["attn_implementation"] = "eager"
    if family is not None and family.down is None and dtype == torch.float64:
        implementations["experts_implementation"] = "eager"
    return implementations


def load_tokenizer(path: str, revision: str | None) -> Any:
    """The checkpoint's tokenizer, or None without one (tasks of token ids need none). Raises `ModelError` for a broken tokenizer."""
    from transformers import AutoTokenizer

    where, open_tokenizer = _place(path), cast(Any, AutoTokenizer.from_pretrained)
    # without tokenizer files transformers builds an empty tokenizer for some model types
    if looks_local(where) and not any((Path(where) / name).exists() for name in _TOKENIZER_FILES):
        return None
    try:
        with _quietly(), nullcontext("") if looks_local(path) else at_once():
            return open_tokenizer(where, revision=revision or "main")
    except Exception as problem:
        raise ModelError(
            f"the tokenizer of {path!r}{_at(revision)} cannot be loaded: {_reason(problem)}; repair it, or give another tokenizer"
        ) from problem


def _reason(problem: BaseException) -> str:
    """The library's message, on one line."""
    text = " ".join(str(problem).split()) or "no reason given"
    return f"{text if len(text) <= 300 else text[:300] + ' …'} ({type(problem).__name__})"


_TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "vocab.json", "vocab.txt", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
    "tekken.json",
)  # fmt: skip

# entries of a config that do not change what the model computes
_NOT_COMPUTED = {
    "_name_or_path", "transformers_version", "architectures", "dtype", "torch_dtype", "use_cache", "return_dict", "output_hidden_states",
    "output_attentions", "id2label", "label2id", "problem_type", "initializer_range", "pad_token_id", "bos_token_id", "eos_token_id",
}  # fmt: skip


_PROCESS = uuid.uuid4().hex


def behaviour_digest(model: nn.Module) -> str:
    """A digest of a model in memory beyond weights and config: its buffers, and its attributes by the logits of a fixed prompt.

    A user's hooks may depend on anything, so a model with hooks differs from every other model, in this process and in others.
    """
    hooks = [id(h) for m in model.modules() for table in (m._forward_hooks, m._forward_pre_hooks) for h in table.values()]
    patched = [id(m) for m in model.modules() if "forward" in m.__dict__]
    if hooks or patched:
        return f"{_PROCESS}:{'.'.join(f'{i:x}' for i in hooks + patched)}"
    digest = hashlib.sha256()
    for name, buffer in sorted(model.named_buffers()):
        digest.update(name.encode() + buffer.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    embedding: Any = model.get_input_embeddings()  # type: ignore[operator]
    ids = torch.arange(min(8, len(embedding.weight)), device=embedding.weight.device)[None]
    with measuring(model), torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits
    digest.update(logits.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:32]


def weights_digest(model: nn.Module) -> str:
    """sha256 over the class, the config, and the names, types, shapes and bytes of all parameters and buffers.

    Raises `ModelError` for a quantised model.
    """
    digest = hashlib.sha256(type(model).__name__.encode())
    digest.update(_settings(model).encode())
    for name, tensor in sorted(plain_state(model).items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        data = tensor.detach().cpu().contiguous()
        digest.update(data.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:32]


def _settings(model: nn.Module) -> str:
    """The config entries that change what is computed."""
    config: Any = getattr(model, "config", None)
    entries: dict[str, Any] = config.to_dict() if hasattr(config, "to_dict") else {}
    settings = {key: value for key, value in entries.items() if key not in _NOT_COMPUTED and "drop" not in key}
    return json.dumps(settings, sort_keys=True, default=str)


class Digest:
    """The digest of a model's current weights, recomputed only when they may have changed."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._known: tuple[object, str] | None = None

    def now(self) -> str:
        """`weights_digest` of the model. Raises `ModelError` for a quantised one."""
        content = content_key(plain_state(self._model))
        key = None if content is None else (_settings(self._model), content)
        if key is None or self._known is None or self._known[0] != key:
            self._known = key, weights_digest(self._model)
        return self._known[1]
