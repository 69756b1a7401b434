"""Figures 1, 3c, 3d and 3e: a row for each model, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from vlmfair.papers.lvlm_fairness.cells import SMALL as SMALL_SIGN
from vlmfair.papers.lvlm_fairness.cells import Cell, Cells
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name, setting_of
from vlmfair.papers.lvlm_fairness.notes import count_range
from vlmfair.papers.lvlm_fairness.study import JUDGE_NAMES, Study, shown_group
from vlmfair.papers.lvlm_fairness.tables_classes import sample_sizes
from vlmfair.papers.lvlm_fairness.tables_recall import CHOICE_HEADING, DIRECT_HEADING
from vlmfair.render.dot_rows import Series, draw_dot_rows, series_handles
from vlmfair.render.numbers import format_count, format_signed
from vlmfair.render.panels import inches_high, place, write_at
from vlmfair.render.style import NORMAL, SMALL, TWO_COLUMNS, new_figure, widest

_ROW, _HEAD, _AXIS, _FOOT = 0.3, 0.3, 0.4, 0.38  # inches
_PAIR = PAIRS["gender"][0]
# Section 1: the classes of Figure 1.
_SHOWN_CLASSES = ("skateboarder", "nurse")


def draw_two_classes(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: gender disparity of every model for skateboarder and nurse, with both prompts."""
    cells = Cells(metrics, study)
    cells.require(study.models, "facet", "disparity")
    prompts = {study.direct: DIRECT_HEADING, study.choice: CHOICE_HEADING}
    panels = {
        name: [
            _series(
                prompts[prompt],
                [
                    cells.show("disparity", m, prompt, pair_name(_PAIR), name, attribute="gender")
                    for m in study.models
                ],
                place_,
            )
            for place_, prompt in enumerate(prompts)
        ]
        for name in _SHOWN_CLASSES
    }
    names = [study.title(model) for model in study.models]
    left, panel = widest(names) + 0.12, len(names) * _ROW
    top = 1.55 * _HEAD
    figure = new_figure(TWO_COLUMNS, top + panel + _AXIS + _FOOT)
    _title(figure, "Gender disparity: recall of Male minus recall of Female")
    gap = 0.25
    width = (TWO_COLUMNS - left - gap - 0.1) / 2
    end = _end([series for found in panels.values() for series in found])
    for number, (name, found) in enumerate(panels.items()):
        axes = place(figure, left + number * (width + gap), top, width, panel)
        draw_dot_rows(axes, names, found)
        _around_zero(axes, end)
        axes.set_title(_with_counts(cells, name), pad=3)
        if number:
            axes.set_yticklabels([])
    _legend(figure, panels[_SHOWN_CLASSES[0]], f"lines: 95% intervals{_few_note(cells)}")
    return figure, cells.data()


def _with_counts(cells: Cells, name: str) -> str:
    """Return a class with its numbers of images; a sign says that they are few."""
    study, few = cells.study, False
    sizes = []
    for group in _PAIR:
        found = [
            cells.show("recall", model, prompt, group, name, attribute="gender")
            for model in study.models
            for prompt in (study.direct, study.choice)
        ]
        few = few or any(cells.is_small(cell) for cell in found)
        sizes.append(f"{shown_group(group)} {count_range(cell.n for cell in found)}")
    sign = f" {SMALL_SIGN}" if few else ""
    return f"{name} ({', '.join(sizes)} images){sign}"


def _few_note(cells: Cells) -> str:
    shown = cells.data()
    if not shown["small_cell"].any():
        return ""
    return f"   {SMALL_SIGN} fewer than {cells.study.small_cell} images in a group"


def draw_encoders(metrics: pd.DataFrame, study: Study, *, kind: str) -> tuple[Figure, pd.DataFrame]:
    """Figure 3c (`kind` direct) or 3d (choice): recall over all classes by who reads the answers.

    Both have the scale from 0 to 1.
    """
    cells = Cells(metrics, study)
    cells.require(study.models, "facet", "accuracy")
    prompt = study.direct if kind == "direct" else study.choice
    judges = [judge for judge in JUDGE_NAMES if judge in study.judges]
    series, sizes = [], []
    for judge in judges:
        found = [
            cells.show("accuracy", model, prompt, setting=setting_of(judge, study.invalid))
            for model in study.models
        ]
        sizes += [cell.n for cell in found]
        # A judge has the same colour in every run, whichever others there are.
        series.append(_series(JUDGE_NAMES[judge], found, list(JUDGE_NAMES).index(judge)))
    heading = DIRECT_HEADING if kind == "direct" else CHOICE_HEADING
    title = f"{heading}: recall by encoder of the answers, n = {count_range(sizes)} images"
    names = [study.title(model) for model in study.models]
    figure, axes = _one_panel(title, names, series)
    axes.set_xlim(0, 1)
    axes.set_xlabel("recall, all classes", fontsize=SMALL)
    _legend(figure, series, "lines: 95% intervals")
    return figure, cells.data()


def draw_resampling(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 3e: gender disparity of all images beside that of balanced samples, single choice."""
    cells = Cells(metrics, study)
    cells.require(study.models, "resampling", "disparity")
    keys = {"attribute": "gender", "experiment": "resampling"}
    setting = setting_of(study.table_judge)
    series = []
    for number, item in enumerate(["raw", *sample_sizes(cells)]):
        means, errors = (
            [
                cells.show(metric, m, study.choice, pair_name(_PAIR), item, setting=setting, **keys)
                for m in study.models
            ]
            for metric in ("disparity", "standard_error")
        )
        smaller = count_range(cell.n for cell in means)
        label = f"all images (smaller gender {smaller})"
        if item != "raw":
            label = f"{format_count(int(item))} of each gender"
        values = np.array([cell.value for cell in means])
        spread = np.array([cell.value for cell in errors])
        series.append(Series(label, values, values - spread, values + spread, number))
    names = [study.title(model) for model in study.models]
    title = f"{CHOICE_HEADING}: recall of Male minus recall of Female, balanced samples"
    figure, axes = _one_panel(title, names, series)
    _around_zero(axes, _end(series))
    _legend(figure, series, f"lines: ± standard error of the mean of {study.draws} samples")
    return figure, cells.data()


def _one_panel(title: str, names: list[str], series: list[Series]) -> tuple[Figure, Axes]:
    left, panel = widest(names) + 0.12, len(names) * max(_ROW, 0.1 * len(series))
    figure = new_figure(TWO_COLUMNS, _HEAD + panel + _AXIS + _FOOT)
    _title(figure, title)
    axes = place(figure, left, _HEAD, TWO_COLUMNS - left - 0.15, panel)
    draw_dot_rows(axes, names, series)
    return figure, axes


def _series(label: str, found: Sequence[Cell], number: int) -> Series:
    return Series(
        label,
        np.array([cell.value for cell in found]),
        np.array([cell.ci_low for cell in found]),
        np.array([cell.ci_high for cell in found]),
        number,
    )


def _title(figure: Figure, text: str) -> None:
    write_at(figure, 0.04, 0.05, text, fontsize=NORMAL, weight="bold")


def _end(series: Sequence[Series]) -> float:
    """Return the end of an axis around 0 on which every value and interval lies."""
    parts = [part for one in series for part in (one.values, one.lows, one.highs)]
    known = np.concatenate(parts)
    known = np.abs(known[np.isfinite(known)])
    return min(float(known.max()) * 1.06, 1.0) if known.size and known.max() > 0 else 1.0


def _around_zero(axes: Axes, end: float) -> None:
    axes.set_xlim(-end, end)
    axes.axvline(0, color="#777777", linewidth=0.6, zorder=1)
    ticks = [at for at in MaxNLocator(5, symmetric=True).tick_values(-end, end) if abs(at) <= end]
    step = ticks[1] - ticks[0]
    digits = max(0, -int(np.floor(np.log10(step) + 1e-9)))
    digits += abs(round(step, digits) - step) > 1e-9
    axes.set_xticks(ticks, [format_signed(at, digits) for at in ticks])
    first, second = (shown_group(group) for group in _PAIR)
    below = -0.27 / inches_high(axes)
    style: dict[str, Any] = {"transform": axes.transAxes, "va": "center", "fontsize": SMALL}
    axes.text(0.47, below, f"← favours {second}", ha="right", **style)
    axes.text(0.53, below, f"favours {first} →", ha="left", **style)


def _legend(figure: Figure, series: Sequence[Series], lines: str) -> None:
    figure.legend(
        handles=series_handles(series),
        loc="lower left",
        bbox_to_anchor=(0.0, 0.17 / float(figure.get_size_inches()[1])),
        ncols=len(series),
        columnspacing=1.2,
        handletextpad=0.2,
    )
    height = float(figure.get_size_inches()[1])
    write_at(figure, 0.15, height - 0.17, lines)
