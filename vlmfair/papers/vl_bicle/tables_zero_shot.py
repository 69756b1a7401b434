"""Table 2: the difference of error rates of every model and dataset without demonstrations."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from vlmfair.papers.vl_bicle.cells import Cells, Place, interval_text, spread_text
from vlmfair.papers.vl_bicle.notes import (
    CSV_NOTE,
    ERROR_NOTE,
    QUERIES_NOTE,
    count_range,
    judge_note,
    skipped_note,
)
from vlmfair.papers.vl_bicle.study import TASK_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import FEMALE, MALE, VQA, Task
from vlmfair.render.numbers import MISSING
from vlmfair.render.tables import Column, Table

_NOT_EVALUATED = "not evaluated"


def build_zero_shot(metrics: pd.DataFrame, study: Study) -> Table:
    """Table 2: ER_m−f at zero shots of each model, with its interval."""
    cells, tasks = Cells(metrics, study), study.shown_tasks
    for task in tasks:
        cells.require(study.models_of(task), task)
    rows = tuple(
        (study.title(model), *(text for task in tasks for text in _cell(cells, task, model)))
        for model in study.models
    )
    return Table(
        title="Zero-shot ER_m−f of each dataset and task",
        data=cells.data(),
        columns=(
            Column("Model", align="left"),
            *(
                column
                for task in tasks
                for column in (
                    Column("ER_m−f", _heading(cells, task)),
                    Column("95% interval", _heading(cells, task)),
                )
            ),
        ),
        rows=rows,
        notes=(
            ERROR_NOTE,
            _queries(cells, tasks),
            QUERIES_NOTE,
            *([judge_note(study)] * any(task.experiment == VQA for task in tasks)),
            *_not_evaluated(rows),
            *skipped_note(cells, rows),
            CSV_NOTE,
        ),
    )


def _cell(cells: Cells, task: Task, model: str) -> tuple[str, str]:
    if model not in cells.study.models_of(task):
        return _NOT_EVALUATED, MISSING
    place = Place(task, model)
    for gender in (MALE, FEMALE):
        cells.show("error_rate", place, gender)
    cell = cells.show("error_rate", place)
    return spread_text(cell), interval_text(cell)


def _heading(cells: Cells, task: Task) -> str:
    """Return a task, with its judge where it has one."""
    heading = TASK_NAMES[task.name]
    return f"{heading}, {cells.study.judge_sign}" if task.experiment == VQA else heading


def _queries(cells: Cells, tasks: Sequence[Task]) -> str:
    """Return the numbers of queries of each task, of men and of women."""
    counts = []
    for task in tasks:
        men, women = (
            count_range(
                cells.look("error_rate", Place(task, model), gender).n
                for model in cells.study.models_of(task)
            )
            for gender in (MALE, FEMALE)
        )
        counts.append(f"{TASK_NAMES[task.name]} {men} and {women}")
    return f"Queries, men and women: {'; '.join(counts)}."


def _not_evaluated(rows: Sequence[Sequence[str]]) -> list[str]:
    if not any(_NOT_EVALUATED in row for row in rows):
        return []
    return [f"{_NOT_EVALUATED}: the model is not among those that the config asks this task."]
