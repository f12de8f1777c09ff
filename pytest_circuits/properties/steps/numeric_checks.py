"""Checks of measured values: NaN and infinity are refused before anything is ranked or averaged."""

from __future__ import annotations

from typing import Any

from ...errors import Invalid, ReasonCode


def check_finite(values: Any, what: str) -> None:
    """Raise `Invalid` where some of `values`, an array, are NaN or infinite; `what` names them, as in "eap scores of task 'ioi'"."""
    import numpy as np

    array = np.asarray(values)
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise Invalid(
            f"{bad} of {array.size} {what} are NaN or infinite; try dtype: float32, and check the checkpoint for NaN weights",
            {"not_finite": bad, "of": array.size},
            code=ReasonCode.NOT_FINITE,
        )
