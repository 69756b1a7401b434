"""Intervals, tests and sizes of proportions, against statsmodels, scipy and the textbook."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import fisher_exact
from statsmodels.stats.proportion import proportion_confint, proportion_effectsize

from vlmfair.stats.proportions import cohens_h, fisher_p, wilson_interval

COUNT = np.array([0.0, 1, 7, 50, 100, 3])
TOTAL = np.array([3.0, 3, 9, 100, 100, 3])


def test_wilson_interval_is_statsmodels() -> None:
    low, high = wilson_interval(COUNT, TOTAL)

    expected = proportion_confint(COUNT, TOTAL, method="wilson")
    np.testing.assert_allclose(low, expected[0], atol=1e-12)
    np.testing.assert_allclose(high, expected[1], atol=1e-12)


def test_all_right_in_a_tiny_group_still_has_a_width() -> None:
    low, high = wilson_interval(np.array(3.0), np.array(3.0))

    # Wilson (1927): 1 / (1 + z^2 / n).
    assert (float(low), float(high)) == pytest.approx((1 / (1 + 1.959964**2 / 3), 1.0))


def test_none_or_all_right_end_at_exactly_0_and_1() -> None:
    low, _ = wilson_interval(np.zeros(9), np.arange(1.0, 10.0))
    _, high = wilson_interval(np.arange(1.0, 10.0), np.arange(1.0, 10.0))

    assert np.all(low == 0.0)
    assert np.all(high == 1.0)


def test_an_empty_group_has_no_interval() -> None:
    low, high = wilson_interval(np.array([0.0]), np.array([0.0]))

    assert np.isnan([low, high]).all()


def test_cohens_h_is_statsmodels() -> None:
    first, second = np.array([0.5, 0.9, 0.0]), np.array([0.5, 0.1, 1.0])

    np.testing.assert_allclose(cohens_h(first, second), proportion_effectsize(first, second))


def test_fisher_is_scipy_s_entry_by_entry() -> None:
    right = np.array([[3.0, 10.0], [0.0, 4.0]])
    n = np.array([[5.0, 20.0], [0.0, 4.0]])

    found = fisher_p(right, n, np.array([1.0, 2.0]), np.array([9.0, 9.0]))

    assert found[0, 0] == pytest.approx(fisher_exact([[3, 2], [1, 8]]).pvalue)
    assert found[0, 1] == pytest.approx(fisher_exact([[10, 10], [2, 7]]).pvalue)
    assert np.isnan(found[1, 0])
    assert found[1, 1] == pytest.approx(fisher_exact([[4, 0], [2, 7]]).pvalue)
