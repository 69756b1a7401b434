"""Disparities in balanced samples as metric rows (Table 12, Figure 3e)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name, setting_of
from vlmfair.papers.lvlm_fairness.panels import Panel, Population
from vlmfair.papers.lvlm_fairness.resample import BalancedDisparities, resample_disparities
from vlmfair.stats.metric_rows import MetricRows


def add_resampling(
    rows: MetricRows,
    population: Population,
    panels: Sequence[Panel],
    sizes: Sequence[int],
    draws: int,
    seed: int,
) -> None:
    """Add the raw disparity of each FACET panel, its mean in balanced samples, and their error.

    Invalid answers count as wrong. A failed answer takes its image out for all panels, so that all
    have the same samples.
    """
    asked = [panel for panel in panels if panel.experiment == "facet"]
    if not asked:
        return
    gender = population.groupings["gender"]
    answered = np.all([panel.answered for panel in asked], axis=0)
    first, second = ((gender.codes == number) & answered for number in (0, 1))
    right = np.stack([panel.right for panel in asked])
    found = resample_disparities(right, first, second, sizes=sizes, draws=draws, seed=seed)
    smaller = float(min(first.sum(), second.sum()))
    for number, panel in enumerate(asked):
        place = rows.at(
            experiment="resampling",
            dataset=population.dataset,
            prompt=panel.prompt,
            setting=setting_of(panel.judge),
            attribute="gender",
            group=pair_name(PAIRS["gender"][0]),
        )
        _add_sizes(place, found, number, smaller)


def _add_sizes(place: MetricRows, found: BalancedDisparities, number: int, smaller: float) -> None:
    place.at(item="raw").add("disparity", value=found.raw[number], n=smaller)
    n = np.minimum(found.sizes, smaller)
    axes = {"item": [str(size) for size in found.sizes]}
    place.add("disparity", axes, value=found.mean[number], n=n)
    draws = found.drawn.shape[2]
    place.add("standard_error", axes, value=found.standard_error[number], n=draws)
