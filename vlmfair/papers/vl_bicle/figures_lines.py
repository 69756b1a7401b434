"""Figures 2, 3, 5 and 6: shifts, error rates and caption quality against shots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
from matplotlib.figure import Figure

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.figures_cells import Cell, FigureCells, count_range
from vlmfair.papers.vl_bicle.figures_grid import Column, Line, Panel, draw_grid
from vlmfair.papers.vl_bicle.figures_look import (
    handle,
    setting_handles,
    setting_look,
    source_look,
)
from vlmfair.papers.vl_bicle.study import ERROR_SIGNS, TASK_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import (
    ALL,
    FEMALE_ONLY,
    GAP,
    GENDERS,
    MALE_ONLY,
    REAL,
    TASKS,
    VQA,
    ZERO_SHOT,
    Task,
)

_ONE_GENDER = (MALE_ONLY, FEMALE_ONLY)
_BANDS = (
    "Bands: 95% intervals, paired bootstrap over images. Lines: means over {runs} runs, drawn "
    "slightly apart. Each column has one scale."
)
_BIAS = "Below 0 is male bias, above 0 female bias."
Drawn = tuple[Figure, pd.DataFrame]


def draw_shifts(metrics: pd.DataFrame, study: Study) -> Drawn:
    """Figure 2: the shift of ER_m-f against zero shots, for every task and model."""
    cells = FigureCells(metrics, study)

    def panel(task: Task, model: str) -> Sequence[Panel]:
        show = partial(cells.show, "error_shift", task, model, group=GAP)
        return [Panel([_shift_line(setting, show, study) for setting in study.settings])]

    columns = [
        Column(TASK_NAMES[task.name], _sizes(cells, task), found, zero=True)
        for task in study.shown_tasks
        if (found := _rows(cells, task, panel, study.settings))
    ]
    notes = [
        f"Δ{ERROR_SIGNS[GAP]}: shift of {ERROR_SIGNS[GAP]} from zero shots (k = 0), in percentage "
        f"points. {_BIAS}",
        "k: number of demonstrations. n: queries of men + of women.",
        _BANDS.format(runs=study.runs),
    ]
    if any(task.experiment == VQA for task in study.shown_tasks):
        notes.append(f"VisualCoT: answers judged by {study.judge_text}.")
    title = f"Shift of bias with the number of demonstrations (Δ{ERROR_SIGNS[GAP]} against k)"
    return _figure(title, cells, columns, study.settings, notes)


def _shift_line(setting: str, show: Callable[..., Cell], study: Study) -> Line:
    """Return a line that starts at no shift, which is what zero shots have by definition."""
    found = [
        show(setting=setting, shots=k) if k else Cell(0.0, ci_low=0.0, ci_high=0.0)
        for k in study.shots
    ]
    return Line(setting_look(setting), found)


def draw_one_gender(metrics: pd.DataFrame, study: Study) -> Drawn:
    """Figure 3: ER_m and ER_f under demonstrations of men only and of women only."""
    cells = FigureCells(metrics, study)
    settings = tuple(setting for setting in _ONE_GENDER if setting in study.settings)
    tasks = [task for task in study.shown_tasks if task.experiment != VQA]
    columns = _error_columns(cells, tasks, settings)
    notes = [
        f"{_error_words()}, in percent. k: number of demonstrations. n: queries of men + of women.",
        _BANDS.format(runs=study.runs),
    ]
    title = "Error rates of men and women under demonstrations of one gender, against k"
    return _figure(title, cells, columns, settings, notes)


def draw_visual_questions(metrics: pd.DataFrame, study: Study) -> Drawn:
    """Figure 5: ER_m and ER_f of visual questions by setting, shots and prompting."""
    cells = FigureCells(metrics, study)
    tasks = [task for task in study.shown_tasks if task.experiment == VQA]
    columns = _error_columns(cells, tasks, study.settings)
    notes = [
        f"{_error_words()}, in percent. k: number of demonstrations. n: queries about men + about "
        "women.",
        f"Answers judged by {study.judge_text}.",
        _BANDS.format(runs=study.runs),
    ]
    title = (
        f"Visual questions ({study.judge_sign}): error rates by setting and prompting, against k"
    )
    return _figure(title, cells, columns, study.settings, notes)


def _error_words() -> str:
    return ", ".join(f"{ERROR_SIGNS[gender]}: error rate of {_WHOSE[gender]}" for gender in GENDERS)


_WHOSE = dict(zip(GENDERS, ("men", "women"), strict=True))


def _error_columns(
    cells: FigureCells, tasks: Sequence[Task], settings: Sequence[str]
) -> list[Column]:
    def panels(task: Task, model: str) -> Sequence[Panel]:
        return [
            Panel(
                [
                    _line(partial(cells.show, "error_rate", task, model, group=gender), name, cells)
                    for name in settings
                ]
            )
            for gender in GENDERS
        ]

    parts = [ERROR_SIGNS[gender] for gender in GENDERS]
    return [
        Column(TASK_NAMES[task.name], _sizes(cells, task), found, parts, is_share=True)
        for task in tasks
        if (found := _rows(cells, task, panels, settings, len(parts)))
    ]


def _line(show: Callable[..., Cell], setting: str, cells: FigureCells) -> Line:
    """Return a setting's line, which starts at the number of zero shots."""
    found = [show(setting=setting if k else ZERO_SHOT, shots=k) for k in cells.study.shots]
    return Line(setting_look(setting), found)


def draw_sources(metrics: pd.DataFrame, study: Study) -> Drawn:
    """Figure 6: CLIPScore and RR_o with photographs and drawn images, MS and FS."""
    cells = FigureCells(metrics, study)
    task = TASKS["coco_bias"]
    if not study.mitigated:
        raise ContractError(
            "no model was shown drawn demonstrations, which Figure 6 is about. Name models in "
            "vl_bicle.synthesis of the config, or leave the figure out."
        )
    settings = tuple(setting for setting in _ONE_GENDER if setting in study.settings)
    columns = []
    for metric, heading in (("clipscore", "CLIPScore"), ("reveal_rate", "Reveal rate RR_o (%)")):
        cells.require(study.mitigated, task, metric, settings, study.image_sources)
        panels = [
            [_source_panel(cells, metric, task, model, setting) for setting in settings]
            for model in study.mitigated
        ]
        columns.append(
            Column(heading, "", panels, settings, is_share=metric == "reveal_rate"),
        )
    data = cells.data()
    n = count_range(data["n"])
    notes = [
        f"COCOBias, n = {n} queries. k: number of demonstrations.",
        f"CLIPScore: 100 × cosine of image and caption{_in_brackets(study.clip_backbone)}.",
        _BANDS.format(runs=study.runs),
    ]
    handles = [
        handle(_source_label(source, study), source_look(source, study))
        for source in study.image_sources
    ]
    title = "Caption quality and reveal rate by source of the demonstrations’ images, against k"
    names = [study.title(model) for model in study.mitigated]
    return draw_grid(title, names, columns, study.shots, handles, notes), data


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _source_panel(cells: FigureCells, metric: str, task: Task, model: str, setting: str) -> Panel:
    lines = []
    for source in cells.study.image_sources:
        found = [
            cells.show(metric, task, model, setting if k else ZERO_SHOT, k, ALL, source)
            for k in cells.study.shots
        ]
        lines.append(Line(source_look(source, cells.study), found))
    return Panel(lines)


def _source_label(source: str, study: Study) -> str:
    name = study.source_name(source)
    return f"{name} (real images)" if source == REAL else f"{name} (drawn images)"


def _rows(
    cells: FigureCells,
    task: Task,
    panels: Callable[[Task, str], Sequence[Panel]],
    settings: Sequence[str],
    parts: int = 1,
) -> list[Sequence[Panel]]:
    """Return the panels of every model, with a note for those that were not asked a task.

    Nothing when no model was asked.
    """
    study = cells.study
    asked = study.models_of(task)
    cells.require(asked, task, "error_rate", settings)
    if not asked:
        return []
    empty = [Panel([], "not asked")] * parts
    return [panels(task, model) if model in asked else empty for model in study.models]


def _sizes(cells: FigureCells, task: Task) -> str:
    return f"n = {cells.queries(task, cells.study.models_of(task))}"


def _figure(
    title: str,
    cells: FigureCells,
    columns: Sequence[Column],
    settings: tuple[str, ...],
    notes: Sequence[str],
) -> Drawn:
    study = cells.study
    if not columns:
        raise ContractError(
            f"no task of the run has what “{title}” shows. List its tasks in vl_bicle.tasks, or "
            f"leave the figure out."
        )
    # A model that was asked none of the tasks has no row.
    rows = [
        row
        for row in range(len(study.models))
        if any(panel.lines for column in columns for panel in column.panels[row])
    ]
    names = [study.title(study.models[row]) for row in rows]
    kept = [replace(column, panels=[column.panels[row] for row in rows]) for column in columns]
    if len(rows) < len(study.models):
        others = [study.title(m) for row, m in enumerate(study.models) if row not in rows]
        notes = [*notes, f"Not asked: {', '.join(others)}."]
    handles = setting_handles(settings)
    return draw_grid(title, names, kept, study.shots, handles, notes), cells.data()
