"""Heat maps of deviations: Figure 4 (race) and the appendix families (Figures 7-26, 27-51)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from vlmfair.errors import ConfigError
from vlmfair.papers.gras.artefacts import FAMILIES, page_of, pages
from vlmfair.papers.gras.deviations import (
    POINTS,
    PROMPT_OF,
    Deviations,
    deviations_of,
    group_labels,
    row_groups,
    rows_of,
    telling_traits,
)
from vlmfair.papers.gras.study import ATTRIBUTE_NAMES, Study
from vlmfair.render.numbers import format_number
from vlmfair.render.panels import (
    draw_heat,
    draw_marks,
    draw_row_groups,
    draw_scale,
    draw_tone_swatches,
    inches_wide,
    mark_handles,
    place,
    write_at,
)
from vlmfair.render.style import (
    NORMAL,
    SMALL,
    TWO_COLUMNS,
    colour_limit,
    new_figure,
    text_width,
    widest,
)

TRAITS_IN_MAIN_FIGURES = 10
_ROW, _TITLE, _GAP, _FOOT, _MARK, _SIDE = 0.18, 0.22, 0.12, 0.6, 0.22, 0.2  # inches


def draw_race(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 4: deviations by race under T2, a panel per model, the traits that deviate most."""
    found = deviations_of(metrics, study, "race")
    traits = telling_traits(found, study, TRAITS_IN_MAIN_FIGURES)
    data = rows_of(found.table, traits)
    limit, beyond = colour_limit(data["deviation"].to_numpy())
    across = min(2, len(found.models))
    down = -(-len(found.models) // across)
    labels = group_labels(found)
    left, below = _SIDE + widest(traits) + 0.1, widest(labels) + 0.1
    panel = len(traits) * _ROW
    height = _TITLE + down * (_TITLE + panel) + (down - 1) * _GAP + below + _FOOT
    figure = new_figure(TWO_COLUMNS, height)
    _head(figure, found, study, "race")
    width = (TWO_COLUMNS - left - 0.04) / across - _MARK
    for position, model in enumerate(found.models):
        row, column = divmod(position, across)
        top = _TITLE + row * (_TITLE + panel + _GAP) + _TITLE
        axes = place(figure, left + column * (width + _MARK), top, width, panel)
        _draw_model(axes, data[data["model"] == model], traits, found, limit)
        axes.set_title(model, pad=3)
        if column:
            axes.set_yticklabels([])
        else:
            draw_row_groups(axes, row_groups(traits, study), widest(traits) + 0.1)
        if position + across >= len(found.models):
            axes.set_xticks([i + 0.5 for i in range(len(labels))], labels, rotation=90)
    _foot(figure, height, limit, beyond, study)
    return figure, data


def draw_page(
    figure_id: str, metrics: pd.DataFrame, study: Study, *, model: str, page: int
) -> tuple[Figure, pd.DataFrame]:
    """One figure of a family: a page of traits of one model, by skin tone (T5) or race (T2).

    The colour scale is that of the whole family, so that its pages and models can be compared.
    Raises ConfigError when the model was not measured or there is no such page.
    """
    attribute = FAMILIES[figure_id].attribute
    found = deviations_of(metrics, study, attribute)
    if model not in found.models:
        raise ConfigError(
            f"{figure_id}: the model {model!r} was not measured. "
            f"Use one of {', '.join(found.models)}."
        )
    traits = list(study.words)[page_of(figure_id, page, len(study.words))]
    data = rows_of(found.table[found.table["model"] == model], traits)
    limit, beyond = colour_limit(found.table["deviation"].to_numpy())
    labels = group_labels(found)
    tones = attribute == "skin_tone"
    left, below = _SIDE + widest(traits) + 0.1, 0.42 if tones else 0.34
    panel, top = len(traits) * _ROW, 2 * _TITLE + 0.02
    height = top + panel + below + _FOOT
    figure = new_figure(TWO_COLUMNS, height)
    count = pages(figure_id, len(study.words))
    part = f" (part {page} of {count})" if count > 1 else ""
    _head(figure, found, study, attribute)
    width = TWO_COLUMNS - left - _MARK - 0.5
    axes = place(figure, left, top, width, panel)
    _draw_model(axes, data, traits, found, limit)
    axes.set_title(model + part, pad=3)
    draw_row_groups(axes, row_groups(traits, study), widest(traits) + 0.1)
    _write_effects(axes, data, traits)
    if tones:
        draw_tone_swatches(place(figure, left, top + panel + 0.03, width, 0.17), found.groups)
        write_at(figure, left, top + panel + 0.23, "Monk skin tone, 1 the lightest")
    else:
        cell = width / len(labels)
        shown = [_on_two_lines(label, cell) for label in labels]
        axes.set_xticks([i + 0.5 for i in range(len(shown))], shown)
    _foot(figure, height, limit, beyond, study)
    return figure, data


def _draw_model(
    axes: Axes, rows: pd.DataFrame, traits: Sequence[str], found: Deviations, limit: float
) -> None:
    matrix = rows.pivot_table(index="trait", columns="group", values="deviation")
    draw_heat(axes, matrix.loc[list(traits), found.groups].to_numpy(), limit, traits)
    levels = rows.groupby("trait")["significant"].first()
    draw_marks(axes, levels.loc[list(traits)].tolist())


def _on_two_lines(label: str, width: float) -> str:
    if text_width(label) <= width - 0.06:
        return label
    return label.replace("/", "/\n", 1) if "/" in label else label.replace(" ", "\n", 1)


def _write_effects(axes: Axes, rows: pd.DataFrame, traits: Sequence[str]) -> None:
    """Write each trait's effect size right of the marks."""
    effects = rows.groupby("trait")["effect"].first()
    right, frame = 1 + 0.55 / inches_wide(axes), axes.get_yaxis_transform()
    style: dict[str, Any] = {"ha": "right", "fontsize": SMALL, "transform": frame}
    for position, trait in enumerate(traits):
        text = format_number(effects[trait], 3)
        axes.text(right, position + 0.53, text, va="center", **style)
    axes.text(right, -0.12, "ω²", va="bottom", **style)


def _head(figure: Figure, found: Deviations, study: Study, attribute: str) -> None:
    prompt = PROMPT_OF[attribute]
    question = study.question(prompt)
    text = f"{ATTRIBUTE_NAMES[attribute]}, {prompt}: “{question}”  {found.counted()}"
    write_at(figure, 0.04, 0.05, text, fontsize=NORMAL)


def _foot(figure: Figure, height: float, limit: float, beyond: bool, study: Study) -> None:
    draw_scale(place(figure, 0.3, height - 0.32, 2.2, 0.1), limit, beyond, POINTS)
    figure.legend(
        handles=mark_handles(study.alpha),
        loc="lower right",
        bbox_to_anchor=(1.0, 0.0),
        handletextpad=0.3,
    )
