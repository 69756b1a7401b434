"""Repeated measures: does the wording of a question change the answers about the same images?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from vlmfair.stats.moments import Floats


@dataclass(frozen=True)
class RepeatedAnova:
    """One-way repeated-measures ANOVA of many items: each array [items], with `df1` and `df2`.

    `p` assumes sphericity, `p_corrected` multiplies both degrees of freedom by `epsilon`.
    """

    statistic: Floats
    df1: int
    df2: int
    p: Floats
    epsilon: Floats
    p_corrected: Floats
    partial_eta_squared: Floats


@dataclass(frozen=True)
class Friedman:
    """Friedman's rank test of many items: each array [items], with `df`."""

    statistic: Floats
    df: int
    p: Floats
    kendalls_w: Floats


def repeated_measures_anova(values: Floats) -> RepeatedAnova:
    """Test `values` [subjects, items, conditions] for differences between conditions (GRAS §4.1).

    Equal to pingouin.rm_anova and statsmodels AnovaRM; `epsilon` is Greenhouse and Geisser's.
    """
    subjects, _, conditions = values.shape
    # A subject's level is no part of the test. Taken off first, so that answers which are the
    # same in all conditions are exactly 0 instead of rounding dust, whose F would be any number.
    scale = np.abs(values).max(axis=(0, 2))
    values = values - values[..., :1]
    df1 = conditions - 1
    df2 = df1 * (subjects - 1)
    by_condition = values.mean(axis=0)
    grand = by_condition.mean(axis=-1)
    residual = values - values.mean(axis=-1, keepdims=True)
    residual -= by_condition - grand[:, None]
    by_item = residual.transpose(1, 2, 0)
    # The residuals are centred by subject and by condition, hence their products are those of
    # the orthonormal contrasts: the same trace, and the same sum of squared eigenvalues.
    products = np.einsum("icn,idn->icd", by_item, by_item, optimize=True)
    error = np.trace(products, axis1=1, axis2=2)
    effect = subjects * ((by_condition - grand[:, None]) ** 2).sum(axis=-1)
    dust = (1e-14 * scale) ** 2 * subjects * conditions
    error, effect = np.where(error <= dust, 0.0, error), np.where(effect <= dust, 0.0, effect)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = (effect / df1) / (error / df2)
        epsilon = np.minimum(error**2 / (df1 * (products**2).sum(axis=(1, 2))), 1.0)
        share = effect / (effect + error)
    corrected = special.fdtrc(
        np.maximum(epsilon * df1, 1.0), np.maximum(epsilon * df2, 1.0), statistic
    )
    p = special.fdtrc(df1, df2, statistic)
    return RepeatedAnova(statistic, df1, df2, p, epsilon, corrected, share)


def friedman(values: Floats) -> Friedman:
    """Rank-test `values` [subjects, items, conditions] for differences between conditions.

    Chi-squared form with Kendall's W corrected for ties, equal to pingouin.friedman and
    scipy.stats.friedmanchisquare; NaN where every subject ties all conditions (GRAS §4.1).
    """
    subjects, items, conditions = values.shape
    rank_sums = np.full((items, conditions), subjects * (conditions + 1) / 2)
    ties = np.zeros(items)
    columns = np.ascontiguousarray(values.transpose(2, 1, 0))
    equals = np.ones((conditions, items, subjects), dtype=np.int8)
    for one in range(conditions):
        for other in range(one):
            equal = columns[one] == columns[other]
            equals[one] += equal
            equals[other] += equal
            wins = np.count_nonzero(columns[one] > columns[other], axis=-1)
            lead = wins - (subjects - wins - np.count_nonzero(equal, axis=-1))
            rank_sums[:, one] += lead / 2
            rank_sums[:, other] -= lead / 2
    # A value tied t times adds t² - 1, so a tie of t values adds t³ - t in all.
    ties = (equals.astype(np.int64) ** 2 - 1).sum(axis=(0, 2)).astype(np.float64)
    between = (
        12 * (rank_sums**2).sum(axis=-1) - 3 * subjects**2 * conditions * (conditions + 1) ** 2
    )
    most = subjects**2 * conditions * (conditions**2 - 1) - subjects * ties
    with np.errstate(divide="ignore", invalid="ignore"):
        kendalls_w = between / most
    statistic = subjects * (conditions - 1) * kendalls_w
    return Friedman(
        statistic, conditions - 1, special.chdtrc(conditions - 1, statistic), kendalls_w
    )
