"""Recall, group disparity and the paper's F1 as metric rows (section 3.5, A.6)."""

from __future__ import annotations

import warnings

import numpy as np

from vlmfair.papers.lvlm_fairness.measure_rows import PAIRS, pair_name, setting_of
from vlmfair.papers.lvlm_fairness.panels import Population
from vlmfair.papers.lvlm_fairness.tallies import Tally
from vlmfair.stats.bootstrap import percentile_interval
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.moments import Floats
from vlmfair.stats.multiplicity import holm
from vlmfair.stats.proportions import cohens_h, fisher_p, wilson_interval

ALL = "all"


def place_of(rows: MetricRows, population: Population, tally: Tally) -> MetricRows:
    """Return where the rows of a tally belong."""
    return rows.at(
        experiment=tally.panel.experiment,
        dataset=population.dataset,
        prompt=tally.panel.prompt,
        setting=setting_of(tally.panel.judge, tally.invalid),
        attribute=tally.grouping.attribute,
    )


def item_names(population: Population) -> list[str]:
    """Return the names of a tally's items, the last one being all of them."""
    return [name for name in population.items if name != ALL] + [ALL]


def by_item(values: Floats, population: Population) -> Floats:
    """Return values whose last axis is `item_names`: without the item that is all by itself."""
    return values[..., 1:] if population.items == (ALL,) else values


def interval(replicates: Floats) -> tuple[Floats, Floats] | None:
    """Return the percentile interval over the first axis; None without replicates.

    A group that is empty in every replicate has NaN at both ends.
    """
    if not len(replicates):
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        return percentile_interval(replicates)


def add_recall(rows: MetricRows, population: Population, tally: Tally) -> None:
    """Add each group's recall with its Wilson interval; groups without images have no row."""
    right = by_item(tally.right[0], population)
    n = by_item(tally.n[0], population)
    items, place = item_names(population), place_of(rows, population, tally)
    for number, group in enumerate(tally.grouping.groups):
        found = np.flatnonzero(n[number] > 0)
        if len(found):
            place.add(
                "recall",
                {"group": [group], "item": [items[item] for item in found]},
                value=(right / np.maximum(n, 1))[number, found][None],
                n=n[number, found][None],
                ci=_row(wilson_interval(right[number, found], n[number, found])),
            )
    if tally.grouping.attribute == ALL:
        low, high = wilson_interval(right[0, -1:], n[0, -1:])
        value = right[0, -1] / n[0, -1] if n[0, -1] else np.nan
        place.at(group=ALL, item=ALL).add("accuracy", value=value, n=n[0, -1], ci=(low[0], high[0]))


def _row(ends: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    return ends[0][None], ends[1][None]


def add_disparities(
    rows: MetricRows, population: Population, tally: Tally, small_cell: int
) -> None:
    """Add recall of one group minus another, per class and over all, with everything to doubt it.

    Bootstrap interval, Fisher's exact test with Holm's correction over the classes, Cohen's h, and
    a flag where the smaller group has fewer than `small_cell` images. `n` is the smaller group's.
    """
    recall = by_item(tally.recall, population)
    right, n = by_item(tally.right[0], population), by_item(tally.n[0], population)
    axes = {"item": item_names(population)}
    for pair in PAIRS.get(tally.grouping.attribute, ()):
        first, second = (tally.grouping.groups.index(group) for group in pair)
        difference = recall[:, first] - recall[:, second]
        smaller = np.minimum(n[first], n[second])
        p = fisher_p(right[first], n[first], right[second], n[second])
        place = place_of(rows, population, tally).at(group=pair_name(pair))
        place.add(
            "disparity",
            axes,
            value=difference[0],
            n=smaller,
            ci=interval(difference[1:]),
            p=p,
            p_adjusted=np.concatenate([holm(p[:-1]), p[-1:]]),
            effect=cohens_h(recall[0, first], recall[0, second]),
        )
        place.add("small_cell", axes, value=(smaller < small_cell).astype(float), n=smaller)


def add_f1_paper(rows: MetricRows, population: Population, tally: Tally, small_cell: int) -> None:
    """Add the F1 that the paper's Table 13 has, and its differences; it is no class F1.

    Its precision is the group's share of all right answers, so that group sizes dominate it. A
    difference has a flag where the smaller group has fewer than `small_cell` images.
    """
    f1 = by_item(tally.f1_paper, population)
    n = by_item(tally.n[0], population)
    items, place = item_names(population), place_of(rows, population, tally)
    ends = interval(f1[1:])
    for number, group in enumerate(tally.grouping.groups):
        found = np.flatnonzero(n[number] > 0)
        if len(found):
            place.add(
                "f1_paper",
                {"group": [group], "item": [items[item] for item in found]},
                value=f1[0, number, found][None],
                n=n[number, found][None],
                ci=None if ends is None else _row((ends[0][number, found], ends[1][number, found])),
            )
    for pair in PAIRS.get(tally.grouping.attribute, ()):
        first, second = (tally.grouping.groups.index(group) for group in pair)
        difference = f1[:, first, -1] - f1[:, second, -1]
        here, smaller = place.at(group=pair_name(pair), item=ALL), min(n[first, -1], n[second, -1])
        here.add("f1_paper_disparity", value=difference[0], n=smaller, ci=interval(difference[1:]))
        here.add("f1_paper_small_cell", value=float(smaller < small_cell), n=smaller)
