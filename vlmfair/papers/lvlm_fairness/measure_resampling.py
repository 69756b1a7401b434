"""Disparities in balanced samples as metric rows (Table 12, Figure 3e)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlmfair.papers.lvlm_fairness.measure_recall import interval
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name, setting_of
from vlmfair.papers.lvlm_fairness.panels import Panel, Population
from vlmfair.papers.lvlm_fairness.resample import bootstrap_disparities, resample_disparities
from vlmfair.stats.metric_rows import MetricRows


def add_resampling(
    rows: MetricRows,
    population: Population,
    panels: Sequence[Panel],
    sizes: Sequence[int],
    draws: int,
    bootstraps: int,
    seed: int,
    small_cell: int,
) -> None:
    """Add the raw disparity of each FACET panel, its mean in balanced samples, and their error.

    Disparities have bootstrap intervals over the images and a flag where they rest on fewer than
    `small_cell` images of a gender. Invalid answers count as wrong. A failed answer takes its image
    out for all panels, so that all have the same samples.
    """
    asked = [panel for panel in panels if panel.experiment == "facet"]
    if not asked:
        return
    gender = population.groupings["gender"]
    answered = np.all([panel.answered for panel in asked], axis=0)
    first, second = ((gender.codes == number) & answered for number in (0, 1))
    right = np.stack([panel.right for panel in asked])
    found = resample_disparities(right, first, second, sizes=sizes, draws=draws, seed=seed)
    replicates = bootstrap_disparities(
        right, first, second, sizes=sizes, draws=draws, replicates=bootstraps, seed=seed
    )
    values = np.concatenate([found.raw[:, None], found.mean], axis=1)
    ends = interval(replicates)
    smaller = float(min(first.sum(), second.sum()))
    n = np.minimum([smaller, *found.sizes], smaller)
    axes = {"item": ["raw", *(str(size) for size in found.sizes)]}
    for number, panel in enumerate(asked):
        place = rows.at(
            experiment="resampling",
            dataset=population.dataset,
            prompt=panel.prompt,
            setting=setting_of(panel.judge),
            attribute="gender",
            group=pair_name(PAIRS["gender"][0]),
        )
        ci = None if ends is None else (ends[0][number], ends[1][number])
        place.add("disparity", axes, value=values[number], n=n, ci=ci)
        place.add("small_cell", axes, value=(n < small_cell).astype(float), n=n)
        sampled = {"item": axes["item"][1:]}
        place.add("standard_error", sampled, value=found.standard_error[number], n=n[1:])
