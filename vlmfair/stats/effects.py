"""Sizes of differences between groups, which p-values at thousands of images do not show."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from vlmfair.stats.moments import Floats, GroupMoments


@dataclass(frozen=True)
class Effect:
    """An effect size with its confidence interval, each [..., columns]."""

    value: Floats
    ci_low: Floats
    ci_high: Floats


def hedges_g(moments: GroupMoments, *, confidence: float = 0.95) -> Effect:
    """Return Hedges' g of the first group minus the second: pooled deviation, small-sample factor.

    The factor 1 - 3 / (4 (n1 + n2) - 9) and the interval g ± t sqrt((n1 + n2) / (n1 n2) +
    g² / (2 (n1 + n2))) are those of pingouin.compute_effsize and compute_esci.
    """
    n = moments.n[..., None]
    first, second = n[..., 0, :], n[..., 1, :]
    total = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = ((n - 1) * moments.variance).sum(axis=-2) / (total - 2)
        difference = moments.mean[..., 0, :] - moments.mean[..., 1, :]
        value = difference / np.sqrt(pooled) * (1 - 3 / (4 * total - 9))
        error = np.sqrt(total / (first * second) + value**2 / (2 * total))
    reach = special.stdtrit(total - 2, 0.5 + confidence / 2) * error
    return Effect(value, value - reach, value + reach)


def omega_squared(moments: GroupMoments) -> Floats:
    """Return omega squared [..., columns]: the share of variance between groups, less its bias.

    (SS_between - df_between MS_within) / (SS_total + MS_within), from the sums of squares of the
    ordinary one-way ANOVA. It may be slightly negative when groups do not differ.
    """
    n = moments.n[..., None]
    groups = moments.n.shape[-1]
    total = n.sum(axis=-2)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (n * moments.mean).sum(axis=-2, keepdims=True) / total[..., None, :]
        between = (n * (moments.mean - centre) ** 2).sum(axis=-2)
        within = ((n - 1) * moments.variance).sum(axis=-2)
        mean_square = within / (total - groups)
        return (between - (groups - 1) * mean_square) / (between + within + mean_square)
