"""Adjustment of p-values for the number of tests made; a missing p-value counts as no test."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.stats import false_discovery_control

from vlmfair.stats.moments import Floats


def holm(p: Floats) -> Floats:
    """Return Holm's adjusted p-values over all entries of `p` (any shape); NaN stays NaN.

    Equal to statsmodels' multipletests, which collects Python's garbage at every call.
    """
    return _adjust(p, _step_down)


def benjamini_hochberg(p: Floats) -> Floats:
    """Return Benjamini-Hochberg adjusted p-values over all entries of `p`; NaN stays NaN."""
    return _adjust(p, false_discovery_control)


def _step_down(p: Floats) -> Floats:
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    factors = np.arange(len(p), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted


def _adjust(p: Floats, method: Callable[[Floats], Floats]) -> Floats:
    adjusted = np.full(p.shape, np.nan)
    known = np.isfinite(p)
    if known.any():
        adjusted[known] = method(p[known])
    return adjusted
