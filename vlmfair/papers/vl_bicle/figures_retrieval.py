"""Figure 4: retrieved demonstrations, of the original and a balanced pool, beside sampled ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.figures_cells import Cell, FigureCells, count_range
from vlmfair.papers.vl_bicle.figures_grid import (
    EDGE,
    GREY,
    LEGEND_LINE,
    legend_rows,
    name_row,
    tick_texts,
    write_legend,
    write_note,
)
from vlmfair.papers.vl_bicle.figures_look import (
    MARKER_SIZE,
    SETTING_LOOKS,
    Look,
    handle,
    setting_handles,
    setting_look,
)
from vlmfair.papers.vl_bicle.study import ERROR_SIGNS, Study
from vlmfair.papers.vl_bicle.tasks import BALANCED_POOL, GAP, TASKS, ZERO_SHOT
from vlmfair.render.panels import place, write_at
from vlmfair.render.style import NORMAL, SMALL, TWO_COLUMNS, new_figure, widest
from vlmfair.render.text_boxes import LINE, wrapped

_HEAD, _NAME, _ROW, _BETWEEN, _AXIS, _GAP = 0.46, 0.19, 0.14, 0.08, 0.36, 0.12  # inches
_SPREAD = 0.2  # of a row, from its middle to a pool
_ZERO = Look(GREY, "", "--")

# The numbers of one panel by setting.
Found = Mapping[str, Cell]


def draw_retrieval(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 4: ER_m-f on COCOBias by setting, a row of panels for each model and one for each k.

    Raises ContractError when the run has no retrieved demonstrations.
    """
    cells, task = FigureCells(metrics, study), TASKS["coco_bias"]
    shots = [k for k in study.shots if k]
    if not study.retrieval or not shots:
        raise ContractError(
            "the run has no retrieved demonstrations, which Figure 4 is about. List SIIR and SITR "
            "and numbers of shots above 0 in the config, or leave the figure out."
        )
    settings = (*study.settings, *study.retrieval)
    cells.require(study.models, task, "error_rate", settings)
    zero = {m: cells.show("error_rate", task, m, ZERO_SHOT, 0, GAP) for m in study.models}
    found = {
        (model, k): {s: cells.show("error_rate", task, model, s, k, GAP) for s in settings}
        for model in study.models
        for k in shots
    }
    figure = _draw(cells, shots, zero, found)
    return figure, cells.data()


def _draw(
    cells: FigureCells,
    shots: Sequence[int],
    zero: Mapping[str, Cell],
    found: Mapping[tuple[str, int], Found],
) -> Figure:
    study = cells.study
    rows = _row_names(study)
    high = len(rows) * _ROW
    step = _NAME + high + _BETWEEN
    legend = legend_rows(_handles(study))
    lines = [line for note in _notes(cells) for line in wrapped(note, TWO_COLUMNS - 2 * EDGE)]
    below = _HEAD + len(study.models) * step - _BETWEEN + _AXIS
    foot = len(legend) * LEGEND_LINE
    figure = new_figure(TWO_COLUMNS, below + foot + len(lines) * LINE + 0.1)
    title = f"Retrieved demonstrations beside sampled ones: {ERROR_SIGNS[GAP]} on COCOBias"
    write_at(figure, EDGE, 0.06, title, fontsize=NORMAL, weight="bold")
    left = EDGE + widest(rows) + 0.08
    wide = (TWO_COLUMNS - left - 2 * EDGE - _GAP * (len(shots) - 1)) / len(shots)
    ends = _ends([*zero.values(), *(cell for panel in found.values() for cell in panel.values())])
    for number, k in enumerate(shots):
        write_at(figure, left + number * (wide + _GAP), _HEAD - LINE - 0.03, f"k = {k}")
    for row, model in enumerate(study.models):
        top = _HEAD + row * step
        name_row(figure, study.title(model), top)
        for number, k in enumerate(shots):
            axes = place(figure, left + number * (wide + _GAP), top + _NAME, wide, high)
            _set_scale(axes, rows, ends, names=not number, last=model == study.models[-1])
            _draw_panel(axes, rows, found[model, k], zero[model], model == study.models[-1])
    write_legend(figure, legend, below)
    for number, line in enumerate(lines):
        write_at(figure, EDGE, below + foot + 0.04 + number * LINE, line, color=GREY)
    return figure


def _row_names(study: Study) -> list[str]:
    """Return the settings of the rows in the paper's order; both pools of a setting share one."""
    shown = {name.removesuffix(BALANCED_POOL) for name in (*study.settings, *study.retrieval)}
    return [name for name in SETTING_LOOKS if name in shown]


def _handles(study: Study) -> list[Line2D]:
    handles = setting_handles(tuple(_row_names(study)), line=False)
    if any(setting.endswith(BALANCED_POOL) for setting in study.retrieval):
        handles.append(
            handle("hollow: balanced pool", Look("#333333", "v"), hollow=True, line=False)
        )
    return [*handles, handle("zero-shot", _ZERO)]


def _notes(cells: FigureCells) -> list[str]:
    data = cells.data()
    return [
        f"{ERROR_SIGNS[GAP]}: error rate of men minus that of women, in percentage points; below 0 "
        "is male bias, above 0 female bias.",
        f"n = {count_range(data['n'])} queries of each gender. k: number of demonstrations.",
        "Lines: 95% intervals, paired bootstrap over images. Sampled demonstrations: means over "
        f"{cells.study.runs} runs; retrieved ones: one run.",
    ]


def _ends(cells: Sequence[Cell]) -> tuple[float, float]:
    """Return the ends of the scale that all panels share; it holds 0."""
    known = [
        number
        for cell in cells
        for number in (cell.value, cell.ci_low, cell.ci_high)
        if number == number
    ]
    low, high = min([*known, 0.0]), max([*known, 0.0])
    room = 0.05 * (high - low) or 0.5
    return low - room, high + room


def _set_scale(
    axes: Axes, rows: Sequence[str], ends: tuple[float, float], *, names: bool, last: bool
) -> None:
    axes.set_ylim(len(rows), 0)
    axes.set_xlim(*ends)
    ticks = [
        float(tick)
        for tick in MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(*ends)
        if ends[0] <= tick <= ends[1]
    ]
    axes.set_xticks(ticks, tick_texts(ticks, signed=True) if last else [""] * len(ticks))
    axes.set_yticks([row + 0.5 for row in range(len(rows))], rows if names else [""] * len(rows))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", pad=2)
    axes.spines["left"].set_visible(False)
    if last:
        axes.set_xlabel(ERROR_SIGNS[GAP], fontsize=SMALL, labelpad=1)


def _draw_panel(
    axes: Axes, rows: Sequence[str], found: Found, zero: Cell, keep_below: bool
) -> None:
    if not any(cell.known for cell in found.values()):
        write_note(axes, next(iter(found.values())).status, keep_below=keep_below)
        return
    axes.barh(
        [row + 0.5 for row in range(0, len(rows), 2)],
        width=1.0,
        height=1.0,
        color="#F3F3F3",
        zorder=0,
        transform=axes.get_yaxis_transform(),
    )
    axes.axvline(0, color="#555555", linewidth=0.7, zorder=1)
    if zero.known:
        axes.axvline(zero.value, color=GREY, linestyle=_ZERO.dashes, linewidth=0.8, zorder=1)
    both = any(setting.endswith(BALANCED_POOL) for setting in found)
    for setting, cell in found.items():
        name = setting.removesuffix(BALANCED_POOL)
        is_balanced = name != setting
        has_both = both and f"{name}{BALANCED_POOL}" in found
        height = rows.index(name) + 0.5 + _SPREAD * has_both * (1 if is_balanced else -1)
        _draw_cell(axes, height, cell, setting_look(setting), hollow=is_balanced)


def _draw_cell(axes: Axes, height: float, cell: Cell, look: Look, *, hollow: bool) -> None:
    if not cell.known:
        axes.text(
            *(0.98, height, cell.status),
            ha="right",
            va="center",
            fontsize=SMALL,
            color=GREY,
            transform=axes.get_yaxis_transform(),
        )
        return
    axes.hlines(height, cell.ci_low, cell.ci_high, color=look.colour, linewidth=0.8)
    axes.plot(
        *([cell.value], [height]),
        linestyle="none",
        marker=look.marker,
        markersize=MARKER_SIZE,
        markerfacecolor="white" if hollow else look.colour,
        markeredgecolor=look.colour,
        markeredgewidth=0.8 if hollow else 0,
        clip_on=False,
    )
