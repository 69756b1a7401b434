"""Repeated measures: equal to pingouin, statsmodels and scipy."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pingouin
import pytest
from scipy import stats
from statsmodels.stats.anova import AnovaRM

from vlmfair.stats.repeated import friedman, repeated_measures_anova


def answers(subjects: int, items: int, seed: int, digits: int | None = None) -> np.ndarray:
    random = np.random.default_rng(seed)
    level = random.normal(0, 0.1, (subjects, items, 1)) + 0.01 * np.arange(5)
    values = 0.5 + level + random.normal(0, [0.01, 0.02, 0.03, 0.05, 0.1], (subjects, items, 5))
    return values if digits is None else values.round(digits)


def test_anova_equals_pingouin_with_its_correction() -> None:
    values = answers(40, 6, seed=1)
    ours = repeated_measures_anova(values)
    for at in range(values.shape[1]):
        table = pingouin.rm_anova(pd.DataFrame(values[:, at]), correction=True, effsize="np2")
        expected = table.iloc[0]
        assert (ours.df1, ours.df2) == (expected["ddof1"], expected["ddof2"])
        assert ours.statistic[at] == pytest.approx(expected["F"], rel=1e-9)
        assert ours.p[at] == pytest.approx(expected["p_unc"], rel=1e-9)
        assert ours.epsilon[at] == pytest.approx(expected["eps"], rel=1e-9)
        assert ours.p_corrected[at] == pytest.approx(expected["p_GG_corr"], rel=1e-9)
        assert ours.partial_eta_squared[at] == pytest.approx(expected["np2"], rel=1e-9)


def test_anova_equals_statsmodels_which_the_released_code_calls() -> None:
    values = answers(25, 1, seed=2)
    table = pd.DataFrame(values[:, 0]).reset_index().melt("index", var_name="template")
    fitted = AnovaRM(table, "value", "index", ["template"]).fit().anova_table.iloc[0]
    ours = repeated_measures_anova(values)
    assert ours.statistic[0] == pytest.approx(fitted["F Value"], rel=1e-9)
    assert (ours.df1, ours.df2) == (fitted["Num DF"], fitted["Den DF"])


@pytest.mark.parametrize("digits", [None, 2])  # two digits: many ties
def test_friedman_equals_pingouin_and_scipy(digits: int | None) -> None:
    values = answers(60, 5, seed=3, digits=digits)
    ours = friedman(values)
    for at in range(values.shape[1]):
        expected = pingouin.friedman(pd.DataFrame(values[:, at])).iloc[0]
        assert ours.df == expected["ddof1"]
        assert ours.statistic[at] == pytest.approx(expected["Q"], rel=1e-9)
        assert ours.p[at] == pytest.approx(expected["p_unc"], rel=1e-9)
        assert ours.kendalls_w[at] == pytest.approx(expected["W"], rel=1e-9)
        plain = stats.friedmanchisquare(*values[:, at].T)
        assert ours.statistic[at] == pytest.approx(plain.statistic, rel=1e-9)


def test_kendalls_w_is_one_when_all_images_rank_alike() -> None:
    values = np.tile(np.arange(5.0), (7, 1, 1)).transpose(0, 1, 2) + np.arange(7.0)[:, None, None]
    assert friedman(values).kendalls_w[0] == pytest.approx(1)


def test_answers_that_do_not_depend_on_wording_have_no_statistic() -> None:
    values = np.repeat(np.array([0.25, 0.5, 0.75])[:, None, None], 5, axis=2)
    assert np.isnan(friedman(values).p[0])
    assert np.isnan(repeated_measures_anova(values).p[0])


def test_adding_a_number_to_an_image_changes_nothing() -> None:
    values = answers(30, 2, seed=4)
    moved = values + np.random.default_rng(5).normal(0, 1, (30, 1, 1))
    np.testing.assert_allclose(
        repeated_measures_anova(moved).statistic, repeated_measures_anova(values).statistic
    )
    np.testing.assert_allclose(friedman(moved).statistic, friedman(values).statistic)


def test_degrees_of_freedom_at_the_papers_size() -> None:
    # The published result files have 4 and 14,276 degrees of freedom.
    ours = repeated_measures_anova(np.random.default_rng(6).random((3570, 1, 5)))
    assert (ours.df1, ours.df2) == (4, 14276)


@pytest.mark.parametrize("subjects", [20, 217])
def test_a_model_that_ignores_the_wording_is_not_sensitive_to_it(subjects):
    # Five bit-identical answers for each image: there is nothing to test, for either test.
    answers = np.random.default_rng(0).random((subjects, 100, 1)).repeat(5, axis=2)

    assert np.isnan(repeated_measures_anova(answers).p).all()
    assert np.isnan(friedman(answers).p).all()


def test_subjects_that_differ_by_a_constant_leave_no_error():
    shifted = np.random.default_rng(0).random((217, 1, 1)) + np.array([0.0, 0.1, 0.2, 0.3, 0.4])

    assert np.isposinf(repeated_measures_anova(shifted).statistic).all()
