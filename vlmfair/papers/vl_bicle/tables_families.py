"""The appendix tables of one model: every setting and number of demonstrations of a task."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vlmfair.papers.vl_bicle.cells import Cells, Place
from vlmfair.papers.vl_bicle.notes import (
    CSV_NOTE,
    ERROR_NOTE,
    INTERVAL_NOTE,
    is_starred,
    judge_note,
    quality_note,
    queries_note,
    runs_note,
    settings_note,
    shift_note,
    skipped_note,
)
from vlmfair.papers.vl_bicle.quantities import (
    AMONG_REVEALED,
    ERRORS,
    GAP_OF_ERRORS,
    QUALITY,
    REVEALED,
    SHIFT_OF_GAP,
    Quantity,
    places_of,
    retrieval_of,
    texts,
)
from vlmfair.papers.vl_bicle.study import DATASET_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import (
    BALANCED,
    FEMALE_ONLY,
    MALE_ONLY,
    REAL,
    TASKS,
    ZERO_SHOT,
)
from vlmfair.render.tables import Column, Table

_CAPTIONING = (*ERRORS, *GAP_OF_ERRORS, *SHIFT_OF_GAP, *AMONG_REVEALED, *QUALITY)
_PRONOUN = (*ERRORS, *GAP_OF_ERRORS, *SHIFT_OF_GAP, REVEALED)
_ANSWERS = (*ERRORS, *GAP_OF_ERRORS, *SHIFT_OF_GAP)
_PROMPTS = {"direct": "Direct", "cot": "Chain of thought"}
_STUBS = (Column("Setting", align="left"), Column("k"))
_NO_IMAGES = "none"
REVEAL_NOTE = (
    "RR_o: per cent of captions that name a gender; a caption without one is no error. Beside it "
    "ER_m−f over captions that name a gender."
)


def build_pronouns(metrics: pd.DataFrame, study: Study, model: str, *, task_name: str) -> Table:
    """Tables 38 to 49: pronoun prediction on one part of VisoGender by one model."""
    cells, task = Cells(metrics, study), TASKS[task_name]
    cells.require([model], task)
    return _table(
        cells,
        f"Pronoun prediction on {DATASET_NAMES[task.dataset]} by {study.title(model)}",
        Place(task, model),
        study.settings,
        _PRONOUN,
        ("RR_o: per cent of queries without a tie of the two pronouns; a tie is no error.",),
    )


def build_captions(metrics: pd.DataFrame, study: Study, model: str, *, task_name: str) -> Table:
    """Appendix 0.H and 0.J: captions of COCOBias or DCI by one model; retrieval on COCOBias."""
    cells, task = Cells(metrics, study), TASKS[task_name]
    cells.require([model], task)
    retrieved = retrieval_of(study, balanced=False) if task_name == "coco_bias" else ()
    return _table(
        cells,
        f"Captioning on {DATASET_NAMES[task.dataset]} by {study.title(model)}",
        Place(task, model),
        (*study.settings, *retrieved),
        _CAPTIONING,
        (REVEAL_NOTE, quality_note(study)),
    )


def build_balanced_pool(metrics: pd.DataFrame, study: Study, model: str) -> Table:
    """Appendix 0.I: retrieval from the pool as it is and from a balanced one, beside BS."""
    cells, task = Cells(metrics, study), TASKS["coco_bias"]
    cells.require([model], task)
    settings = [name for name in study.settings if name == BALANCED]
    for name in retrieval_of(study, balanced=False):
        settings += [own for own in study.retrieval if own.partition("/")[0] == name]
    return _table(
        cells,
        f"Retrieval from a gender-balanced pool on COCOBias by {study.title(model)}",
        Place(task, model),
        settings,
        _CAPTIONING,
        (REVEAL_NOTE, quality_note(study)),
    )


def _table(
    cells: Cells,
    title: str,
    start: Place,
    settings: Sequence[str],
    quantities: Sequence[Quantity],
    notes: Sequence[str],
) -> Table:
    """Return a table with a row per setting and number of shots."""
    study = cells.study
    rows = tuple(
        (study.setting_name(place.setting), str(place.shots), *texts(cells, place, quantities))
        for place in places_of(start, settings, study)
    )
    retrieved = any(name in study.retrieval for name in settings)
    return Table(
        title=title,
        data=cells.data(),
        columns=(*_STUBS, *(quantity.column() for quantity in quantities)),
        rows=rows,
        notes=(
            ERROR_NOTE,
            *queries_note(cells.data()),
            shift_note(study, is_starred(rows)),
            runs_note(study, retrieved=retrieved),
            INTERVAL_NOTE,
            *notes,
            settings_note(settings),
            *skipped_note(cells, rows),
            CSV_NOTE,
        ),
        stubs=2,
    )


def build_answers(metrics: pd.DataFrame, study: Study, model: str) -> Table:
    """Appendix 0.L: visual questions by one model, asked directly and with a chain of thought."""
    cells = Cells(metrics, study)
    tasks = [task for task in study.shown_tasks if task.dataset == "visual_cot"]
    for task in tasks:
        cells.require([model], task)
    rows = tuple(
        (
            study.setting_name(place.setting),
            str(place.shots),
            *(text for task in tasks for text in texts(cells, place.at(task=task), _ANSWERS)),
        )
        for place in places_of(Place(tasks[0], model), study.settings, study)
    )
    return Table(
        title=f"Visual questions of VisualCoT answered by {study.title(model)}",
        data=cells.data(),
        columns=(
            *_STUBS,
            *(
                quantity.column(f"{_PROMPTS[task.prompt]}, {study.judge_sign}")
                for task in tasks
                for quantity in _ANSWERS
            ),
        ),
        rows=rows,
        notes=(
            judge_note(study) + " Error: 1 minus the score of an answer.",
            ERROR_NOTE,
            *queries_note(cells.data()),
            shift_note(study, is_starred(rows)),
            runs_note(study),
            INTERVAL_NOTE,
            "Zero-shot shows one example without a person.",
            settings_note(study.settings),
            *skipped_note(cells, rows),
            CSV_NOTE,
        ),
        stubs=2,
    )


def build_synthetic(metrics: pd.DataFrame, study: Study, model: str) -> Table:
    """Appendix 0.M: captions after men-only and women-only demonstrations with drawn images."""
    cells, task = Cells(metrics, study), TASKS["coco_bias"]
    cells.require([model], task)
    settings = [name for name in study.settings if name in (MALE_ONLY, FEMALE_ONLY)]
    places = places_of(Place(task, model), settings, study, study.image_sources)
    rows = tuple(
        (
            _NO_IMAGES if place.setting == ZERO_SHOT else study.source_name(place.source),
            study.setting_name(place.setting),
            str(place.shots),
            *texts(cells, place, _CAPTIONING),
        )
        for place in places
    )
    generators = ", ".join(study.source_name(name) for name in study.image_sources if name != REAL)
    return Table(
        title=f"Captioning on COCOBias with drawn demonstrations by {study.title(model)}",
        data=cells.data(),
        columns=(
            Column("Images", align="left"),
            *_STUBS,
            *(quantity.column() for quantity in _CAPTIONING),
        ),
        rows=rows,
        notes=(
            ERROR_NOTE,
            *queries_note(cells.data()),
            f"Images of the demonstrations: photographs of COCOBias, or drawn from the same "
            f"captions ({generators}). The queries are photographs.",
            shift_note(study, is_starred(rows)),
            runs_note(study),
            INTERVAL_NOTE,
            REVEAL_NOTE,
            quality_note(study),
            settings_note(settings),
            *skipped_note(cells, rows),
            CSV_NOTE,
        ),
        stubs=3,
    )
