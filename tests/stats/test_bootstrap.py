"""Resampling of images."""

from __future__ import annotations

import numpy as np
import pytest

from vlmfair.stats.bootstrap import (
    bootstrap_moments,
    bootstrap_sums,
    centred_interval,
    draw_weights,
    percentile_interval,
    shrink_differences,
)
from vlmfair.stats.moments import Factor, GroupMoments, group_moments
from vlmfair.stats.welch import welch_from_moments

RACE = Factor(np.repeat([0, 1, 2], [40, 60, 80]), 3, "welch_anova")


def replicate(values: np.ndarray, replicates: int, seed: int = 0) -> GroupMoments:
    batches = [
        batch["race"]
        for batch in bootstrap_moments(
            values,
            {"race": RACE},
            RACE.codes,
            replicates=replicates,
            random=np.random.default_rng(seed),
        )
    ]
    return GroupMoments(
        np.concatenate([batch.n for batch in batches]),
        np.concatenate([batch.mean for batch in batches]),
        np.concatenate([batch.variance for batch in batches]),
    )


def test_a_stratum_keeps_its_size_and_draws_with_replacement() -> None:
    strata = np.array([5, 5, 5, 9, 9, -1])
    weights = draw_weights(strata, np.random.default_rng(1))
    assert [weights[strata == one].sum() for one in (5, 9, -1)] == [3, 2, 1]
    many = np.array([draw_weights(strata, np.random.default_rng(at)) for at in range(200)])
    assert many.max() > 1
    assert many.min() == 0
    np.testing.assert_allclose(many.mean(axis=0), 1, atol=0.2)


def test_the_spread_of_resampled_means_is_their_standard_error() -> None:
    values = np.random.default_rng(2).beta(2, 3, (180, 3))
    means = replicate(values, 3000).mean
    moments = group_moments(values, RACE)
    expected = np.sqrt(moments.variance * (moments.n - 1)[:, None]) / moments.n[:, None]
    np.testing.assert_allclose(means.std(axis=0), expected, rtol=0.06)
    np.testing.assert_allclose(means.mean(axis=0), moments.mean, rtol=0.01)


def test_columns_of_an_image_stay_together() -> None:
    column = np.random.default_rng(3).beta(2, 3, (180, 1))
    means = replicate(np.hstack([column, column]), 20).mean
    np.testing.assert_allclose(means[..., 0], means[..., 1], rtol=1e-12)


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(4).beta(2, 3, (180, 3))
    first, second, other = (replicate(values, 40, seed).mean for seed in (5, 5, 6))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_percentile_interval_skips_missing_replicates() -> None:
    drawn = np.append(np.linspace(0, 1, 101), np.nan)[:, None]
    low, high = percentile_interval(drawn)
    assert (low[0], high[0]) == pytest.approx((0.025, 0.975))


def test_centred_interval_surrounds_the_observed_value_within_its_bounds() -> None:
    drawn = np.linspace(80, 100, 101)
    assert centred_interval(drawn, 60, low=0, high=100) == pytest.approx((50.5, 69.5))
    assert centred_interval(drawn, 99, low=0, high=100) == pytest.approx((89.5, 100))


def test_shrunken_resamples_reject_about_as_often_as_new_samples() -> None:
    # Given 1,000 questions without any difference, when plain resamples are tested, then far more
    # than 5 % come out significant; with shrunken differences most of that excess is gone.
    values = np.random.default_rng(7).normal(0, 1, (180, 1000))
    observed = group_moments(values, RACE)
    f_statistic = welch_from_moments(observed, "welch_anova").statistic
    plain = replicate(values, 20)
    shrunk = shrink_differences(plain, observed, values.mean(axis=0), f_statistic)
    rates = [(welch_from_moments(m, "welch_anova").p <= 0.05).mean() for m in (plain, shrunk)]
    assert rates[0] > 0.18
    assert rates[1] < 0.12


def test_shrinking_leaves_clear_differences_alone() -> None:
    values = np.random.default_rng(8).normal(0, 0.1, (180, 1)) + RACE.codes[:, None]
    observed = group_moments(values, RACE)
    f_statistic = welch_from_moments(observed, "welch_anova").statistic
    shrunk = shrink_differences(observed, observed, values.mean(axis=0), f_statistic)
    np.testing.assert_allclose(shrunk.mean, observed.mean, rtol=0.01)


def test_sums_of_resamples_are_paired_and_do_not_depend_on_the_batch() -> None:
    # Given right answers and their complement, when rows are drawn, then each draw has 50 rows.
    right = np.random.default_rng(1).random(50) < 0.7
    values = np.stack([right, ~right], axis=1).astype(float)

    sums, same = (
        bootstrap_sums(values, replicates=2000, random=np.random.default_rng(9), batch=batch)
        for batch in (7, 2000)
    )

    np.testing.assert_array_equal(sums, same)
    np.testing.assert_array_equal(sums.sum(axis=1), 50)
    share = right.mean()
    assert sums[:, 0].mean() == pytest.approx(50 * share, abs=0.3)
    assert sums[:, 0].std() == pytest.approx(np.sqrt(50 * share * (1 - share)), rel=0.05)
