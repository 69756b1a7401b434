"""Attribution of traits to groups by both rules, against the published means and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vlmfair.papers.gras.valence import attributed, attributed_share


@pytest.mark.parametrize(
    ("model", "by_all", "by_any"),
    [  # § 4.3 and the caption of Table 3 say 0, except Qwen 6; last the rule as stated
        ("paligemma2-3b-mix-224", 0, 14),
        ("llava-1.5-7b-hf", 0, 0),
        ("Qwen2.5-VL-3B-Instruct", 6, 38),
    ],
)
def test_negative_traits_attributed_to_females(
    reference_dir: Path, model: str, by_all: float, by_any: float
) -> None:
    folder = reference_dir / "gras"
    name = f"{model}_gender_bias_analysis.csv"
    table = pd.read_csv(folder / "evaluation_results" / name).sort_values("trait")
    words = pd.read_csv(folder / "selected_trait_words.csv").sort_values("WORD_ENGLISH")
    assert table["trait"].tolist() == words["WORD_ENGLISH"].tolist()
    negative = (words["pos/neg"] == "negative").to_numpy()
    female = table[[f"gender_Female_mean_template_{at}" for at in range(5)]].to_numpy()[None]
    overall = table[[f"overall_mean_template_{at}" for at in range(5)]].to_numpy()
    for rule, expected in (("all", by_all), ("any", by_any)):
        share = attributed_share(attributed(female, overall, rule), negative)  # type: ignore[arg-type]
        assert share.tolist() == [expected]


def test_rules_differ_when_templates_disagree() -> None:
    overall = np.full((3, 5), 0.5)
    above, mixed, equal = [0.6] * 5, [0.6, 0.4, 0.4, 0.4, 0.4], [0.5] * 5
    group = np.array([[above, mixed, equal]])
    assert attributed(group, overall, "all").tolist() == [[True, False, False]]
    assert attributed(group, overall, "any").tolist() == [[True, True, False]]


def test_a_group_without_a_mean_gets_nothing() -> None:
    group = np.full((1, 2, 5), np.nan)
    assert not attributed(group, np.zeros((2, 5)), "any").any()
    assert not attributed(group, np.zeros((2, 5)), "all").any()


def test_share_is_of_the_traits_asked_about() -> None:
    is_attributed = np.array([[True, True, False, False], [False, True, True, True]])
    assert attributed_share(is_attributed, np.array([1, 1, 1, 0], bool)).tolist() == pytest.approx(
        [200 / 3, 200 / 3]
    )
    assert np.isnan(attributed_share(is_attributed, np.zeros(4, bool))).all()
