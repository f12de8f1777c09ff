"""Statistics on numpy arrays: splits by group, intervals, ranks, overlaps, controls. One idea a file.

Everything is a pure function, deterministic for its seed. Intervals come in two kinds, and each docstring says which it is:
exact (the coverage is at least nominal for every n, under the stated assumption) and approximate (nominal for many groups).
Importing this package imports no numpy.

Facts of a control rule, in the `FACTS` of its file by the name of its function, or keywords of `CONTROLS.add` for one from elsewhere:
`norms`, whether it needs the activation norm of every component; `counterparts`, whether it needs as many other heads and MLPs as the set.
"""

from __future__ import annotations

from ..registry import Registry

CONTROLS = Registry(
    "control",
    "pytest_circuits.controls",
    {
        "c3": "pytest_circuits.stats.controls:c3",
        "c3_parity": "pytest_circuits.stats.controls:c3_parity",
        "c3_any": "pytest_circuits.stats.controls:c3_any",
        "c3_typed_layer": "pytest_circuits.stats.matched_controls:c3_typed_layer",
        "c3_matched": "pytest_circuits.stats.matched_controls:c3_matched",
    },
)
