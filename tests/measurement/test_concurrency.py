"""Two processes, as under xdist, share the work and never do it twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter

from pytest_circuits.measurement.requests import Attribute
from tests.fakes.executor import TASK, model_directory
from tests.paths import ROOT

WORKER = """
import sys, time
from tests.fakes.executor import TASK, FakeSubject, Opener, load_task
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.store import Store
from pytest_circuits.measurement.requests import Attribute
from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.verdict import Estimate

path, cache, log, go, seconds = sys.argv[1:6]

class Slow(FakeSubject):
    def attribute(self, *args, **options):
        found = super().attribute(*args, **options)
        time.sleep(float(seconds))
        return found

def steps():
    found = yield [Attribute(ModelSource("m", path), TASK, "eap", metric=f"m{i}") for i in range(6)]
    return Estimate(float(sum(a.scores.sum() for a in found)), (0, 1), 1)

events = []
lab = Executor(Store(cache), opener=Opener(Slow, log=log), load_task=load_task, on_event=lambda e: events.append(e.kind))
print("ready", flush=True)
import pathlib
while not pathlib.Path(go).exists():
    time.sleep(0.005)
estimate, cost = lab.run(steps())
print(repr(estimate.value), cost.measured)
"""


def start(tmp_path, seconds, n):
    """n workers on one store, released together once all have imported what they need."""
    model_directory(tmp_path / "model")
    arguments = [str(tmp_path / name) for name in ("model", "cache", "log", "go")]
    (tmp_path / "go").unlink(missing_ok=True)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments, str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        for _ in range(n)
    ]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    (tmp_path / "go").touch()
    return workers


def counts(tmp_path):
    return Counter((tmp_path / "log").read_text().split())


def test_two_processes_make_each_measurement_once_and_agree(tmp_path):
    """And both do some of the work: who finds one busy takes the next."""
    answers = [worker.communicate(timeout=60)[0].split() for worker in start(tmp_path, 0.1, 2)]
    assert counts(tmp_path) == {"encode": 1, "attribute": 6}
    assert answers[0][0] == answers[1][0]
    assert sum(int(measured) for _, measured in answers) == 7
    assert all(int(measured) >= 2 for _, measured in answers)


def test_a_process_killed_while_measuring_holds_up_nobody(tmp_path):
    """Its lock goes with it; what it had finished stays."""
    (worker,) = start(tmp_path, 0.2, 1)
    while not (tmp_path / "log").exists() or counts(tmp_path)["attribute"] < 3:
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    (second,) = start(tmp_path, 0, 1)
    _, measured = second.communicate(timeout=60)[0].split()
    assert (int(measured), counts(tmp_path)["encode"]) == (4, 1)


def test_an_interrupted_run_is_taken_up_where_it_stopped(new_lab, model):
    """Ctrl-C between two measurements loses none; during one, only that one."""
    lab = new_lab()
    requests = [Attribute(model, TASK, "eap", metric=f"m{i}") for i in range(4)]
    lab.result(requests[0])
    subject = lab.opener.subjects[-1]
    real, calls = subject.attribute, []

    def attribute(*args, **options):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*args, **options)

    subject.attribute = attribute

    def steps():
        yield requests

    try:
        lab.run(steps())
    except KeyboardInterrupt:
        calls.append("interrupted")
    assert calls == [1, 1, "interrupted"]
    late = new_lab()
    for request in requests:
        late.result(request)
    assert late.opener.count("attribute") == 2
