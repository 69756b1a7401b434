"""The null of random labels."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from vlmfair.stats.moments import Factor
from vlmfair.stats.permutation import permutation_p, relabelled_p_values
from vlmfair.stats.welch import welch_tests

GENDER = Factor(np.tile([0, 1], 30), 2, "welch_t")
RACE = Factor(np.tile([0, 1, 2], 20), 3, "welch_anova")


def all_p(values: np.ndarray, seed: int, **options: int) -> dict[str, np.ndarray]:
    batches = list(
        relabelled_p_values(
            values,
            {"gender": GENDER, "race": RACE},
            relabelings=options.pop("relabelings", 50),
            random=np.random.default_rng(seed),
            **options,
        )
    )
    return {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}


def test_each_relabeling_is_welchs_test_of_the_dealt_labels() -> None:
    values = np.random.default_rng(1).beta(2, 3, (60, 4))
    found = all_p(values, seed=7, relabelings=3)
    random = np.random.default_rng(7)
    for at in range(3):
        dealt = random.permutation(60)
        for name, factor in (("gender", GENDER), ("race", RACE)):
            labels = Factor(factor.codes[dealt], factor.groups, factor.test)
            expected = welch_tests(values, labels).p
            np.testing.assert_allclose(found[name][at], expected, rtol=1e-9)


def test_p_values_under_the_null_are_uniform_even_if_the_groups_differ() -> None:
    values = np.random.default_rng(2).normal(0, 1, (60, 1)) + 0.9 * GENDER.codes[:, None]
    assert welch_tests(values, GENDER).p[0] < 0.05
    found = all_p(values, seed=3, relabelings=2000)["gender"]
    assert (found <= 0.05).mean() == pytest.approx(0.05, abs=0.02)
    assert (found <= 0.5).mean() == pytest.approx(0.5, abs=0.04)


def test_columns_of_an_image_stay_together() -> None:
    column = np.random.default_rng(4).beta(2, 3, (60, 1))
    found = all_p(np.hstack([column, column]), seed=5)["race"]
    np.testing.assert_allclose(found[:, 0], found[:, 1], rtol=1e-9)


def test_neither_batches_nor_threads_change_the_result() -> None:
    values = np.random.default_rng(6).beta(2, 3, (60, 40))
    with threadpool_limits(1):
        alone = all_p(values, seed=8, batch=7)
    with threadpool_limits(2):
        together = all_p(values, seed=8, batch=7)
    np.testing.assert_array_equal(alone["race"], together["race"])
    np.testing.assert_allclose(all_p(values, seed=8, batch=50)["race"], alone["race"], rtol=1e-9)


def test_a_constant_question_is_never_significant() -> None:
    found = all_p(np.full((60, 1), 0.1), seed=9)
    assert np.isnan(found["gender"]).all()
    assert np.isnan(found["race"]).all()


def test_permutation_p_counts_the_observed_labels_too() -> None:
    # Three of ten random values reach the observed one: (1 + 3) / (1 + 10).
    assert permutation_p(8, np.arange(1.0, 11)) == pytest.approx(4 / 11)
    assert permutation_p(11, np.arange(1.0, 11)) == pytest.approx(1 / 11)
