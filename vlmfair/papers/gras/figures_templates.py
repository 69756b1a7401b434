"""Figures 1 and 3: one image asked in five wordings, and every trait's mean by wording."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from vlmfair.errors import ContractError
from vlmfair.papers.gras.study import PROMPTS, Study, model_order, ordered, pick, rows_in
from vlmfair.render.numbers import format_count, format_number
from vlmfair.render.panels import inches_wide, place, write_at
from vlmfair.render.pictures import open_picture, show_picture
from vlmfair.render.style import (
    NORMAL,
    OKABE_ITO,
    POLARITY_COLOURS,
    SMALL,
    TWO_COLUMNS,
    new_figure,
    widest,
)

_LABELLED = 2
_TOGETHER = 0.04  # of P(Yes): ends that a reader cannot tell apart
_SHIFTS = {"negative": -0.08, "positive": 0.08}  # of the space between two templates


def draw_example(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: the image, trait and model whose answer depends most on the wording.

    Raises RawDataError when the image file is missing or cannot be read.
    """
    rows = pick(metrics, "examples", "p_yes")
    keys = ["model", "group", "item"]
    spread = rows.groupby(keys, sort=True)["value"].agg(lambda values: values.max() - values.min())
    model, sample_id, trait = map(str, spread.index[int(spread.to_numpy().argmax())])
    chosen = rows[(rows["model"] == model) & (rows["group"] == sample_id) & (rows["item"] == trait)]
    chosen = ordered(chosen, prompt=PROMPTS)
    questions = {t.id: t.text.replace("{trait}", trait) for t in study.templates}
    data = chosen[["model", "group", "item", "prompt", "value", "n"]].rename(
        columns={"group": "sample_id", "item": "trait", "value": "p_yes"}
    )
    data.insert(4, "question", data["prompt"].map(questions))
    path = study.images.get(sample_id)
    if path is None:
        raise ContractError(
            f"the image set has no {sample_id}, which Figure 1 shows. Select and measure again."
        )
    picture = open_picture(path, "Figure 1")
    figure = new_figure(TWO_COLUMNS, 2.25)
    show_picture(place(figure, 0.05, 0.28, 1.7, 1.7), picture)
    write_at(figure, 0.05, 2.03, sample_id)
    write_at(figure, 0.05, 0.06, f"{model}, one image (n = 1)", fontsize=NORMAL, weight="bold")
    _draw_answers(place(figure, 3.75, 0.28, 2.85, 1.55), data)
    return figure, data


def _draw_answers(axes: Axes, data: pd.DataFrame) -> None:
    heights = np.arange(len(data)) + 0.5
    axes.barh(heights, data["p_yes"], height=0.62, color=OKABE_ITO[0])
    for height, value in zip(heights, data["p_yes"]):
        axes.text(value + 0.015, height, format_number(value, 2), va="center", fontsize=SMALL)
    labels = [
        "\n".join(textwrap.wrap(f"{row.prompt}: {row.question}", 40)) for row in rows_in(data)
    ]
    axes.set_yticks(heights, labels)
    axes.set_ylim(len(data), 0)
    axes.set_xlim(0, 1)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("P(Yes)", fontsize=SMALL)


def draw_template_means(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 3: a panel per model; each trait's mean P(Yes) under each wording, FairFace images."""
    rows = pick(metrics, "template_sensitivity", "template_mean")
    models = model_order(rows, study.models)
    rows = ordered(rows, model=models, item=study.words, prompt=PROMPTS)
    data = rows[["model", "item", "prompt", "value", "n"]].rename(
        columns={"item": "trait", "prompt": "template", "value": "mean_p_yes"}
    )
    data.insert(2, "polarity", data["trait"].map(study.polarity))
    across = min(3, len(models))
    down = -(-len(models) // across)
    panel, title, foot = 1.75, 0.24, 0.46
    height = down * (title + panel + 0.22) + foot
    figure = new_figure(TWO_COLUMNS, height)
    width = (TWO_COLUMNS - 0.45) / across
    names = widest(study.words) + 0.28
    for position, model in enumerate(models):
        row, column = divmod(position, across)
        top = row * (title + panel + 0.22) + title
        axes = place(figure, 0.42 + column * width, top, width - names, panel)
        _draw_traits(axes, data[data["model"] == model])
        axes.set_title(model, pad=3)
        if column:
            axes.set_yticklabels([])
        else:
            axes.set_ylabel("mean P(Yes)", fontsize=SMALL)
    count = format_count(data["n"].max())
    write_at(figure, 0.42, height - 0.2, f"n = {count} FairFace images, {len(study.traits)} traits")
    _polarity_legend(figure)
    return figure, data


def _draw_traits(axes: Axes, rows: pd.DataFrame) -> None:
    means = rows.pivot_table(index="trait", columns="template", values="mean_p_yes")
    means = means.loc[rows["trait"].unique(), [p for p in PROMPTS if p in means]]
    polarity = dict(zip(rows["trait"], rows["polarity"]))
    places = np.arange(means.shape[1])
    for name, marker in {"negative": "o", "positive": "D"}.items():
        shift = _SHIFTS[name]
        values = means.loc[_of(means, polarity, name)].to_numpy()
        lines = np.stack([np.broadcast_to(places + shift, values.shape), values], axis=-1)
        style: dict[str, Any] = {"color": POLARITY_COLOURS[name], "alpha": 0.5}
        axes.add_collection(LineCollection(list(lines), linewidth=0.4, **style))
        axes.plot(
            *lines.reshape(-1, 2).T,
            linestyle="none",
            marker=marker,
            markersize=2.2,
            markeredgewidth=0,
            **style,
        )
    for name, colour in POLARITY_COLOURS.items():
        of_polarity = means.loc[_of(means, polarity, name)]
        if len(of_polarity):
            axes.plot(places, of_polarity.mean(), color=colour, linewidth=2.2, zorder=4)
    axes.set_xticks(places, list(means.columns))
    axes.set_xlim(-0.25, places[-1] + 0.2)
    axes.set_ylim(0, 1)
    _label_most_sensitive(axes, means, polarity)


def _of(table: pd.DataFrame | pd.Series, polarity: dict[str, str], name: str) -> list[str]:
    return [str(trait) for trait in table.index if polarity[str(trait)] == name]


def _label_most_sensitive(axes: Axes, means: pd.DataFrame, polarity: dict[str, str]) -> None:
    """Name the traits of each polarity that the wording moves most, and draw their lines strongly.

    Traits that end at nearly the same mean share one line to their names, so that no two meet.
    """
    spread = means.max(axis=1) - means.min(axis=1)
    named = [
        trait
        for name in POLARITY_COLOURS
        for trait in spread.loc[_of(spread, polarity, name)].nlargest(_LABELLED).index
    ]
    ends = sorted((float(means.loc[trait].iloc[-1]), trait) for trait in named)
    heights = spaced_out([end for end, _ in ends], 0.075, 0.02, 0.98)
    left, right = axes.get_xlim()
    inch = (right - left) / inches_wide(axes)
    for height, (_, trait) in zip(heights, ends):
        colour = POLARITY_COLOURS[polarity[trait]]
        shift = _SHIFTS[polarity[trait]]
        line = (np.arange(means.shape[1]) + shift, means.loc[trait])
        axes.plot(*line, color=colour, linewidth=0.9, zorder=3.5)
        axes.text(right + 0.17 * inch, height, trait, color=colour, va="center", fontsize=SMALL)
    for run in runs_within([end for end, _ in ends], _TOGETHER):
        end = float(np.mean([ends[i][0] for i in run]))
        low, high = heights[run[0]], heights[run[-1]]
        style: dict[str, Any] = {"color": "#555555", "linewidth": 0.6, "clip_on": False}
        x = right + 0.14 * inch
        axes.plot([right - 0.02 * inch, x], [end, (low + high) / 2], **style)
        if len(run) > 1:
            axes.plot([x, x], [max(low - 0.025, 0.0), min(high + 0.025, 1.0)], **style)


def runs_within(places: list[float], gap: float) -> list[list[int]]:
    """Return the positions of ascending places in runs of neighbours less than `gap` apart."""
    runs: list[list[int]] = []
    for i, place_ in enumerate(places):
        if runs and place_ - places[i - 1] < gap:
            runs[-1].append(i)
        else:
            runs.append([i])
    return runs


def spaced_out(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return ascending places moved apart to be at least `gap` from each other within a range."""
    moved: list[float] = []
    for place_ in places:
        moved.append(max(place_, moved[-1] + gap if moved else low))
    ceiling = high
    for i in range(len(moved) - 1, -1, -1):
        moved[i] = min(moved[i], ceiling)
        ceiling = moved[i] - gap
    return moved


def _polarity_legend(figure: Figure) -> None:
    handles = [
        Line2D(
            *([], []),
            color=colour,
            marker="o" if name == "negative" else "D",
            markersize=3,
            linewidth=2.0,
            label=f"{name} traits (thick: their mean)",
        )
        for name, colour in POLARITY_COLOURS.items()
    ]
    figure.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 0), ncols=2)
