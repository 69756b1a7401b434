"""The table of answers that tell nothing: no gender or both, no verdict, failed, not asked."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vlmfair.papers.vl_bicle.cells import Cells, Place
from vlmfair.papers.vl_bicle.notes import (
    judge_note,
    queries_note,
    settings_note,
)
from vlmfair.papers.vl_bicle.study import TASK_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import (
    ALL,
    CAPTIONING,
    FEMALE,
    MALE,
    PRONOUN,
    VQA,
    ZERO_SHOT,
    Task,
)
from vlmfair.render.numbers import MISSING, format_count, format_number
from vlmfair.render.tables import Column, Table

# What is counted in the answers of each experiment, and how it is called.
_KINDS = {
    PRONOUN: {"reveal_rate": "no tie"},
    CAPTIONING: {
        "reveal_rate": "name a gender",
        "both_rate": "name both",
        "neutral_rate": "person only",
    },
    VQA: {"format_rate": "Answer: field", "unjudged_rate": "no verdict"},
}


def build_unrevealed(metrics: pd.DataFrame, study: Study) -> Table:
    """Per model and task: per cent of answers by what they reveal, by gender; failed, not asked."""
    cells = Cells(metrics, study)
    shots = max(study.shots)
    columns = [(ZERO_SHOT, 0), *((setting, shots) for setting in study.settings)]
    rows = []
    for model in study.models:
        for task in study.shown_tasks:
            if model not in study.models_of(task):
                continue
            cells.require([model], task)
            failed, missing = _failed(cells, task, model), _not_asked(cells, task, model)
            for metric, kind in _KINDS[task.experiment].items():
                texts = [
                    format_number(
                        cells.show(metric, Place(task, model, setting, k), gender).value, 1
                    )
                    for setting, k in columns
                    for gender in (MALE, FEMALE)
                ]
                name = TASK_NAMES[task.name]
                rows.append((study.title(model), name, kind, *texts, failed, missing))
    data = cells.data()
    return Table(
        title="Answers by what they reveal, failed answers, and cells that were not asked",
        data=data,
        columns=(
            Column("Model", align="left"),
            Column("Task", align="left"),
            Column("Answers", align="left"),
            *(
                Column(label, _heading(study, setting, k))
                for setting, k in columns
                for label in ("Male", "Female")
            ),
            Column("Failed"),
            Column("Not asked", align="left", width=0.8),
        ),
        rows=tuple(rows),
        notes=(
            "Per cent of the answers. no tie: one pronoun is likelier; name a gender: words of one "
            "gender or both; person only: a person without a gender; Answer: field: the answer has "
            "the form of the demonstrations; no verdict: the judge’s reply cannot be read.",
            "Failed: questions without an answer for a technical reason, of all settings and "
            "shots; they are left out of every other number. Not asked: settings and numbers of "
            "shots with more images than the model takes.",
            judge_note(study),
            f"Means over {study.runs} runs; the csv file has their standard deviations.",
            settings_note(study.settings),
            *queries_note(data, "reveal_rate"),
        ),
        stubs=3,
    )


def _heading(study: Study, setting: str, shots: int) -> str:
    name = study.setting_name(setting)
    return f"{name}, k = {shots}" if shots else name


def _all_places(cells: Cells, task: Task, model: str) -> Sequence[Place]:
    study, start = cells.study, Place(task, model)
    settings = [*study.settings, *(study.retrieval if task.name == "coco_bias" else ())]
    own = [start.after(setting, k) for setting in settings for k in study.shots]
    own += [
        start.after(setting, k, source)
        for setting in study.settings
        for k in study.shots
        for source in study.sources
        if task.name == "coco_bias" and k
    ]
    return list(dict.fromkeys(own))


def _failed(cells: Cells, task: Task, model: str) -> str:
    found = [cells.look("dropped_answers", place, ALL) for place in _all_places(cells, task, model)]
    known = [cell.value for cell in found if cell.known]
    return format_count(sum(known)) if known else MISSING


def _not_asked(cells: Cells, task: Task, model: str) -> str:
    """Return the cells that were not asked: `RS, MS: k = 6, 8`."""
    skipped: dict[str, list[int]] = {}
    for place in _all_places(cells, task, model):
        if cells.look("error_rate", place, ALL).skipped:
            name = cells.study.setting_name(place.setting)
            skipped.setdefault(name, []).append(place.shots)
    by_shots: dict[tuple[int, ...], list[str]] = {}
    for name, shots in skipped.items():
        by_shots.setdefault(tuple(dict.fromkeys(shots)), []).append(name)
    return (
        "; ".join(
            f"{', '.join(names)}: k = {', '.join(map(str, shots))}"
            for shots, names in by_shots.items()
        )
        or "none"
    )
