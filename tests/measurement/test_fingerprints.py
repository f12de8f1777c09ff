"""A model's identity follows its files, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_circuits.core.sources import ModelSource
from pytest_circuits.errors import ModelError
from pytest_circuits.measurement import fingerprints as fingerprint
from pytest_circuits.measurement.fingerprints import cached_config, file_digest, identify
from tests.fakes.executor import model_directory


def age(path, seconds=60):
    """Make a file look as if written some time ago."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns - seconds * 10**9, stat.st_mtime_ns - seconds * 10**9))


def write(name, content):
    return lambda folder: (folder / name).write_text(content)


CHANGES = {
    "weights": (write("model.safetensors", "other"), True, False),
    "config": (write("config.json", '{"num_hidden_layers": 3}'), True, False),
    "a second shard": (write("model-2.safetensors", "x"), True, False),
    "an adapter": (write("adapter_config.json", "{}"), True, False),
    "tokenizer": (write("tokenizer.json", '{"a": 1}'), False, True),
    "a new tokenizer file": (write("special_tokens_map.json", "{}"), False, True),
    "generation settings": (write("generation_config.json", '{"temperature": 2}'), False, False),
    "a recipe": (write("train.py", "print()"), False, False),
    "the optimizer": (write("optimizer.bin", "x"), False, False),
    "a readme": (write("README.md", "x"), False, False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_identity_changes_with_what_matters_only(tmp_path, change):
    """Weights and config change the model, tokenizer files the tokenizer, other files nothing."""
    source = model_directory(tmp_path / "m")
    before = identify(source)
    act, model, tokenizer = CHANGES[change]
    act(tmp_path / "m")
    after = identify(source)
    assert (before.model != after.model, before.tokenizer != after.tokenizer) == (model, tokenizer)


def test_code_of_the_model_counts_where_the_config_runs_it(tmp_path):
    """With auto_map, modelling code in the folder is part of the model."""
    source = model_directory(tmp_path / "m", config={"auto_map": {"AutoModel": "modeling.M"}})
    (tmp_path / "m" / "modeling.py").write_text("a = 1")
    before = identify(source)
    (tmp_path / "m" / "modeling.py").write_text("a = 2")
    assert identify(source).model != before.model


def test_a_copy_elsewhere_is_the_same_model(tmp_path):
    """Content counts, not the place or the name."""
    first = identify(model_directory(tmp_path / "a"))
    assert identify(replace(model_directory(tmp_path / "b"), name="other")) == first


def test_swapping_the_content_of_two_shards_is_noticed(tmp_path):
    """File names are part of the digest."""
    source = model_directory(tmp_path / "m", weights=b"one")
    (tmp_path / "m" / "b.safetensors").write_bytes(b"two")
    before = identify(source)
    (tmp_path / "m" / "model.safetensors").write_bytes(b"two")
    (tmp_path / "m" / "b.safetensors").write_bytes(b"one")
    assert identify(source).model != before.model


def test_a_renamed_file_is_noticed(tmp_path):
    """The same bytes under another name mean something else."""
    source = model_directory(tmp_path / "m")
    before = identify(source)
    (tmp_path / "m" / "tokenizer.json").rename(tmp_path / "m" / "vocab.json")
    assert identify(source).tokenizer != before.tokenizer


def reads(monkeypatch):
    """Counts how often file contents are digested."""
    seen = []
    real = fingerprint.hashlib.file_digest
    monkeypatch.setattr(fingerprint.hashlib, "file_digest", lambda file, how: seen.append(file.name) or real(file, how))
    return seen


def settled(monkeypatch):
    """As if two seconds had passed since every write of this test."""
    real = fingerprint.time.time_ns
    monkeypatch.setattr(fingerprint.time, "time_ns", lambda: real() + 10**10)


def test_unchanged_weights_are_read_once(tmp_path, monkeypatch):
    """16 GB are not digested on each run."""
    source = model_directory(tmp_path / "m")
    settled(monkeypatch)
    seen = reads(monkeypatch)
    first = identify(source, tmp_path / "memo")
    count = len(seen)
    assert (identify(source, tmp_path / "memo"), len(seen), count) == (first, 3, 3)


def test_weights_replaced_with_the_same_size_and_time_are_noticed(tmp_path, monkeypatch):
    """`cp -p` and rsync keep the modification time; the change time tells."""
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"aaaa")
    age(path)
    settled(monkeypatch)
    before, times = file_digest(path, tmp_path / "memo"), path.stat()
    path.write_bytes(b"bbbb")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_mtime_ns == times.st_mtime_ns
    assert file_digest(path, tmp_path / "memo") != before


def test_a_file_written_just_now_is_not_remembered(tmp_path, monkeypatch):
    """Within the clock's grain it may change again and look the same."""
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"aaaa")
    monkeypatch.setattr(fingerprint.time, "time_ns", lambda: path.stat().st_ctime_ns + 10**9)
    file_digest(path, tmp_path / "memo")
    assert not (tmp_path / "memo").exists()


@pytest.mark.parametrize("content", ["", "[]", '{"sha256": "short"}', "\udcff"])
def test_a_damaged_memory_is_ignored(tmp_path, monkeypatch, content):
    """Digests are made again, not trusted."""
    path = tmp_path / "w.safetensors"
    path.write_bytes(b"aaaa")
    settled(monkeypatch)
    digest = file_digest(path, tmp_path / "memo")
    (note,) = (tmp_path / "memo").iterdir()
    note.write_bytes(content.encode("utf-8", "surrogateescape"))
    seen = reads(monkeypatch)
    assert (file_digest(path, tmp_path / "memo"), len(seen)) == (digest, 1)


def broken(tmp_path, how):
    folder = tmp_path / "models" / "m"
    source = model_directory(folder)
    if how == "missing":
        return replace(source, path=str(folder) + "x")
    if how == "file":
        return replace(source, path=str(folder / "config.json"))
    if how == "revision":
        return replace(source, revision="step1000")
    if how == "no config":
        (folder / "config.json").unlink()
    if how == "no weights":
        (folder / "model.safetensors").unlink()
    if how == "bad config":
        (folder / "config.json").write_text("{")
    if how == "shard":
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return source


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", r"there is no directory .*mx; .*models has m$"),
        ("file", "is a file; give the directory"),
        ("revision", "is a directory, which has no revisions: remove revision 'step1000'"),
        ("no config", r"has no config.json \(found: model.safetensors, tokenizer.json\)"),
        ("no weights", r"has config.json but no weights.*found: config.json, tokenizer.json"),
        ("bad config", "config.json is not valid JSON"),
        ("shard", "is not complete: model.safetensors.index.json names model-2.safetensors, which is not there"),
    ],
)
def test_a_path_that_is_no_model_says_what_is_wrong(tmp_path, how, message):
    """One clear message each, naming the model."""
    with pytest.raises(ModelError, match=message) as error:
        identify(broken(tmp_path, how))
    assert "model 'm'" in str(error.value)


@pytest.mark.parametrize("source", [ModelSource("m", loader="pkg:fn"), ModelSource("m"), ModelSource("m", path="nobody/no-such-model")])
def test_what_only_loading_can_tell_has_no_identity_here(source, tmp_path, monkeypatch):
    """Loaders, modules, and hub ids that are not downloaded."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert identify(source) is None


def hub(cache, commit, revision="main", repo="owner/name"):
    """A local hub cache as huggingface_hub lays it out."""
    root = cache / f"models--{repo.replace('/', '--')}"
    (root / "refs").mkdir(parents=True, exist_ok=True)
    (root / "refs" / revision).write_text(commit)
    snapshot = root / "snapshots" / commit
    snapshot.mkdir(parents=True, exist_ok=True)
    (snapshot / "config.json").write_text("{}")
    return snapshot


def test_a_downloaded_hub_id_is_its_commit(tmp_path, monkeypatch):
    """Branches move; the commit is what was measured. Another revision is another model."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    snapshot = hub(tmp_path, "a" * 40)
    hub(tmp_path, "b" * 40, "step1000")
    source = ModelSource("m", path="owner/name")
    assert identify(source).commit == "a" * 40
    assert identify(replace(source, revision="step1000")).commit == "b" * 40
    assert cached_config(source) == snapshot / "config.json"
    before = identify(source)
    hub(tmp_path, "c" * 40)
    assert identify(source) != before


def test_identities_import_neither_torch_nor_transformers(tmp_path):
    """Also for hub ids."""
    model_directory(tmp_path / "m")
    code = (
        "import sys; from pytest_circuits.measurement.fingerprints import identify; from pytest_circuits.core.sources import ModelSource as S\n"  # noqa: E501
        f"identify(S('m', {str(tmp_path / 'm')!r})); identify(S('h', 'owner/name'))\n"
        "print([m for m in ('torch', 'transformers', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, "HF_HUB_CACHE": str(tmp_path)}
    )
    assert done.stdout.strip() == "[]"
