"""The GRAS Bias Score, against the published p-values and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special

from vlmfair.papers.gras.score import SETTINGS, score_from_p_values, significant

ATTRIBUTES = ("gender", "race", "age", "Skin Tone")


def published(reference_dir: Path, model: str, attribute: str, column: str) -> np.ndarray:
    name = f"{model}_{attribute}_bias_analysis.csv"
    table = pd.read_csv(reference_dir / "gras/evaluation_results" / name)
    return table[[f"{column}_template_{at}" for at in range(5)]].to_numpy()


@pytest.mark.parametrize(
    ("model", "score", "bonferroni"),
    [  # the paper's Table 2, and the same rule at 0.05 / 5
        ("paligemma2-3b-mix-224", 98.25, 97.5),
        ("llava-1.5-7b-hf", 98.00, 96.5),
        ("Qwen2.5-VL-3B-Instruct", 99.00, 98.0),
    ],
)
def test_published_p_values_give_the_published_score(
    reference_dir: Path, model: str, score: float, bonferroni: float
) -> None:
    p = {name: published(reference_dir, model, name, "p_value") for name in ATTRIBUTES}
    assert score_from_p_values(p, 0.05).value == score
    assert score_from_p_values(p, 0.05, "bonferroni_templates").value == bonferroni


@pytest.mark.parametrize(("attribute", "groups", "size"), [("race", 7, 510), ("age", 5, 714)])
def test_published_p_values_have_welchs_degrees_of_freedom(
    reference_dir: Path, attribute: str, groups: int, size: int
) -> None:
    # Solved from (F, p), the second degrees of freedom reach (k² - 1) / (3 k (1 - 1/k)² / (n - 1)),
    # Welch's limit at equal variances, and stay far below the ordinary ANOVA's N - k.
    model = "llava-1.5-7b-hf"
    statistic = published(reference_dir, model, attribute, "statistic").ravel()
    p = published(reference_dir, model, attribute, "p_value").ravel()
    telling = (p > 1e-30) & (p < 1e-3)
    limit = (groups**2 - 1) / (3 * groups * (1 - 1 / groups) ** 2 / (size - 1))
    found = [
        optimize.brentq(
            lambda df2, f=f, known=known: np.log(special.fdtrc(groups - 1, df2, f) / known),
            20,
            20000,
        )
        for f, known in zip(statistic[telling], p[telling])
    ]
    assert max(found) == pytest.approx(limit, rel=1e-3)
    assert limit * 0.95 < min(found) < max(found) < limit * 1.0001


def test_one_template_is_enough_and_alpha_itself_counts() -> None:
    p = np.array([[0.05, 1, 1, 1, 1], [0.051, 1, 1, 1, 1], [0.5, 0.5, 0.5, 0.5, 1e-9]])
    assert significant(p, 0.05).tolist() == [True, False, True]


def test_a_test_that_could_not_be_made_is_not_significant() -> None:
    p = np.full((2, 5), np.nan)
    p[1, 2] = 0.001
    for setting in SETTINGS:
        assert significant(p, 0.05, setting).tolist() == [False, True]


def test_settings_get_stricter_in_their_order() -> None:
    p = np.ones((3, 5))
    p[:, 0] = [0.04, 0.009, 0.001]
    found = {setting: int(significant(p, 0.05, setting).sum()) for setting in SETTINGS}
    # Bonferroni over templates: 0.01; Holm and BH over 15 tests: 0.001 x 15 = 0.015.
    assert found == {"uncorrected": 3, "bonferroni_templates": 2, "holm": 1, "bh": 1}


def test_the_score_is_the_mean_over_the_attributes_that_are_there() -> None:
    none, all_of_them = np.ones((4, 5)), np.zeros((4, 5))
    score = score_from_p_values({"gender": none, "race": all_of_them, "age": all_of_them})
    assert dict(score.significant_traits) == {"gender": 0, "race": 4, "age": 4}
    assert score.value == pytest.approx(8 / 3)
