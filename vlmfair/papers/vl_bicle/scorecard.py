"""Finds the regenerated number that belongs to each number of the paper's text."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from vlmfair.audit.published import Published
from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.cells import Cell, Cells, Place
from vlmfair.papers.vl_bicle.study import SYNTHETIC_SHOTS, TASK_NAMES
from vlmfair.papers.vl_bicle.tasks import (
    ALL,
    FEMALE_ONLY,
    GAP,
    MALE_ONLY,
    TASKS,
    Task,
)

AS_PRINTED, WITHIN, DIFFERS = "as printed", "within the interval", "differs"
HOLDS, FAILS, OPEN = "holds", "does not hold", "open"
_SETTING = re.compile(r"(?P<first>[A-Za-z-]+?)(?:-(?P<second>FS))? k=(?P<shots>\d+)")
# The steps of the funnels after which the paper counts images.
_STEPS = {
    "dci": ("dci", "with the same gender in both"),
    "visogender": ("visogender", "with a usable image"),
}


@dataclass(frozen=True)
class Compared:
    """A printed number beside the regenerated one.

    `where` says which model and dataset have it if the paper names none; `reason` why there is
    none, then the verdict is `open`.
    """

    published: Published
    found: Cell
    verdict: str
    where: str = ""
    reason: str = ""


def compare(published: Iterable[Published], cells: Cells, metrics: pd.DataFrame) -> list[Compared]:
    """Return each number of the text beside the run's, in the order of the text.

    Raises ContractError on a number that nobody knows how to regenerate.
    """
    return [_compare(entry, cells, metrics) for entry in published]


def _compare(entry: Published, cells: Cells, metrics: pd.DataFrame) -> Compared:
    find = _FINDERS.get(entry.metric)
    if find is None:
        raise ContractError(
            f"vl_bicle: {entry.metric} of {entry.location} cannot be regenerated. "
            f"Use one of {', '.join(_FINDERS)} in the published numbers."
        )
    study = cells.study
    named = {study.title(model): model for model in study.models}
    if entry.model and entry.model not in named:
        return Compared(entry, Cell(), OPEN, reason=f"{entry.model} is not in this run")
    if entry.metric.startswith("images"):
        found, where = _images(entry, cells, metrics), ""
    else:
        found, where = find(entry, cells, named.get(entry.model, ""))
    if not found.known:
        return Compared(entry, found, OPEN, reason="not measured in this run")
    return Compared(entry, found, _verdict(entry, found), where)


def _verdict(entry: Published, found: Cell) -> str:
    if entry.agrees_with(found.value):
        return AS_PRINTED if entry.relation == "=" else HOLDS
    if entry.relation != "=":
        return FAILS
    return WITHIN if found.ci_low <= entry.number <= found.ci_high else DIFFERS


def _tasks(entry: Published) -> list[Task]:
    datasets = entry.item.split(", ")
    prompts = entry.prompt.split(", ")
    return [task for task in TASKS.values() if task.dataset in datasets and task.prompt in prompts]


def _place(entry: Published, model: str, setting: str, shots: int) -> Place:
    return Place(_tasks(entry)[0], model).after(setting, shots)


def _one(entry: Published, cells: Cells, model: str) -> tuple[Cell, str]:
    """Return one cell, or the standard deviation of one."""
    matched = _SETTING.fullmatch(entry.setting)
    if matched is None:
        raise ContractError(
            f"vl_bicle: the setting {entry.setting!r} of {entry.location} has not the form of "
            f"`MS k=8`. Correct the published numbers."
        )
    shots, group = int(matched["shots"]), entry.group or GAP
    first = _place(entry, model, matched["first"], shots)
    if entry.metric.endswith("_sd"):
        cell = cells.look(entry.metric.removesuffix("_sd"), first, group)
        return Cell(value=cell.sd, n=cell.runs), ""
    if matched["second"] is None:
        return cells.show(entry.metric, first, group), ""
    metric = entry.metric.removesuffix("_difference")
    other = _place(entry, model, matched["second"], shots)
    cells_of = [cells.show(metric, place, group) for place in (first, other)]
    value = cells_of[0].value - cells_of[1].value
    return Cell(value=value, n=min(cell.n for cell in cells_of)), ""


def _ranges(entry: Published, cells: Cells, metric: str) -> Iterable[tuple[float, float, str]]:
    """Yield the lowest and highest number over settings of each model and task, and their name."""
    study, group = cells.study, entry.group or GAP
    for task in _tasks(entry):
        if task.name not in study.tasks:
            continue
        for model in filter(study.counted.__contains__, study.models_of(task)):
            # Captions: over all numbers of shots; visual questions: at each number by itself.
            groups = [study.shots] if task.has_captions else [(k,) for k in study.shots]
            for shots in groups:
                values = [
                    cells.look(metric, Place(task, model).after(setting, k), group).value
                    for setting in study.settings
                    for k in shots
                    if k
                ]
                known = [value for value in values if not math.isnan(value)]
                if known:
                    yield min(known), max(known), f"{study.title(model)}, {TASK_NAMES[task.name]}"


def _range(entry: Published, cells: Cells, _model: str) -> tuple[Cell, str]:
    found = list(_ranges(entry, cells, entry.metric.removesuffix("_range")))
    low, high, where = max(found, key=lambda one: one[1] - one[0], default=(math.nan, math.nan, ""))
    return Cell(value=high - low), where


def _lowest(entry: Published, cells: Cells, _model: str) -> tuple[Cell, str]:
    found = list(_ranges(entry, cells, entry.metric.removesuffix("_lowest")))
    low, _, where = min(found, default=(math.nan, math.nan, ""))
    return Cell(value=low), where


def _highest(entry: Published, cells: Cells, _model: str) -> tuple[Cell, str]:
    found = list(_ranges(entry, cells, entry.metric.removesuffix("_highest")))
    _, high, where = max(found, key=lambda one: one[1], default=(math.nan, math.nan, ""))
    return Cell(value=high), where


def _change(entry: Published, cells: Cells, _model: str) -> tuple[Cell, str]:
    """Return the median size of the differences between drawn images and photographs."""
    study, metric = cells.study, entry.metric.removesuffix("_difference")
    task = _tasks(entry)[0]
    changes = []
    for model in filter(study.counted.__contains__, study.mitigated):
        for setting in (MALE_ONLY, FEMALE_ONLY):
            for shots in SYNTHETIC_SHOTS:
                real = Place(task, model, setting, shots)
                for source in study.sources:
                    own = cells.look(metric, real.at(source=source), ALL)
                    changes.append(abs(own.value - cells.look(metric, real, ALL).value))
    known = [change for change in changes if not math.isnan(change)]
    value = float(pd.Series(known).median()) if known else math.nan
    return Cell(value=value, n=len(known) or math.nan), "median of all cells"


def _images(entry: Published, cells: Cells, metrics: pd.DataFrame) -> Cell:
    """Return a number of images: of a split, or after a step of the dataset's funnel."""
    if entry.metric == "images_pool":
        rows = metrics[
            (metrics["experiment"] == "data")
            & (metrics["metric"] == "images")
            & (metrics["dataset"] == entry.item)
            & (metrics["item"] == "pool")
            & (metrics["group"] == ALL)
        ]
        return Cell(value=float(rows["value"].iloc[0])) if len(rows) else Cell()
    dataset, step = _STEPS[entry.item]
    funnel = cells.study.funnels.get(dataset, pd.DataFrame({"step": [], "left": []}))
    left = funnel.loc[funnel["step"] == step, "left"]
    return Cell(value=float(left.iloc[0])) if len(left) else Cell()


_Finder = Callable[[Published, Cells, str], tuple[Cell, str]]
_FINDERS: Mapping[str, _Finder] = {
    "error_rate": _one,
    "error_rate_sd": _one,
    "error_rate_difference": _one,
    "error_rate_range": _range,
    "clipscore_range": _range,
    "clipscore_lowest": _lowest,
    "clipscore_highest": _highest,
    "clipscore_difference": _change,
    "images": _one,
    "images_pool": _one,
}
