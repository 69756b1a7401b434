"""Figures 6 and 52: deviations of women and men from the mean of all images, by trait."""

from __future__ import annotations

import math
import string
import textwrap
from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlmfair.papers.gras.deviations import (
    POINTS,
    PROMPT_OF,
    Deviations,
    deviations_of,
    row_groups,
    rows_of,
    telling_traits,
)
from vlmfair.papers.gras.study import Study
from vlmfair.render.numbers import format_signed
from vlmfair.render.panels import (
    CORRECTED,
    NOT_SIGNIFICANT,
    UNCORRECTED,
    draw_row_groups,
    place,
    write_at,
)
from vlmfair.render.style import (
    SMALL,
    TWO_COLUMNS,
    folded,
    new_figure,
    widest,
)

TRAITS_IN_MAIN_FIGURE = 12
GROUP_STYLE = {"Female": ("#CC79A7", "o"), "Male": ("#009E73", "D")}
# Size and filling of a marker by how well the difference is supported.
_LEVELS = {NOT_SIGNIFICANT: (1.0, True), UNCORRECTED: (3.2, False), CORRECTED: (3.2, True)}
_OTHER_STYLES = (("#E69F00", "s"), ("#56B4E9", "^"), ("#000000", "v"))
_MODELS_ACROSS = 5
_LONGEST_COLUMN = 30
_ROW, _HEAD, _LINE, _TICKS, _FOOT = 0.125, 0.24, 0.13, 0.3, 0.42  # inches
_BETWEEN = 0.1  # inches, between panels
_SIDE = 0.2  # inches, for the name of a run of rows
_SPREAD = 0.2  # of a row, from its middle to the outermost group


def draw_gender(
    metrics: pd.DataFrame, study: Study, *, every_trait: bool
) -> tuple[Figure, pd.DataFrame]:
    """Figure 52 (every trait) or 6 (the traits that deviate most): by gender under T2.

    More than 30 traits are set in two blocks side by side, negative traits left.
    """
    found = deviations_of(metrics, study, "gender")
    if every_trait:
        present = set(found.table["trait"])
        traits = [word for word in study.words if word in present]
    else:
        traits = telling_traits(found, study, TRAITS_IN_MAIN_FIGURE)
    data = rows_of(found.table, traits)
    blocks = _blocks(traits, study)
    across = min(_MODELS_ACROSS, len(found.models))
    bands = [found.models[i : i + across] for i in range(0, len(found.models), across)]
    longest = max(map(len, blocks))
    row = _ROW if longest > TRAITS_IN_MAIN_FIGURE else 0.16
    block_width = TWO_COLUMNS / len(blocks)
    room = (block_width - _SIDE - widest(traits) - 0.14) / across - _BETWEEN
    names = _panel_names(found.models, room)
    key = _key(names)
    head = _HEAD + len(key) * _LINE
    title = 0.1 + _LINE * (1 + max(name.count("\n") for name in names.values()))
    band_height = title + longest * row + _TICKS
    figure = new_figure(TWO_COLUMNS, head + len(bands) * band_height + _FOOT)
    _head(figure, found, study, key)
    for band, models in enumerate(bands):
        top = head + band * band_height + title
        for block, words in enumerate(blocks):
            left = (block + 1) * block_width - 0.02 - across * (room + _BETWEEN)
            for column, model in enumerate(models):
                spot = (left + column * (room + _BETWEEN), top, room, len(words) * row)
                axes = place(figure, *spot)
                _draw_dots(axes, data[data["model"] == model], words, found)
                _limits(axes, data, room)
                axes.set_title(names[model], fontsize=SMALL, pad=3)
                if column:
                    axes.set_yticklabels([])
                else:
                    draw_row_groups(axes, row_groups(words, study), widest(words) + 0.12)
    _foot(figure, found, study)
    return figure, data


def _panel_names(models: Sequence[str], width: float) -> dict[str, str]:
    """Return a title for each model's panel: its name on up to three lines, or else a letter."""
    names = {model: folded(model, width) for model in models}
    lines = [line for name in names.values() for line in name.split("\n")]
    if widest(lines) * 1.12 <= width + 0.1 and max(n.count("\n") for n in names.values()) < 3:
        return names
    return dict(zip(models, string.ascii_uppercase))


def _key(names: dict[str, str]) -> list[str]:
    """Return the lines that say which letter is which model; none where panels bear names."""
    if any(len(name) > 1 for name in names.values()):
        return []
    entries = "   ".join(f"{letter}:\u00a0{model}" for model, letter in names.items())
    return textwrap.wrap(entries, 110, break_on_hyphens=False, drop_whitespace=True)


def _blocks(traits: list[str], study: Study) -> list[list[str]]:
    if len(traits) <= _LONGEST_COLUMN:
        return [traits]
    halves = [[w for w in traits if study.polarity[w] == p] for p in ("negative", "positive")]
    return [half for half in halves if half]


def _draw_dots(axes: Axes, rows: pd.DataFrame, words: Sequence[str], found: Deviations) -> None:
    axes.axvline(0, color="#777777", linewidth=0.6, zorder=1)
    for place_, (group, (colour, marker)) in enumerate(_styles(found.groups).items()):
        of_group = rows[rows["group"] == group].set_index("trait").reindex(list(words))
        # Beside each other, or the interval of one group would hide that of another.
        offset = offsets(len(found.groups))[place_]
        heights = [i + 0.5 + offset for i in range(len(words))]
        axes.hlines(heights, of_group["ci_low"], of_group["ci_high"], color=colour, linewidth=0.7)
        for level, (size, filled) in _LEVELS.items():
            chosen = (of_group["significant"] == level).to_numpy()
            axes.plot(
                of_group["deviation"][chosen],
                [height for height, here in zip(heights, chosen) if here],
                linestyle="none",
                marker=marker,
                markersize=size,
                markerfacecolor=colour if filled else "white",
                markeredgecolor=colour,
                markeredgewidth=0.8,
            )
    axes.set_ylim(len(words), 0)
    axes.set_yticks([i + 0.5 for i in range(len(words))], list(words))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.barh(
        [i + 0.5 for i in range(0, len(words), 2)],
        width=1.0,
        height=1.0,
        color="#f1f1f1",
        zorder=0,
        transform=axes.get_yaxis_transform(),
    )


def offsets(groups: int) -> list[float]:
    """Return how far each group of a row, which is 1 high, is drawn below the row's middle."""
    return [_SPREAD * (2 * i - groups + 1) / max(groups - 1, 1) for i in range(groups)]


def _limits(axes: Axes, data: pd.DataFrame, width: float) -> None:
    """Give every panel the same scale; a narrow one has room for two ticks only."""
    end = float(data[["deviation", "ci_low", "ci_high"]].abs().max().max()) * 1.05 or 1.0
    axes.set_xlim(-end, end)
    tick = float(f"{0.6 * end:.1g}")
    ticks = [-tick, tick] if width < 0.6 else [-tick, 0, tick]
    axes.set_xticks(ticks, [format_signed(at, _digits(tick)) for at in ticks])


def _digits(tick: float) -> int:
    return max(0, -math.floor(math.log10(tick)))


def _styles(groups: Sequence[str]) -> dict[str, tuple[str, str]]:
    others = iter(_OTHER_STYLES * len(groups))
    return {group: GROUP_STYLE.get(group) or next(others) for group in groups}


def _head(figure: Figure, found: Deviations, study: Study, key: Sequence[str]) -> None:
    prompt = PROMPT_OF["gender"]
    question = study.question(prompt)
    write_at(figure, 0.04, 0.05, f"Gender, {prompt}: “{question}”")
    sizes = ", ".join(f"{group} {n:,}" for group, n in found.sizes().items())
    text = f"n = {found.images:,} images ({sizes})"
    write_at(figure, TWO_COLUMNS - 0.04, 0.05, text, ha="right")
    write_at(figure, 0.04, 0.23, "\n".join(key), weight="bold")


def _foot(figure: Figure, found: Deviations, study: Study) -> None:
    height = float(figure.get_size_inches()[1])
    title = f"{POINTS[0].upper()}{POINTS[1:]}"
    if found.table["ci_low"].notna().any():
        title += "; lines: 95% intervals"
    write_at(figure, TWO_COLUMNS / 2, height - _FOOT + 0.02, title, ha="center")
    groups = [
        _handle(colour, marker, 3.5, True, group)
        for group, (colour, marker) in _styles(found.groups).items()
    ]
    names = {
        CORRECTED: f"p ≤ {study.alpha:g} after Holm’s correction",
        UNCORRECTED: "before correction only",
        NOT_SIGNIFICANT: "not significant",
    }
    levels = [_handle("#444444", "o", *_LEVELS[level], label) for level, label in names.items()]
    figure.legend(
        handles=[*groups, *levels],
        loc="lower center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=len(groups) + len(levels),
        columnspacing=1.2,
        handletextpad=0.2,
    )


def _handle(colour: str, marker: str, size: float, filled: bool, label: str) -> Line2D:
    return Line2D(
        *([], []),
        linestyle="none",
        marker=marker,
        markersize=size,
        markerfacecolor=colour if filled else "white",
        markeredgecolor=colour,
        markeredgewidth=0.8,
        label=label,
    )
