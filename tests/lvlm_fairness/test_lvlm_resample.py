"""Balanced samples: the same numbers as a plain loop, much faster, with the paper's errors."""

from __future__ import annotations

import time

import numpy as np
import pytest

from vlmfair.papers.lvlm_fairness.resample import bootstrap_disparities, resample_disparities

MALE, FEMALE = 3821, 1660


def paper_sized(models: int, male: float, female: float) -> tuple[np.ndarray, np.ndarray]:
    """Answers of models with these recalls about FACET's men and women."""
    random = np.random.default_rng(5)
    is_male = np.arange(MALE + FEMALE) < MALE
    return random.random((models, len(is_male))) < np.where(is_male, male, female), is_male


def plain_loop(
    right: np.ndarray, first: np.ndarray, second: np.ndarray, size: int, draws: int, seed: int
) -> list[list[float]]:
    """One model, one draw, one image at a time."""
    random = np.random.default_rng([seed, size])
    keys = [random.random((draws, int(group.sum()))) for group in (first, second)]
    found = []
    for answers in right.tolist():
        row = []
        for draw in range(draws):
            recalls = []
            for key, group in zip(keys, (first, second)):
                images = np.flatnonzero(group).tolist()
                order = sorted(range(len(images)), key=key[draw].tolist().__getitem__)
                recalls.append(sum(answers[images[place]] for place in order[:size]) / size)
            row.append(recalls[0] - recalls[1])
        found.append(row)
    return found


def test_vectorised_draws_are_those_of_a_plain_loop() -> None:
    right, male = paper_sized(2, 0.8, 0.7)

    found = resample_disparities(right, male, ~male, sizes=[500, 1000], draws=3, seed=7)

    for place, size in enumerate((500, 1000)):
        expected = plain_loop(right, male, ~male, size, 3, 7)
        np.testing.assert_allclose(found.drawn[:, place], expected, rtol=0, atol=1e-15)


def test_eleven_models_in_three_sizes_take_less_than_two_seconds() -> None:
    right, male = paper_sized(11, 0.8, 0.7)

    started = time.perf_counter()
    resample_disparities(right, male, ~male)

    assert time.perf_counter() - started < 2


def test_mean_and_standard_error_are_those_of_the_draws() -> None:
    right, male = paper_sized(1, 0.8, 0.7)

    found = resample_disparities(right, male, ~male, sizes=[500], draws=20, seed=1)

    draws = found.drawn[0, 0]
    assert found.mean[0, 0] == pytest.approx(draws.mean())
    assert found.standard_error[0, 0] == pytest.approx(draws.std(ddof=1) / np.sqrt(20))


def test_errors_shrink_with_the_size_as_the_paper_s_do() -> None:
    # GPT-4o, single choice: recalls of Table 2, errors of Table 12.
    right, male = paper_sized(200, 0.8055, 0.6970)

    found = resample_disparities(right, male, ~male, sizes=[500, 1000, 1500], draws=20)

    mean_error = found.standard_error.mean(axis=0)
    # Without replacement: sqrt(sum of p (1 - p) / size (1 - size / n)) / sqrt(20).
    np.testing.assert_allclose(mean_error, [0.00533, 0.00316, 0.00197], atol=0.0003)
    published = np.array([0.0038, 0.0036, 0.0021])
    assert np.all(np.abs(mean_error - published) < 0.0016)


def test_a_draw_as_large_as_both_groups_is_the_raw_disparity() -> None:
    right = np.array([[1, 1, 0, 1, 0, 0]], bool)
    male = np.array([1, 1, 1, 0, 0, 0], bool)

    found = resample_disparities(right, male, ~male, sizes=[3], draws=5)

    assert found.raw[0] == pytest.approx(2 / 3 - 1 / 3)
    np.testing.assert_allclose(found.drawn, 1 / 3)
    np.testing.assert_allclose(found.standard_error, 0, atol=1e-16)


def test_a_size_beyond_the_smaller_group_gives_no_number() -> None:
    right = np.ones((2, 5), bool)
    male = np.array([1, 1, 1, 0, 0], bool)

    found = resample_disparities(right, male, ~male, sizes=[2, 3], draws=4)

    assert np.isfinite(found.mean[:, 0]).all()
    assert np.isnan(found.mean[:, 1]).all()
    assert np.isnan(found.standard_error[:, 1]).all()


def test_draws_follow_the_seed_and_hold_no_image_twice() -> None:
    right, male = paper_sized(1, 0.8, 0.7)
    ids = np.arange(len(male))[None]

    one = resample_disparities(right, male, ~male, sizes=[500], seed=1).drawn
    again = resample_disparities(right, male, ~male, sizes=[500], seed=1).drawn
    other = resample_disparities(right, male, ~male, sizes=[500], seed=2).drawn

    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    from vlmfair.papers.lvlm_fairness.resample import draw_images

    drawn = draw_images(ids[0][male], 500, 20, np.random.default_rng(0))
    assert all(len(set(draw)) == 500 for draw in drawn.tolist())


def test_the_interval_is_that_of_a_plain_bootstrap_of_the_whole_procedure() -> None:
    random = np.random.default_rng(4)
    male = np.arange(60) < 40
    right = (random.random(60) < np.where(male, 0.8, 0.5))[None]

    found = bootstrap_disparities(
        right, male, ~male, sizes=[15, 20], draws=3, replicates=3000, seed=2
    )

    plain = []
    for _ in range(3000):
        drawn = [right[0, random.choice(np.flatnonzero(group), group.sum())]
                 for group in (male, ~male)]  # fmt: skip
        means = [
            np.mean([random.permutation(answers)[:15].mean() for _ in range(3)])
            for answers in drawn
        ]
        plain.append((drawn[0].mean() - drawn[1].mean(), means[0] - means[1]))
    for place in (0, 1):
        np.testing.assert_allclose(
            np.percentile(found[:, 0, place], [2.5, 97.5]),
            np.percentile(np.array(plain)[:, place], [2.5, 97.5]),
            atol=0.03,
        )
    # Samples add their own noise to that of the images.
    assert found[:, 0, 1].std() > found[:, 0, 0].std()


def test_resampled_numbers_of_a_model_do_not_depend_on_the_other_models() -> None:
    right, male = paper_sized(3, 0.8, 0.7)
    settings = {"sizes": [500, 5000], "draws": 2, "replicates": 5, "seed": 3}

    all_models = bootstrap_disparities(right, male, ~male, **settings)
    one = bootstrap_disparities(right[:1], male, ~male, **settings)

    np.testing.assert_array_equal(all_models[:, :1], one)
    assert np.isnan(all_models[:, :, 2]).all()
    assert np.isfinite(all_models[:, :, :2]).all()


def test_a_group_without_images_has_no_resampled_disparity() -> None:
    nobody = np.zeros(4, bool)

    found = bootstrap_disparities(
        np.ones((1, 4), bool), ~nobody, nobody, sizes=[1], draws=2, replicates=3
    )

    assert np.isnan(found).all()
