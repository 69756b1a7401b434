"""What the report says first about fairness of LVLMs: each model's recall in a sentence."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from vlmfair.papers.lvlm_fairness.measure_rows import setting_of
from vlmfair.render.numbers import format_count, format_interval, format_number, format_signed
from vlmfair.render.report import Summary

TITLE = "Fairness of LVLMs: recall of occupation, gender and race by group on FACET and UTKFace"
_KEYS = ("model", "prompt", "metric", "attribute", "group")


def summarise(
    metrics: pd.DataFrame,
    models: Sequence[str],
    titles: Mapping[str, str],
    *,
    table_judge: str,
    invalid: str,
    direct: str,
    choice: str,
) -> Summary:
    """Return the title of the paper's part and one sentence per model.

    `metrics` is the METRICS table of all models; the numbers are those that the tables show, with
    the direct question and the single choice named.
    """
    facet = metrics[
        (metrics["experiment"] == "facet")
        & (metrics["setting"] == setting_of(table_judge, invalid))
        & (metrics["item"] == "all")
    ]
    rows = {tuple(str(row[name]) for name in _KEYS): row for row in facet.to_dict("records")}
    return Summary(TITLE, tuple(_sentence(rows, model, titles, direct, choice) for model in models))


def _sentence(
    rows: Mapping[tuple[str, ...], Mapping[Hashable, Any]],
    model: str,
    titles: Mapping[str, str],
    direct: str,
    choice: str,
) -> str:
    parts = []
    for prompt, name in ((direct, "direct question"), (choice, "single choice")):
        recall = rows[model, prompt, "recall", "all", "all"]
        gap = rows[model, prompt, "disparity", "gender", "Male-Female"]
        interval = format_interval(100 * gap["ci_low"], 100 * gap["ci_high"], 1)
        parts.append(
            f"{name} {format_number(100 * recall['value'], 1)}%, men less women "
            f"{format_signed(100 * gap['value'])} points (95% interval {interval})"
        )
    images = format_count(rows[model, direct, "recall", "all", "all"]["n"])
    return f"{titles.get(model) or model}: recall of occupation on {images} images: " + (
        "; ".join(parts) + "."
    )
