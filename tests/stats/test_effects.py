"""Effect sizes: equal to pingouin where it has them, to their definition where it has not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin
import pytest

from vlmfair.stats.effects import hedges_g, omega_squared
from vlmfair.stats.moments import Factor, group_moments


def test_hedges_g_and_its_interval_equal_pingouin() -> None:
    random = np.random.default_rng(1)
    values = random.beta(2, 3, (50, 8))
    factor = Factor(np.repeat([0, 1], [20, 30]), 2, "welch_t")
    effect = hedges_g(group_moments(values, factor))
    for at, column in enumerate(values.T):
        expected = pingouin.compute_effsize(column[:20], column[20:], eftype="hedges")
        assert effect.value[at] == pytest.approx(expected, rel=1e-12)
        ends = pingouin.compute_esci(expected, nx=20, ny=30, eftype="hedges", decimals=12)
        assert [effect.ci_low[at], effect.ci_high[at]] == pytest.approx(list(ends), abs=1e-11)


def test_hedges_g_of_a_worked_example() -> None:
    # Means 2 and 5, both variances 1: d = -3, and the factor at n = 3 + 3 is 1 - 3/15 = 0.8.
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])[:, None]
    moments = group_moments(values, Factor(np.repeat([0, 1], 3), 2, "welch_t"))
    assert hedges_g(moments).value[0] == pytest.approx(-2.4)


def test_omega_squared_equals_its_definition_on_pingouin_sums_of_squares() -> None:
    random = np.random.default_rng(2)
    codes = np.repeat([0, 1, 2], [10, 15, 20])
    column = random.beta(2, 3, 45) + 0.2 * codes
    moments = group_moments(column[:, None], Factor(codes, 3, "welch_anova"))
    table = pingouin.anova(
        data=pd.DataFrame({"p": column, "group": codes}), dv="p", between="group", detailed=True
    )
    (between, within), (freedom, rest) = table["SS"], table["DF"]
    mean_square = within / rest
    expected = (between - freedom * mean_square) / (between + within + mean_square)
    assert omega_squared(moments)[0] == pytest.approx(expected, rel=1e-10)


def test_omega_squared_is_zero_on_average_without_a_difference() -> None:
    # Eta squared would be 2/29 = 0.069 here.
    values = np.random.default_rng(3).normal(0, 1, (30, 4000))
    moments = group_moments(values, Factor(np.repeat([0, 1, 2], 10), 3, "welch_anova"))
    assert omega_squared(moments).mean() == pytest.approx(0, abs=0.005)
