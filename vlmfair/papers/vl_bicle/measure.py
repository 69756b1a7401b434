"""Measures one model: error and reveal rates, shifts and caption quality as rows (section 3.4)."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place, two_sided_p
from vlmfair.papers.vl_bicle.panels import Flags, Floats, Panel, Queries, load_panels
from vlmfair.papers.vl_bicle.plan import Skipped
from vlmfair.papers.vl_bicle.rates import Rates, Resamples
from vlmfair.papers.vl_bicle.tasks import ALL, FEMALE, GAP, GROUPS, MALE, TASKS, Task, task_named
from vlmfair.stats.bootstrap import percentile_interval
from vlmfair.stats.proportions import wilson_interval

SHIFTED = {"error_rate": "error_shift", "revealed_error_rate": "revealed_error_shift"}
DECIMALS = 9
# Shares of answers, whose single runs have a Wilson interval.
SHARES = ("error_rate", "reveal_rate", "revealed_error_rate", "both_rate", "neutral_rate")


def measure_model(
    judgements: Mapping[str, pa.Table],
    *,
    model: str,
    skipped: Iterable[Skipped | Mapping[str, Any]] = (),
    bootstraps: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Return all metrics of one model as a table in the METRICS contract.

    `judgements` are by task; `skipped` are the cells that were never asked. Failed requests and
    answers without a verdict are left out and counted. Shifts against zero shots have a paired
    bootstrap over images, and Benjamini-Hochberg's correction over the whole grid of the model.
    `bootstraps` of 0 leave out intervals and p-values. The result does not depend on the order
    of rows. Raises ConfigError on an unknown task, ContractError as `load_panels` and when there is
    nothing to measure.
    """
    if not judgements:
        raise ContractError(
            f"{model}: there are no judgements. Run the step that judges its answers."
        )
    rows = BicleRows()
    for name in judgements:
        task_named(name)
    for number, (name, task) in enumerate(TASKS.items()):
        if name in judgements:
            # Each task draws from a stream of its own, whichever others there are.
            random = np.random.default_rng([seed, number])
            _add_task(rows, task, judgements[name], model, bootstraps, random)
    for cell in skipped:
        _add_skipped(rows, model, cell)
    # All shifts of the gap together: the grid of the model.
    rows.adjust("error_shift", GAP)
    return rows.table()


def _add_task(
    rows: BicleRows,
    task: Task,
    judgements: pa.Table,
    model: str,
    bootstraps: int,
    random: np.random.Generator,
) -> None:
    queries, panels = load_panels(judgements)
    resamples = Resamples(queries, bootstraps, random)
    start = Place(task.experiment, task.dataset, model, prompt=task.prompt, item=_item(judgements))
    baselines: dict[str, Rates] = {}
    for panel in panels:
        place = start.at(setting=panel.setting, shots=panel.shots, image_source=panel.image_source)
        rates = measure_panel(task, panel, resamples)
        for metric, found in rates.items():
            _add_rates(rows, place, metric, found, panel, task)
            shift = SHIFTED.get(metric)
            if panel.is_zero_shot:
                baselines[metric] = found
            elif shift is not None and metric in baselines:
                _add_shift(rows, place, shift, found, baselines[metric], panel)
        _add_dropped(rows, place, panel, queries)


def _item(judgements: pa.Table) -> str:
    """Return the judge of visual questions; other answers have one way to be judged."""
    judges = sorted({str(judge) for judge in judgements["judge"].unique().to_pylist()})
    if len(judges) != 1:
        raise ContractError(
            f"vl_bicle: the judgements of one task are by {', '.join(judges)}. "
            f"Measure each judge by itself."
        )
    return judges[0] if judges[0] in ("lexical", "llm") else ALL


def measure_panel(task: Task, panel: Panel, resamples: Resamples) -> dict[str, Rates]:
    """Return the numbers of one cell by metric; rates, BLEU and CLIPScore in percent."""
    values, judged = panel.values, panel.judged
    rates = {"error_rate": resamples.mean(values["error"], judged, 100.0)}
    if task.reveals:
        revealed = judged & (values["revealed"] == 1.0)
        rates["reveal_rate"] = resamples.mean(values["revealed"], judged, 100.0)
        rates["revealed_error_rate"] = resamples.mean(values["error"], revealed, 100.0)
    else:
        rates["format_rate"] = resamples.mean(values["formatted"], panel.answered, 100.0)
        unjudged = (panel.answered & ~judged).astype(float)
        rates["unjudged_rate"] = resamples.mean(unjudged, panel.answered, 100.0)
    if task.has_captions:
        rates["both_rate"] = resamples.mean(values["both"], judged, 100.0)
        rates["neutral_rate"] = resamples.mean(values["neutral"], judged, 100.0)
        rates["caption_length"] = resamples.mean(values["length"], judged)
        scored = ~np.isnan(values["clipscore"])
        if scored.any():
            rates["clipscore"] = resamples.mean(values["clipscore"], scored)
        if panel.has_bleu.any():
            rates["bleu4"] = resamples.bleu(panel.bleu, panel.has_bleu)
    return rates


def _add_rates(
    rows: BicleRows, place: Place, metric: str, rates: Rates, panel: Panel, task: Task
) -> None:
    mean, sd = rates.over_runs, rates.deviation
    is_share = metric in SHARES and task.reveals
    for number, group in enumerate(GROUPS):
        # A number over runs stands on the queries that count in every one of them.
        least = rates.n[:, number].min()
        ends = interval(mean[1:, number])
        rows.add(place, metric, group, mean[0, number], least, ci=ends)
        rows.add(place, f"{metric}_sd", group, sd[number], len(panel.runs))
        for row, run in enumerate(panel.runs):
            n, value = rates.n[row, number], rates.values[row, 0, number]
            own = None
            if is_share and group != GAP and n:
                low, high = wilson_interval(rates.total[row, number], n)
                own = (100.0 * float(low), 100.0 * float(high))
            rows.add(place.at(run=run), metric, group, value, n, ci=own)


def interval(replicates: Floats) -> tuple[float, float] | None:
    """Return the percentile interval of replicates; None when no replicate has a number."""
    if not len(replicates) or np.isnan(replicates).all():
        return None
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN", RuntimeWarning)
        # Equal numbers differ by rounding, and their difference shall be 0.
    low, high = percentile_interval(np.round(replicates, DECIMALS))
    return float(low), float(high)


def _add_shift(
    rows: BicleRows, place: Place, metric: str, rates: Rates, zero: Rates, panel: Panel
) -> None:
    """Add the change against zero shots, paired by image, over runs and for each run."""
    base = zero.over_runs
    shift = rates.over_runs - base
    for number, group in enumerate(GROUPS):
        if group == ALL or (metric != "error_shift" and group != GAP):
            continue
        n = min(rates.n[:, number].min(), zero.n[:, number].min())
        p = two_sided_p(shift[1:, number])
        rows.add(place, metric, group, shift[0, number], n, ci=interval(shift[1:, number]), p=p)
        if group == GAP and metric == "error_shift":
            for row, run in enumerate(panel.runs):
                own = rates.values[row, 0, number] - base[0, number]
                count = min(rates.n[row, number], n)
                rows.add(place.at(run=run), "error_shift_run", group, own, count)


def _add_dropped(rows: BicleRows, place: Place, panel: Panel, queries: Queries) -> None:
    failed = panel.asked & ~panel.answered
    groups: Sequence[tuple[str, Flags]] = (
        (MALE, queries.male),
        (FEMALE, ~queries.male),
        (ALL, np.ones_like(queries.male)),
    )
    for group, inside in groups:
        asked = float((panel.asked & inside).sum())
        rows.add(place, "dropped_answers", group, float((failed & inside).sum()), asked)


def _add_skipped(rows: BicleRows, model: str, cell: Skipped | Mapping[str, Any]) -> None:
    raw = cell if isinstance(cell, Mapping) else cell.__dict__
    task = task_named(str(raw["task"]))
    place = Place(
        task.experiment,
        task.dataset,
        model,
        setting=str(raw["setting"]),
        shots=int(raw["shots"]),
        run=int(raw["run"]),
        image_source=str(raw["image_source"]),
        prompt=task.prompt,
    )
    rows.add(place, "skipped", ALL, float(raw["images"]), 0)
