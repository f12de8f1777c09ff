"""Runs what the tutorial shows, and writes what is printed into it: `python -m docs.consoles`; `--check` compares.

Blocks are taken in order, in one empty folder with the shipped models: a yaml or python block whose first line is `# NAME` is written to
that file, a console block is one command and its output. Times are different in every run and are not compared.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).parent
PAGE = DOCS / "tutorial" / "first-spec.md"
BLOCK = re.compile(r"```(yaml|python|console)\n(.*?)```", re.S)
HEADER = re.compile(r"=+ test session starts =+|platform |rootdir: |configfile: |plugins: |hypothesis profile ")
CI = ("CI", "BUILD_NUMBER")  # baselines are not written where these are set
WIDTH = "100"


def rendered(text: str, folder: Path) -> str:
    """The page with the output that its commands have now. `folder` is where they run, and becomes a project of its own."""
    (folder / "models").symlink_to(DOCS.parent / "models")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")

    def replaced(match: re.Match[str]) -> str:
        language, body = match[1], match[2]
        if language == "console":
            command = body.partition("\n")[0]
            return f"```console\n{command}\n{_output(command.removeprefix('$ '), folder)}```"
        name = re.match(r"# (\S+)\n", body)
        if name:
            (folder / name[1]).write_text(body, encoding="utf-8")
        return match[0]

    return BLOCK.sub(replaced, text)


def _output(command: str, folder: Path) -> str:
    """What a `pytest` or `pytest-circuits` command prints, without the header that names the machine."""
    program, *arguments = shlex.split(command)
    module = {"pytest": ["pytest", "-p", "no:cacheprovider"], "pytest-circuits": ["pytest_circuits"]}[program]
    environment = {key: value for key, value in os.environ.items() if key not in CI} | {
        "COLUMNS": WIDTH, "PYTHONPATH": os.pathsep.join([str(DOCS.parent), os.environ.get("PYTHONPATH", "")])
    }  # fmt: skip
    done = subprocess.run([sys.executable, "-m", *module, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command} ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    lines = [line.rstrip() for line in done.stdout.splitlines() if not HEADER.match(line)]
    return "\n".join(lines).strip("\n").replace("collecting ... ", "") + "\n"


def without_times(text: str) -> str:
    """The text with seconds, and the width of rules that depends on them, taken out."""
    return re.sub(r"={2,}", "==", re.sub(r"\d+\.\d+ ?s\b", "… s", text))


def main() -> int:
    """Write the page; with `--check`, fail if it is not up to date."""
    before = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        after = rendered(before, Path(folder))
    if "--check" in sys.argv:
        return int(without_times(before) != without_times(after))
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
