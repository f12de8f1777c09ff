"""Measure all releases, damaged or not, and write measured.json and README.md here: `python -m models.damaged.compare` (CPU minutes)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch

from models.multitask.evaluate import accuracy
from pytest_circuits.subject import Subject
from pytest_circuits.tasks import Task

from . import circuits, cut, page
from .original import FOLDER, digest, original
from .permutation import new_name
from .registry import LOADERS, damaged

HERE = Path(__file__).parent
ABLATED = 128  # examples of each ablation
DRAWS = 20  # random controls


def lost(subject: Subject, task: Task, sets: Sequence[Sequence[str]]) -> list[float]:
    """Accuracy that zeroing each set costs, on the task's first examples."""
    correct = subject.ablate_many(task, [(), *sets], examples=range(ABLATED)).correct.mean(1)
    return [float(correct[0] - one) for one in correct[1:]]


def controls(units: Sequence[str], shared: Sequence[str], seed: int = 0) -> list[list[str]]:
    """Random sets of any type, as large as the shared set and outside it (`c3_any`)."""
    pool, random = [unit for unit in units if unit not in shared], Random(seed)
    return [random.sample(pool, min(len(shared), len(pool))) for _ in range(DRAWS)]


def measured(release: tuple[Any, Any], tasks: dict[str, Task], before: dict[str, Any] | None) -> dict[str, Any]:
    """By task: accuracy; S_P; what removing it, controls, and the original's S_P costs; similarity to the original's S_P."""
    subject, found = circuits.opened(release), {}
    for name, task in tasks.items():
        own = circuits.circuits(subject, task)
        shared = own.shared(circuits.P)
        drops = lost(subject, task, [shared, *controls(own.units, shared)])
        row = {
            "accuracy": accuracy(*release, task),
            "shared": list(shared),
            "ceiling": circuits.ceiling(own),
            "drop": drops[0],
            "control_drop": sum(drops[1:]) / DRAWS,
        }
        if before is not None:
            row["jaccard"] = circuits.jaccard(shared, before[name]["shared"])
            (row["drop_of_original"],) = lost(subject, task, [before[name]["shared"]])
        found[name] = {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
    return found


def rule(subject: Subject, tasks: dict[str, Task], sets: dict[str, list[str]]) -> dict[str, Any]:
    """What the choice of the head that is cut out rests on: the accuracy that the ablation of each shared head costs each task."""
    heads = sorted({unit for shared in sets.values() for unit in shared if "H" in unit})
    cost = {name: dict(zip(heads, lost(subject, task, [[head] for head in heads]), strict=True)) for name, task in tasks.items()}
    rounded = {name: {head: round(value, 4) for head, value in found.items()} for name, found in cost.items()}
    return {"chosen": cut.most_shared(sets, cost), "cost": rounded}


def main() -> None:
    """Measure and write."""
    torch.set_num_threads(1)
    tasks, releases = circuits.tasks(), {"original": measured(original(), circuits.tasks(), None)}
    for name, load in LOADERS.items():
        releases[name] = measured(load(), tasks, releases["original"])
        print(f"measured {name}", flush=True)
    places = damaged("permuted")[2]
    for name, found in releases["permuted"].items():
        renamed = {new_name(unit, places) for unit in releases["original"][name]["shared"]}
        found["jaccard_renamed"] = round(circuits.jaccard(found["shared"], renamed), 4)
    sets = {name: found["shared"] for name, found in releases["original"].items()}
    record = {
        "original": {"name": FOLDER.name, "sha256": digest()},
        "examples": {"circuits": circuits.N, "ablations": ABLATED, "draws": DRAWS},
        "rule": rule(circuits.opened(original()), tasks, sets),
        "releases": releases,
    }
    (HERE / "measured.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    (HERE / "README.md").write_text(page.text(record), encoding="utf-8")
    print(f"wrote {HERE / 'README.md'}")


if __name__ == "__main__":
    main()
