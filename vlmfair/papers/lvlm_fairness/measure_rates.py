"""How often answers are missing: unparsed, refused and failed ones, and the choices, as rows."""

from __future__ import annotations

import numpy as np

from vlmfair.papers.lvlm_fairness.measure_recall import ALL
from vlmfair.papers.lvlm_fairness.measure_rows import setting_of
from vlmfair.papers.lvlm_fairness.panels import ANSWERS, Grouping, Panel, Population
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.proportions import wilson_interval


def panel_place(rows: MetricRows, population: Population, panel: Panel) -> MetricRows:
    """Return where rows about all answers of a panel belong."""
    return rows.at(
        experiment=panel.experiment,
        dataset=population.dataset,
        prompt=panel.prompt,
        setting=setting_of(panel.judge),
        item=ALL,
    )


def add_rates(rows: MetricRows, population: Population, grouping: Grouping, panel: Panel) -> None:
    """Add the shares of unparsed, refused and invalid (either) answers with Wilson intervals."""
    invalid = panel.answered & ~panel.valid
    kinds = {
        "unparsed_rate": invalid & ~panel.refused,
        "refused_rate": panel.refused,
        "invalid_rate": invalid,
    }
    place = panel_place(rows, population, panel).at(attribute=grouping.attribute)
    for number, group in enumerate(grouping.groups):
        inside = panel.answered & (grouping.codes == number)
        n = float(inside.sum())
        if not n:
            continue
        for metric, found in kinds.items():
            count = float((found & inside).sum())
            ends = wilson_interval(np.array(count), np.array(n))
            place.at(group=group).add(metric, value=count / n, n=n, ci=ends)


def add_answers(rows: MetricRows, population: Population, grouping: Grouping, panel: Panel) -> None:
    """Add how many answers to a single choice are Yes, No, Unknown, unparsed and refused."""
    if panel.choices is None:
        return
    place = panel_place(rows, population, panel).at(attribute=grouping.attribute)
    for number, group in enumerate(grouping.groups):
        inside = panel.answered & (grouping.codes == number)
        if inside.any():
            counts = np.bincount(panel.choices[inside], minlength=len(ANSWERS))
            place.at(group=group).add(
                "answers", {"item": ANSWERS}, value=counts, n=float(inside.sum())
            )


def add_dropped(rows: MetricRows, population: Population, panel: Panel) -> None:
    """Add how many requests failed; they are left out of every other number."""
    dropped = float((panel.asked & ~panel.answered).sum())
    panel_place(rows, population, panel).at(attribute=ALL, group=ALL).add(
        "dropped_answers", value=dropped, n=float(panel.asked.sum())
    )
