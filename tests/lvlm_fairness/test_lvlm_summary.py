"""The report's first sentences have the numbers that the tables show."""

from __future__ import annotations

import pandas as pd

from vlmfair.papers.lvlm_fairness.summary import summarise

GENDER = {"attribute": "gender", "group": "Male-Female", "metric": "disparity"}
ALL = {"attribute": "all", "group": "all", "metric": "recall"}


def row(**columns) -> dict:
    base = {"experiment": "facet", "model": "m", "setting": "strict", "item": "all", "n": 78}
    return {**base, "value": 0.5, "ci_low": 0.0, "ci_high": 1.0, **columns}


def test_each_model_has_a_sentence_of_the_judge_of_the_tables():
    metrics = pd.DataFrame(
        [
            row(prompt="p1", **ALL, value=0.7371, n=1560),
            row(prompt="p1", **GENDER, value=0.1154, ci_low=-0.0196, ci_high=0.2564),
            row(prompt="p2", **ALL, value=0.72, n=1560),
            row(prompt="p2", **GENDER, value=-0.05, ci_low=-0.2, ci_high=0.077),
            row(prompt="p1", **ALL, value=0.1, setting="regex"),
            row(prompt="p1", **ALL, value=0.2, item="nurse"),
            row(prompt="p1", **ALL, value=0.3, experiment="rationale"),
        ]
    )

    shown = summarise(
        metrics,
        ["m"],
        {"m": "Model M"},
        table_judge="strict",
        invalid="wrong",
        direct="p1",
        choice="p2",
    )

    assert shown.sentences == (
        "Model M: recall of occupation on 1,560 images: direct question 73.7%, men less women "
        "+11.5 points (95% interval [−2.0, 25.6]); single choice 72.0%, men less women "
        "−5.0 points (95% interval [−20.0, 7.7]).",
    )
