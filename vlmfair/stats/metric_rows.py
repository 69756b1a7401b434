"""Turns arrays of numbers into rows of the metrics table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from vlmfair.contracts import METRICS, conform

_NUMBERS = ("value", "n", "ci_low", "ci_high", "p", "p_adjusted", "effect")
_TEXTS = tuple(name for name in METRICS.key if name not in ("shots", "run"))


class MetricRows:
    """Collects metric rows; text columns that do not apply are empty, never null.

    `at` gives a place with more text columns filled, whose rows land in the same table.
    """

    def __init__(self, **texts: str) -> None:
        """Start without rows; `texts` stand in the text columns of every row."""
        self._texts = texts
        self._columns: dict[str, list[Any]] = {name: [] for name in (*_TEXTS, *_NUMBERS)}

    def at(self, **texts: str) -> MetricRows:
        """Return the same collection with `texts` in the text columns of what is added through it.

        Raises KeyError on a name that is no text column of METRICS.
        """
        unknown = sorted(set(texts) - set(_TEXTS))
        if unknown:
            raise KeyError(f"METRICS has no text columns {', '.join(unknown)}")
        place = MetricRows(**{**self._texts, **texts})
        place._columns = self._columns
        return place

    def add(
        self,
        metric: str,
        axes: Mapping[str, Sequence[str]] | None = None,
        *,
        value: ArrayLike,
        n: ArrayLike,
        ci: tuple[ArrayLike, ArrayLike] | None = None,
        p: ArrayLike | None = None,
        p_adjusted: ArrayLike | None = None,
        effect: ArrayLike | None = None,
    ) -> None:
        """Add one row per entry of `value`, whose axes are named by columns and their labels.

        `axes={"group": [...], "item": [...]}` means value[group, item]; the other numbers have
        its shape or broadcast to it.
        """
        axes = axes or {}
        shape = tuple(len(labels) for labels in axes.values())
        for name in _TEXTS:
            spread = np.array({**self._texts, "metric": metric}.get(name, ""), dtype=object)
            if name in axes:
                place = list(axes).index(name)
                sides = [-1 if at == place else 1 for at in range(len(shape))]
                spread = np.array(list(axes[name]), dtype=object).reshape(sides)
            self._columns[name].append(np.broadcast_to(spread, shape).ravel())
        low, high = ci if ci is not None else (None, None)
        for name, given in zip(_NUMBERS, (value, n, low, high, p, p_adjusted, effect)):
            filled = np.asarray(np.nan if given is None else given, dtype=np.float64)
            self._columns[name].append(np.broadcast_to(filled, shape).ravel())

    def table(self) -> pa.Table:
        """Return the rows in the METRICS contract; numbers that do not exist are null."""
        columns: dict[str, pa.Array] = {}
        for name, parts in self._columns.items():
            kind = pa.string() if name in _TEXTS else pa.float64()
            columns[name] = pa.array(np.concatenate(parts), kind, from_pandas=True)
        zeros = np.zeros(len(columns["value"]), dtype=np.int32)
        columns["shots"] = columns["run"] = pa.array(zeros)
        return conform(pa.table(columns), METRICS)
