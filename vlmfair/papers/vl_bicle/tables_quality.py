"""Table 3: caption quality and the difference of error rates on COCOBias."""

from __future__ import annotations

import pandas as pd

from vlmfair.papers.vl_bicle.cells import Cells, Place
from vlmfair.papers.vl_bicle.notes import (
    CSV_NOTE,
    ERROR_NOTE,
    INTERVAL_NOTE,
    quality_note,
    queries_note,
    runs_note,
    settings_note,
    skipped_note,
)
from vlmfair.papers.vl_bicle.quantities import (
    GAP_OF_ERRORS,
    QUALITY,
    REVEALED,
    places_of,
    retrieval_of,
    texts,
)
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.papers.vl_bicle.tables_families import REVEAL_NOTE
from vlmfair.papers.vl_bicle.tasks import FEMALE, MALE, TASKS
from vlmfair.render.tables import Column, Table

_QUANTITIES = (*GAP_OF_ERRORS, REVEALED, *QUALITY)
# The model whose table the paper prints.
CHOSEN = "Phi35V"


def build_quality(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 3: caption quality beside ER_m−f; the model of the paper first, then the others."""
    cells, task = Cells(metrics, study), TASKS["coco_bias"]
    cells.require(study.models, task)
    settings = (*study.settings, *retrieval_of(study, balanced=False))
    models = sorted(study.models, key=lambda model: study.title(model) != CHOSEN)
    rows = []
    for model in models:
        for place in places_of(Place(task, model), settings, study):
            for gender in (MALE, FEMALE):
                cells.show("error_rate", place, gender)
            names = (study.title(model), study.setting_name(place.setting), str(place.shots))
            rows.append((*names, *texts(cells, place, _QUANTITIES)))
    data = cells.data()
    return Table(
        title="Caption quality and ER_m−f on COCOBias",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Setting", align="left"),
            Column("k"),
            *(quantity.column() for quantity in _QUANTITIES),
        ),
        rows=tuple(rows),
        notes=(
            ERROR_NOTE,
            *queries_note(data),
            quality_note(study),
            REVEAL_NOTE.partition(" Beside")[0],
            runs_note(study, retrieved=True),
            INTERVAL_NOTE,
            settings_note(settings),
            *skipped_note(cells, rows),
            CSV_NOTE,
        ),
        stubs=3,
    )
