"""The store keeps what was measured, once, and notices what is not whole."""

from __future__ import annotations

import errno
import json
import os
import threading
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from pytest_circuits.measurement import store as store_module
from pytest_circuits.measurement.entry import SCHEMA, DamagedError, dump, load, read_metadata
from pytest_circuits.measurement.events import CacheWarning
from pytest_circuits.measurement.store import BusyError, Store

KEY = "ab" + "0" * 62
VALUE = {"scores": np.arange(6, dtype=np.float32), "names": ("L0H0",)}


def fetch(store, make=lambda: VALUE, key=KEY, **options):
    return store.fetch(key, make, kind="Test", request="a test", **options)


def never():
    raise AssertionError("measured again")


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and "locks" not in p.parts)


def test_a_measurement_is_made_once_and_read_afterwards(tmp_path):
    """The second session finds it; the file is where its key says."""
    _, was_there = fetch(Store(tmp_path / "c"))
    assert not was_there
    found, was_there = fetch(Store(tmp_path / "c"), never)
    assert was_there
    assert found["scores"].tolist() == VALUE["scores"].tolist()
    assert files(tmp_path / "c") == [".gitignore", "CACHEDIR.TAG", f"ab/{KEY}.safetensors"]


def test_a_result_is_the_same_object_for_the_rest_of_the_session(tmp_path):
    """Read once, then from memory."""
    store = Store(tmp_path / "c")
    fetch(store)
    assert fetch(store, never)[0] is fetch(store, never)[0]


def test_memory_is_bounded_and_what_fell_out_is_read_again(tmp_path):
    """Large neuron attributions must not pile up."""
    store = Store(tmp_path / "c", memory=2000)
    keys = [f"{i:02d}" + "0" * 62 for i in range(4)]
    for i, key in enumerate(keys):
        fetch(store, lambda i=i: np.full(300, i, np.float32), key)
    assert [k for k in keys if k in store._in_memory] == keys[-1:]
    assert fetch(store, never, keys[0])[0].tolist() == [0.0] * 300


def test_metadata_says_what_was_measured_and_with_what(tmp_path):
    """For people who look into the folder."""
    store = Store(tmp_path / "c")
    fetch(store)
    metadata = read_metadata(store.path(KEY).read_bytes())
    assert {k: metadata[k] for k in ("kind", "request", "key", "schema")} == {
        "kind": "Test",
        "request": "a test",
        "key": KEY,
        "schema": SCHEMA,
    }
    assert {"measurement", "torch", "transformers", "tokenizers"} == set(json.loads(metadata["versions"]))


def test_a_new_folder_marks_itself_for_git_and_backups(tmp_path):
    """A cache must not be committed by accident."""
    fetch(Store(tmp_path / "c"))
    assert (tmp_path / "c" / ".gitignore").read_text() == "*\n"
    assert (tmp_path / "c" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")


def test_a_folder_in_use_is_never_told_to_ignore_its_files(tmp_path):
    """`--circuits-cache-dir=.` must not hide a repository from git."""
    (tmp_path / "precious.py").write_text("")
    fetch(Store(tmp_path))
    assert not (tmp_path / ".gitignore").exists()


def test_nothing_is_created_before_something_is_kept(tmp_path):
    """Collecting tests leaves no folder behind."""
    assert Store(tmp_path / "c").get(KEY) is None
    assert not (tmp_path / "c").exists()


def flipped(data):
    return data[:-3] + bytes([data[-3] ^ 1]) + data[-2:]


DAMAGE = {
    "truncated": (lambda data: data[: len(data) // 2], "tensors cannot be read|cut short"),
    "one byte flipped": (flipped, "checksum"),
    "empty": (lambda data: b"", "empty"),
    "text": (lambda data: b"hello, this is no measurement", "cut short or not a safetensors file"),
    "tail missing": (lambda data: data[:-1], "tensors cannot be read"),
    "another schema": (lambda data: data.replace(b'"schema":"1"', b'"schema":"9"'), "schema is '9' instead of '1'"),
    "metadata changed": (lambda data: data.replace(b'"kind":"Test"', b'"kind":"Tess"'), "checksum"),
    "a foreign file": (lambda data: save({"weight": np.zeros(2)}), "header cannot be read"),
    "another key's entry": (lambda data: dump(VALUE, key="cd" + "0" * 62, kind="Test", request="r"), "another key"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_entry_is_reported_once_and_measured_again(tmp_path, damage):
    """Whatever happened to the file: never a wrong number, never a crash."""
    harm, message = DAMAGE[damage]
    fetch(Store(tmp_path / "c"))
    path = Store(tmp_path / "c").path(KEY)
    path.write_bytes(harm(path.read_bytes()))
    store = Store(tmp_path / "c")
    with pytest.warns(CacheWarning, match=message) as seen:
        assert store.get(KEY) is None
        found, was_there = fetch(store, lambda: {"scores": np.ones(1)})
    assert (len(seen), was_there, found["scores"].tolist()) == (1, False, [1.0])
    assert fetch(Store(tmp_path / "c"), never)[0]["scores"].tolist() == [1.0]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_single_changed_byte_is_ever_read_as_another_result(data):
    """A flipped byte anywhere is noticed, or it changed nothing that is read."""
    good = dump(VALUE, key=KEY, kind="Test", request="a test")
    at = data.draw(st.integers(0, len(good) - 1))
    bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    try:
        found = load(bad, KEY)
    except DamagedError:
        return
    assert (found["scores"].tolist(), found["names"]) == (VALUE["scores"].tolist(), VALUE["names"])


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_damaged_not_a_crash(data):
    """The folder may hold anything."""
    with pytest.raises(DamagedError):
        load(data, KEY)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_a_measurement_that_fails_leaves_neither_entry_nor_lock(tmp_path, error):
    """Also when the user pressed Ctrl-C."""

    def make():
        raise error

    store = Store(tmp_path / "c")
    with pytest.raises(type(error)):
        fetch(store, make)
    assert [f for f in files(tmp_path / "c") if f.startswith("ab")] == []
    assert fetch(Store(tmp_path / "c"), wait=False)[1] is False


@pytest.mark.parametrize("moment", ["fsync", "replace"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
def test_an_interrupted_write_leaves_nothing_behind(tmp_path, monkeypatch, moment, error):
    """An entry is whole or absent; a full disk costs only the keeping."""

    def fail(*_):
        raise error

    monkeypatch.setattr(store_module.os, moment, fail)
    store = Store(tmp_path / "c")
    if isinstance(error, OSError):
        with pytest.warns(CacheWarning, match="No space left") as seen:
            assert fetch(store)[0]["names"] == VALUE["names"]
            fetch(store, key="cd" + "0" * 62)
        assert len(seen) == 1
    else:
        with pytest.raises(KeyboardInterrupt):
            fetch(store)
    assert [f for f in files(tmp_path / "c") if not f.startswith((".git", "CACHE"))] == []


def test_what_a_killed_process_left_is_swept_away(tmp_path):
    """Half-written files do not pile up."""
    store = Store(tmp_path / "c")
    (tmp_path / "c" / "ab").mkdir(parents=True)
    left = tmp_path / "c" / "ab" / f".{KEY}.safetensors-123.tmp"
    left.write_bytes(b"half")
    fetch(store)
    assert not left.exists()


def test_a_folder_that_cannot_be_made_costs_one_warning_and_no_result(tmp_path):
    """A read-only checkout: the results are used all the same (here a file is in the way, which also stops root)."""
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "cache")
    with pytest.warns(CacheWarning, match="cannot be stored") as seen:
        assert [fetch(store, key=k + "0" * 62)[0]["names"] for k in ("ab", "cd")] == [("L0H0",), ("L0H0",)]
    assert len(seen) == 1
    assert fetch(store, never)[1] is True  # still in memory


def test_a_callback_hears_of_trouble_instead_of_a_warning(tmp_path):
    """So that the plugin can say it in its own place."""
    events = []
    store = Store(tmp_path / "c", on_event=events.append)
    fetch(store)
    store.path(KEY).write_bytes(b"")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fetch(Store(tmp_path / "c", on_event=events.append))
    assert [(e.kind, e.what) for e in events] == [("damaged", str(store.path(KEY)))]


def test_threads_that_want_the_same_wait_for_one_measurement(tmp_path):
    """Also in memory only, where no file lock is to be had."""
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "c", tmp_path / "file" / "c"):
        store, made, start = Store(folder, on_event=lambda e: None), [], threading.Barrier(4)

        def make(made=made):
            made.append(1)
            threading.Event().wait(0.05)
            return VALUE

        def work(store=store, make=make, start=start):
            start.wait()
            fetch(store, make)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [1]


def test_who_does_not_want_to_wait_is_told_that_it_is_busy(tmp_path):
    """Another store stands for another process: it meets the lock file."""
    store, other = Store(tmp_path / "c"), Store(tmp_path / "c")

    def make():
        for one in (store, other):
            with pytest.raises(BusyError):
                fetch(one, never, wait=False)
        return VALUE

    assert fetch(store, make)[1] is False


def test_a_temporary_store_is_shared_by_its_path_and_discarded():
    """`--circuits-no-cache`: workers share it, and nothing stays."""
    store = Store.temporary()
    fetch(store)
    assert fetch(Store(store.folder), never)[1] is True
    store.discard()
    assert not os.path.exists(store.folder)
