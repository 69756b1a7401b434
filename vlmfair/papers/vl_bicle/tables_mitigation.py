"""Table 4: how biased captions are after photographs and after drawn images."""

from __future__ import annotations

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.cells import (
    NOT_ASKED,
    Cells,
    Place,
    interval_text,
    signed_text,
    spread_text,
)
from vlmfair.papers.vl_bicle.measure_mitigation import EXPERIMENT, GAP_CHANGE, GAP_SIZE
from vlmfair.papers.vl_bicle.notes import (
    CSV_NOTE,
    QUERIES_NOTE,
    is_starred,
    settings_note,
    skipped_note,
)
from vlmfair.papers.vl_bicle.study import SYNTHETIC_SHOTS, Study
from vlmfair.papers.vl_bicle.tasks import FEMALE_ONLY, MALE_ONLY, REAL, TASKS
from vlmfair.render.numbers import MISSING, format_count
from vlmfair.render.tables import Column, Table


def build_mitigation(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 4: |ER_m−f| of captions that reveal a gender, by the source of the demonstrations."""
    cells, task = Cells(metrics, study), TASKS["coco_bias"]
    settings = [name for name in (MALE_ONLY, FEMALE_ONLY) if name in study.settings]
    shots = [number for number in SYNTHETIC_SHOTS if number in study.shots] or list(
        study.shots[-1:]
    )
    models = study.mitigated
    rows, falls, compared = [], 0, 0
    for model in models:
        for setting in settings:
            for number in shots:
                place = Place(task, model, setting, number)
                real = cells.show(GAP_SIZE, place, experiment=EXPERIMENT)
                row = [spread_text(real), interval_text(real)]
                for source in study.sources:
                    own = place.at(source=source)
                    size = cells.show(GAP_SIZE, own, experiment=EXPERIMENT)
                    change = cells.show(GAP_CHANGE, own, experiment=EXPERIMENT)
                    row += [
                        spread_text(size),
                        signed_text(change) + cells.starred(change),
                        interval_text(change),
                    ]
                    compared += change.known
                    falls += change.known and change.value < 0
                rows.append((study.title(model), setting, str(number), *row))
    data = cells.data()
    if not data["value"].notna().any() and not any(NOT_ASKED in row for row in rows):
        raise ContractError(
            f"the metrics hold no {EXPERIMENT}/{GAP_SIZE}. Measure the captions after drawn "
            "demonstrations and collect again."
        )
    counted = data[(data["metric"] == GAP_SIZE) & data["value"].notna()]["n"]
    return Table(
        title="|ER_m−f| of captions that reveal a gender, after photographs and drawn images",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Setting", align="left"),
            Column("k"),
            Column("|ER_m−f|", study.source_name(REAL)),
            Column("95% interval", study.source_name(REAL)),
            *(
                column
                for source in study.sources
                for column in (
                    Column("|ER_m−f|", study.source_name(source)),
                    Column("Gap", study.source_name(source)),
                    Column("95% interval", study.source_name(source)),
                )
            ),
        ),
        rows=tuple(rows),
        notes=(
            "|ER_m−f|: size of the difference of men’s and women’s error rates, over captions that "
            "name a gender (r = 1), of the mean over runs. Gap: minus that after photographs of "
            f"COCOBias; below 0 is less biased. It is below 0 in {falls} of {compared} cells.",
            *_counted_note(counted),
            QUERIES_NOTE,
            *_starred_note(study, rows),
            settings_note(settings),
            *skipped_note(cells, rows),
            *_missing_note(rows),
            CSV_NOTE,
        ),
        stubs=3,
    )


def _counted_note(counted: pd.Series) -> list[str]:
    if counted.empty:
        return []
    low, high = format_count(counted.min()), format_count(counted.max())
    shown = low if low == high else f"{low}–{high}"
    return [f"Captions that count, of the gender with fewer, in each run: {shown}."]


def _starred_note(study: Study, rows: list[tuple[str, ...]]) -> list[str]:
    if not is_starred(rows):
        return []
    return [
        f"* p ≤ {study.alpha:g} by the bootstrap, after Benjamini and Hochberg’s correction over "
        "the gaps of the model."
    ]


def _missing_note(rows: list[tuple[str, ...]]) -> list[str]:
    if not any(MISSING in row for row in rows):
        return []
    return [f"{MISSING}: no caption of one gender reveals it, or the run did not measure it."]
