"""Figures 3a and 3b: gender disparity of every model in every occupation, as heat maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

from vlmfair.papers.lvlm_fairness.cells import Cell, Cells
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name
from vlmfair.papers.lvlm_fairness.notes import count_range
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS
from vlmfair.papers.lvlm_fairness.study import Study, shown_group
from vlmfair.papers.lvlm_fairness.tables_recall import CHOICE_HEADING, DIRECT_HEADING
from vlmfair.render.panels import draw_heat, draw_scale, place, write_at
from vlmfair.render.style import (
    NORMAL,
    SMALL,
    TWO_COLUMNS,
    colour_limit,
    new_figure,
    text_width,
    widest,
)

_ROW, _HEAD, _COUNT, _FOOT = 0.2, 0.22, 0.15, 0.6  # inches
_PAIR = PAIRS["gender"][0]
_HATCHED: dict[str, Any] = {"facecolor": "none", "edgecolor": "#9a9a9a", "hatch": "////"}


def draw_classes(metrics: pd.DataFrame, study: Study, *, kind: str) -> tuple[Figure, pd.DataFrame]:
    """Figure 3a (`kind` direct) or 3b (choice): Male minus Female recall by occupation.

    Both have one colour scale. Numbers of images stand below; cells on few images are hatched.
    """
    cells = Cells(metrics, study)
    cells.require(study.models, "facet", "disparity")
    prompt, other = study.direct, study.choice
    if kind == "choice":
        prompt, other = other, prompt
    shown = [[_cell(cells, model, prompt, name) for name in OCCUPATIONS] for model in study.models]
    unseen = [_look(cells, model, other, name) for model in study.models for name in OCCUPATIONS]
    limit, beyond = _limit(cells, [cell for row in shown for cell in row] + unseen)
    names = [study.title(model) for model in study.models]
    counts = {
        group: [_count(cells, prompt, group, name) for name in OCCUPATIONS] for group in _PAIR
    }
    return _draw(cells, names, shown, counts, kind, limit, beyond), cells.data()


def _cell(cells: Cells, model: str, prompt: str, name: str) -> Cell:
    return cells.show("disparity", model, prompt, pair_name(_PAIR), name, attribute="gender")


def _look(cells: Cells, model: str, prompt: str, name: str) -> Cell:
    return cells.look("disparity", model, prompt, pair_name(_PAIR), name, attribute="gender")


def _limit(cells: Cells, found: list[Cell]) -> tuple[float, bool]:
    """Return the end of the colour scale in points; cells on few images do not stretch it."""
    firm = [cell.value for cell in found if not cells.is_small(cell)]
    values = firm if any(value == value for value in firm) else [cell.value for cell in found]
    limit, _ = colour_limit(100 * np.array(values))
    return limit, any(abs(100 * cell.value) > limit for cell in found)


def _count(cells: Cells, prompt: str, group: str, name: str) -> str:
    found = [
        cells.show("recall", model, prompt, group, name, attribute="gender").n
        for model in cells.study.models
    ]
    return count_range(found)


def _draw(
    cells: Cells,
    names: list[str],
    shown: list[list[Cell]],
    counts: dict[str, list[str]],
    kind: str,
    limit: float,
    beyond: bool,
) -> Figure:
    labels = [f"Images, {shown_group(group)}" for group in counts]
    left = widest([*names, *labels]) + 0.12
    above = _slanted_height(list(OCCUPATIONS))
    panel = len(names) * _ROW
    below = len(counts) * _COUNT + 0.08
    height = _HEAD + above + panel + below + _FOOT
    figure = new_figure(TWO_COLUMNS, height)
    heading = DIRECT_HEADING if kind == "direct" else CHOICE_HEADING
    first, second = (shown_group(group) for group in _PAIR)
    write_at(
        *(figure, 0.04, 0.05, f"{heading}: recall of {first} minus recall of {second}"),
        fontsize=NORMAL,
        weight="bold",
    )
    # The last label leans out to the right.
    width = TWO_COLUMNS - left - 0.45
    axes = place(figure, left, _HEAD + above, width, panel)
    values = np.array([[100 * cell.value for cell in row] for row in shown])
    draw_heat(axes, values, limit, names)
    _hatch(axes, cells, shown)
    _mark(axes, cells, shown)
    axes.xaxis.tick_top()
    axes.set_xticks(np.arange(len(OCCUPATIONS)) + 0.5, OCCUPATIONS, rotation=40, ha="left")
    axes.tick_params(axis="x", pad=0)
    _write_counts(figure, counts, labels, left, _HEAD + above + panel + 0.06, width)
    label = f"percentage points: above 0 favours {first}, below 0 {second}"
    draw_scale(place(figure, 0.3, height - 0.32, 2.2, 0.1), limit, beyond, label)
    _legend(figure, cells, shown)
    return figure


def _slanted_height(labels: list[str]) -> float:
    return float(np.sin(np.radians(40)) * widest(labels)) + 0.14


def _write_counts(
    figure: Figure,
    counts: dict[str, list[str]],
    labels: list[str],
    left: float,
    top: float,
    width: float,
) -> None:
    cell = width / len(OCCUPATIONS)
    for row, (label, texts) in enumerate(zip(labels, counts.values(), strict=True)):
        here = top + row * _COUNT
        write_at(figure, left - 0.05, here, label, ha="right")
        for column, text in enumerate(texts):
            size = min(SMALL, SMALL * (cell - 0.02) / max(text_width(text), 0.01))
            middle = left + (column + 0.5) * cell
            write_at(figure, middle, here, text, ha="center", fontsize=size)


def _hatch(axes: Axes, cells: Cells, shown: list[list[Cell]]) -> None:
    """Hatch the cells that are unknown or stand on few images."""
    hatched = {
        (column, row)
        for row, of_model in enumerate(shown)
        for column, cell in enumerate(of_model)
        if not cell.known or cells.is_small(cell)
    }
    for corner in hatched:
        patch = Rectangle(corner, 1, 1, linewidth=0, zorder=1.5, **_HATCHED)
        axes.add_patch(patch)
        patch.set_hatch_linewidth(0.5)
    for text in axes.texts:
        x, y = text.get_position()
        if (int(x), int(y)) in hatched:
            # Numbers stay readable over the lines.
            around = "white" if text.get_color() == _DARK else "#333333"
            text.set_path_effects([withStroke(linewidth=1.4, foreground=around)])


def _mark(axes: Axes, cells: Cells, shown: list[list[Cell]]) -> None:
    """Put a dot into the corner of cells that are significant."""
    found = [
        (column + 0.93, row + 0.14)
        for row, of_model in enumerate(shown)
        for column, cell in enumerate(of_model)
        if cell.known and cell.p_adjusted <= cells.study.alpha
    ]
    if found:
        axes.plot(*zip(*found, strict=True), **_DOT)


_DARK = "#111111"
_DOT: dict[str, Any] = {
    "linestyle": "none",
    "marker": "o",
    "markersize": 2.6,
    "markerfacecolor": _DARK,
    "markeredgecolor": "white",
    "markeredgewidth": 0.4,
}


def _legend(figure: Figure, cells: Cells, shown: list[list[Cell]]) -> None:
    study = cells.study
    flat = [cell for row in shown for cell in row]
    handles: list[Line2D | Patch] = []
    if any(cell.known and cell.p_adjusted <= study.alpha for cell in flat):
        label = f"p ≤ {study.alpha:g} after Holm’s correction"
        handles.append(Line2D([], [], label=label, **_DOT))
    if any(not cell.known or cells.is_small(cell) for cell in flat):
        label = f"smaller group has fewer than {study.small_cell} images"
        label += "; –: none, or not measured" * any(not cell.known for cell in flat)
        patch = Patch(linewidth=0.4, label=label, **_HATCHED)
        patch.set_hatch_linewidth(0.5)
        handles.append(patch)
    if handles:
        figure.legend(
            handles=handles,
            loc="lower right",
            bbox_to_anchor=(1.0, 0.0),
            handletextpad=0.5,
        )
