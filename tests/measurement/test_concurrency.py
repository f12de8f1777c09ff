"""Two processes, as under xdist, share the work and never do it twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

from pytest_circuits.measurement.requests import Attribute
from tests.fakes.executor import TASK, model_directory
from tests.paths import ROOT
from tests.waiting import HANG

WORKER = """
import os, pathlib, sys, time
from tests.fakes.executor import TASK, FakeSubject, Opener, load_task
from pytest_circuits.measurement.executor import Executor
from pytest_circuits.measurement.store import Store
from pytest_circuits.measurement.requests import Attribute
from pytest_circuits.core.sources import ModelSource
from pytest_circuits.core.verdict import Estimate

path, cache, log, go, workers, last = sys.argv[1:7]
calls = 0

class Slow(FakeSubject):
    # its first two measurements end when every worker is in one; that of number `last` never ends
    def attribute(self, *args, **options):
        global calls
        calls += 1
        result = super().attribute(*args, **options)
        if calls <= 2:
            pathlib.Path(f"{go}-{calls}-{os.getpid()}").touch()
            while len(list(pathlib.Path(go).parent.glob(f"go-{calls}-*"))) < int(workers):
                time.sleep(0.005)
        if calls == int(last):
            print("waits", flush=True)
            time.sleep(600)
        return result

def steps():
    found = yield [Attribute(ModelSource("m", path), TASK, "eap", metric=f"m{i}") for i in range(6)]
    return Estimate(float(sum(a.scores.sum() for a in found)), (0, 1), 1)

events = []
executor = Executor(Store(cache), opener=Opener(Slow, log=log), load_task=load_task, on_event=lambda e: events.append(e.kind))
print("ready", flush=True)
while not pathlib.Path(go).exists():
    time.sleep(0.005)
estimate, cost = executor.run(steps())
print(repr(estimate.value), cost.measured)
"""


def start(tmp_path, n, last=0):
    """n workers on one store, released together once all have imported what they need."""
    model_directory(tmp_path / "model")
    arguments = [str(tmp_path / name) for name in ("model", "cache", "log", "go")]
    for path in tmp_path.glob("go*"):
        path.unlink()
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments, str(n), str(last)],
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
    answers = [worker.communicate(timeout=HANG)[0].split() for worker in start(tmp_path, 2)]
    assert counts(tmp_path) == {"encode": 1, "attribute": 6}
    assert answers[0][0] == answers[1][0]
    assert sum(int(measured) for _, measured in answers) == 7
    assert all(int(measured) >= 2 for _, measured in answers)


def test_a_process_killed_while_measuring_holds_up_nobody(tmp_path):
    """Its lock goes with it; what it had finished stays."""
    (worker,) = start(tmp_path, 1, last=3)
    assert worker.stdout.readline() == "waits\n" and counts(tmp_path)["attribute"] == 3
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    worker.stdout.close()
    (second,) = start(tmp_path, 1)
    _, measured = second.communicate(timeout=HANG)[0].split()
    assert (int(measured), counts(tmp_path)["encode"]) == (4, 1)


def test_an_interrupted_run_is_taken_up_where_it_stopped(new_executor, model):
    """Ctrl-C between two measurements loses none; during one, only that one."""
    executor = new_executor()
    requests = [Attribute(model, TASK, "eap", metric=f"m{i}") for i in range(4)]
    executor.result(requests[0])
    subject = executor.opener.subjects[-1]
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
        executor.run(steps())
    except KeyboardInterrupt:
        calls.append("interrupted")
    assert calls == [1, 1, "interrupted"]
    late = new_executor()
    for request in requests:
        late.result(request)
    assert late.opener.count("attribute") == 2
