"""Welch's t-test and one-way ANOVA for groups with unequal variances, many columns at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from vlmfair.stats.moments import Factor, Floats, GroupMoments, TestName, group_moments


@dataclass(frozen=True)
class WelchTest:
    """`statistic` (t of first minus second group, or F), `p`, `df1`, `df2`, each [..., columns]."""

    statistic: Floats
    p: Floats
    df1: Floats
    df2: Floats


def welch_tests(values: Floats, factor: Factor) -> WelchTest:
    """Test every column of `values` [rows, columns] for differences between a factor's groups."""
    return welch_from_moments(group_moments(values, factor), factor.test)


def welch_from_moments(moments: GroupMoments, test: TestName) -> WelchTest:
    """Run the named test on moments [..., groups, columns]; see `welch_t` and `welch_anova`."""
    return welch_t(moments) if test == "welch_t" else welch_anova(moments)


def welch_t(moments: GroupMoments) -> WelchTest:
    """Return Welch's two-sided t-test of the first group minus the second (GRAS §3.3).

    Equal to scipy.stats.ttest_ind(equal_var=False): two constant groups give an infinite
    statistic with p = 0, or NaN when their constants agree; a group of one gives NaN.
    """
    n = moments.n[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        squared_errors = moments.variance / n
        first, second = squared_errors[..., 0, :], squared_errors[..., 1, :]
        freedom = squared_errors**2 / (n - 1)
        df2 = (first + second) ** 2 / (freedom[..., 0, :] + freedom[..., 1, :])
        df2 = np.where(np.isnan(df2), 1.0, df2)
        difference = moments.mean[..., 0, :] - moments.mean[..., 1, :]
        statistic = difference / np.sqrt(first + second)
    p = 2 * special.stdtr(df2, -np.abs(statistic))
    return WelchTest(statistic, p, np.ones_like(df2), df2)


def welch_anova(moments: GroupMoments) -> WelchTest:
    """Return Welch's one-way ANOVA over the groups (GRAS §3.3; B. L. Welch 1951, eqs. 28-30).

    Equal to scipy.stats.f_oneway(equal_var=False): NaN when a group has one value, or only
    some groups are constant; an infinite statistic with p = NaN when all of them are.
    """
    groups = moments.n.shape[-1]
    n = moments.n[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = n / moments.variance
        total = weight.sum(axis=-2, keepdims=True)
        centre = (weight * moments.mean).sum(axis=-2, keepdims=True) / total
        between = (weight * (moments.mean - centre) ** 2).sum(axis=-2) / (groups - 1)
        spread = ((1 - weight / total) ** 2 / (n - 1)).sum(axis=-2)
        statistic = between / (1 + 2 * (groups - 2) / (groups**2 - 1) * spread)
        df2 = (groups**2 - 1) / (3 * spread)
    constant = np.all((moments.variance == 0) | (n == 1), axis=-2)
    same = np.all(moments.mean == moments.mean[..., :1, :], axis=-2)
    statistic = np.where(constant, np.where(same, np.nan, np.inf), statistic)
    df1 = np.full_like(statistic, groups - 1)
    p = np.asarray(special.fdtrc(df1, df2, statistic), dtype=np.float64)
    return WelchTest(statistic, p, df1, df2)
