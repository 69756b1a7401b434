"""Collects the metric rows of this paper, which have shots and runs beside the text columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from vlmfair.contracts import METRICS, conform
from vlmfair.papers.vl_bicle.tasks import ALL, PAPER
from vlmfair.stats.multiplicity import benjamini_hochberg

# `run` of a number over all runs.
OVER_RUNS = 0
_NUMBERS = ("value", "n", "ci_low", "ci_high", "p", "p_adjusted", "effect")


@dataclass(frozen=True)
class Place:
    """The keys of metric rows but for group and metric."""

    experiment: str
    dataset: str = ""
    model: str = ALL
    setting: str = ""
    shots: int = 0
    run: int = OVER_RUNS
    image_source: str = ""
    prompt: str = ""
    item: str = ALL

    def at(self, **changes: Any) -> Place:
        """Return the place with other keys."""
        return replace(self, **changes)


class BicleRows:
    """Metric rows in the order in which they are added."""

    def __init__(self) -> None:
        self._rows: list[dict[str, Any]] = []

    def add(
        self,
        place: Place,
        metric: str,
        group: str,
        value: float | None,
        n: float,
        *,
        ci: tuple[float, float] | None = None,
        p: float | None = None,
        p_adjusted: float | None = None,
    ) -> dict[str, Any]:
        """Add a row and return it; NaN and None mean that there is no such number."""
        low, high = ci if ci is not None else (None, None)
        numbers = (value, n, low, high, p, p_adjusted, None)
        row: dict[str, Any] = {
            **{name: getattr(place, name) for name in place.__dataclass_fields__},
            "paper": PAPER,
            "attribute": "gender",
            "group": group,
            "metric": metric,
            **{name: _number(number) for name, number in zip(_NUMBERS, numbers, strict=True)},
        }
        self._rows.append(row)
        return row

    def rows(self, metric: str) -> list[dict[str, Any]]:
        """Return the rows of a metric, which may be changed."""
        return [row for row in self._rows if row["metric"] == metric]

    def adjust(self, metric: str, group: str) -> None:
        """Correct the p-values of one metric and group together (Benjamini-Hochberg)."""
        found = [row for row in self.rows(metric) if row["group"] == group]
        p = np.array([np.nan if row["p"] is None else row["p"] for row in found], np.float64)
        for row, adjusted in zip(found, benjamini_hochberg(p), strict=True):
            row["p_adjusted"] = _number(float(adjusted))

    def table(self) -> pa.Table:
        """Return the rows in the METRICS contract."""
        return conform(pa.Table.from_pylist(self._rows, schema=_schema()), METRICS)


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else float(value)


def _schema() -> pa.Schema:
    return pa.schema(
        [
            # Numbers come as floats, and n becomes whole in `conform`.
            pa.field(field.name, pa.float64() if field.name == "n" else field.type)
            for field in METRICS.schema
        ]
    )


def two_sided_p(replicates: Sequence[float] | Any) -> float:
    """Return the two-sided p of a bootstrapped difference: how often it falls on either side of 0.

    min(1, 2 (1 + the smaller number) / (1 + replicates)); differences of 0 lie on both sides. NaN
    without replicates.
    """
    known = [value for value in replicates if not math.isnan(value)]
    if not known:
        return math.nan
    below, above = (sum(v <= 0 for v in known), sum(v >= 0 for v in known))
    return min(1.0, 2 * (1 + min(below, above)) / (1 + len(known)))
