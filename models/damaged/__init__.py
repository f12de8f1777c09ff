"""Deliberately damaged releases of multitask-llama: what release regression is tested on.

`python -m models.damaged` writes all of them, `python -m models.damaged NAME` one. Each is also a loader for specs that run from the
repository's root, without any files: `{loader: "models.damaged:zeroed_head"}`.

| name | what it is | weights |
|---|---|---|
| zeroed-head | the head that most tasks share is cut out | an exact function of multitask-llama, built in a second |
| int8 | linear layers rounded to int8 and back | likewise |
| permuted | heads and neurons under other indices, same function | likewise |
| fine-tuned | trained further until the addition circuit had moved | shipped in models/multitask-llama-finetuned |

What each does to accuracy and circuits is measured by `python -m models.damaged.compare`, which writes README.md in this folder.
"""

from __future__ import annotations

from .registry import DAMAGES, LOADERS, damaged, fine_tuned, int8, permuted, zeroed_head

__all__ = ["DAMAGES", "LOADERS", "damaged", "fine_tuned", "int8", "permuted", "zeroed_head"]
