"""Measures one model on FACET and UTKFace: from its judged answers to rows of the metrics table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.measure_labels import add_label_f1
from vlmfair.papers.lvlm_fairness.measure_rates import add_answers, add_dropped, add_rates
from vlmfair.papers.lvlm_fairness.measure_rationale import add_improvement, add_transitions
from vlmfair.papers.lvlm_fairness.measure_recall import (
    ALL,
    add_disparities,
    add_f1_paper,
    add_recall,
)
from vlmfair.papers.lvlm_fairness.measure_resampling import add_resampling
from vlmfair.papers.lvlm_fairness.measure_rows import (
    ATTRIBUTES,
    PAPER,
    SMALL_CELL,
)
from vlmfair.papers.lvlm_fairness.panels import (
    Grouping,
    Panel,
    Population,
    load_panels,
    load_population,
)
from vlmfair.papers.lvlm_fairness.questions import FINAL
from vlmfair.papers.lvlm_fairness.resample import PAPER_DRAWS, PAPER_SIZES
from vlmfair.papers.lvlm_fairness.tallies import Resamples, Tally, tally_panels
from vlmfair.stats.metric_rows import MetricRows

# Which samples an experiment is about.
DATASETS = {"facet": "facet", "rationale": "facet", "utkface": "utkface"}
Judged = Mapping[tuple[str, str], pa.Table]


def measure_model(
    judgements: Judged,
    samples: Mapping[str, pa.Table],
    *,
    model: str,
    rationale_prompt: str = "p2",
    resample_sizes: Sequence[int] = PAPER_SIZES,
    resample_draws: int = PAPER_DRAWS,
    bootstraps: int = 1000,
    seed: int = 0,
    small_cell: int = SMALL_CELL,
) -> pa.Table:
    """Return all metrics of one model as a table in the METRICS contract.

    `judgements` are by (experiment, judge), `samples` by dataset. A model need not have every
    experiment; baselines only have `facet`. Failed requests are left out of every number and
    counted in `dropped_answers`. `bootstraps` of 0 leave out the bootstrap intervals. The result
    does not depend on the order of the rows. Raises ContractError on judgements that are empty,
    repeated or without their sample.
    """
    rows = MetricRows(paper=PAPER, model=model)
    seeds = np.random.SeedSequence(seed).spawn(len(ATTRIBUTES))
    judged = False
    for (dataset, attributes), child in zip(ATTRIBUTES.items(), seeds, strict=True):
        tables = {key: t for key, t in judgements.items() if DATASETS[key[0]] == dataset and len(t)}
        if not tables:
            continue
        judged = True
        if dataset not in samples:
            raise ContractError(f"{model}: the samples of {dataset} are not given. Add them.")
        population = load_population(dataset, samples[dataset], list(tables.values()), attributes)
        panels = [
            panel
            for (_, judge), table in sorted(tables.items(), key=lambda entry: entry[0])
            for panel in load_panels(population, table, judge)
        ]
        groupings = [population.whole, *population.groupings.values()]
        for grouping, own in zip(groupings, child.spawn(len(groupings)), strict=True):
            random = np.random.default_rng(own)
            resamples = Resamples(grouping, bootstraps, random)
            _add_grouping(
                rows, population, grouping, panels, resamples, small_cell, rationale_prompt
            )
        for panel in panels:
            add_dropped(rows, population, panel)
        if dataset == "facet":
            add_resampling(
                rows,
                population,
                panels,
                resample_sizes,
                resample_draws,
                bootstraps,
                seed,
                small_cell,
            )
    if not judged:
        raise ContractError(
            f"{model}: there are no judgements. Run the step that judges its answers."
        )
    return rows.table()


def _add_grouping(
    rows: MetricRows,
    population: Population,
    grouping: Grouping,
    panels: Sequence[Panel],
    resamples: Resamples,
    small_cell: int,
    rationale_prompt: str,
) -> None:
    # UTKFace is asked for an attribute, which is the one to compare groups of.
    if population.dataset == "utkface" and grouping.attribute != ALL:
        panels = [panel for panel in panels if panel.prompt == grouping.attribute]
    tallies = tally_panels(population, grouping, panels, resamples)
    for tally in tallies:
        add_recall(rows, population, tally)
        add_label_f1(rows, population, tally, resamples)
        if grouping.attribute != ALL:
            add_disparities(rows, population, tally, small_cell)
            add_f1_paper(rows, population, tally, small_cell)
    for before, after in _with_rationale(tallies, rationale_prompt):
        if grouping.attribute != ALL:
            add_improvement(rows, population, before, after)
        if grouping.attribute in (ALL, "gender") and before.invalid == "wrong":
            add_transitions(rows, population, grouping, before.panel, after.panel)
    for panel in panels:
        add_rates(rows, population, grouping, panel)
        if grouping.attribute in (ALL, "gender"):
            add_answers(rows, population, grouping, panel)


def _with_rationale(tallies: Sequence[Tally], prompt: str) -> Iterator[tuple[Tally, Tally]]:
    """Yield the tallies before and after the rationale, alike in all else."""
    before = {(t.panel.judge, t.invalid): t for t in tallies if t.panel.prompt == prompt}
    for tally in tallies:
        key = (tally.panel.judge, tally.invalid)
        if tally.panel.prompt == FINAL and key in before:
            yield before[key], tally
