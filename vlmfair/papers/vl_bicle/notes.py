"""Notes below tables: signs, intervals, numbers of queries, judge, what was not asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from vlmfair.papers.vl_bicle.cells import NOT_ASKED, SIGNIFICANT, Cells
from vlmfair.papers.vl_bicle.study import SETTING_MEANINGS, Study
from vlmfair.papers.vl_bicle.tasks import BALANCED_POOL, FEMALE, MALE, ZERO_SHOT
from vlmfair.render.numbers import MISSING, format_count

ERROR_NOTE = (
    "ER: error rate in per cent, of men (m) and women (f). ER_m−f is ER_m minus ER_f; below 0 is "
    "male bias (more errors on women), above 0 female bias."
)
QUERIES_NOTE = (
    "Intervals: 95%, percentile bootstrap over the queries, drawn within each gender; differences "
    "are paired by image."
)
INTERVAL_NOTE = f"{QUERIES_NOTE} The runs are kept: how much other demonstrations change is in ±."
CSV_NOTE = "The csv file has the interval and the number of queries of every cell."


def runs_note(study: Study, *, retrieved: bool = False) -> str:
    """Return what stands behind the sign ±."""
    single = "zero-shot and retrieval have" if retrieved else "zero-shot has"
    return (
        f"±: standard deviation over {study.runs} runs (n − 1 in the denominator); {single} one "
        "run, without a deviation."
    )


def shift_note(study: Study, starred: bool) -> str:
    """Return what a shift is, and its sign of significance where one is shown."""
    note = "Shift: ER_m−f minus that of zero-shot."
    if not starred:
        return note
    return (
        f"{note} {SIGNIFICANT} p ≤ {study.alpha:g} by the bootstrap for these demonstrations, "
        "after Benjamini and Hochberg’s correction over all shifts of the model."
    )


def is_starred(rows: Iterable[Sequence[str]]) -> bool:
    """Return whether the sign of significance stands in any cell."""
    return any(text.endswith(SIGNIFICANT) for row in rows for text in row)


def settings_note(settings: Iterable[str]) -> str:
    """Return what the abbreviations of settings mean."""
    shown = [setting for setting in settings if setting != ZERO_SHOT]
    meanings = [
        f"{name} {SETTING_MEANINGS[name]}"
        for name in dict.fromkeys(setting.removesuffix(BALANCED_POOL) for setting in shown)
    ]
    note = f"Demonstrations: {', '.join(meanings)}."
    if any(setting.endswith(BALANCED_POOL) for setting in shown):
        note += " Balanced pool: the more frequent gender of the pool is drawn down to the other."
    return note


def queries_note(data: pd.DataFrame, metric: str = "error_rate") -> list[str]:
    """Return `Queries: 69 men, 69 women.` of the shown cells, where they are known."""
    own = data[(data["metric"] == metric) & data["value"].notna()]
    counts = {
        name: count_range(own["n"][own["group"] == group])
        for name, group in (("men", MALE), ("women", FEMALE))
    }
    if MISSING in counts.values():
        return []
    return [f"Queries: {', '.join(f'{count} {name}' for name, count in counts.items())}."]


def count_range(counts: Iterable[float]) -> str:
    """Return numbers of queries as `3,821`, or `3,790–3,821` where cells differ."""
    known = sorted(count for count in counts if count == count)
    if not known:
        return MISSING
    low, high = format_count(known[0]), format_count(known[-1])
    return low if low == high else f"{low}–{high}"


def judge_note(study: Study) -> str:
    """Return who judged the answers to visual questions."""
    return f"Answers are judged by {study.judge_text}."


def quality_note(study: Study) -> str:
    """Return how caption quality is measured."""
    parts = [
        f"BLEU-4: sacreBLEU over all captions ({study.bleu_signature})."
        if study.bleu_signature
        else "BLEU-4: sacreBLEU over all captions.",
        f"CLIP: CLIPScore, 100 max(cos, 0), by the encoder “{study.clip_backbone}”."
        if study.clip_backbone
        else "CLIP: CLIPScore, 100 max(cos, 0).",
        "AvgL: words in a caption. m−f: men minus women.",
    ]
    return " ".join(parts)


def skipped_note(cells: Cells, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return why cells were not asked, where any is shown."""
    if not any(NOT_ASKED in text for row in rows for text in row):
        return []
    numbers = sorted(cells.skipped_images())
    images = ", ".join(map(str, numbers))
    return [
        f"{NOT_ASKED}: the prompt would hold {images} images with the query’s, more than the model "
        "takes."
    ]
