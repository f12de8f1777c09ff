"""Numbers that are no numbers: what a broken model or too little precision gives is refused before it is ranked or averaged."""

from __future__ import annotations

from typing import Any

from ...errors import Invalid


def check_finite(values: Any, what: str) -> None:
    """Raises `Invalid` where some of `values`, an array, are NaN or infinite; `what` names them: "eap scores of task 'ioi'"."""
    import numpy as np

    array = np.asarray(values)
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise Invalid(
            f"{bad} of {array.size} {what} are NaN or infinite, so nothing can be said of them; try dtype: float32, "
            "and check the checkpoint for NaN weights",
            {"not_finite": bad, "of": array.size},
        )
