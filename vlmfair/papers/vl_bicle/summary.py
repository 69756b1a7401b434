"""What the report says first about VL-BICLE: each model's shifts, and how many findings hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from vlmfair.papers.vl_bicle.cells import Cell, Cells, Place
from vlmfair.papers.vl_bicle.study import DATASET_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import (
    FEMALE_ONLY,
    MALE_ONLY,
    SHOTS,
    TASKS,
    VQA,
)
from vlmfair.render.numbers import format_count, format_interval, format_signed
from vlmfair.render.report import Summary

TITLE = "VL-BICLE: gender bias in vision-language in-context learning"
_MEANINGS = {MALE_ONLY: "men only", FEMALE_ONLY: "women only"}
# The tasks whose shifts are told, the first of each that was asked: pronouns, captions.
_TOLD = (("visogender_op", "visogender_oo"), ("coco_bias", "dci"))


def summarise(
    metrics: pd.DataFrame,
    models: Sequence[str],
    titles: Mapping[str, str],
    *,
    shots: Sequence[int] = SHOTS,
    tasks: Sequence[str] = tuple(TASKS),
    judge: str = "",
    **_others: Any,
) -> Summary:
    """Return the title of the paper's part, a sentence per model, and one on the findings.

    `metrics` is the METRICS table of all models with the findings' rows. `shots` and `tasks` are
    those of the run; other settings that tables show are not needed here.
    """
    study = Study(tuple(models), titles, shots=tuple(shots), tasks=tuple(tasks))
    cells = Cells(metrics, study)
    sentences = [_sentence(cells, model) for model in models]
    sentences += _findings(metrics)
    if judge == "lexical" and any(TASKS[name].experiment == VQA for name in tasks):
        sentences.append(
            "Answers to visual questions are judged by the words that they share with the right "
            "one, not by the paper’s language model."
        )
    return Summary(TITLE, tuple(sentences))


def _sentence(cells: Cells, model: str) -> str:
    study = cells.study
    told = [next((name for name in names if name in study.tasks), "") for names in _TOLD]
    parts = [_part(cells, Place(TASKS[name], model)) for name in told if name]
    numbers = "; ".join(part for part in parts if part) or "not measured"
    return f"{study.title(model)}, error rate of men less that of women, in points: {numbers}."


def _part(cells: Cells, place: Place) -> str:
    """Return the difference of one task without demonstrations, and how they shift it."""
    zero, shots = cells.look("error_rate", place), max(cells.study.shots)
    if not zero.known:
        return ""
    shifts = [
        f"{meaning} {_change(shift)}"
        for setting, meaning in _MEANINGS.items()
        for shift in [cells.look("error_shift", place.after(setting, shots))]
        if shift.known
    ]
    shifted = f", shifted by {shots} demonstrations of {' and of '.join(shifts)}" if shifts else ""
    dataset = DATASET_NAMES[place.task.dataset]
    return f"{dataset} {format_signed(zero.value)} (n = {format_count(zero.n)}){shifted}"


def _change(cell: Cell) -> str:
    interval = format_interval(cell.ci_low, cell.ci_high, 1)
    return f"{format_signed(cell.value)} (95% interval {interval})"


def _findings(metrics: pd.DataFrame) -> list[str]:
    rows = metrics[
        (metrics["experiment"] == "claims")
        & (metrics["metric"] == "claim_supported")
        & (metrics["paper"] == "vl_bicle")
    ]
    if rows.empty:
        return []
    known = rows["value"].dropna()
    return [
        f"Of {len(rows)} findings of the paper {int((known == 1).sum())} are supported by these "
        f"numbers, {int((known == 0).sum())} are not, and {len(rows) - len(known)} cannot be "
        "tested on these models."
    ]
