"""`pytest-circuits init`: a first spec for a model, measured once, whose claims are certified from the cache."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from pytest_circuits import Bound, Estimate
from pytest_circuits.cli import main
from pytest_circuits.cli.init import candidates
from pytest_circuits.measurement.requests import Ablate, Attribute, Sweep
from pytest_circuits.properties import PROPERTIES
from pytest_circuits.spec.load import load_suite
from tests.paths import MODELS, ROOT
from tests.waiting import HANG, listen_to_interrupts

LLAMA = str(MODELS / "multitask-llama")
COPY = MODELS / "planted-circuits" / "copy_head"
OUT = "core.circuits.yaml"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """An empty folder to work in, a root directory of its own."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the command wrote about two tasks of the multi-task model, and what it printed."""
    folder = tmp_path_factory.mktemp("init")
    (folder / "pytest.ini").write_text("[pytest]\n")
    arguments = ["init", LLAMA, "--task", "ioi:n=40", "--task", "words=copycolors", "-n", "32", "--seed", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest_circuits", *arguments], cwd=folder, capture_output=True, text=True, timeout=HANG, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return folder, (folder / OUT).read_text(encoding="utf-8"), done


def environment():
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200", "PYTHONPATH": f"{ROOT}{os.pathsep}."}


def run(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", OUT, "-q", "-p", "no:cacheprovider", "--circuits-json=report.json", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=HANG, env=environment(),
    )  # fmt: skip
    return done, json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.mark.extensive
def test_a_run_right_after_certifies_every_claim_from_the_cache_without_torch(made):
    folder, text, _ = made
    (folder / "no_torch.py").write_text(
        "import sys\ndef pytest_sessionfinish(session):\n    assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    done, report = run(folder, "--circuits-offline", "-p", "no_torch")
    assert done.returncode == 0, done.stdout
    assert {claim["verdict"] for claim in report["claims"]} == {"certified"} and len(report["claims"]) >= 8
    assert report["suite"]["cost"]["forwards"] == 0 and all(claim["cost"]["measured"] == 0 for claim in report["claims"])
    assert {claim["claim"] for claim in report["claims"]} == set(re.findall(r"^  (\S+):\n    description:", text, re.MULTILINE))


@pytest.mark.extensive
def test_comments_say_what_was_measured_as_a_run_reports_it(made):
    folder, text, _ = made
    _, report = run(folder)
    flat = re.sub(r"\n  # ", " ", text)
    for claim in report["claims"]:
        if claim["property"] == "neurons_to_reach":
            shown = f"{claim['estimate']:g} [{claim['interval'][0]:g}, {claim['interval'][1]:g}]"
        else:
            shown = f"{claim['estimate']:.3f} [{claim['interval'][0]:.3f}, {claim['interval'][1]:.3f}]"
        assert f"{shown} at 95%, n = {claim['n']}, {claim['interval_kind']}" in flat, claim["claim"]
        assert "seed 3" in claim["description"] and claim["parameters"]["split_seed"] == 3


@pytest.mark.extensive
def test_bounds_lie_on_the_safe_side_and_close_to_it(made):
    folder, _, _ = made
    _, report = run(folder)
    for claim in report["claims"]:
        (low, high), bound = claim["interval"], claim["bound"]
        floor, ceiling = bound.get("within", [bound.get("at_least"), bound.get("at_most")])
        if "within" in bound:
            assert floor + ceiling == pytest.approx(2) and floor <= low and high <= ceiling, "around a faithfulness of 1"
            continue
        step = 10 if claim["property"] == "neurons_to_reach" else 0.01 + 1e-9
        assert floor is None or low - step <= floor <= low
        assert ceiling is None or high <= ceiling <= high + step


def test_the_file_says_which_prompts_the_bounds_come_from_and_how_to_draw_others(made):
    folder, text, done = made
    lines = text.splitlines()
    assert lines[0] == "# yaml-language-server: $schema=circuits-spec-1.json"
    assert "pytest core.circuits.yaml --circuits-seed 1" in text and "pytest core.circuits.yaml --circuits-seed 1" in done.stdout
    assert "It was set on the same prompts that it is now tested on" in text.replace("\n# ", " ")
    assert not re.search(r"20\d\d-\d\d", text), "no dates"
    suite = load_suite(folder / OUT)
    seeds = {case.tasks[name].options["seed"] for case in suite.claims for name in case.tasks}
    assert seeds == {3} and {case.parameters.split_seed for case in suite.claims} == {3}
    assert suite.tasks["ioi"].options["n"] == 40 and suite.tasks["words"].options["n"] == 32


def test_claims_left_open_are_comments_that_need_no_more_than_a_bound(made):
    """Taken out of its comment, each is refused for the bound alone, and valid once it has one."""
    folder, text, _ = made
    names = re.findall(r"^  # (\S+):\n  #   \w+: \{", text, re.MULTILINE)
    assert names, "this model leaves some open"
    opened = re.sub(r"^  # (\S+:)\n  #   (\w+: \{.*)\n  #   (.*)$", r"  \1\n    \2\n    \3", text, flags=re.MULTILINE)
    before = {case.name for case in load_suite(folder / OUT).claims}
    with pytest.raises(Exception, match="has no value"):
        load_suite(folder / OUT, content=opened.encode())
    counted = re.sub(r"(neurons_to_reach: .*\n    at_most):$", r"\1: 12", opened, flags=re.MULTILINE)
    given = re.sub(r"(at_least|at_most):$", r"\1: 0.123", counted, flags=re.MULTILINE)
    given = re.sub(r"within: .*$", "within: [0.9, 1.1]", given, flags=re.MULTILINE)
    assert {case.name for case in load_suite(folder / OUT, content=given.encode()).claims} == before | set(names)


@pytest.mark.extensive
def test_other_prompts_are_drawn_by_another_seed(made):
    """The held-out run measures something else, so that it can fail."""
    folder, _, _ = made
    _, first = run(folder)
    _, other = run(folder, "--circuits-seed=1", "-k", "is-done or recur")
    estimates = {claim["claim"]: claim["interval"] for claim in first["claims"]}
    assert other["suite"]["seed"] == 1 and len(other["claims"]) == 4
    assert any(claim["interval"] != estimates[claim["claim"]] for claim in other["claims"])


@pytest.mark.extensive
def test_slack_moves_bounds_away_by_half_widths(made, monkeypatch, capsys):
    """From the same measurements."""
    folder, _, _ = made
    monkeypatch.chdir(folder)
    arguments = ["init", LLAMA, "--task", "ioi:n=40", "--seed", "3", "--property", "reuse", "--slack", "1"]
    assert main([*arguments, "--out", "loose.circuits.yaml"]) == 0
    (loose,), (tight,) = (
        [case for case in load_suite(folder / name).claims if case.name == "ioi-components-recur"] for name in ("loose.circuits.yaml", OUT)
    )
    _, report = run(folder, "-k", "ioi-components-recur")
    low, high = report["claims"][0]["interval"]
    assert loose.bound.at_least == pytest.approx(low - (high - low) / 2, abs=0.01 + 1e-9) and loose.bound.at_least < tight.bound.at_least


@pytest.mark.extensive
def test_a_file_of_ones_own_on_a_model_whose_circuit_is_known(project):
    """The planted copy head: its file is named relative to the spec, and the head is found."""
    (project / "specs").mkdir()
    shutil.copy(COPY / "task.jsonl", project / "copy.jsonl")
    assert main(["init", str(COPY), "--task", "copy.jsonl:scoring=argmax", "--out", f"specs/{OUT}", "--size", "1"]) == 0
    text = (project / "specs" / OUT).read_text(encoding="utf-8")
    assert "  copy: {file: ../copy.jsonl, scoring: argmax}" in text
    said = text.replace("\n# ", " ")
    assert "no other prompts of these tasks here" in said and "Test the claims on other prompts" not in said
    claims = {case.name: case for case in load_suite(project / "specs" / OUT).claims}
    assert claims["copy-components-recur"].bound.at_least > 0.5, "it is one head in every circuit"


def test_the_commands_that_are_told_can_be_pasted(project, capsys):
    shutil.copy(COPY / "task.jsonl", project / "copy.jsonl")
    (project / "my specs").mkdir()
    out = f"my specs/{OUT}"
    assert main(["init", str(COPY), "--task", "copy.jsonl", "--out", out, "--property", "accuracy", "--cache-dir", "my cache"]) == 0
    told = capsys.readouterr().out.splitlines()[-2].partition("#")[0]
    assert shlex.split(told) == ["pytest", out, "--circuits-cache-dir", "my cache"]


def test_other_prompts_are_offered_only_where_a_seed_draws_them(project, capsys):
    shutil.copy(MODELS / "planted-circuits" / "memory" / "task.jsonl", project / "facts.jsonl")
    arguments = ["init", str(MODELS / "planted-circuits" / "memory"), "--task", "facts.jsonl", "--property", "accuracy"]
    assert main(arguments) == 0
    told = capsys.readouterr().out.splitlines()[-1]
    assert "--circuits-seed 1" in told and "the same prompts, split again" in told and "other prompts:" not in told


@pytest.mark.parametrize("model", ["two_step", "memory"])
def test_a_faithfulness_without_a_width_has_a_margin_around_one(project, model):
    """These neurons do all that the whole model does, on each prompt."""
    shutil.copy(MODELS / "planted-circuits" / model / "task.jsonl", project / "task.jsonl")
    arguments = ["init", str(MODELS / "planted-circuits" / model), "--task", "task.jsonl", "--slack", "0.5"]
    assert main([*arguments, "--property", "neuron_faithfulness"]) == 0
    (claim,) = load_suite(project / OUT).claims
    assert claim.name == "task-these-neurons-are-faithful" and claim.bound.as_dict() == {"within": [0.9, 1.1]}


def test_neurons_that_do_too_much_are_not_called_faithful(project):
    """Two heads back each other up, so that what is kept does 1.6 of what it does in the whole model: between 0.9 and 2.3."""
    shutil.copy(MODELS / "planted-circuits" / "backup" / "task.jsonl", project / "task.jsonl")
    arguments = ["init", str(MODELS / "planted-circuits" / "backup"), "--task", "task.jsonl", "--property", "neuron_faithfulness"]
    assert main([*arguments, "--property", "accuracy"]) == 0
    text = (project / OUT).read_text(encoding="utf-8").replace("\n  # ", " ")
    assert "not clearly within 0.5 of 1" in text and "1.625 [0.907, 2.343]" in text
    assert [claim.name for claim in load_suite(project / OUT).claims] == ["task-is-done"]


@pytest.mark.parametrize(("universe", "high", "few"), [(2048, 510.0, True), (2048, 1100.0, False), (96, 24.0, True), (96, 25.0, False)])
def test_few_neurons_are_a_quarter_at_most(universe, high, few):
    one = next(candidates.candidates_for_task("ioi", [], 0.5, ("neurons_to_reach",)))
    told = one.empty(Estimate(high / 2, (1.0, high), 50, details={"universe": universe}), Bound(None, high))
    assert told is None if few else f"up to {high:g} of {universe}, more than 25%" in told


@pytest.mark.parametrize(("edge", "ceilings", "told"), [
    (0.3, {"a": 0.8, "b": 0.9}, None),
    (0.85, {"a": 0.8, "b": 0.9}, "halves of the prompts of a themselves overlap no more than 0.80"),
    (0.3, {"a": 0.8, "b": None}, "halves of the prompts of b have no shared sets"),
    (1.0, {"a": 1.0, "b": 1.0}, "overlap no more than 1.00"),
])  # fmt: skip
def test_tasks_differ_only_below_the_noise_ceiling(edge, ceilings, told):
    """Halves of one and the same task differ by as much."""
    one = next(candidates.candidates_for_pair("a", "b", ("jaccard",)))
    found = one.empty(Estimate(edge / 2, (0.0, edge), 50, details={"noise_ceiling": ceilings}), Bound(None, edge))
    assert found is None if told is None else told in found


def test_a_mistyped_directory_is_told_at_once(project, capsys, monkeypatch):
    """`models/nope` might be a hub id; where there is a folder `models`, nobody asks the hub."""
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("asked the network"))
    (project / "models" / "planted").mkdir(parents=True)
    assert main(["init", "models/plantd", "--task", "ioi"]) == 1
    assert "there is no model 'models/plantd' in folder 'models'; did you mean 'planted'" in capsys.readouterr().err


def test_a_model_that_can_do_nothing_gets_no_spec_but_each_accuracy(project, capsys):
    """The copy head's model knows none of these words; with one task that it can do, the others are comments."""
    wrong = [json.loads(line) for line in (COPY / "task.jsonl").read_text(encoding="utf-8").splitlines()]
    for one in wrong:
        one["answer"], one["foil"] = one["foil"], one["answer"]
    (project / "wrong.jsonl").write_text("".join(json.dumps(one) + "\n" for one in wrong), encoding="utf-8")
    assert main(["init", str(COPY), "--task", "wrong.jsonl"]) == 1
    told = capsys.readouterr().err
    assert "can do none of these tasks" in told and "wrong: accuracy 0.000 [0.000, " in told and "below min_accuracy 0.6" in told
    assert not (project / OUT).exists()
    shutil.copy(COPY / "task.jsonl", project / "copy.jsonl")
    assert main(["init", str(COPY), "--task", "wrong.jsonl", "--task", "copy.jsonl", "--property", "accuracy"]) == 0
    text = (project / OUT).read_text(encoding="utf-8")
    assert "# No claims about wrong: accuracy 0.000 [" in text and "  # wrong: {file: wrong.jsonl}" in text
    assert list(load_suite(project / OUT).tasks) == ["copy"]
    assert "no claims about wrong" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "told"), [
    ([LLAMA], "no task was named; use --task NAME"),
    ([LLAMA, "--task", "aditon"], "'aditon' is not a built-in task, .* did you mean 'addition'"),
    ([LLAMA, "--task", "addition:digit=2"], "has no parameter 'digit'; did you mean 'digits'"),
    ([LLAMA, "--task", "addition:digits=[2"], "the value of 'digits', '\\[2', cannot be read"),
    ([LLAMA, "--task", "ioi", "--task", "ioi"], "there is already a task 'ioi'; choose another name"),
    ([LLAMA, "--task", "no.jsonl"], "there is no file .*no.jsonl"),
    ([LLAMA, "--task", "ioi:n=100000000"], "ioi"),
    (["nowhere", "--task", "ioi"], "nowhere"),
    ([LLAMA, "--task", "ioi", "--out", "core.yaml"], "pytest collects files named NAME.circuits.yaml"),
    ([LLAMA, "--task", "ioi", "--out", "no/core.circuits.yaml"], "there is no folder"),
    ([LLAMA, "--task", "ioi", "--seed", "-1"], "--seed must be"),
    ([LLAMA, "--task", "ioi", "--share", "1.5", "-n", "32"], "--share: Input should be less than or equal to 1, got 1.5"),
    ([LLAMA, "--task", "ioi", "--size", "0", "-n", "32"], "--size: .* a count of at least 1; got '?0"),
    ([LLAMA, "--task", "ioi", "--name", "a model"], "--name: the name 'a model' is not allowed"),
    ([str(COPY), "--task", "bare.jsonl"], "task 'bare': the metric logit_diff needs a foil"),
    ([LLAMA, "--task", "ioi", "--attribution", "epa", "-n", "32"], "--attribution: unknown attribution method 'epa'; did you mean 'eap'"),
])  # fmt: skip
def test_mistakes_are_one_line_and_no_file(project, capsys, arguments, told):
    pairs = [json.loads(line) for line in (COPY / "task.jsonl").read_text(encoding="utf-8").splitlines()]
    (project / "bare.jsonl").write_text("".join(json.dumps({k: v for k, v in p.items() if k != "foil"}) + "\n" for p in pairs))
    assert main(["init", *arguments]) == 1
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("pytest-circuits: ") and re.search(told, error), error
    assert not [path for path in project.iterdir() if path.suffix == ".yaml"]


def test_a_model_without_a_tokenizer_is_told(project, capsys):
    bare = project / "bare"
    bare.mkdir()
    for name in ("config.json", "model.safetensors"):
        shutil.copy(COPY / name, bare / name)
    assert main(["init", str(bare), "--task", "ioi", "-n", "32"]) == 1
    assert "tokenizer" in capsys.readouterr().err and not (project / OUT).exists()


def test_an_existing_file_is_kept_unless_forced(project, capsys):
    (project / OUT).write_text("mine\n")
    shutil.copy(COPY / "task.jsonl", project / "copy.jsonl")
    arguments = ["init", str(COPY), "--task", "copy.jsonl", "--property", "accuracy"]
    assert main(arguments) == 1
    assert "--force" in capsys.readouterr().err and (project / OUT).read_text() == "mine\n"
    assert main([*arguments, "--force"]) == 0
    assert "copy-is-done" in (project / OUT).read_text()


def test_an_interruption_anywhere_leaves_no_file(project, monkeypatch, capsys):
    shutil.copy(COPY / "task.jsonl", project / "copy.jsonl")
    seen, stops = [], [Sweep, Ablate]

    def interruptible(real):
        def execute(self, *arguments):
            seen.append(self)
            if isinstance(self, stops[-1]):
                raise KeyboardInterrupt
            return real(self, *arguments)

        return execute

    for kind in (Ablate, Attribute, Sweep):
        monkeypatch.setattr(kind, "execute", interruptible(kind.execute))
    while stops:
        assert main(["init", str(COPY), "--task", "copy.jsonl", "--size", "1"]) == 130
        assert "interrupted; no file was written" in capsys.readouterr().err
        assert sorted(path.name for path in project.iterdir()) == [".circuits_cache", "copy.jsonl", "pytest.ini"]
        stops.pop()
    assert isinstance(seen[-1], Sweep), "the second attempt went on from the cache"


STOPS = """
import sys, time
from pytest_circuits.cli import main
from pytest_circuits.measurement import store

write = store.write_atomic

def write_and_wait(path, data):
    write(path, data)
    if path.suffix == ".safetensors":
        print("a measurement is stored", flush=True)
        time.sleep(600)  # until the signal comes

store.write_atomic = write_and_wait
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.extensive
def test_a_real_interrupt_leaves_no_file(project):
    command = [sys.executable, "-c", STOPS, "init", LLAMA, "--task", "addition", "--task", "ioi"]
    process = subprocess.Popen(
        command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), preexec_fn=listen_to_interrupts
    )
    assert process.stdout.readline() == "a measurement is stored\n"
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=HANG)
    assert process.returncode == 130 and "interrupted; no file was written" in messages and "Traceback" not in messages
    assert list(project.glob(".circuits_cache/??/*.safetensors")), "what was measured stays"
    assert not list(project.glob("*.yaml")) and not list(project.glob(".core*"))


def test_every_property_that_is_tried_exists_and_has_its_parameters():
    assert set(candidates.PROPERTIES) <= set(PROPERTIES)
