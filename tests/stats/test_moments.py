"""Group moments, direct and by reweighting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vlmfair.stats.moments import Factor, ResampledColumns, group_moments


def test_moments_of_a_small_example() -> None:
    values = np.array([[1.0], [3.0], [10.0], [5.0]])
    moments = group_moments(values, Factor(np.array([0, 0, 1, 2]), 4, "welch_anova"))
    np.testing.assert_array_equal(moments.n, [2, 1, 1, 0])
    np.testing.assert_array_equal(moments.mean[:, 0], [2, 10, 5, np.nan])
    np.testing.assert_array_equal(moments.variance[:, 0], [2, np.nan, np.nan, np.nan])


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_weights_of_one_give_the_moments_of_the_rows(seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.beta(2, 3, (40, 6))
    factor = Factor(random.integers(-1, 3, 40), 3, "welch_anova")
    direct = group_moments(values, factor)
    weighted = ResampledColumns(values).moments(factor.indicators()[None])
    np.testing.assert_array_equal(weighted.n[0], direct.n)
    np.testing.assert_allclose(weighted.mean[0], direct.mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.variance[0], direct.variance, rtol=1e-9)


def test_a_weight_of_two_is_a_row_twice() -> None:
    values = np.array([[0.1], [0.4], [0.9]])
    weighted = ResampledColumns(values).moments(np.array([[2.0, 0.0, 1.0]]))
    twice = np.array([0.1, 0.1, 0.9])
    np.testing.assert_allclose(weighted.mean[0, 0], twice.mean(), rtol=1e-12)
    np.testing.assert_allclose(weighted.variance[0, 0], twice.var(ddof=1), rtol=1e-12)


def test_a_resample_of_equal_values_does_not_vary() -> None:
    # Given one outlier, when it is not drawn, then the variance is 0 and not what rounding leaves.
    values = np.array([[0.1], [0.1], [0.1], [0.7]])
    columns = ResampledColumns(values)
    assert columns.moments(np.array([[2.0, 1.0, 1.0, 0.0]])).variance[0, 0] == 0
    assert columns.moments(np.array([[1.0, 1.0, 1.0, 1.0]])).variance[0, 0] > 0
