"""Looks the numbers of figures up in the metrics, and keeps what was looked up for the csv."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.cells import NO_NUMBER, NOT_ASKED, UNKNOWN, Cell, Cells, Place
from vlmfair.papers.vl_bicle.study import DATASET_NAMES, Study
from vlmfair.papers.vl_bicle.tasks import ALL, GENDERS, REAL, VQA, ZERO_SHOT, Task
from vlmfair.render.numbers import MISSING, format_count

_NUMBERS = ("value", "ci_low", "ci_high", "n", "p", "p_adjusted")
_COLUMNS = (
    *("model", "dataset", "prompt", "setting", "shots", "image_source", "judge", "group"),
    *("metric", *_NUMBERS, "status"),
)
MEANINGS = {
    NOT_ASKED: "not asked, since the prompt holds more images than the model takes",
    NO_NUMBER: "no answers that count",
    UNKNOWN: "not measured",
}


class FigureCells:
    """The numbers over runs of a study; every one that is looked up becomes a row of `data`.

    Raises ContractError when there are no metrics of this paper at all.
    """

    def __init__(self, metrics: pd.DataFrame, study: Study) -> None:
        self.study = study
        self._cells = Cells(metrics, study)
        self._shown: list[dict[str, object]] = []

    def require(
        self,
        models: Iterable[str],
        task: Task,
        metric: str,
        settings: Iterable[str],
        sources: Iterable[str] = (REAL,),
    ) -> None:
        """Raise ContractError on a cell of a task that is neither measured nor skipped.

        Its absence would look like a model that was never asked.
        """
        shots = [k for k in self.study.shots if k]
        cells = [(ZERO_SHOT, 0, REAL), *itertools.product(settings, shots, sources)]
        for model, (setting, k, source) in itertools.product(models, cells):
            if self.look(metric, task, model, setting, k, ALL, source).status == UNKNOWN:
                raise ContractError(
                    f"the metrics hold no {metric} of the model {model} on "
                    f"{DATASET_NAMES[task.dataset]} ({task.prompt}, {setting}, {k} shots, images: "
                    f"{source}). Measure it and collect again."
                )

    def look(
        self,
        metric: str,
        task: Task,
        model: str,
        setting: str,
        shots: int,
        group: str,
        image_source: str = REAL,
    ) -> Cell:
        """Return one number without keeping it for the csv; zero shots have photographs only."""
        place = Place(task, model).after(setting, shots, image_source)
        return self._cells.look(metric, place, group)

    def show(
        self,
        metric: str,
        task: Task,
        model: str,
        setting: str,
        shots: int,
        group: str,
        image_source: str = REAL,
    ) -> Cell:
        """Return one number as `look` does, and keep it as a row of the csv."""
        cell = self.look(metric, task, model, setting, shots, group, image_source)
        source = REAL if setting == ZERO_SHOT else image_source
        self._shown.append(
            {
                **{"model": self.study.title(model), "dataset": task.dataset},
                **{"prompt": task.prompt, "setting": setting, "shots": shots},
                **{"image_source": source, "group": group, "metric": metric},
                "judge": self.study.judge if task.experiment == VQA else "",
                **{name: getattr(cell, name) for name in _NUMBERS},
                "status": cell.status,
            }
        )
        return cell

    def queries(self, task: Task, models: Iterable[str]) -> str:
        """Return how many queries of men and of women were answered: `69 + 69`, or ranges."""
        sizes = []
        for gender in GENDERS:
            found = [
                self.look("error_rate", task, model, ZERO_SHOT, 0, gender).n for model in models
            ]
            sizes.append(count_range(found))
        return " + ".join(sizes)

    def data(self) -> pd.DataFrame:
        """Return what was shown, one number a row and each once."""
        return pd.DataFrame(self._shown, columns=list(_COLUMNS)).drop_duplicates(ignore_index=True)


def count_range(counts: Iterable[float]) -> str:
    """Return numbers of images as `138`, or `134–138` where models differ."""
    known = sorted(count for count in counts if count == count)
    if not known:
        return MISSING
    low, high = format_count(known[0]), format_count(known[-1])
    return low if low == high else f"{low}–{high}"
