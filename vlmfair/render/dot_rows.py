"""Part of figures: a row for each name, with several series of values and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from vlmfair.render.style import OKABE_ITO

_MARKERS = ("o", "D", "s", "^", "v", "P", "X")
_SPREAD = 0.28  # of a row, from its middle to the outermost series
_SIZE = 3.6


@dataclass(frozen=True)
class Series:
    """One value for each row and its interval, NaN where there is none; `place` gives its style."""

    label: str
    values: np.ndarray
    lows: np.ndarray
    highs: np.ndarray
    place: int = 0

    @property
    def colour(self) -> str:
        """The colour of the series."""
        return OKABE_ITO[self.place % len(OKABE_ITO)]

    @property
    def marker(self) -> str:
        """The marker of the series: told apart without its colour as well."""
        return _MARKERS[self.place % len(_MARKERS)]


def draw_dot_rows(axes: Axes, names: Sequence[str], series: Sequence[Series]) -> None:
    """Draw a row per name, the first at the top, the series beside each other within a row."""
    axes.barh(
        [row + 0.5 for row in range(0, len(names), 2)],
        width=1.0,
        height=1.0,
        color="#f1f1f1",
        zorder=0,
        transform=axes.get_yaxis_transform(),
    )
    for place, one in enumerate(series):
        offset = _SPREAD * (2 * place - len(series) + 1) / max(len(series) - 1, 1)
        heights = np.arange(len(names)) + 0.5 + offset
        axes.hlines(heights, one.lows, one.highs, color=one.colour, linewidth=0.8)
        axes.plot(
            one.values,
            heights,
            linestyle="none",
            marker=one.marker,
            markersize=_SIZE,
            markeredgewidth=0,
            color=one.colour,
            clip_on=False,
        )
    axes.set_ylim(len(names), 0)
    axes.set_yticks(np.arange(len(names)) + 0.5, list(names))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def series_handles(series: Sequence[Series]) -> list[Line2D]:
    """Return what a legend shows for some series."""
    return [
        Line2D(
            *([], []),
            linestyle="none",
            marker=one.marker,
            markersize=_SIZE + 0.6,
            markeredgewidth=0,
            color=one.colour,
            label=one.label,
        )
        for one in series
    ]
