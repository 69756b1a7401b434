"""The GRAS Bias Score of one model (§3.3) beside what it would be without any bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlmfair.papers.gras.measure_tests import Tested
from vlmfair.papers.gras.score import SETTINGS, score_from_p_values
from vlmfair.stats.bootstrap import centred_interval, percentile_interval
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.moments import Floats
from vlmfair.stats.permutation import permutation_p


def add_score(
    rows: MetricRows, tested: Sequence[Tested], *, alpha: float, traits: int, images: int
) -> None:
    """Add significant traits and score in every setting; null, p and interval of the paper's.

    The score averages the attributes that could be measured. The null deals the images' labels at
    random; the interval resamples images, with the noise that this adds taken off.
    """
    p = {result.grouping.attribute.name: result.p for result in tested}
    replicates = np.mean([result.replicate_traits for result in tested], axis=0)
    null = np.mean([result.null_traits for result in tested], axis=0)
    for setting in SETTINGS:
        place = rows.at(experiment="score", setting=setting)
        score = score_from_p_values(p, alpha, setting)
        resampled = setting == "uncorrected"
        for result in tested:
            count = score.significant_traits[result.grouping.attribute.name]
            _add(
                _at_attribute(place, result),
                "significant_traits",
                count,
                n=traits,
                most=traits,
                replicates=result.replicate_traits if resampled else None,
                null=result.null_traits if resampled else None,
            )
        whole = place.at(attribute="all")
        _add(
            whole,
            "gras_bias_score",
            score.value,
            n=images,
            most=traits,
            replicates=replicates if resampled else None,
            null=null if resampled else None,
        )
        whole.add("gras_bias_score_percent", value=100 * score.value / traits, n=images)
    place = rows.at(experiment="score", setting="uncorrected")
    for result in tested:
        _add_null(_at_attribute(place, result), "significant_traits_null", result.null_traits)
    _add_null(place.at(attribute="all"), "gras_bias_score_null", null)


def _at_attribute(place: MetricRows, result: Tested) -> MetricRows:
    attribute = result.grouping.attribute
    return place.at(attribute=attribute.name, dataset=attribute.dataset)


def _add(
    place: MetricRows,
    metric: str,
    value: float,
    *,
    n: int,
    most: int,
    replicates: Floats | None,
    null: Floats | None,
) -> None:
    ci = None
    if replicates is not None and len(replicates):
        ci = centred_interval(replicates, value, low=0, high=most)
    p = permutation_p(value, null) if null is not None and len(null) else None
    place.add(metric, value=value, n=n, ci=ci, p=p)


def _add_null(place: MetricRows, metric: str, null: Floats) -> None:
    if len(null):
        place.add(metric, value=null.mean(), n=len(null), ci=percentile_interval(null))
