"""Measures one model on GRAS: from its judged answers to the rows of the metrics table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from vlmfair.errors import ConfigError, ContractError
from vlmfair.papers.gras.cube import Cube, Source, load_cube
from vlmfair.papers.gras.measure_attributes import DATASETS
from vlmfair.papers.gras.measure_groups import add_means, add_tests, add_valence
from vlmfair.papers.gras.measure_score import add_score
from vlmfair.papers.gras.measure_tests import Tested, compute_tests
from vlmfair.papers.gras.measure_wording import (
    add_example,
    add_surface_forms,
    add_temperature,
    add_template_sensitivity,
    further_columns,
)
from vlmfair.papers.gras.questions import Trait
from vlmfair.stats.metric_rows import MetricRows

# Appendix A.3.
PAPER_TEMPERATURES = (0.5, 0.7, 1.0, 1.5)


def measure_model(
    judgements: Source,
    images: Source,
    traits: Sequence[Trait],
    *,
    model: str,
    alpha: float = 0.05,
    temperatures: Sequence[float] = PAPER_TEMPERATURES,
    permutations: int = 1000,
    bootstraps: int = 1000,
    seed: int = 0,
) -> pa.Table:
    """Return all GRAS metrics of one model as a table in the METRICS contract.

    `judgements` and `images` are tables or paths of tables. An image with a failed answer is left
    out of every number, and counted in `dropped_images`. The result does not depend on the order
    of the rows read, nor on the number of threads. Temperatures that were not judged are left
    out. `permutations` or `bootstraps` of 0 leave out
    the null or the intervals. docs/statistics.md defines each metric. Raises ContractError on
    incomplete judgements and ConfigError on an alpha that is no probability.
    """
    if not 0 < alpha < 1:
        raise ConfigError(f"gras: alpha is {alpha}. Set it between 0 and 1, the paper has 0.05.")
    words = [trait.word for trait in traits]
    cube = load_cube(judgements, images, traits=words, further=further_columns(temperatures))
    rows = MetricRows(paper="gras", model=model)
    tested: list[Tested] = []
    for dataset, child in zip(DATASETS, np.random.SeedSequence(seed).spawn(len(DATASETS))):
        part = cube.dataset(dataset)
        tested += compute_tests(
            part, dataset, alpha=alpha, permutations=permutations, bootstraps=bootstraps, seed=child
        )
        _add_dataset(rows, part, dataset, temperatures)
    if not tested:
        raise ContractError(
            "images: no attribute has two groups, so that nothing can be compared. "
            "Select images of at least two groups of gender, race, age or skin_tone."
        )
    for result in tested:
        add_means(rows, result, words)
        add_tests(rows, result, words)
        add_valence(rows, result, [trait.polarity for trait in traits])
    add_score(rows, tested, alpha=alpha, traits=len(words), images=len(cube.p))
    add_example(rows, cube)
    return rows.table()


def _add_dataset(rows: MetricRows, part: Cube, dataset: str, temperatures: Sequence[float]) -> None:
    asked = len(part.p) + len(part.dropped)
    if asked:
        dropped = len(part.dropped)
        place = rows.at(experiment="bias_detection", dataset=dataset)
        place.add("dropped_images", value=dropped, n=asked)
    if not len(part.p):
        return
    add_surface_forms(rows, part, dataset)
    if dataset == "fairface":
        add_template_sensitivity(rows, part)
    else:
        add_temperature(rows, part, temperatures)
