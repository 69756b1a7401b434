"""Numbers of one cell by gender, in the queries as they are and in resamples of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

from vlmfair.papers.vl_bicle.panels import Flags, Floats, Queries
from vlmfair.stats.bootstrap import draw_weights
from vlmfair.text.captions import bleu_from_counts


@functools.cache
def _threads() -> ThreadpoolController:
    """Return the controller of numpy's threads; finding them takes long, hence once."""
    return ThreadpoolController()


@dataclass(frozen=True)
class Rates:
    """A number by run and group, [runs, 1 + replicates, 4]: Male, Female, all, Male-Female.

    The first replicate is the sample itself. `n` [runs, 4] are the queries that count, of the
    smaller gender for the difference; `total` [runs, 4] the sums of what is averaged.
    """

    values: Floats
    n: Floats
    total: Floats

    @property
    def over_runs(self) -> Floats:
        """The mean over runs, [1 + replicates, 4]; a run without a number does not count."""
        known = ~np.isnan(self.values)
        count = known.sum(axis=0)
        with np.errstate(invalid="ignore"):
            return np.where(count > 0, np.nansum(self.values, axis=0) / count, np.nan)

    @property
    def deviation(self) -> Floats:
        """The standard deviation over runs, n - 1 in its denominator, [4]; NaN for one run."""
        own = self.values[:, 0]
        known = ~np.isnan(own)
        count = known.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = np.nansum(own, axis=0) / count
            squares = np.nansum((own - centre) ** 2, axis=0)
            return np.where(count > 1, np.sqrt(squares / (count - 1)), np.nan)


class Resamples:
    """How often each query counts, in the sample itself and in resamples of it.

    Queries are drawn with replacement within their gender. All cells of a task are measured with
    the same drawings, so that their differences are paired by image.
    """

    def __init__(self, queries: Queries, replicates: int, random: np.random.Generator) -> None:
        """Draw the queries of each replicate."""
        drawn = [draw_weights(queries.codes, random) for _ in range(replicates)]
        weights = np.stack([np.ones(len(queries.codes)), *drawn])
        by_gender = [weights * (queries.male == gender) for gender in (True, False)]
        # [queries, 2 (1 + replicates)]: men's weights, then women's.
        self._weights = np.concatenate(by_gender).T.copy()

    def sums(self, values: Floats) -> Floats:
        """Return weighted sums of values [runs, queries], [runs, 1 + replicates, 3].

        The last axis is men, women, both.
        """
        # One thread: last digits depend on how a product is shared out.
        with _threads().limit(limits=1, user_api="blas"):
            product = values @ self._weights
        men, women = np.split(product, 2, axis=1)
        return np.stack([men, women, men + women], axis=2)

    def mean(self, values: Floats, counted: Flags, scale: float = 1.0) -> Rates:
        """Return `scale` times the mean of the values that count, [runs, queries] both."""
        total = self.sums(np.where(counted, np.nan_to_num(values), 0.0))
        n = self.sums(counted.astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            return _with_gap(scale * total / n, n[:, 0], total[:, 0])

    def bleu(self, counts: Floats, counted: Flags) -> Rates:
        """Return corpus BLEU-4 from counts [runs, queries, BLEU_COUNTS]."""
        kept = np.where(counted[..., None], counts, 0.0)
        parts = [self.sums(kept[..., place]) for place in range(kept.shape[-1])]
        n = self.sums(counted.astype(np.float64))[:, 0]
        return _with_gap(bleu_from_counts(np.stack(parts, axis=-1)), n, n)


def _with_gap(values: Floats, n: Floats, total: Floats) -> Rates:
    """Return rates with the difference of the genders as a fourth group."""
    gap = values[..., :1] - values[..., 1:2]
    smaller = np.minimum(n[:, :1], n[:, 1:2])
    nothing = np.full_like(smaller, np.nan)
    return Rates(
        np.concatenate([values, gap], axis=2),
        np.concatenate([n, smaller], axis=1),
        np.concatenate([total, nothing], axis=1),
    )
