"""Everything that is computed about one attribute: moments, tests, bootstrap and random labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vlmfair.papers.gras.cube import TEMPLATES, Cube
from vlmfair.papers.gras.measure_attributes import Grouping, groupings
from vlmfair.papers.gras.score import significant
from vlmfair.stats.bootstrap import bootstrap_moments, shrink_differences
from vlmfair.stats.moments import Factor, Floats, GroupMoments, group_moments
from vlmfair.stats.permutation import relabelled_p_values
from vlmfair.stats.welch import WelchTest, welch_from_moments


@dataclass(frozen=True)
class Observed:
    """One attribute's results in the images as they are; a column is a question, trait x template.

    `overall` [columns] is the mean over all images that belong to a group.
    """

    grouping: Grouping
    moments: GroupMoments
    overall: Floats
    test: WelchTest

    @property
    def images(self) -> int:
        """The number of images that belong to a group."""
        return int(self.moments.n.sum())

    @property
    def p(self) -> Floats:
        """The p-values as [traits, templates]."""
        return by_trait(self.test.p)

    @property
    def f_statistic(self) -> Floats:
        """The statistics as F: a t-test's are squared."""
        squared = self.grouping.factor.test == "welch_t"
        return self.test.statistic**2 if squared else self.test.statistic


@dataclass(frozen=True)
class Tested(Observed):
    """Beside the results those of resampled images and of random labels.

    `replicate_means` is [replicates, groups, columns]; `replicate_traits` and `null_traits` count
    the significant traits of each resample and of each relabeling.
    """

    replicate_means: Floats
    replicate_traits: Floats
    null_traits: Floats


def by_trait(columns: Floats) -> Floats:
    """Return [..., columns] as [..., traits, templates]."""
    return columns.reshape(*columns.shape[:-1], -1, len(TEMPLATES))


def compute_tests(
    part: Cube,
    dataset: str,
    *,
    alpha: float,
    permutations: int,
    bootstraps: int,
    seed: np.random.SeedSequence,
) -> list[Tested]:
    """Test every attribute measured on one dataset; `part` holds that dataset's images.

    One relabeling, and one resample of images, serves all attributes of the dataset, so that
    they keep their correlation. `seed` decides both.
    """
    found = groupings(part.images, dataset)
    if not found:
        return []
    observed = {name: _observe(part.columns, grouping) for name, grouping in found.items()}
    for_null, for_bootstrap = seed.spawn(2)
    null = _null_traits(part.columns, found, alpha, permutations, for_null)
    replicates = _replicates(part.columns, observed, alpha, bootstraps, for_bootstrap)
    return [
        Tested(
            grouping=one.grouping,
            moments=one.moments,
            overall=one.overall,
            test=one.test,
            replicate_means=replicates[name][0],
            replicate_traits=replicates[name][1],
            null_traits=null[name],
        )
        for name, one in observed.items()
    ]


def _observe(columns: Floats, grouping: Grouping) -> Observed:
    factor = grouping.factor
    moments = group_moments(columns, factor)
    # The mean over the images themselves: the weighted mean of groups would differ in its last
    # digit, and a group would lie above the overall mean where all answers are the same.
    labelled = Factor(np.where(factor.codes >= 0, 0, -1), 1, factor.test)
    overall = group_moments(columns, labelled).mean[0]
    return Observed(grouping, moments, overall, welch_from_moments(moments, factor.test))


def _count(p: Floats, alpha: float) -> Floats:
    return significant(by_trait(p), alpha).sum(axis=-1).astype(np.float64)


def _null_traits(
    columns: Floats,
    found: Mapping[str, Grouping],
    alpha: float,
    relabelings: int,
    seed: np.random.SeedSequence,
) -> dict[str, Floats]:
    counts: dict[str, list[Floats]] = {name: [] for name in found}
    factors = {name: grouping.factor for name, grouping in found.items()}
    for batch in relabelled_p_values(
        columns, factors, relabelings=relabelings, random=np.random.default_rng(seed)
    ):
        for name, p in batch.items():
            counts[name].append(_count(p, alpha))
    return {name: np.concatenate(parts or [np.empty(0)]) for name, parts in counts.items()}


def _replicates(
    columns: Floats,
    observed: Mapping[str, Observed],
    alpha: float,
    replicates: int,
    seed: np.random.SeedSequence,
) -> dict[str, tuple[Floats, Floats]]:
    means: dict[str, list[Floats]] = {name: [] for name in observed}
    traits: dict[str, list[Floats]] = {name: [] for name in observed}
    factors = {name: one.grouping.factor for name, one in observed.items()}
    # Resamples can keep the group sizes of one attribute; the smallest groups need it most.
    strata = max(factors.values(), key=lambda factor: factor.groups).codes
    for batch in bootstrap_moments(
        columns, factors, strata, replicates=replicates, random=np.random.default_rng(seed)
    ):
        for name, moments in batch.items():
            one = observed[name]
            shrunk = shrink_differences(moments, one.moments, one.overall, one.f_statistic)
            means[name].append(moments.mean)
            p = welch_from_moments(shrunk, factors[name].test).p
            traits[name].append(_count(p, alpha))
    for name, factor in factors.items():
        means[name].append(np.empty((0, factor.groups, columns.shape[1])))
        traits[name].append(np.empty(0))
    return {name: (np.concatenate(means[name]), np.concatenate(traits[name])) for name in observed}
