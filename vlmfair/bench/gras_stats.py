"""GRAS statistics of the paper's size against the plain loops of scipy and statsmodels.

Times are CPU seconds of this process unless a name says wall, so that other load on the machine
counts little, and both sides of a ratio are measured in the same run on the same numbers.
"""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.anova import AnovaRM

from vlmfair.bench.gras_data import PER_CELL, PER_TONE, TRAITS, draw_images, draw_judgements
from vlmfair.contracts import JUDGEMENTS, SAMPLES, write_table
from vlmfair.papers.gras.cube import Cube, load_cube
from vlmfair.papers.gras.measure_attributes import DATASETS, groupings
from vlmfair.stats.moments import Factor, Floats
from vlmfair.stats.permutation import relabelled_p_values
from vlmfair.stats.repeated import friedman, repeated_measures_anova
from vlmfair.stats.welch import welch_tests

_SMALLEST = 1e-300
_SHORT_CALLS = 50
_Result = TypeVar("_Result")


def run(
    *,
    per_cell: int = PER_CELL,
    per_tone: int = PER_TONE,
    traits: int = TRAITS,
    relabelings: int = 1000,
    template_images: int = 1000,
    seed: int = 0,
) -> dict[str, float]:
    """Return the two ratios `gras_stats_ratio`, `gras_template_ratio` and the numbers behind them.

    `gras_stats_ratio`: scipy's ttest_ind and f_oneway called once per test, against all tests of
    a model at once. `gras_template_ratio`: statsmodels AnovaRM for one trait of
    `template_images` images, against ours for the same one trait; neither side is extrapolated.
    Differences are the largest relative ones.
    """
    with tempfile.TemporaryDirectory() as folder:
        judgements, images = Path(folder, "judgements.parquet"), Path(folder, "images.parquet")
        drawn = draw_images(per_cell, per_tone)
        write_table(images, drawn, SAMPLES)
        write_table(judgements, draw_judgements(drawn, traits=traits, seed=seed), JUDGEMENTS)
        start = time.perf_counter()
        cube, load_seconds = _timed(lambda: load_cube(judgements, images))
        problems = _problems(cube)
        found, test_seconds = _timed(lambda: _ours(problems))
        wall_seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _, repeated_seconds = _timed(lambda: [_ours(problems) for _ in range(5)])
    theirs, scipy_seconds = _timed(lambda: _scipy(problems))
    ratio = scipy_seconds / (repeated_seconds / 5)
    _, null_seconds = _timed(lambda: _null(cube, relabelings, seed))
    return {
        "gras_stats_ratio": ratio,
        "gras_stats_tests": float(found.shape[1]),
        "gras_stats_load_seconds": load_seconds,
        "gras_stats_first_seconds": test_seconds,
        "gras_stats_seconds": repeated_seconds / 5,
        "gras_stats_scipy_seconds": scipy_seconds,
        "gras_stats_wall_seconds_with_loading": wall_seconds,
        "gras_stats_peak_megabytes": peak,
        "gras_stats_difference": _difference(found, theirs),
        "gras_null_seconds": null_seconds,
        "gras_null_relabelings": float(relabelings),
        **_templates(cube.dataset("fairface"), template_images),
    }


def _timed(call: Callable[[], _Result]) -> tuple[_Result, float]:
    start = time.process_time()
    result = call()
    return result, time.process_time() - start


def _problems(cube: Cube) -> list[tuple[Floats, Factor]]:
    parts = {name: cube.dataset(name) for name in DATASETS}
    return [
        (part.columns, grouping.factor)
        for name, part in parts.items()
        for grouping in groupings(part.images, name).values()
    ]


def _ours(problems: list[tuple[Floats, Factor]]) -> Floats:
    results = [welch_tests(columns, factor) for columns, factor in problems]
    return np.concatenate([np.stack([one.statistic, one.p]) for one in results], axis=1)


def _scipy(problems: list[tuple[Floats, Factor]]) -> Floats:
    pairs = []
    for columns, factor in problems:
        rows = [np.flatnonzero(factor.codes == group) for group in range(factor.groups)]
        for column in np.ascontiguousarray(columns.T):
            groups = [column[chosen] for chosen in rows]
            if factor.test == "welch_t":
                t_test = stats.ttest_ind(*groups, equal_var=False)
                pairs.append((t_test.statistic, t_test.pvalue))
            else:
                anova = stats.f_oneway(*groups, equal_var=False)
                pairs.append((anova.statistic, anova.pvalue))
    return np.array(pairs).T


def _difference(ours: Floats, theirs: Floats) -> float:
    """Return the largest relative difference; p-values below 1e-300 count as equal to it.

    NaN or infinity on both sides is no difference, on one side it is an infinite one.
    """
    scale = np.maximum(np.abs(theirs), _SMALLEST)
    with np.errstate(invalid="ignore"):
        relative = np.abs(ours - theirs) / scale
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    return float(np.max(np.where(same, 0.0, np.nan_to_num(relative, nan=np.inf))))


def _null(cube: Cube, relabelings: int, seed: int) -> None:
    for name in DATASETS:
        part = cube.dataset(name)
        factors = {key: one.factor for key, one in groupings(part.images, name).items()}
        random = np.random.default_rng(seed)
        for _ in relabelled_p_values(part.columns, factors, relabelings=relabelings, random=random):
            pass


def _templates(part: Cube, images: int) -> dict[str, float]:
    _, all_seconds = _timed(lambda: (repeated_measures_anova(part.p), friedman(part.p)))
    trait = np.ascontiguousarray(part.p[:images, :1])
    # One call is shorter than the clock can tell.
    ours, repeated_seconds = _timed(
        lambda: [repeated_measures_anova(trait) for _ in range(_SHORT_CALLS)]
    )
    answers = pd.DataFrame(trait[:, 0])
    answers.insert(0, "image", answers.index)
    long = answers.melt("image", var_name="template", value_name="p_yes")
    fitted, their_seconds = _timed(lambda: AnovaRM(long, "p_yes", "image", ["template"]).fit())
    expected = fitted.anova_table["F Value"].iloc[0]
    our_seconds = repeated_seconds / _SHORT_CALLS
    return {
        "gras_template_ratio": their_seconds / our_seconds,
        "gras_template_images": float(len(trait)),
        "gras_template_traits": float(trait.shape[1]),
        "gras_template_seconds": our_seconds,
        "gras_template_statsmodels_seconds": their_seconds,
        "gras_template_difference": abs(ours[0].statistic[0] / expected - 1),
        "gras_template_all_traits_seconds": all_seconds,
    }
