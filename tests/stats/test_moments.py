"""Group moments, direct and by reweighting."""

from __future__ import annotations

import itertools
import statistics
import warnings
from fractions import Fraction

import numpy as np
import pytest
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


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9, 1e-12])
@pytest.mark.parametrize("outliers", ["another group", "a row that is not drawn"])
def test_a_nearly_constant_group_keeps_its_variance(spread: float, outliers: str) -> None:
    # Given values that vary by `spread` around 0.1, and others far from them,
    random = np.random.default_rng(0)
    rows = 60 if outliers == "another group" else 119
    values = np.full((120, 3), 0.9)
    values[:rows] = 0.1 + spread * random.normal(size=(rows, 3))
    # when only the former are drawn, some of them twice,
    weights = np.zeros((2, 1, 120))
    weights[0, 0, :rows] = 1
    weights[1, 0, :rows] = random.integers(0, 3, rows)
    found = ResampledColumns(values).moments(weights)
    # then the variance is that of exact arithmetic on the drawn rows.
    for draw, column in itertools.product(range(2), range(3)):
        drawn = values[:, column].repeat(weights[draw, 0].astype(int))
        exact = [Fraction(value) for value in drawn]
        expected = statistics.variance(exact)
        assert found.variance[draw, 0, column] == pytest.approx(float(expected), rel=1e-9)
        assert found.mean[draw, 0, column] == pytest.approx(float(statistics.mean(exact)), 1e-15)


@given(seed=st.integers(0, 2**32 - 1), exponent=st.integers(-14, 0))
@settings(max_examples=40, deadline=None)
def test_moments_of_weights_are_those_of_rows_at_every_scale(seed: int, exponent: int) -> None:
    random = np.random.default_rng(seed)
    levels = random.random((3, 4))
    factor = Factor(np.arange(30) % 3, 3, "welch_anova")
    values = levels[factor.codes] + 10.0**exponent * random.normal(size=(30, 4))
    direct = group_moments(values, factor)
    weighted = ResampledColumns(values).moments(factor.indicators()[None])
    np.testing.assert_allclose(weighted.mean[0], direct.mean, rtol=1e-12)
    np.testing.assert_allclose(weighted.variance[0], direct.variance, rtol=1e-8)


def test_without_any_row_there_are_no_moments() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ResampledColumns(np.empty((0, 3))).moments(np.empty((4, 2, 0)))
    assert found.n.tolist() == [[0, 0]] * 4
    assert found.mean.shape == found.variance.shape == (4, 2, 3)
    assert np.isnan(found.mean).all()
    assert np.isnan(found.variance).all()


def test_a_group_that_no_row_is_drawn_from_has_no_moments() -> None:
    found = ResampledColumns(np.array([[0.1], [0.4]])).moments(np.zeros((1, 2)))
    assert np.isnan(found.mean).all()
    assert np.isnan(found.variance).all()


def test_a_resample_of_equal_values_does_not_vary() -> None:
    # Given one outlier, when it is not drawn, then the variance is 0 and not what rounding leaves.
    values = np.array([[0.1], [0.1], [0.1], [0.7]])
    columns = ResampledColumns(values)
    assert columns.moments(np.array([[2.0, 1.0, 1.0, 0.0]])).variance[0, 0] == 0
    assert columns.moments(np.array([[1.0, 1.0, 1.0, 1.0]])).variance[0, 0] > 0
