"""Looks cells of tables and figures up in the metrics, and keeps what was looked up for the csv."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.measure_rows import PAPER
from vlmfair.papers.lvlm_fairness.study import Study
from vlmfair.render.numbers import format_number

_KEYS = ("experiment", "metric", "model", "setting", "prompt", "attribute", "group", "item")
_NUMBERS = ("value", "n", "ci_low", "ci_high", "p", "p_adjusted", "effect")
_COLUMNS = (
    *("model", "experiment", "prompt", "setting", "attribute", "group", "item", "metric"),
    *("value", "ci_low", "ci_high", "n", "p", "p_adjusted", "effect", "small_cell"),
)
SMALL, SIGNIFICANT = "†", "*"


@dataclass(frozen=True)
class Cell:
    """One metric; NaN stands for what was not measured or cannot be."""

    value: float = math.nan
    n: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    effect: float = math.nan

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return not math.isnan(self.value)


class Cells:
    """The metrics of a study by their keys; every cell that is looked up becomes a row of `data`.

    Raises ContractError when there are no metrics of this paper at all.
    """

    def __init__(self, metrics: pd.DataFrame, study: Study) -> None:
        own = metrics[metrics["paper"] == PAPER]
        if own.empty:
            raise ContractError(
                "the metrics hold no row of lvlm_fairness. Run the step that measures it again."
            )
        keys = zip(*(own[name].astype(str) for name in _KEYS), strict=True)
        numbers = zip(*(own[name].astype(float) for name in _NUMBERS), strict=True)
        self._cells = {key: Cell(*row) for key, row in zip(keys, numbers, strict=True)}
        self._measured = {(key[0], key[1], key[2]) for key in self._cells}
        self.study = study
        self._shown: list[dict[str, object]] = []
        # By how much each shown recall changes with the other handling of invalid answers.
        self.handled_otherwise: list[float] = []

    def require(self, models: Iterable[str], experiment: str, metric: str) -> None:
        """Raise ContractError on a model without a metric: its absence would not be seen."""
        for model in models:
            if (experiment, metric, model) not in self._measured:
                raise ContractError(
                    f"the metrics hold no {experiment}/{metric} of the model {model}. "
                    f"Measure it and collect again."
                )

    def items(self, experiment: str, metric: str) -> list[str]:
        """Return the items that a metric has, in the order of the metrics."""
        found = (key[7] for key in self._cells if key[:2] == (experiment, metric))
        return list(dict.fromkeys(found))

    def look(
        self,
        metric: str,
        model: str,
        prompt: str,
        group: str = "all",
        item: str = "all",
        *,
        attribute: str = "all",
        experiment: str = "facet",
        setting: str | None = None,
    ) -> Cell:
        """Return one cell, empty when there is no such row; nothing is kept for the csv."""
        used = self.study.setting(model) if setting is None else setting
        key = (experiment, metric, model, used, prompt, attribute, group, item)
        return self._cells.get(key, Cell())

    def show(
        self,
        metric: str,
        model: str,
        prompt: str,
        group: str = "all",
        item: str = "all",
        *,
        attribute: str = "all",
        experiment: str = "facet",
        setting: str | None = None,
    ) -> Cell:
        """Return one cell as `look` does, and keep it as a row of the csv."""
        used = self.study.setting(model) if setting is None else setting
        keys = {"attribute": attribute, "experiment": experiment}
        cell = self.look(metric, model, prompt, group, item, setting=used, **keys)
        self._shown.append(
            {
                **{"model": self.study.title(model), "experiment": experiment, "prompt": prompt},
                **{"setting": used, "attribute": attribute, "group": group, "item": item},
                **{name: getattr(cell, name) for name in _NUMBERS},
                **{"metric": metric, "small_cell": self.is_small(cell)},
            }
        )
        if metric == "recall":
            other = self.study.setting(model, invalid=self.study.other_handling)
            again = self.look(metric, model, prompt, group, item, setting=other, **keys)
            self.handled_otherwise.append(again.value - cell.value)
        return cell

    def is_small(self, cell: Cell) -> bool:
        """Return whether so few images stand behind a cell that it is flagged."""
        return cell.n < self.study.small_cell

    def data(self) -> pd.DataFrame:
        """Return the shown cells, one a row, with everything that is known about them."""
        return pd.DataFrame(self._shown, columns=list(_COLUMNS))

    def text(self, cell: Cell, digits: int = 4) -> str:
        """Return a cell as tables write it: `*` if significant, `†` if it stands on few images."""
        text = format_number(cell.value, digits)
        if cell.known and cell.p_adjusted <= self.study.alpha:
            text += SIGNIFICANT
        return f"{text} {SMALL}" if cell.known and self.is_small(cell) else text


def any_of(rows: Sequence[Sequence[str]], sign: str) -> bool:
    """Return whether a sign stands behind a number in any cell, so that a note must explain it."""
    return any(text.endswith(sign) or f"{sign} " in text for row in rows for text in row[1:])
