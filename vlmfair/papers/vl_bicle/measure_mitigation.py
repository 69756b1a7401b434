"""Measures drawn against real demonstrations: the gap on revealed answers (Table 4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from vlmfair.papers.vl_bicle.measure import interval, measure_panel
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place, two_sided_p
from vlmfair.papers.vl_bicle.panels import Floats, Panel, load_panels
from vlmfair.papers.vl_bicle.rates import Rates, Resamples
from vlmfair.papers.vl_bicle.tasks import ALL, GAP, GROUPS, REAL, TASKS

EXPERIMENT, TASK = "mitigation", "coco_bias"
GAP_SIZE, GAP_CHANGE = "revealed_gap_abs", "revealed_gap_change"
# Changes of what is not the gap, against photographs.
_CHANGES = {
    "clipscore_change": "clipscore",
    "reveal_change": "reveal_rate",
    "error_change": "error_rate",
}
_GAP, _ALL = GROUPS.index(GAP), GROUPS.index(ALL)
Cell = tuple[str, int]


@dataclass(frozen=True)
class _Measured:
    panel: Panel
    rates: Mapping[str, Rates]


def measure_mitigation(
    judgements: pa.Table, *, model: str, bootstraps: int = 1000, seed: int = 0
) -> pa.Table:
    """Return METRICS rows of one model's captions with drawn and with real demonstrations.

    `revealed_gap_abs` is the size of ER_m - ER_f over answers that reveal a gender, of its mean
    over runs; `revealed_gap_change` what a source of images adds to it, below 0 where it is less
    biased. All cells are resampled with the same drawings of queries, so that differences between
    sources are paired by image; Benjamini-Hochberg's correction is over the changes of the gap of
    this model. Cells without photographs to compare with, and tables without drawn images, give no
    rows. Raises ContractError as `load_panels`.
    """
    rows = BicleRows()
    queries, panels = load_panels(judgements)
    random = np.random.default_rng([seed, 100 + list(TASKS).index(TASK)])
    resamples = Resamples(queries, bootstraps, random)
    for (setting, shots), found in _compared(panels, resamples):
        task = TASKS[TASK]
        place = Place(EXPERIMENT, task.dataset, model, setting, shots, prompt=task.prompt)
        for source, measured in found.items():
            own = place.at(image_source=source)
            _add_gap(rows, own, measured)
            if source != REAL:
                _add_changes(rows, own, measured, found[REAL])
    rows.adjust(GAP_CHANGE, GAP)
    return rows.table()


def _compared(
    panels: list[Panel], resamples: Resamples
) -> Iterator[tuple[Cell, dict[str, _Measured]]]:
    """Yield the cells that have drawn images and photographs, photographs first."""
    cells: dict[Cell, dict[str, Panel]] = {}
    for panel in panels:
        if not panel.is_zero_shot:
            cells.setdefault((panel.setting, panel.shots), {})[panel.image_source] = panel
    for cell, sources in sorted(cells.items()):
        if REAL not in sources or len(sources) == 1:
            continue
        # Runs are compared with themselves: each has its own demonstrations.
        names = sorted(sources, key=lambda source: (source != REAL, source))
        yield (
            cell,
            {
                name: _Measured(sources[name], measure_panel(TASKS[TASK], sources[name], resamples))
                for name in names
            },
        )


def _gap_of(measured: _Measured) -> Floats:
    """Return the signed gap of revealed answers over runs, [1 + replicates]."""
    gap: Floats = measured.rates["revealed_error_rate"].over_runs[:, _GAP]
    return gap


def _least(measured: _Measured, metric: str, group: int) -> float:
    return float(measured.rates[metric].n[:, group].min())


def _add_gap(rows: BicleRows, place: Place, measured: _Measured) -> None:
    size = np.abs(_gap_of(measured))
    n = _least(measured, "revealed_error_rate", _GAP)
    rows.add(place, GAP_SIZE, GAP, size[0], n, ci=interval(size[1:]))


def _add_changes(rows: BicleRows, place: Place, drawn: _Measured, real: _Measured) -> None:
    change = np.abs(_gap_of(drawn)) - np.abs(_gap_of(real))
    n = min(_least(one, "revealed_error_rate", _GAP) for one in (drawn, real))
    _add(rows, place, GAP_CHANGE, GAP, change, n)
    for name, metric in _CHANGES.items():
        if metric in drawn.rates and metric in real.rates:
            means = [one.rates[metric].over_runs[:, _ALL] for one in (drawn, real)]
            n = min(_least(one, metric, _ALL) for one in (drawn, real))
            _add(rows, place, name, ALL, means[0] - means[1], n)


def _add(rows: BicleRows, place: Place, metric: str, group: str, change: Floats, n: float) -> None:
    ends, p = interval(change[1:]), two_sided_p(change[1:])
    rows.add(place, metric, group, change[0], n, ci=ends, p=p)
