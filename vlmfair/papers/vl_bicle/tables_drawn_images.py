"""The table of drawn images: how many there are, and how well they fit their captions."""

from __future__ import annotations

from typing import Any

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.measure_synthetic import COUNTS, EXPERIMENT
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.papers.vl_bicle.tasks import ALL, FEMALE, MALE, PAPER, REAL
from vlmfair.render.numbers import MISSING, format_count, format_interval, format_number
from vlmfair.render.tables import Column, Table

_GROUPS = {ALL: "All", MALE: "Male", FEMALE: "Female"}
_FITS = {"image_clipscore": "CLIPScore of image and caption", "gender_as_captioned": "Gender read"}
_INTERVAL = "95% interval"


def build_drawn_images(metrics: pd.DataFrame, study: Study) -> Table:
    """Per source of images: counts, CLIPScore with the caption, share of genders as captioned."""
    rows = metrics[(metrics["paper"] == PAPER) & (metrics["experiment"] == EXPERIMENT)]
    if rows.empty:
        raise ContractError(
            f"the metrics hold no row of {EXPERIMENT}. Measure the drawn images and collect again."
        )
    cells = {
        (str(row["metric"]), str(row["image_source"]), str(row["group"])): row
        for row in rows.to_dict("records")
    }
    readers = sorted({str(item) for item in rows["item"] if item != ALL})
    images = cells.get(("image_clipscore", REAL, ALL))
    dropped = cells.get(("dropped", "", ALL))
    return Table(
        title="Drawn images: how many there are, and how well they fit their captions",
        data=rows[
            ["image_source", "metric", "item", "group", "value", "ci_low", "ci_high", "n"]
        ].reset_index(drop=True),
        columns=(
            Column("Images", align="left"),
            *(Column(name.capitalize(), "Captions") for name in COUNTS),
            *(
                Column(label, heading)
                for heading in _FITS.values()
                for label in (_GROUPS[ALL], _INTERVAL, _GROUPS[MALE], _GROUPS[FEMALE])
            ),
        ),
        rows=tuple(_row(cells, study, source) for source in study.image_sources),
        notes=(
            f"Captions: those of the demonstrations; {_count(images, 'n')} are shown by every "
            f"source, {_count(dropped, 'value')} are left out of all, because one source has no "
            "image of them.",
            "CLIPScore: 100 max(cos, 0)"
            + (f", by the encoder “{study.clip_backbone}”." if study.clip_backbone else "."),
            "Gender read: per cent of images that are nearer to their caption than to the same one "
            f"with its gender words swapped{f', by {readers[0]}' if readers else ''}.",
            f"{_INTERVAL}: bootstrap over images for the CLIPScore, Wilson’s for the share.",
        ),
    )


def _row(cells: dict[tuple[str, str, str], Any], study: Study, source: str) -> tuple[str, ...]:
    texts = [_count(cells.get((name, source, ALL)), "value") for name in COUNTS]
    for metric in _FITS:
        whole, *others = (cells.get((metric, source, group)) for group in _GROUPS)
        texts += [_number(whole), _interval(whole), *map(_number, others)]
    name = f"{study.source_name(source)}, photographs" if source == REAL else None
    return (name or study.source_name(source), *texts)


def _count(row: Any, key: str) -> str:
    return MISSING if row is None else format_count(row[key])


def _number(row: Any) -> str:
    return MISSING if row is None else format_number(row["value"], 1)


def _interval(row: Any) -> str:
    return MISSING if row is None else format_interval(row["ci_low"], row["ci_high"], 1)
