"""Figure 5: deviations along the Monk skin tone scale, a line per trait, a panel per model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlmfair.papers.gras.deviations import (
    POINTS,
    PROMPT_OF,
    Deviations,
    deviations_of,
    rows_of,
    telling_traits,
)
from vlmfair.papers.gras.study import Study
from vlmfair.render.panels import (
    CORRECTED,
    NOT_SIGNIFICANT,
    UNCORRECTED,
    draw_tone_swatches,
    place,
    write_at,
)
from vlmfair.render.style import NORMAL, OKABE_ITO, SMALL, TWO_COLUMNS, folded, new_figure

TRAITS_PER_POLARITY = 5
_MARKERS = ("o", "s", "^", "D", "v")
_LINES: dict[int, Any] = {
    CORRECTED: "-",
    UNCORRECTED: (0, (4, 1.5)),
    NOT_SIGNIFICANT: (0, (1, 1.5)),
}
_MODELS_ACROSS = 5
_LEFT, _PANEL, _TITLE, _LEGEND, _FOOT, _GAP = 0.52, 1.3, 0.3, 0.22, 0.5, 0.1  # inches


def draw_tones(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 5: deviations by skin tone under T5, of the traits that deviate most."""
    found = deviations_of(metrics, study, "skin_tone")
    traits = telling_traits(found, study, 2 * TRAITS_PER_POLARITY)
    data = rows_of(found.table, traits)
    rows = [
        (polarity, words)
        for polarity in ("negative", "positive")
        if (words := [word for word in traits if study.polarity[word] == polarity])
    ]
    across = min(_MODELS_ACROSS, len(found.models))
    blocks = [found.models[i : i + across] for i in range(0, len(found.models), across)]
    row_height = _LEGEND + _PANEL + _GAP
    block_height = _TITLE + len(rows) * row_height + 0.25
    height = 0.24 + len(blocks) * block_height + _FOOT - 0.25
    figure = new_figure(TWO_COLUMNS, height)
    _head(figure, found, study)
    low, high = data["deviation"].min(), data["deviation"].max()
    margin = 0.06 * (high - low) or 1.0
    width = (TWO_COLUMNS - _LEFT - 0.04) / across
    for number, models in enumerate(blocks):
        for line, (polarity, words) in enumerate(rows):
            top = 0.24 + number * block_height + _TITLE + line * row_height + _LEGEND
            for column, model in enumerate(models):
                left = _LEFT + column * width
                axes = place(figure, left, top, width - 0.1, _PANEL)
                _draw_lines(axes, data[data["model"] == model], words, found.groups)
                axes.set_ylim(low - margin, high + margin)
                if column:
                    axes.set_yticklabels([])
                if line == 0:
                    _name(figure, left, top - _LEGEND, folded(model, width - 0.08))
                if line == len(rows) - 1:
                    swatches = place(figure, left, top + _PANEL + 0.03, width - 0.1, 0.15)
                    draw_tone_swatches(swatches, found.groups)
            _legend(figure, words, polarity, top)
    _foot(figure, height, study)
    return figure, data


def _name(figure: Figure, left: float, top: float, text: str) -> None:
    write_at(figure, left, top, text, weight="bold", va="bottom", linespacing=1.05)


def _draw_lines(
    axes: Axes, rows: pd.DataFrame, words: Sequence[str], groups: Sequence[str]
) -> None:
    axes.axhline(0, color="#777777", linewidth=0.6, zorder=1)
    for word, colour, marker in zip(words, OKABE_ITO, _MARKERS):
        of_trait = rows[rows["trait"] == word].set_index("group").reindex(list(groups))
        level = int(of_trait["significant"].max())
        axes.plot(
            [i + 0.5 for i in range(len(groups))],
            of_trait["deviation"],
            color=colour,
            linestyle=_LINES[level],
            marker=marker,
            markersize=2.6,
            linewidth=0.9,
        )
    axes.set_xlim(0, len(groups))
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)


def _legend(figure: Figure, words: Sequence[str], polarity: str, top: float) -> None:
    handles = [
        Line2D(*([], []), color=colour, marker=marker, markersize=3.5, linewidth=0.9, label=word)
        for word, colour, marker in zip(words, OKABE_ITO, _MARKERS)
    ]
    figure_width, figure_height = figure.get_size_inches()
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(_LEFT / figure_width, 1 - top / figure_height),
        ncols=len(words),
        borderaxespad=0.1,
        columnspacing=1.0,
        handlelength=1.6,
        handletextpad=0.4,
    )
    write_at(
        figure,
        0.04,
        top + _PANEL / 2,
        f"{polarity} traits",
        rotation=90,
        va="center",
        fontsize=NORMAL,
    )


def _head(figure: Figure, found: Deviations, study: Study) -> None:
    prompt = PROMPT_OF["skin_tone"]
    question = study.question(prompt)
    text = f"{POINTS[0].upper()}{POINTS[1:]}; {prompt}: “{question}”"
    write_at(figure, 0.04, 0.04, text, fontsize=SMALL)
    write_at(figure, TWO_COLUMNS - 0.04, 0.04, found.counted(), ha="right", fontsize=SMALL)


def _foot(figure: Figure, height: float, study: Study) -> None:
    write_at(figure, _LEFT, height - 0.24, "Monk skin tone, 1 the lightest")
    names = {
        CORRECTED: f"p ≤ {study.alpha:g} after Holm’s correction",
        UNCORRECTED: "before correction only",
        NOT_SIGNIFICANT: "not significant",
    }
    handles = [
        Line2D(*([], []), color="#333333", linestyle=_LINES[level], label=label)
        for level, label in names.items()
    ]
    figure.legend(
        handles=handles, loc="lower right", ncols=3, bbox_to_anchor=(1, 0), columnspacing=1.0
    )
