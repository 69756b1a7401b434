"""Part of figures: lines against the number of demonstrations, a row of panels for each model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from vlmfair.papers.vl_bicle.figures_cells import MEANINGS, UNKNOWN, Cell
from vlmfair.papers.vl_bicle.figures_look import MARKER_SIZE, Look
from vlmfair.render.numbers import MINUS, format_number
from vlmfair.render.panels import inches_wide, place, write_at
from vlmfair.render.style import NORMAL, SMALL, TWO_COLUMNS, new_figure, text_width, widest
from vlmfair.render.text_boxes import LINE, printable, wrapped

EDGE, _HEAD, LEGEND_LINE = 0.06, 0.24, 0.16  # inches
_NAME, _PANEL, _BETWEEN = 0.19, 0.84, 0.1
_TICKS, _X_AXIS = 0.08, 0.42
_GAP = 0.1
_ASIDE = 0.1  # of the distance between two numbers of shots, from line to line
GREY = "#666666"
_HATCHED: dict[str, Any] = {
    "facecolor": "#F4F4F4",
    "edgecolor": "#B8B8B8",
    "hatch": "////",
    "linewidth": 0,
    "zorder": 1.1,
}
# The ends of a scale, its ticks and what stands at them.
Scale = tuple[tuple[float, float], list[float], list[str]]


@dataclass(frozen=True)
class Line:
    """One line of a panel: a cell for each number of shots."""

    look: Look
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Panel:
    """The lines of one panel; `note` stands in it where there are none."""

    lines: Sequence[Line]
    note: str = ""


@dataclass(frozen=True)
class Column:
    """Panels below each other that share a scale; `parts` stand side by side without a gap.

    `panels` are [model][part]. `zero` draws the line of no difference, `is_share` ends the scale
    at 0 and 100.
    """

    heading: str
    under: str
    panels: Sequence[Sequence[Panel]]
    parts: Sequence[str] = ("",)
    zero: bool = False
    is_share: bool = False


def draw_grid(
    title: str,
    names: Sequence[str],
    columns: Sequence[Column],
    shots: Sequence[int],
    handles: Sequence[Line2D],
    notes: Sequence[str],
) -> Figure:
    """Return a figure of one row for each name and one column for each scale.

    `handles` are those of the legend, `notes` stand below it; what is hatched is said there too.
    """
    places = _place_columns(columns)
    top = _HEAD + max(len(column_place.heading) for column_place in places) * LINE + 0.04
    rows_high = len(names) * (_NAME + _PANEL) + (len(names) - 1) * _BETWEEN
    legend = legend_rows(handles)
    texts = [*_hatched_notes(columns), *notes]
    lines = [line for text in texts for line in wrapped(text, TWO_COLUMNS - 2 * EDGE)]
    foot = len(legend) * LEGEND_LINE
    below = top + rows_high + _X_AXIS
    figure = new_figure(TWO_COLUMNS, below + foot + len(lines) * LINE + 0.1)
    write_at(figure, EDGE, 0.06, title, fontsize=NORMAL, weight="bold")
    for row, name in enumerate(names):
        name_row(figure, name, _row_top(top, row))
    for column, at in zip(columns, places, strict=True):
        _draw_column(figure, column, at, shots, top)
    write_legend(figure, legend, below)
    for number, line in enumerate(lines):
        write_at(figure, EDGE, below + foot + 0.04 + number * LINE, line, color=GREY)
    return figure


def _row_top(top: float, row: int) -> float:
    return top + row * (_NAME + _PANEL + _BETWEEN)


def name_row(figure: Figure, name: str, top: float) -> None:
    """Write the name of a row, one line at most, below a line through the figure."""
    shown = wrapped(name, TWO_COLUMNS - 2 * EDGE, 1)[0]
    write_at(figure, EDGE, top + 0.04, shown, weight="bold")
    top += 0.015
    width, height = figure.get_size_inches()
    figure.add_artist(
        Line2D(
            *([EDGE / width, 1 - EDGE / width], [1 - top / height] * 2),
            color="#C8C8C8",
            linewidth=0.6,
        )
    )


@dataclass(frozen=True)
class _ColumnPlace:
    """Where a column stands, in inches, with its scale and the lines of its heading."""

    left: float
    part: float
    scale: Scale
    heading: Sequence[str]


def _place_columns(columns: Sequence[Column]) -> list[_ColumnPlace]:
    scales = [_scale(column) for column in columns]
    labels = [widest(texts) + _TICKS for _, _, texts in scales]
    room = TWO_COLUMNS - 2 * EDGE - sum(labels) - _GAP * (len(columns) - 1)
    part = room / sum(len(column.parts) for column in columns)
    places, left = [], EDGE
    for number, (column, scale) in enumerate(zip(columns, scales, strict=True)):
        left += labels[number]
        wide = part * len(column.parts)
        # Headings may reach over the numbers of the next column's scale.
        free = wide + _GAP + (labels[number + 1] if number + 1 < len(columns) else 0) - 0.06
        heading = [column.heading, *(wrapped(column.under, free) if column.under else ())]
        if any(column.parts):
            heading.append("")
        places.append(_ColumnPlace(left, part, scale, heading))
        left += wide + _GAP
    return places


def _draw_column(
    figure: Figure, column: Column, at: _ColumnPlace, shots: Sequence[int], top: float
) -> None:
    first = top - len(at.heading) * LINE - 0.02
    for number, text in enumerate(at.heading):
        weight = "normal" if number else "bold"
        write_at(figure, at.left, first + number * LINE, text, weight=weight)
    for number, text in enumerate(column.parts):
        write_at(figure, at.left + number * at.part + 0.02, top - LINE - 0.02, text)
    for row, panels in enumerate(column.panels):
        for number, panel in enumerate(panels):
            corner = (at.left + number * at.part, _row_top(top, row) + _NAME)
            axes = place(figure, *corner, at.part - 0.03 * (len(panels) > 1), _PANEL)
            is_last = row == len(column.panels) - 1
            _set_scale(axes, at.scale, shots, column.zero and any(_known(panel)))
            if not any(_known(panel)):
                write_note(axes, panel.note or _why_empty(panel), keep_below=is_last)
            _draw_panel(axes, panel, shots)
            if number:
                axes.set_yticklabels([])
                axes.tick_params(axis="y", length=0)
                axes.spines["left"].set_color("#C8C8C8")
            if is_last:
                axes.set_xlabel("k", fontsize=SMALL, labelpad=1)
            else:
                axes.set_xticklabels([])


def _scale(column: Column) -> Scale:
    """Return the ends of a column's scale, its ticks and what stands at them."""
    cells = [
        cell
        for panels in column.panels
        for panel in panels
        for line in panel.lines
        for cell in line.cells
    ]
    found = np.array([[cell.value, cell.ci_low, cell.ci_high] for cell in cells], float).ravel()
    found = found[np.isfinite(found)]
    low, high = (float(found.min()), float(found.max())) if found.size else (0.0, 1.0)
    if column.zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.06 * (high - low) or 0.5
    low, high = low - room, high + room
    if column.is_share:
        # Room beyond the ends, so that lines along them are seen whole.
        low, high = max(low, -3.0), min(high, 103.0)
    locator = MaxNLocator(5, steps=[1, 2, 2.5, 5, 10])
    ticks = [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]
    if column.is_share:
        ticks = [tick for tick in ticks if 0 <= tick <= 100]
    return (low, high), ticks, tick_texts(ticks, column.zero)


def tick_texts(ticks: Sequence[float], signed: bool) -> list[str]:
    """Return ticks with as many decimals as they need."""
    digits = next(
        (d for d in range(4) if all(abs(round(tick, d) - tick) < 1e-9 for tick in ticks)), 4
    )
    texts = [format_number(tick, digits) for tick in ticks]
    if not signed:
        return texts
    plus = [tick > 0 and not text.startswith(MINUS) for tick, text in zip(ticks, texts)]
    return [f"+{text}" if has_sign else text for text, has_sign in zip(texts, plus)]


def _set_scale(axes: Axes, scale: Scale, shots: Sequence[int], zero: bool) -> None:
    ends, ticks, texts = scale
    axes.set_ylim(*ends)
    axes.set_yticks(ticks, texts)
    room = 0.09 * (max(shots) - min(shots)) or 0.5
    axes.set_xlim(min(shots) - room, max(shots) + room)
    axes.set_xticks(list(shots))
    axes.tick_params(axis="both", pad=2)
    axes.grid(axis="y", color="#EDEDED", linewidth=0.5)
    axes.set_axisbelow(True)
    if zero:
        axes.axhline(0, color="#555555", linewidth=0.7, zorder=1.2)


def _draw_panel(axes: Axes, panel: Panel, shots: Sequence[int]) -> None:
    at = np.array(shots, float)
    step = float(np.diff(at).min()) if len(at) > 1 else 1.0
    for number, line in enumerate(panel.lines):
        # Lines that coincide stand beside each other; they part from one point at zero shots.
        aside = _ASIDE * step * (number - (len(panel.lines) - 1) / 2)
        along = np.where(at > 0, at + aside, at)
        values, lows, highs = (
            np.array([getattr(cell, name) for cell in line.cells], float)
            for name in ("value", "ci_low", "ci_high")
        )
        colour = line.look.colour
        axes.fill_between(along, lows, highs, color=colour, alpha=0.1, linewidth=0, zorder=1.4)
        for ends in (lows, highs):
            axes.plot(along, ends, color=colour, alpha=0.45, linewidth=0.4, zorder=1.5)
        axes.plot(
            along,
            values,
            color=colour,
            linestyle=line.look.dashes,
            linewidth=0.9,
            marker=line.look.marker,
            markersize=MARKER_SIZE,
            markeredgewidth=0,
            zorder=2,
        )
    for number, reason in enumerate(_absent(panel)):
        if reason:
            half = 0.5 * (at[1] - at[0]) if len(at) > 1 else 0.5
            hatched = axes.axvspan(at[number] - half, at[number] + half, **_HATCHED)
            hatched.set_hatch_linewidth(0.5)


def _known(panel: Panel) -> list[bool]:
    return [cell.known for line in panel.lines for cell in line.cells]


def _absent(panel: Panel) -> list[str]:
    """Return for each number of shots why no line has a number, "" where one has."""
    reasons = []
    for cells in zip(*(line.cells for line in panel.lines), strict=True):
        missing = [cell.status for cell in cells if not cell.known]
        reasons.append(missing[0] if len(missing) == len(cells) else "")
    return reasons


def _why_empty(panel: Panel) -> str:
    return " or ".join(dict.fromkeys(filter(None, _absent(panel)))) or UNKNOWN


def _hatched_notes(columns: Sequence[Column]) -> list[str]:
    """Return what hatched numbers of shots mean, of what occurs."""
    panels = [panel for column in columns for row in column.panels for panel in row]
    found = [reason for panel in panels if any(_known(panel)) for reason in _absent(panel)]
    reasons = [MEANINGS[reason] for reason in dict.fromkeys(found) if reason]
    return [f"Hatched: {' or '.join(reasons)}."] if reasons else []


def write_note(axes: Axes, note: str, *, keep_below: bool = False) -> None:
    """Write into the middle of axes, which show nothing else, why they are empty.

    `keep_below` keeps the scale below them, which is also that of the panels above.
    """
    axes.grid(visible=False)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    if not keep_below:
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
    lines = wrapped(note, inches_wide(axes) - 0.06, 5)
    axes.text(
        *(0.5, 0.5, "\n".join(lines)),
        ha="center",
        va="center",
        fontsize=SMALL,
        color=GREY,
        transform=axes.transAxes,
    )


LegendRows = list[list[tuple[Line2D, float]]]


def legend_rows(handles: Sequence[Line2D]) -> LegendRows:
    """Return the handles in rows that fit into the figure, each with its place from the left."""
    rows: LegendRows = [[]]
    left = EDGE
    for one in handles:
        wide = _sign_width(one) + text_width(str(one.get_label())) + 0.16
        if rows[-1] and left + wide > TWO_COLUMNS:
            rows.append([])
            left = EDGE
        rows[-1].append((one, left))
        left += wide
    return rows


def write_legend(figure: Figure, rows: LegendRows, below: float) -> None:
    """Draw the rows of a legend, the first of them so many inches from the figure's upper edge."""
    width, height = figure.get_size_inches()
    for number, row in enumerate(rows):
        top = below + number * LEGEND_LINE
        middle = 1 - (top + 0.052) / height
        for one, left in row:
            sign = _sign_width(one)
            ends = (left + np.array([0, 0.5, 1]) * (sign - 0.06)) / width
            shown = Line2D(ends, [middle] * 3)
            shown.update_from(one)
            shown.set_markevery([1])
            figure.add_artist(shown)
            write_at(figure, left + sign, top, printable(str(one.get_label())))


def _sign_width(one: Line2D) -> float:
    """Return the inches before the text of a legend: fewer where no line is drawn."""
    return 0.34 if one.get_linestyle() not in ("none", "None") else 0.18
