"""Between-group bias and valence of one attribute (GRAS §4.2, §4.3), as metric rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlmfair.papers.gras.cube import PROMPTS
from vlmfair.papers.gras.measure_tests import Tested, by_trait
from vlmfair.papers.gras.valence import RULES, attributed, attributed_share
from vlmfair.stats.bootstrap import percentile_interval
from vlmfair.stats.effects import hedges_g, omega_squared
from vlmfair.stats.metric_rows import MetricRows
from vlmfair.stats.moments import Floats
from vlmfair.stats.multiplicity import benjamini_hochberg, holm

POLARITIES = ("negative", "positive")


def add_means(rows: MetricRows, tested: Tested, traits: Sequence[str]) -> None:
    """Add each group's mean P("Yes"), its deviation from the overall mean, and their intervals.

    Intervals are percentiles over resampled images; in them the overall mean weighs groups as
    observed, since the design fixes their sizes.
    """
    attribute = tested.grouping.attribute
    place = rows.at(
        experiment="bias_detection", attribute=attribute.name, dataset=attribute.dataset
    )
    axes = {"group": tested.grouping.groups, "item": traits, "prompt": PROMPTS}
    whole = {"group": ("all",), "item": traits, "prompt": PROMPTS}
    n = tested.moments.n[:, None, None]
    deviation = tested.moments.mean - tested.overall
    shares = tested.moments.n / tested.images
    replicates = tested.replicate_means
    overall = np.einsum("g,rgc->rc", shares, replicates)[:, None]
    for metric, value, drawn in (
        ("mean_p_yes", tested.moments.mean, replicates),
        ("deviation", deviation, replicates - overall),
    ):
        ci = _interval(drawn)
        place.add(metric, axes, value=by_trait(value), n=n, ci=ci)
    value = by_trait(tested.overall[None])
    place.add("mean_p_yes", whole, value=value, n=tested.images, ci=_interval(overall))


def _interval(replicates: Floats) -> tuple[Floats, Floats] | None:
    if not len(replicates):
        return None
    low, high = percentile_interval(replicates)
    return by_trait(low), by_trait(high)


def add_tests(rows: MetricRows, tested: Tested, traits: Sequence[str]) -> None:
    """Add the Welch tests with Holm and Benjamini-Hochberg beside them, and their effect sizes.

    Adjusted over all tests of the attribute. The effect is Hedges' g between two groups in the
    paper's t-test, else omega squared. Tests with a constant group are counted.
    """
    attribute = tested.grouping.attribute
    kind = tested.grouping.factor.test
    axes = {"item": traits, "prompt": PROMPTS}
    place = rows.at(
        experiment="bias_detection",
        attribute=attribute.name,
        dataset=attribute.dataset,
        group="all",
        setting=kind,
    )
    n, test = tested.images, tested.test
    if kind == "welch_t":
        gap = hedges_g(tested.moments)
        effect = gap.value
        ci = by_trait(gap.ci_low), by_trait(gap.ci_high)
        value = by_trait(gap.value)
        place.add("hedges_g", axes, value=value, n=n, ci=ci)
    else:
        effect = omega_squared(tested.moments)
    place.add(
        "welch_test",
        axes,
        value=by_trait(test.statistic),
        n=n,
        p=tested.p,
        p_adjusted=holm(tested.p),
        effect=by_trait(effect),
    )
    for metric, further in (
        ("welch_p_bh", benjamini_hochberg(tested.p)),
        ("welch_df1", by_trait(test.df1)),
        ("welch_df2", by_trait(test.df2)),
    ):
        place.add(metric, axes, value=further, n=n)
    constant = (tested.moments.variance == 0) | np.isnan(tested.moments.variance)
    degenerate = int(constant.any(axis=0).sum())
    place.add("degenerate_tests", value=degenerate, n=tested.p.size)


def add_valence(rows: MetricRows, tested: Tested, polarities: Sequence[str]) -> None:
    """Add the share of negative and of positive traits attributed to each group, by both rules."""
    attribute = tested.grouping.attribute
    means, overall = by_trait(tested.moments.mean), by_trait(tested.overall)
    place = rows.at(experiment="valence", attribute=attribute.name, dataset=attribute.dataset)
    for rule in RULES:
        is_attributed = attributed(means, overall, rule)
        for polarity in POLARITIES:
            of_traits = np.array([found == polarity for found in polarities])
            if of_traits.any():
                place.at(setting=rule, item=polarity).add(
                    "attributed_share",
                    {"group": tested.grouping.groups},
                    value=attributed_share(is_attributed, of_traits),
                    n=int(of_traits.sum()),
                )
