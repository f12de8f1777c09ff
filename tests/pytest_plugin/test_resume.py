"""A run over a series of checkpoints that is interrupted, at whatever point, and run again says what an uninterrupted one says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from pytest_circuits.measurement.entry import load
from tests.fakes import torch_side
from tests.fakes.project import DEFAULTS, header, save_tokenizer, tiny_llama
from tests.waiting import HANG, listen_to_interrupts, wait_until

SERIES = header("run: {checkpoints: run/step-*}")
CLAIMS = """
each:
  stated: {task: swap, value: 0.2, low: 0.1, high: 0.3, slope: 0.01}
  at_least: 0.16
  expect: measured
course:
  trajectory: {of: {stated: {task: swap, value: 0.5, low: 0.49, high: 0.51, slope: 0.01, method: eap}}, shape: no_drop}
  at_most: 0.2
"""
CALLS = ("__init__", "describe", "encode", "attribute")


def told(report):
    """A report without what it cost."""
    report = json.loads(json.dumps(report))
    for key in ("seconds", "cost"):
        del report["suite"][key]
    for claim in report["claims"]:
        del claim["cost"]
    return report


def check_cache(folder, killed=False):
    """Whole entries only; returns how many. A process that was killed while writing leaves a file that is no entry."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert killed or not [path for path in files if path.name.endswith(".tmp")]
    entries = [path for path in files if path.suffix == ".safetensors"]
    for path in entries:
        load(path.read_bytes(), path.stem)  # raises for anything but a whole entry of this key
    return len(entries)


@pytest.fixture
def run(box):
    """A project with three checkpoints of fake models."""
    for step in (5, 10, 30):
        torch_side.fake_model(box.path / "run" / f"step-{step}", f"weights {step}".encode())
    box.spec(CLAIMS, header=SERIES)
    return box


def interrupt(monkeypatch, at):
    """Have the call of the fake torch side with this number interrupted; returns the calls made."""
    made = []
    for name in CALLS:
        real = getattr(torch_side.FakeSubject, name)

        def call(self, *args, real=real, name=name, **options):
            made.append(name)
            if len(made) == at:
                raise KeyboardInterrupt
            return real(self, *args, **options)

        monkeypatch.setattr(torch_side.FakeSubject, name, call)
    return made


@pytest.mark.extensive
def test_a_sweep_that_is_interrupted_at_any_call_gives_the_same_report_when_it_is_run_again(run, monkeypatch):
    run.spec(CLAIMS, header=header("run: {checkpoints: 'run/step-[13]*'}"))
    run.run("--circuits-cache-dir=whole").assert_outcomes(passed=3)
    wanted = told(run.report)
    with monkeypatch.context() as patch:
        made = interrupt(patch, 0)
        run.run("--circuits-cache-dir=counted")
    total = len(made)
    assert total == 2 * (len(CALLS) + 1)
    for at in range(1, total + 1):
        (run.path / "report.json").unlink()
        with monkeypatch.context() as patch:
            interrupt(patch, at)
            assert run.run(f"--circuits-cache-dir=cut-{at}", no_reraise_ctrlc=True).ret == pytest.ExitCode.INTERRUPTED
        kept = check_cache(run.path / f"cut-{at}") if (run.path / f"cut-{at}").exists() else 0
        run.run(f"--circuits-cache-dir=cut-{at}").assert_outcomes(passed=3)
        assert told(run.report) == wanted, f"interrupted at call {at}"
        assert run.report["suite"]["cost"]["forwards"] <= 8
        assert check_cache(run.path / f"cut-{at}") >= kept
    assert kept > 0, "the last interruption came after most was measured"


def test_what_was_measured_before_the_interruption_is_not_measured_again(run, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt(patch, 9)
        run.run(no_reraise_ctrlc=True)
    before = [call for call in run.calls if call.startswith("attribute")]
    run.run().assert_outcomes(passed=4)
    again = [call for call in run.calls if call.startswith("attribute")]
    assert len(before) > 0 and len(again) == 6, "each of six attributions once"


@pytest.mark.extensive
@pytest.mark.parametrize("at", [1, 8, 20, 31])
def test_real_models_that_are_interrupted_inside_a_measurement_say_the_same_when_run_again(real, monkeypatch, at):
    """The model call with this number is interrupted: of real models most measurements are several calls."""
    from pytest_circuits.model.runner import Runner

    for seed in range(2):
        tiny_llama(seed).save_pretrained(real.path / "seeds" / f"seed-{seed}")
        save_tokenizer(real.path / "seeds" / f"seed-{seed}")
    spec = """
alone:
  reuse: {task: swap, p: 0.3}
  at_most: 0.9
  expect: measured
course:
  trajectory: {of: {necessity: {task: swap, p: 0.3, control: c3_any, draws: 20}}, shape: spread}
  at_most: 0.9
  expect: measured
"""
    real.spec(spec, header=header("seeds: {checkpoints: seeds/*}", more=DEFAULTS))
    options = "-p", "no:randomly", "--circuits-batch-size=40"
    real.run("--circuits-cache-dir=whole", *options)
    wanted = told(real.report)
    count = []
    with monkeypatch.context() as patch:
        logits = Runner.logits

        def cut(self, *args):
            count.append(1)
            if len(count) == at:
                raise KeyboardInterrupt
            return logits(self, *args)

        patch.setattr(Runner, "logits", cut)
        assert real.run("--circuits-cache-dir=cut", *options, no_reraise_ctrlc=True).ret == pytest.ExitCode.INTERRUPTED
    if (real.path / "cut").exists():
        check_cache(real.path / "cut")
    real.run("--circuits-cache-dir=cut", *options)
    assert told(real.report) == wanted and real.report["claims"][0]["estimate"] is not None
    check_cache(real.path / "cut")


# processes of their own

SLOW = """
import os, time
from pathlib import Path
from pytest_circuits.measurement import store

def stop_here():
    Path("here").touch()
    time.sleep(600)

wait = os.environ.get("WAIT_IN")
if wait == "measurement":
    real = torch_side.FakeSubject.attribute
    def attribute(self, task, **options):
        if "step-10" in self.path:
            stop_here()
        return real(self, task, **options)
    torch_side.FakeSubject.attribute = attribute
if wait == "write":
    whole = store.write_atomic
    def half(path, data):
        if path.suffix == ".safetensors" and len(list(Path("cache").rglob("*.safetensors"))) == 4:
            path.with_name(f".{path.name}-half.tmp").write_bytes(data[: len(data) // 2])
            stop_here()
        whole(path, data)
    store.write_atomic = half
"""


def process(run, *options, wait=""):
    return subprocess.Popen(
        # plain asserts: pytest 9.2 cannot show an interrupt that arrives while it rewrites the asserts of a module
        [sys.executable, "-m", "pytest", "--assert=plain", "-p", "no:cacheprovider", "--circuits-cache-dir=cache",
         "--circuits-json=report.json", *options],
        cwd=run.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=listen_to_interrupts,
        env={**os.environ, "WAIT_IN": wait, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def cut_off(run, sent, wait, *options):
    """A run that is sent a signal, as Ctrl-C sends it to all processes of a terminal, when it has come to where it waits."""
    started = process(run, *options, wait=wait)
    wait_until(lambda: (run.path / "here").exists() or started.poll() is not None)
    assert started.poll() is None, started.stdout.read()
    os.killpg(started.pid, sent)
    output, _ = started.communicate(timeout=HANG)
    return started.returncode, output


@pytest.mark.extensive
@pytest.mark.parametrize(("sent", "wait", "options"), [
    (signal.SIGINT, "measurement", ()),
    (signal.SIGKILL, "measurement", ()),
    (signal.SIGKILL, "write", ()),
    (signal.SIGINT, "measurement", ("-n", "2")),
    (signal.SIGKILL, "measurement", ("-n", "2")),
], ids=["interrupted", "killed", "killed while writing", "interrupted with workers", "killed with workers"])  # fmt: skip
def test_a_process_that_was_stopped_is_taken_up_where_it_was(run, sent, wait, options):
    run.run("--circuits-cache-dir=whole")
    wanted = told(run.report)
    (run.path / "report.json").unlink()
    run.subprocess_conftest(SLOW)
    code, output = cut_off(run, sent, wait, *options)
    assert code == (-9 if sent == signal.SIGKILL else pytest.ExitCode.INTERRUPTED), output
    if wait == "measurement":
        assert check_cache(run.path / "cache", killed=sent == signal.SIGKILL) >= 3
    again = process(run, *options)
    output, _ = again.communicate(timeout=HANG)
    assert again.returncode == 0, output
    assert told(run.report) == wanted
    assert check_cache(run.path / "cache") == 12, "a description, an encoding and two attributions of each checkpoint"
