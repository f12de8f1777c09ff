"""Whether the shared sets of two models on one task differ by more than each model's set varies between halves of the examples."""

from __future__ import annotations

import numpy as np

from .groups import Array, Ints
from .overlap import agreement_rows, shared_rows


def beyond_noise_rows(counts: Ints, a: Ints, b: Ints, sizes: Ints, p: float, first: Ints) -> tuple[Array, Array]:
    """`(across, within)` for resampled groups: counts [B, G] → [B] each. a, b: tallies [G, N] of the two models on the same examples.

    The groups are split into halves, rows of `first` [R, G]. Across: the mean Jaccard of S_P of one model on one half with S_P of the other
    model on the other half. Within: the mean Jaccard of the two halves' sets of one model, over both models (the noise ceiling). Both
    sides of each comparison have half of the examples and share none, so that for two models with the same circuits across and within
    are equal on average for any noise.
    """
    across, within = [], []
    for half in first:
        halves = [counts * half, counts * (1 - half)]
        sets = [[shared_rows(part, side, sizes, p) for part in halves] for side in (a, b)]
        across += [agreement_rows(sets[0][0], sets[1][1]), agreement_rows(sets[0][1], sets[1][0])]
        within += [agreement_rows(side[0], side[1]) for side in sets]
    return np.asarray(np.mean(across, axis=0)), np.asarray(np.mean(within, axis=0))
