"""Adjusted p-values, with a worked example and with tests that could not be made."""

from __future__ import annotations

import numpy as np
from statsmodels.stats.multitest import multipletests

from vlmfair.stats.multiplicity import benjamini_hochberg, holm


def test_holm_of_a_worked_example() -> None:
    # 0.01 x 3, then 0.02 x 2, then max(0.04, 0.03 x 1).
    np.testing.assert_allclose(holm(np.array([0.03, 0.01, 0.02])), [0.04, 0.03, 0.04])


def test_benjamini_hochberg_of_a_worked_example() -> None:
    # 0.03 x 3/3, then min(0.03, 0.02 x 3/2), then min(0.03, 0.01 x 3/1).
    np.testing.assert_allclose(benjamini_hochberg(np.array([0.03, 0.01, 0.02])), [0.03] * 3)


def test_a_missing_test_is_not_counted_and_stays_missing() -> None:
    p = np.array([[0.01, np.nan], [0.02, 0.03]])
    np.testing.assert_allclose(holm(p), [[0.03, np.nan], [0.04, 0.04]])
    np.testing.assert_allclose(benjamini_hochberg(p), [[0.03, np.nan], [0.03, 0.03]])


def test_nothing_but_missing_tests_stay_missing() -> None:
    assert np.isnan(holm(np.full((2, 2), np.nan))).all()


def test_both_equal_statsmodels() -> None:
    p = np.random.default_rng(1).beta(0.3, 2, 500)
    np.testing.assert_allclose(holm(p), multipletests(p, method="holm")[1], rtol=1e-12)
    expected = multipletests(p, method="fdr_bh")[1]
    np.testing.assert_allclose(benjamini_hochberg(p), expected, rtol=1e-12)
