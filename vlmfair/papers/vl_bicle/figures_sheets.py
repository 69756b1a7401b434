"""Figure 1 and the sheet of drawn images: pictures of a run with their captions and genders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import zip_longest

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.figures_cells import count_range
from vlmfair.papers.vl_bicle.figures_grid import EDGE, GREY, name_row
from vlmfair.papers.vl_bicle.figures_look import GENDER_COLOURS, SETTING_LOOKS
from vlmfair.papers.vl_bicle.measure_rows import OVER_RUNS
from vlmfair.papers.vl_bicle.study import (
    SETTING_MEANINGS,
    Demonstration,
    DemonstrationSequence,
    DrawnImage,
    Study,
)
from vlmfair.papers.vl_bicle.tasks import ALL, FEMALE, MALE, PAPER, RETRIEVED
from vlmfair.render.numbers import format_count, format_interval, format_number
from vlmfair.render.panels import place, write_at
from vlmfair.render.pictures import open_picture, show_picture
from vlmfair.render.style import NORMAL, SMALL, TWO_COLUMNS, new_figure
from vlmfair.render.text_boxes import LINE, wrapped

_HEAD, _NAME, _GAP, _UNDER, _FOOT = 0.28, 0.19, 0.06, 0.04, 0.1  # inches
_QUERY_GAP = 0.16
_WHOLE = TWO_COLUMNS - 2 * EDGE
_MIDDLE = 0.2
_HALF = (_WHOLE - _MIDDLE) / 2
_SHOWN, _CAPTION = 8, 4  # pictures of a sequence, and lines below each
_TALLEST = 1.0  # of a picture's width
_PAIRS, _LINES = 5, 2  # of captions, and lines of each, on the sheet of drawn images
_LETTERS = {MALE: "M", FEMALE: "F"}
_WORDS = {MALE: "man", FEMALE: "woman"}
Opener = Callable[[str], Image.Image]


def draw_sequences(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 1: the demonstrations of one run by setting, in their order, then the query.

    Raises ContractError when the study has no sequences, RawDataError on an unreadable image.
    """
    rows = _of_paper(study.sequences)
    if not rows:
        raise ContractError(
            "there are no sequences of demonstrations that Figure 1 could show. Draw the contexts "
            "of coco_bias."
        )
    number = max(len(row.demonstrations[-_SHOWN:]) for row in rows)
    wide = (TWO_COLUMNS - 2 * EDGE - _QUERY_GAP) / (number + 1) - _GAP
    opened = cache(partial(open_picture, figure="Figure 1"))
    heights = [_picture_height(row, wide, opened) for row in rows]
    texts = [_captions(row, wide) for row in rows]
    under = [max((len(lines) for lines in text), default=0) * LINE for text in texts]
    steps = [
        _NAME + high + _UNDER + below + 0.06 for high, below in zip(heights, under, strict=True)
    ]
    notes = [line for note in _sequence_notes(rows) for line in wrapped(note, _WHOLE)]
    top = _HEAD
    figure = new_figure(TWO_COLUMNS, top + sum(steps) + len(notes) * LINE + _FOOT)
    title = "Demonstrations of run 1 on COCOBias by setting, and the query behind them"
    write_at(figure, EDGE, 0.06, title, fontsize=NORMAL, weight="bold")
    for row, high, text, step in zip(rows, heights, texts, steps, strict=True):
        name_row(figure, f"{row.setting}: {SETTING_MEANINGS[row.setting]}", top)
        shown = [*row.demonstrations[-_SHOWN:], row.query]
        for at, (one, lines) in enumerate(zip(shown, text, strict=True)):
            left = EDGE + at * (wide + _GAP)
            if at == len(shown) - 1:
                left = TWO_COLUMNS - EDGE - wide
            if one is not None:
                box = (left, top + _NAME, wide, high)
                _show(figure, opened(one.image), one.gender, *box, dashed=one is row.query)
            below = top + _NAME + high + _UNDER
            for place_, line in enumerate(lines):
                write_at(figure, left, below + place_ * LINE, line)
        top += step
    _write_notes(figure, notes, top)
    return figure, _sequence_data(rows)


def _of_paper(sequences: Iterable[DemonstrationSequence]) -> list[DemonstrationSequence]:
    """Return the sequences of the paper's settings, in its order; each setting has one.

    Shared ones end in the query that others were retrieved for, where there are such.
    """
    found = {one.setting: one for one in sequences if one.demonstrations}
    rows = [found[name] for name in SETTING_LOOKS if name in found]
    retrieved_for = next((row.query for row in rows if row.setting in RETRIEVED), None)
    return [row if retrieved_for is None else replace(row, query=retrieved_for) for row in rows]


def _picture_height(
    row: DemonstrationSequence, wide: float, opened: Callable[[str], Image.Image]
) -> float:
    """Return how high the pictures of a row are drawn, so that the highest fits."""
    shown = [*row.demonstrations[-_SHOWN:], *([row.query] if row.query is not None else [])]
    sizes = [opened(one.image).size for one in shown]
    return wide * min(_TALLEST, max(high / width for width, high in sizes))


def _captions(row: DemonstrationSequence, wide: float) -> list[list[str]]:
    """Return the lines below each picture of a row; below the query stands what it is."""
    texts = [wrapped(one.text, wide, _CAPTION) for one in row.demonstrations[-_SHOWN:]]
    query = row.query
    name = _WORDS.get(query.gender, "") if query is not None else ""
    return [*texts, ["Query:", name] if query is not None else []]


def _sequence_notes(rows: Sequence[DemonstrationSequence]) -> list[str]:
    longest = max(len(row.demonstrations) for row in rows)
    which = f"The last {_SHOWN} of {longest}" if longest > _SHOWN else f"All {longest}"
    return [
        f"{which} demonstrations from left to right, with the captions that the model is shown. M: "
        "image of a man, F: of a woman. RS to BS show every query the same demonstrations; SIIR "
        "and SITR choose them by the query, the most similar next to it. Long captions are cut."
    ]


def _sequence_data(rows: Sequence[DemonstrationSequence]) -> pd.DataFrame:
    found = []
    for row in rows:
        first = max(len(row.demonstrations) - _SHOWN, 0)
        shown: list[tuple[str, Demonstration]] = [
            (str(number), one)
            for number, one in enumerate(row.demonstrations, start=1)
            if number > first
        ]
        if row.query is not None:
            shown.append(("query", row.query))
        found += [(row.setting, name, one.gender, one.image, one.text) for name, one in shown]
    return pd.DataFrame(found, columns=["setting", "position", "gender", "image", "caption"])


def draw_drawn_images(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure synthetic: captions with their photograph and the images that generators drew of them.

    As many captions of men as of women where there are, the first ones by name. Below them stands
    how well the images of each source fit their captions. Raises ContractError without drawn
    images, RawDataError on an unreadable one.
    """
    chosen = _both_genders(study.drawn, 2 * _PAIRS)
    if not chosen:
        raise ContractError(
            "there are no drawn images that this figure could show. Run the step that draws them, "
            "or leave the figure out."
        )
    sources = [s for s in study.image_sources if any(s in one.images for one in chosen)]
    wide = min(_HALF / len(sources) - _GAP, 1.2)
    opened = cache(partial(open_picture, figure="the sheet of drawn images"))
    shapes = [opened(path).size for one in chosen for path in one.images.values()]
    high = wide * min(_TALLEST, max(height / width for width, height in shapes))
    rows = [
        [(one, wrapped(one.caption, _HALF, _LINES)) for one in chosen[start : start + 2]]
        for start in range(0, len(chosen), 2)
    ]
    steps = [high + _UNDER + max(len(text) for _, text in row) * LINE + 0.1 for row in rows]
    quality = _quality(metrics, study, sources)
    texts = _drawn_notes(study, quality, chosen)
    notes = [line for text in texts for line in wrapped(text, _WHOLE)]
    top = _HEAD + LINE + 0.04
    figure = new_figure(TWO_COLUMNS, top + sum(steps) + len(notes) * LINE + _FOOT)
    title = "Images of COCOBias and images drawn from their captions"
    write_at(figure, EDGE, 0.06, title, fontsize=NORMAL, weight="bold")
    for side in range(len(rows[0])):
        for at, source in enumerate(sources):
            name = wrapped(study.source_name(source), wide, 1)[0]
            write_at(figure, _side(side) + at * (wide + _GAP), _HEAD, name)
    for row, step in zip(rows, steps, strict=True):
        for side, (one, lines) in enumerate(row):
            left = _side(side)
            for at, source in enumerate(sources):
                if source in one.images:
                    box = (left + at * (wide + _GAP), top, wide, high)
                    _show(figure, opened(one.images[source]), one.gender, *box)
            for number, line in enumerate(lines):
                write_at(figure, left, top + high + _UNDER + number * LINE, line)
        top += step
    _write_notes(figure, notes, top)
    return figure, _drawn_data(chosen, sources, quality)


def _side(side: int) -> float:
    """Return where the left or right half of the sheet of drawn images begins."""
    return EDGE + side * (_HALF + _MIDDLE)


def _both_genders(drawn: Sequence[DrawnImage], number: int) -> list[DrawnImage]:
    """Return so many captions, men and women in turn, and more of one where the other ends."""
    men, women = ([one for one in drawn if one.gender == gender] for gender in (MALE, FEMALE))
    half = number // 2
    some = max(half, number - len(women)), max(half, number - len(men))
    pairs = zip_longest(men[: some[0]], women[: some[1]])
    return [one for pair in pairs for one in pair if one is not None]


def _quality(metrics: pd.DataFrame, study: Study, sources: Sequence[str]) -> pd.DataFrame:
    """Return how well the images of each source fit their captions, of all captions together."""
    own = metrics[
        (metrics["paper"] == PAPER)
        & (metrics["experiment"] == "synthesis")
        & (metrics["run"] == OVER_RUNS)
        & (metrics["group"] == ALL)
        & metrics["image_source"].isin(sources)
    ]
    names = ["image_source", "metric", "item", "value", "ci_low", "ci_high", "n"]
    return own[names].reset_index(drop=True)


def _drawn_notes(study: Study, quality: pd.DataFrame, chosen: Sequence[DrawnImage]) -> list[str]:
    notes = [
        f"{len(chosen)} captions in the order of their names, men and women in turn. M: caption of "
        "a man, F: of a woman. Long captions are cut."
    ]
    if len(quality):
        notes.append(
            "All images, with 95% intervals: CLIPScore of image and caption, how many are read as "
            "the gender of their caption, and of how many captions no image came or a part was cut."
        )
    for source in dict.fromkeys(quality["image_source"]):
        parts = _quality_texts(quality[quality["image_source"] == source])
        if parts:
            notes.append(f"{study.source_name(source)}: {'; '.join(parts)}.")
    return notes


# Numbers with an interval and the sign behind them; counts of captions.
_SCORES = {
    "image_clipscore": ("CLIPScore", ""),
    "gender_as_captioned": ("gender as captioned", "%"),
}
_COUNTS = {"refused": "refused", "failed": "failed", "truncated": "caption cut"}


def _quality_texts(own: pd.DataFrame) -> list[str]:
    """Return what the notes say of the images of one source."""
    scores = own[own["metric"].isin(list(_SCORES))]
    counts = own[own["metric"].isin(list(_COUNTS))]
    texts = []
    for row in scores.to_dict("records"):
        name, sign = _SCORES[row["metric"]]
        ends = format_interval(row["ci_low"], row["ci_high"], 1)
        texts.append(f"{name} {format_number(row['value'], 1)}{sign} {ends}")
    if texts:
        texts.append(f"n = {count_range(scores['n'])}")
    found = [
        f"{_COUNTS[row['metric']]} {format_count(row['value'])}"
        for row in counts.to_dict("records")
    ]
    return [*texts, f"{', '.join(found)} of {count_range(counts['n'])}"] if found else texts


def _drawn_data(
    chosen: Sequence[DrawnImage], sources: Sequence[str], quality: pd.DataFrame
) -> pd.DataFrame:
    pictures = pd.DataFrame(
        [
            (source, "image", one.gender, one.images[source], one.caption)
            for one in chosen
            for source in sources
            if source in one.images
        ],
        columns=["image_source", "metric", "gender", "image", "caption"],
    )
    return pd.concat([pictures, quality], ignore_index=True) if len(quality) else pictures


def _show(
    figure: Figure,
    picture: Image.Image,
    gender: str,
    left: float,
    top: float,
    wide: float,
    high: float,
    *,
    dashed: bool = False,
) -> None:
    """Show a picture as large as fits into a place in inches, framed and marked by gender."""
    scale = min(wide / picture.width, high / picture.height)
    size = (picture.width * scale, picture.height * scale)
    axes = place(figure, left, top, *size)
    show_picture(axes, picture)
    colour = GENDER_COLOURS.get(gender, GREY)
    axes.add_patch(
        Rectangle(
            *((0, 0), 1, 1),
            fill=False,
            edgecolor=colour,
            linewidth=1.6,
            linestyle="--" if dashed else "-",
            clip_on=False,
            transform=axes.transAxes,
        )
    )
    axes.annotate(
        _LETTERS.get(gender, "?"),
        (0, 1),
        xytext=(1.6, -1.6),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="left",
        va="top",
        fontsize=SMALL,
        weight="bold",
        color="white",
        bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.2},
    )


def _write_notes(figure: Figure, lines: Sequence[str], top: float) -> None:
    for number, line in enumerate(lines):
        write_at(figure, EDGE, top + 0.02 + number * LINE, line, color=GREY)
