"""Looks cells of tables up in the metrics, and keeps what was looked up for the csv."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.measure_rows import OVER_RUNS
from vlmfair.papers.vl_bicle.study import Study
from vlmfair.papers.vl_bicle.tasks import ALL, GAP, PAPER, REAL, VQA, ZERO_SHOT, Task
from vlmfair.render.numbers import MISSING, format_interval, format_number, format_signed

# Why there is no number.
NOT_ASKED, NO_NUMBER, UNKNOWN = "not asked", "no answers", "not measured"
SIGNIFICANT = "*"
_KEYS = (
    *("metric", "model", "dataset", "prompt", "setting", "shots", "image_source", "group"),
    *("item", "experiment"),
)
_NUMBERS = ("value", "n", "ci_low", "ci_high", "p", "p_adjusted")
_SHOWN = (
    *("model", "dataset", "prompt", "image_source", "setting", "shots", "item", "metric", "group"),
    *("value", "sd", "runs", "ci_low", "ci_high", "n", "p", "p_adjusted", "asked"),
)


@dataclass(frozen=True)
class Place:
    """Where a number is: one task and model after the demonstrations of one setting."""

    task: Task
    model: str
    setting: str = ZERO_SHOT
    shots: int = 0
    source: str = REAL

    def at(self, **changes: Any) -> Place:
        """Return the place with other keys."""
        return replace(self, **changes)

    def after(self, setting: str, shots: int, source: str = REAL) -> Place:
        """Return the place after so many demonstrations; 0 are zero-shot in every setting."""
        if not shots:
            return self.at(setting=ZERO_SHOT, shots=0, source=REAL)
        return self.at(setting=setting, shots=shots, source=source)


@dataclass(frozen=True)
class Cell:
    """One metric over runs; NaN stands for what was not measured or cannot be.

    `skipped` is 0, or the number of images that the prompts of a cell would have held which was
    never asked; `measured` says that the metrics have a row of it.
    """

    value: float = math.nan
    n: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    sd: float = math.nan
    runs: float = math.nan
    skipped: int = 0
    measured: bool = False

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)

    @property
    def status(self) -> str:
        """Why there is no number; empty where there is one."""
        if self.known:
            return ""
        if self.skipped:
            return NOT_ASKED
        return NO_NUMBER if self.measured else UNKNOWN


class Cells:
    """The numbers of a study by their keys; every cell that is looked up becomes a row of `data`.

    Raises ContractError when there are no metrics of this paper at all.
    """

    def __init__(self, metrics: pd.DataFrame, study: Study) -> None:
        own = metrics[metrics["paper"] == PAPER] if len(metrics) else metrics
        if own.empty:
            raise ContractError(
                "the metrics hold no row of vl_bicle. Run the step that measures it again."
            )
        over_runs = own[own["run"] == OVER_RUNS]
        keys = zip(*(over_runs[name].astype(str) for name in _KEYS), strict=True)
        numbers = zip(*(over_runs[name].astype(float) for name in _NUMBERS), strict=True)
        self._cells = {key: _measured(*row) for key, row in zip(keys, numbers, strict=True)}
        self._skipped = _skipped_cells(own)
        self._measured = {key[:4] for key in self._cells}
        self.study = study
        self._shown: list[dict[str, object]] = []
        self._skipped_shown: set[int] = set()

    def require(self, models: Iterable[str], task: Task, metric: str = "error_rate") -> None:
        """Raise ContractError on a model without a metric of a task that it was asked."""
        for model in models:
            key = (metric, model, task.dataset, task.prompt)
            if key not in self._measured and not self._is_skipped(model, task):
                raise ContractError(
                    f"the metrics hold no {task.experiment}/{metric} of {task.name} and the model "
                    f"{model}. Measure it and collect again."
                )

    def _is_skipped(self, model: str, task: Task) -> bool:
        return any(key[:3] == (model, task.dataset, task.prompt) for key in self._skipped)

    def look(
        self, metric: str, place: Place, group: str = GAP, *, experiment: str | None = None
    ) -> Cell:
        """Return one cell, empty when there is no such row; nothing is kept for the csv."""
        task = place.task
        item = self.study.judge if task.experiment == VQA else ALL
        where = (place.model, task.dataset, task.prompt, place.setting, str(place.shots))
        rest = (place.source, group, item, experiment or task.experiment)
        found = self._cells.get((metric, *where, *rest), Cell())
        spread = self._cells.get((f"{metric}_sd", *where, *rest), Cell())
        skipped = 0 if found.known else self._skipped.get((*where, place.source), 0)
        return replace(found, sd=spread.value, runs=spread.n, skipped=skipped)

    def show(
        self, metric: str, place: Place, group: str = GAP, *, experiment: str | None = None
    ) -> Cell:
        """Return one cell as `look` does, and keep it as a row of the csv."""
        cell = self.look(metric, place, group, experiment=experiment)
        task = place.task
        if cell.skipped:
            self._skipped_shown.add(cell.skipped)
        self._shown.append(
            {
                **{"model": self.study.title(place.model), "dataset": task.dataset},
                **{"prompt": task.prompt, "image_source": place.source},
                **{"setting": place.setting, "shots": place.shots, "metric": metric},
                **{"item": self.study.judge if task.experiment == VQA else ALL, "group": group},
                **{name: getattr(cell, name) for name in (*_NUMBERS, "sd", "runs")},
                "asked": not cell.skipped,
            }
        )
        return cell

    def skipped_images(self) -> set[int]:
        """Return how many images the prompts of the shown cells that were not asked would hold."""
        return self._skipped_shown

    def data(self) -> pd.DataFrame:
        """Return the shown cells, each once, one a row, with everything that is known of them."""
        return pd.DataFrame(self._shown, columns=list(_SHOWN)).drop_duplicates(ignore_index=True)

    def starred(self, cell: Cell) -> str:
        """Return the sign of a shift that differs from 0 after correction, else nothing."""
        return SIGNIFICANT if cell.known and cell.p_adjusted <= self.study.alpha else ""


def _measured(
    value: float, n: float, ci_low: float, ci_high: float, p: float, p_adjusted: float
) -> Cell:
    """Return the cell of a row, whose columns are `_NUMBERS`."""
    return Cell(value, n, ci_low, ci_high, p, p_adjusted, measured=True)


def _skipped_cells(own: pd.DataFrame) -> dict[tuple[str, ...], int]:
    """Return how many images the prompts of each cell would hold that was never asked."""
    rows = own[own["metric"] == "skipped"]
    names = ("model", "dataset", "prompt", "setting", "shots", "image_source")
    keys = zip(*(rows[name].astype(str) for name in names), strict=True)
    return dict(zip(keys, rows["value"].astype(int), strict=True))


def spread_text(cell: Cell, digits: int = 2) -> str:
    """Return a number as `2.25 ± 1.03`, without a deviation where there is one run."""
    if cell.skipped:
        return NOT_ASKED
    text = format_number(cell.value, digits)
    if not cell.known or math.isnan(cell.sd):
        return text
    return f"{text} ± {format_number(cell.sd, digits)}"


def interval_text(cell: Cell, digits: int = 1) -> str:
    """Return the interval of a number, a dash where there is none."""
    return format_interval(cell.ci_low, cell.ci_high, digits) if cell.known else MISSING


def signed_text(cell: Cell, digits: int = 2) -> str:
    """Return a change with its sign."""
    return NOT_ASKED if cell.skipped else format_signed(cell.value, digits)
