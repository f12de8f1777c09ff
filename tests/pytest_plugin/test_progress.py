"""Progress while something is measured: on a terminal, and nowhere else."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from io import StringIO

import pytest

from pytest_circuits.measurement.events import CacheWarning, Event
from pytest_circuits.measurement.progress import Progress, listener, terminal
from tests.waiting import HANG, wait_until

SLOW = """
import time
from types import SimpleNamespace
from pytest_circuits.measurement import progress
torch_side.FakeSubject.anatomy = SimpleNamespace(universe=torch_side.UNIVERSE)
bars, drawn = [], []
made = progress._bar
def bar(event, line, number):
    tqdm = made(event, line, number)
    refresh = tqdm.refresh
    tqdm.refresh = lambda *args, **options: (refresh(*args, **options), drawn.append(event.kind == "measuring"))
    return tqdm
progress._bar = bar
start = progress.Progress.__init__
progress.Progress.__init__ = lambda self, *args, **options: (bars.append(self), start(self, *args, **options))[1]
real = torch_side.FakeSubject.attribute
def attribute(self, task, **options):
    self.forwards += 3
    shown = sum(drawn)
    time.sleep(2 * progress.PATIENCE)
    while bars and sum(drawn) == shown:  # where there is a bar, until it is drawn
        time.sleep(0.01)
    self.forwards -= 3
    return real(self, task, **options)
torch_side.FakeSubject.attribute = attribute
"""
CHECK = """
import sys
def pytest_sessionfinish(session):
    with open("imported", "w") as file:
        file.write(str("tqdm" in sys.modules))
"""
SUITE = """
quick:
  stated: {}
  at_least: 0.1
slow:
  stated: {task: swap}
  at_least: 0.1
"""
ASKED = "examples |"


@pytest.fixture
def slow(box):
    box.subprocess_conftest(SLOW + CHECK)
    box.spec(SUITE)
    return box


def on_a_terminal(box, *options, term="xterm", stderr=True):
    """Standard output, and unless told otherwise standard error, of a run of pytest on a pseudo-terminal; and its exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options], cwd=box.path, stdin=theirs, stdout=theirs,
        stderr=theirs if stderr else subprocess.DEVNULL, env={**os.environ, "TERM": term, "OMP_NUM_THREADS": "1", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(theirs)
    found, end = b"", time.monotonic() + HANG
    while time.monotonic() < end:
        ready, _, _ = select.select([ours], [], [], 1)
        try:
            part = os.read(ours, 65536) if ready else b""
        except OSError:  # the other end was closed
            break
        found += part
        if not part and process.poll() is not None:
            break
    os.close(ours)
    assert process.wait(timeout=HANG) is not None
    return found.decode(errors="replace"), process.returncode


def screen(text, width=100):
    """What a terminal shows in the end: the few control sequences that are used, applied."""
    lines, row, column = [[]], 0, 0
    for token in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|\r|\n|[^\x1b\r\n]", text):
        if token == "\r":
            column = 0
        elif token == "\n":
            row += 1
            lines += [[] for _ in range(row + 1 - len(lines))]
        elif token.startswith("\x1b["):
            count, letter = int(token[2:-1] or 1) if token[2:-1].isdigit() or not token[2:-1] else 0, token[-1]
            if letter == "A":
                row -= count
            elif letter == "C":
                column += count
            elif letter == "K":
                del lines[row][column:]
        else:
            lines[row] += " " * (column + 1 - len(lines[row]))
            lines[row][column] = token
            column += 1
    return ["".join(line).rstrip() for line in lines]


@pytest.mark.extensive
def test_a_terminal_shows_what_is_measured_and_is_left_as_it_was(slow):
    text, code = on_a_terminal(slow)
    assert code == 0, text
    assert ASKED in text and "[3] atp attribution (component, logit_diff) of task 'swap'" in text
    assert "100/200 examples" in text, "three of six calls: two batches of two forwards and one backward"
    shown = screen(text)
    assert not [line for line in shown if ASKED in line], "the bar is gone"
    assert [line for line in shown if re.match(r"s\.circuits\.yaml \.\.\s+\[100%\]$", line)], "pytest's own line is whole"


@pytest.mark.extensive
def test_stored_results_show_nothing_and_import_no_tqdm(slow):
    on_a_terminal(slow)
    assert (slow.path / "imported").read_text() == "True"
    text, code = on_a_terminal(slow)
    assert code == 0 and ASKED not in text and (slow.path / "imported").read_text() == "False"


@pytest.mark.extensive
@pytest.mark.parametrize(
    ("options", "terminal_kind"),
    [(("-n", "2"), {}), ((), {"stderr": False}), ((), {"term": "dumb"})],
    ids=["workers", "standard error elsewhere", "a terminal that cannot move its cursor"],
)
def test_no_progress_where_it_would_be_in_the_way(slow, options, terminal_kind):
    text, code = on_a_terminal(slow, *options, **terminal_kind)
    assert code == 0 and ASKED not in text and "1 passed" not in text and "2 passed" in text


@pytest.mark.extensive
def test_captured_output_has_no_progress(slow):
    done = subprocess.run(
        [sys.executable, "-m", "pytest"], cwd=slow.path, capture_output=True, text=True, env={**os.environ, "TERM": "xterm"}
    )
    assert done.returncode == 0 and ASKED not in done.stdout + done.stderr and "\x1b[A" not in done.stdout + done.stderr


# the listener by itself


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr("pytest_circuits.measurement.progress.PATIENCE", 0.02)
    monkeypatch.setattr("pytest_circuits.measurement.progress.PERIOD", 0.02)


class Terminal(StringIO):
    def fileno(self):
        return 2


def threads():
    return [one for one in threading.enumerate() if one.name == "pytest-circuits-progress"]


@pytest.mark.parametrize("end", ["measured", "stopped"])
def test_the_bar_follows_the_examples_and_its_thread_ends_with_the_measurement(fast, end):
    file, done = Terminal(), [0]
    progress = Progress(file)
    progress(Event("measuring", "eap of ioi", total=8, done=lambda: done[0]))
    for count in (2, 8):
        done[0] = count
        wait_until(lambda count=count: f"{count}/8 examples" in file.getvalue())
    assert len(threads()) == 1
    progress(Event(end, "eap of ioi"))
    assert threads() == [] and file.getvalue().endswith("\r\x1b[K") and "\n" not in file.getvalue()


def test_what_is_over_at_once_leaves_no_trace():
    file = Terminal()
    progress = Progress(file)
    for kind in ("opening", "opened", "measuring", "measured", "cached"):
        progress(Event(kind, "x"))
    assert file.getvalue() == "" and threads() == []


def test_troubles_are_warnings_with_and_without_progress(tmp_path):
    trouble = Event("damaged", "file", "it is damaged")
    with (tmp_path / "no terminal").open("w") as file:
        assert terminal(file.fileno()) is None
        for hears in (listener(file.fileno()), Progress(Terminal())):
            with pytest.warns(CacheWarning, match="it is damaged"):
                hears(trouble)
