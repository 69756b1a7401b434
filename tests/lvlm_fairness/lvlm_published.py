"""The cells that the LVLM fairness paper prints, as metrics and as the rows of its tables."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from lvlm_answers import PROMPTS, ROOT

from vlmfair.contracts import METRICS
from vlmfair.papers.lvlm_fairness.study import Study

Row = dict[str, str]
BASELINES = ("CLIP", "ViT")
MODELS = (
    *("GPT-4o", "Gemini 1.5 Pro", "LLaVA-1.5 (7B)", "LLaVA-1.5 (13B)", "ShareGPT4V (7B)"),
    *("ShareGPT4V (13B)", "MiniCPM-V (8B)", "LLaVA-1.6 (34B)", "Llama-3.2-V (11B)"),
)
JUDGES = ("regex", "clip_text", "sentence_t5")
# How the paper spells the names of Table 2 in other tables.
SPELLINGS = {
    "Gemini1.5Pro": "Gemini 1.5 Pro",
    "Gimini 1.5 Pro": "Gemini 1.5 Pro",
    "ShareGPT4V(13B)": "ShareGPT4V (13B)",
    "ShareGPT4V (34B)": "ShareGPT4V (13B)",
}
# Paper, Table 1; of UTKFace as its file names have it.
SIZES = {
    **{"Male": 3821, "Female": 1660, "light": 2402, "medium": 1641, "dark": 325},
    **{"young": 1286, "middle": 3145, "old": 468},
}
UTKFACE_SIZES = {
    **{"Male": 12582, "Female": 11524, "white": 10222, "black": 4558, "asian": 3586},
    "indian": 4027,
}
PANELS = {"a": "gender", "b": "skin_tone", "c": "age"}
CLASS_TABLES = {"9": ("gender", "Male-Female"), "10": ("skin_tone", "light-dark")}
CLASS_TABLES["11"] = ("age", "young-old")
ENCODERS = {"RE": "regex", "CLIP": "clip_text", "T5": "sentence_t5"}


def published_rows(table: str, panel: str = "") -> list[Row]:
    """The cells of a table, or of one of its panels, in the order of the paper."""
    path = ROOT / "resources/published/lvlm_fairness.csv"
    with open(path, encoding="utf-8", newline="") as opened:
        rows = [row for row in csv.DictReader(opened) if row["table"] == table]
    return [row for row in rows if not panel or row["panel"] == panel]


def printed(value: str) -> str:
    """A printed number with a typographic minus."""
    return value.replace("-", "−")


def printed_rows(table: str, panel: str = "") -> list[tuple[str, ...]]:
    """The rows of a printed table: the model, by its name in Table 2, and the numbers."""
    found: dict[str, list[str]] = {}
    for row in published_rows(table, panel):
        found.setdefault(row["model"], []).append(printed(row["value"]))
    return [(SPELLINGS.get(model, model), *values) for model, values in found.items()]


def published_study(models: Sequence[str] = MODELS, **more: Any) -> Study:
    """The paper's models, read by CLIP; UTKFace was asked of all but the closed ones."""
    study = Study(
        models=tuple(models),
        prompts=PROMPTS,
        table_judge="clip_text",
        judges=JUDGES,
        baselines=BASELINES,
        asked={"utkface": MODELS[2:]},
    )
    return replace(study, **more)


def published_metrics() -> pd.DataFrame:
    """Every printed cell of Tables 2, 3, 4, 5, 8 to 13 as a row of the metrics."""
    rows = [
        *_panels("2", "R_", "recall", "disparity"),
        *_panels("13", "F1_", "f1_paper", "f1_paper_disparity"),
        *_utkface(),
        *_mitigation(),
        *_transitions(),
        *_encoders(),
        *_classes(),
        *_resampling(),
    ]
    return as_metrics(rows)


def as_metrics(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Metrics of lvlm_fairness from rows that state what is not everywhere the same."""
    same = {
        **{"paper": "lvlm_fairness", "dataset": "facet", "shots": 0, "run": 0},
        **{"image_source": "", "item": "all", "attribute": "all", "group": "all"},
    }
    frame = pd.DataFrame([{**same, **row} for row in rows])
    return frame.reindex(columns=METRICS.schema.names)


def _row(row: Row, experiment: str, metric: str, **keys: Any) -> dict[str, Any]:
    model = SPELLINGS.get(row["model"], row["model"])
    return {
        **{"experiment": experiment, "metric": metric, "model": model},
        **{"setting": "classifier" if model in BASELINES else "clip_text"},
        **{"prompt": row["prompt"], "value": float(row["value"])},
        **keys,
    }


def _group(column: str, sign: str) -> tuple[str, bool]:
    """`R_Light` is light, `GD_Light-Dark` the pair light-dark."""
    is_pair = column.startswith("GD_")
    name = column.removeprefix("GD_" if is_pair else sign)
    return name if name.startswith(("Male", "Female")) else name.lower(), is_pair


def _size(group: str, sizes: dict[str, int]) -> int:
    return min(sizes[part] for part in group.split("-"))


def _panels(table: str, sign: str, of_group: str, of_pair: str) -> list[dict[str, Any]]:
    rows = []
    for row in published_rows(table):
        if row["value"] == "N/A":
            continue
        group, is_pair = _group(row["column"], sign)
        keys = {"attribute": PANELS[row["panel"]], "group": group, "n": _size(group, SIZES)}
        rows.append(_row(row, "facet", of_pair if is_pair else of_group, **keys))
    return rows


def _utkface() -> list[dict[str, Any]]:
    rows = []
    for row in published_rows("3"):
        group, is_pair = _group(row["column"], "R_")
        keys = {"attribute": row["prompt"], "group": group, "n": _size(group, UTKFACE_SIZES)}
        metric = "disparity" if is_pair else "recall"
        rows.append(_row(row, "utkface", metric, dataset="utkface", **keys))
    return rows


def _mitigation() -> list[dict[str, Any]]:
    rows = []
    for row in published_rows("4"):
        name, _, kind = row["column"].partition(" ")
        group, is_pair = _group(name, "R_")
        if kind == "Raw":  # the cell of Table 2
            continue
        metric = "disparity" if is_pair else "recall"
        if kind.startswith("Imp"):
            metric = "improvement"
        keys = {"attribute": "gender", "group": group, "prompt": "final", "n": _size(group, SIZES)}
        rows.append(_row(row, "rationale", metric, **keys))
    return rows


def _transitions() -> list[dict[str, Any]]:
    rows, before = [], ""
    counts: dict[str, str] = {}
    for row in published_rows("5"):
        words = row["column"].removeprefix("Raw ").split(" to ")
        if len(words) == 1:
            before, counts[row["model"] + words[0]] = words[0], row["value"]
        else:
            keys = {"item": ">".join(words), "n": int(counts[row["model"] + before])}
            rows.append(_row(row, "rationale", "transitions", **{**keys, "prompt": "final"}))
    return rows


def _encoders() -> list[dict[str, Any]]:
    return [
        _row(
            *(row, "facet", "accuracy"),
            setting=ENCODERS[row["column"].removeprefix("Acc_")],
            n=5481,
        )
        for row in published_rows("8")
    ]


def _classes() -> list[dict[str, Any]]:
    rows = []
    for table, (attribute, pair) in CLASS_TABLES.items():
        for row in published_rows(table):
            keys = {"attribute": attribute, "group": pair, "item": row["column"]}
            rows.append(_row(row, "facet", "disparity", **keys))
    return rows


def _resampling() -> list[dict[str, Any]]:
    rows = []
    for row in published_rows("12"):
        _, _, rest = row["column"].partition(" ")
        size, _, kind = rest.partition(" ")
        keys = {
            **{"attribute": "gender", "group": "Male-Female", "item": size or "raw"},
            "n": int(size or 1660),
        }
        metric = "standard_error" if kind == "Error" else "disparity"
        rows.append(_row(row, "resampling", metric, **keys))
    return rows
