"""Proper class F1 and macro F1 of direct prompts, beside the paper's F1, as metric rows."""

from __future__ import annotations

import numpy as np

from vlmfair.papers.lvlm_fairness.measure_recall import ALL, interval, place_of
from vlmfair.papers.lvlm_fairness.measure_rows import GROUPS
from vlmfair.papers.lvlm_fairness.panels import Population
from vlmfair.papers.lvlm_fairness.tallies import Resamples, Tally
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.moments import Codes, Floats


def add_label_f1(
    rows: MetricRows, population: Population, tally: Tally, resamples: Resamples
) -> None:
    """Add `f1_macro` of each group, and over all images `f1_class` of each class.

    F1 of a class is 2 TP / (images of it + answers that name it), within a group. Macro F1 is its
    mean over the right answers that occur in the group. A single choice asks about the right class
    only and has no wrong answers to another: it gets neither.
    """
    panel = tally.panel
    # Where the right answer is the group itself, a group has a single class.
    if panel.choices is not None or panel.prompt == tally.grouping.attribute:
        return
    f1, n = _class_f1(tally, resamples)
    with np.errstate(invalid="ignore"):
        present = np.isfinite(f1)
        counted = present.sum(axis=2)
        macro = np.where(present, f1, 0.0).sum(axis=2) / np.where(counted > 0, counted, np.nan)
    place = place_of(rows, population, tally)
    ends = interval(macro[1:])
    for number, group in enumerate(tally.grouping.groups):
        if n[number].sum():
            place.at(group=group, item=ALL).add(
                "f1_macro",
                value=macro[0, number],
                n=n[number].sum(),
                ci=None if ends is None else (ends[0][number], ends[1][number]),
            )
    if tally.grouping.attribute == ALL:
        _add_classes(rows, population, tally, f1[:, 0], n[0])


def _class_f1(tally: Tally, resamples: Resamples) -> tuple[Floats, Floats]:
    """Return F1 [1 + replicates, groups, labels], NaN for absent labels, and numbers of images."""
    panel, grouping = tally.panel, tally.grouping
    included = panel.included(tally.invalid)
    groups, labels = len(grouping.groups), len(panel.labels)

    def count(places: Codes) -> Floats:
        known = (places >= 0) & (grouping.codes >= 0)
        cells = np.where(known, grouping.codes * labels + places, -1)
        return resamples.count(cells, groups * labels, included).reshape(-1, groups, labels)

    n, named = count(panel.truth), count(panel.predicted)
    both = count(np.where(panel.right, panel.truth, -1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 0, 2 * both / (n + named), np.nan), n[0]


def _add_classes(
    rows: MetricRows, population: Population, tally: Tally, f1: Floats, n: Floats
) -> None:
    place, labels = place_of(rows, population, tally), tally.panel.labels
    ends = interval(f1[1:])
    if tally.panel.prompt in GROUPS:
        names = {group.lower(): group for group in GROUPS[tally.panel.prompt]}
        place = place.at(attribute=tally.panel.prompt, item=ALL)
        axes = {"group": [names.get(label, label) for label in labels]}
    else:
        place, axes = place.at(group=ALL), {"item": list(labels)}
    place.add("f1_class", axes, value=f1[0], n=n, ci=ends)
