"""What a rationale changes: improvement (Table 4) and transitions (Table 5) as metric rows."""

from __future__ import annotations

import numpy as np

from vlmfair.papers.lvlm_fairness.measure_rates import panel_place
from vlmfair.papers.lvlm_fairness.measure_recall import ALL, interval, place_of
from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name
from vlmfair.papers.lvlm_fairness.panels import ANSWERS, Grouping, Panel, Population
from vlmfair.papers.lvlm_fairness.tallies import Tally
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.moments import Floats


def improvement_percent(before: Floats, after: Floats) -> Floats:
    """Return 100 (after - before) / before; NaN where it was 0."""
    before, after = np.asarray(before, float), np.asarray(after, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        percent = 100 * (after - before) / before
    return np.where(before == 0, np.nan, percent)


def add_improvement(rows: MetricRows, population: Population, before: Tally, after: Tally) -> None:
    """Add the change of each group's recall and of each disparity's size in per cent.

    Of a disparity the absolute value counts, so that less is better whichever group it favours;
    its change in absolute numbers is added too. Intervals are over the same resamples, those of
    per cent over the ones with a value before; there is none where the sample itself has none.
    """
    place = place_of(rows, population, after).at(item=ALL)
    first, last = before.recall[:, :, -1], after.recall[:, :, -1]
    smallest = np.minimum(before.n[0, :, -1], after.n[0, :, -1])
    for number, group in enumerate(after.grouping.groups):
        if smallest[number]:
            here = place.at(group=group)
            _add_percent(here, first[:, number], last[:, number], smallest[number])
    for pair in PAIRS.get(after.grouping.attribute, ()):
        one, two = (after.grouping.groups.index(group) for group in pair)
        was = np.abs(first[:, one] - first[:, two])
        now = np.abs(last[:, one] - last[:, two])
        here, n = place.at(group=pair_name(pair)), min(smallest[one], smallest[two])
        _add_percent(here, was, now, n)
        change = now - was
        here.add("disparity_change", value=change[0], n=n, ci=interval(change[1:]))


def _add_percent(place: MetricRows, before: Floats, after: Floats, n: float) -> None:
    percent = improvement_percent(before, after)
    ends = None if np.isnan(percent[0]) else interval(percent[1:])
    place.add("improvement", value=percent[0], n=n, ci=ends)


def add_transitions(
    rows: MetricRows, population: Population, grouping: Grouping, before: Panel, after: Panel
) -> None:
    """Add how many answers went from one choice to another; n is how many were the first.

    Only images that were answered both times count.
    """
    if before.choices is None or after.choices is None:
        return
    place = panel_place(rows, population, after).at(attribute=grouping.attribute)
    for number, group in enumerate(grouping.groups):
        both = before.answered & after.answered & (grouping.codes == number)
        if both.any():
            table = transition_table(before.choices[both], after.choices[both])
            items = [f"{was}>{now}" for was in ANSWERS for now in ANSWERS]
            place.at(group=group).add(
                "transitions",
                {"item": items},
                value=table.ravel(),
                n=np.repeat(table.sum(axis=1), len(ANSWERS)),
            )


def transition_table(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return counts [before, after] over `ANSWERS` from two arrays of places in it."""
    size = len(ANSWERS)
    return np.bincount(before * size + after, minlength=size * size).reshape(size, size)
