"""Parts of figures that papers share: heat maps, significance marks, colour scales, tone axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from vlmfair.render.numbers import format_signed
from vlmfair.render.style import DIVERGING, MONK_TONES, SMALL, text_width

# How strongly a difference is supported, from the weakest: not, before and after correction.
NOT_SIGNIFICANT, UNCORRECTED, CORRECTED = 0, 1, 2
_DARK, _LIGHT = "#111111", "#ffffff"


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Return axes at a place in inches, measured from the figure's left and upper edges."""
    figure_width, figure_height = figure.get_size_inches()
    bottom = figure_height - top - height
    return figure.add_axes(
        (
            left / figure_width,
            bottom / figure_height,
            width / figure_width,
            height / figure_height,
        )
    )


def write_at(figure: Figure, left: float, top: float, text: str, **style: Any) -> None:
    """Write text with its upper left corner at a place in inches, as `place` measures."""
    figure_width, figure_height = figure.get_size_inches()
    settings: dict[str, Any] = {"va": "top", "ha": "left", "fontsize": SMALL, **style}
    figure.text(left / figure_width, 1 - top / figure_height, text, **settings)


def draw_heat(axes: Axes, values: np.ndarray, limit: float, rows: Sequence[str]) -> None:
    """Draw a matrix of percentage points around zero, with the numbers where they fit.

    `values` has one row per name in `rows`; `limit` is the end of the symmetric colour scale.
    A missing value is a blank cell with a dash.
    """
    colours = colormaps[DIVERGING]
    shades = colours((np.nan_to_num(values) / limit).clip(-1, 1) / 2 + 0.5)
    shades[~np.isfinite(values)] = (1, 1, 1, 1)
    count_rows, count_columns = values.shape
    axes.imshow(shades, aspect="auto", extent=(0, count_columns, count_rows, 0))
    axes.set_yticks(np.arange(count_rows) + 0.5, rows)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.hlines(range(1, count_rows), 0, count_columns, color="white", linewidth=0.5)
    axes.vlines(range(1, count_columns), 0, count_rows, color="white", linewidth=0.5)
    texts = [[format_signed(value) for value in row] for row in values]
    if _fit(axes, texts, count_columns):
        for i, j in np.ndindex(values.shape):
            luminance = float(shades[i, j, :3] @ (0.299, 0.587, 0.114))
            colour = _DARK if luminance > 0.5 else _LIGHT
            position = (j + 0.5, i + 0.53)
            axes.text(
                *position, texts[i][j], ha="center", va="center", fontsize=SMALL, color=colour
            )


def _fit(axes: Axes, texts: Sequence[Sequence[str]], columns: int) -> bool:
    cell = inches_wide(axes) / columns
    return max(text_width(text) for row in texts for text in row) <= cell - 0.02


def draw_marks(axes: Axes, levels: Sequence[int], offset: float = 0.1) -> None:
    """Mark each row's significance right of the axes: a ring, or a full dot after correction.

    Rows are 1 apart and `offset` is in inches from the axes' right edge.
    """
    x = 1 + offset / inches_wide(axes)
    for level, face in ((CORRECTED, _DARK), (UNCORRECTED, "none")):
        heights = [row + 0.5 for row, found in enumerate(levels) if found == level]
        axes.plot(
            [x] * len(heights),
            heights,
            linestyle="none",
            marker="o",
            markersize=3.6,
            markerfacecolor=face,
            markeredgecolor=_DARK,
            markeredgewidth=0.7,
            clip_on=False,
            transform=axes.get_yaxis_transform(),
        )


def inches_wide(axes: Axes) -> float:
    """Return the width of axes in inches."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return float(axes.get_position().width * figure.get_size_inches()[0])


def inches_high(axes: Axes) -> float:
    """Return the height of axes in inches."""
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    return float(axes.get_position().height * figure.get_size_inches()[1])


def _shortened(name: str, room: float) -> str:
    """Return a name, its first word, or that word's beginning, whichever fits into some inches."""
    word = name.partition(" ")[0]
    for text in (name, word, f"{word[:3]}."):
        if text_width(text) <= room:
            return text
    return ""


def draw_row_groups(axes: Axes, names: Sequence[str], offset: float) -> None:
    """Name each run of rows that share a name at the left, upright, beside a line along the run.

    Rows are 1 apart, the first at the top; `offset` is in inches from the axes' left edge.
    """
    x = -offset / inches_wide(axes)
    row = inches_high(axes) / len(names)
    start = 0
    for end in range(1, len(names) + 1):
        if end < len(names) and names[end] == names[start]:
            continue
        frame = axes.get_yaxis_transform()
        axes.plot(
            *([x, x], [start + 0.12, end - 0.12]),
            color="#555555",
            linewidth=0.8,
            clip_on=False,
            transform=frame,
        )
        axes.text(
            *(x - 0.05 / inches_wide(axes), (start + end) / 2),
            _shortened(names[start], (end - start) * row),
            rotation=90,
            ha="right",
            va="center",
            fontsize=SMALL,
            transform=frame,
        )
        start = end


def mark_handles(alpha: float) -> list[Line2D]:
    """Return what a legend shows for the marks of `draw_marks`."""
    return [
        Line2D(
            *([], []),
            linestyle="none",
            marker="o",
            markersize=3.6,
            markeredgecolor=_DARK,
            markeredgewidth=0.7,
            markerfacecolor=face,
            label=label,
        )
        for face, label in (
            (_DARK, f"p ≤ {alpha:g} after Holm’s correction"),
            ("none", f"p ≤ {alpha:g} before correction only"),
        )
    ]


def draw_scale(axes: Axes, limit: float, beyond: bool, label: str) -> None:
    """Draw the colour scale of `draw_heat` into axes, pointed where values lie beyond its ends."""
    scale = ScalarMappable(Normalize(-limit, limit), DIVERGING)
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    bar = figure.colorbar(
        scale, cax=axes, orientation="horizontal", extend="both" if beyond else "neither"
    )
    bar.set_ticks([-limit, -limit / 2, 0, limit / 2, limit])
    bar.set_ticklabels([format_signed(tick * limit, _digits(limit)) for tick in _SCALE_TICKS])
    bar.outline.set_linewidth(0.5)
    axes.set_title(label, fontsize=SMALL, weight="normal", pad=3)


_SCALE_TICKS = (-1, -0.5, 0, 0.5, 1)


def _digits(limit: float) -> int:
    """Return how many decimals show half of a limit exactly: 10 -> 0, 5 -> 1, 2.5 -> 2."""
    half = limit / 2
    return next(digits for digits in range(8) if abs(round(half, digits) - half) < 1e-9)


def draw_tone_swatches(axes: Axes, groups: Sequence[str]) -> None:
    """Fill axes with one swatch per Monk tone, the tone's number in it."""
    axes.set_xlim(0, len(groups))
    axes.set_ylim(0, 1)
    axes.axis("off")
    for position, group in enumerate(groups):
        tone = MONK_TONES[int(group) - 1]
        axes.add_patch(
            Rectangle((position, 0), 1, 1, facecolor=tone, edgecolor="#777777", linewidth=0.4)
        )
        colour = _DARK if int(group) <= 6 else _LIGHT
        place_of = (position + 0.5, 0.46)
        axes.text(*place_of, group, ha="center", va="center", fontsize=SMALL, color=colour)
