"""Counts, means and variances of groups, for many columns and for many reweightings at once."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
TestName = Literal["welch_t", "welch_anova"]

# A variance that is a smaller share of the mean square than this has lost over six of its sixteen
# digits in a difference of sums, and is computed again, from values shifted to the group.
_LOST_DIGITS = 1e-6


@dataclass(frozen=True)
class Factor:
    """One way of splitting rows into groups: `codes[row]` in 0..groups-1, or -1 for no group."""

    codes: Codes
    groups: int
    test: TestName

    def indicators(self) -> Floats:
        """Return [groups, rows], 1 where the row belongs to the group."""
        return (np.arange(self.groups)[:, None] == self.codes).astype(np.float64)


@dataclass(frozen=True)
class GroupMoments:
    """`n` [..., groups], `mean` and `variance` (n - 1 below the line) [..., groups, columns]."""

    n: Floats
    mean: Floats
    variance: Floats


def group_moments(values: Floats, factor: Factor) -> GroupMoments:
    """Return the moments of each group of rows of `values` [rows, columns].

    Corrected two-pass sums, so that near-equal means and tiny variances keep their digits.
    The variance of identical values is exactly 0, and NaN for fewer than two rows.
    """
    columns = values.shape[1]
    n = np.zeros(factor.groups)
    mean = np.full((factor.groups, columns), np.nan)
    variance = np.full((factor.groups, columns), np.nan)
    for group in range(factor.groups):
        rows = np.flatnonzero(factor.codes == group)
        n[group] = len(rows)
        if len(rows):
            mean[group], variance[group] = _moments_of_rows(values, rows)
    return GroupMoments(n, mean, variance)


def _moments_of_rows(values: Floats, rows: NDArray[np.intp]) -> tuple[Floats, Floats]:
    block = values[rows]
    first = block[0].copy()
    mean = block.mean(axis=0)
    block -= mean
    slip = block.mean(axis=0)
    mean += slip
    if len(rows) < 2:
        return first, np.full_like(mean, np.nan)
    squares = np.einsum("rc,rc->c", block, block)
    variance = np.maximum(squares - len(rows) * slip**2, 0.0) / (len(rows) - 1)
    # Rounding of the mean leaves dust where all values are the same: look at those columns.
    for column in np.flatnonzero(variance <= (1e-13 * np.abs(mean)) ** 2):
        if np.all(values[rows, column] == first[column]):
            mean[column], variance[column] = first[column], 0.0
    return mean, variance


@functools.cache
def _threads() -> ThreadpoolController:
    """Return the controller of numpy's threads; finding them takes long, hence once."""
    return ThreadpoolController()


class ResampledColumns:
    """Columns prepared once, so that moments under any row weights are two matrix products."""

    def __init__(self, values: Floats) -> None:
        """Centre `values` [rows, columns], since squares of centred values cancel least."""
        self._values = values
        self.columns = values.shape[1]
        self.centre = values.mean(axis=0) if len(values) else np.zeros(self.columns)
        centred = values - self.centre
        centred[:, np.all(values == values[:1], axis=0)] = 0.0
        self._stacked = np.concatenate([centred, centred**2], axis=1)

    def moments(self, weights: Floats) -> GroupMoments:
        """Return the moments of each weighting in `weights` [..., groups, rows] (whole counts).

        Nine digits of every variance are right, however small it is beside the distance of its
        group from the other rows. The variance of identical values is exactly 0; without any row
        it is NaN, as the mean.
        """
        n = weights.sum(axis=-1)
        flat = weights.reshape(n.size, weights.shape[-1])
        # On one thread: the last digits of a product depend on how it is shared out.
        with _threads().limit(limits=1, user_api="blas"):
            sums = flat @ self._stacked
        flat_n = n.reshape(-1, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            sums /= flat_n
            mean, square = sums[:, : self.columns], sums[:, self.columns :]
            variance = square - mean**2
            mean = mean + self.centre
            lost = (variance <= _LOST_DIGITS * square) & (square > 0)
            self._recompute(flat, lost, mean, variance)
            variance *= flat_n / (flat_n - 1)
        shape = (*n.shape, self.columns)
        return GroupMoments(n, mean.reshape(shape), variance.reshape(shape))

    def _recompute(
        self, weights: Floats, lost: NDArray[np.bool_], mean: Floats, variance: Floats
    ) -> None:
        """Fill in `mean` and `variance` where digits are lost, by sums around a row of the group.

        Differences of near-equal numbers are exact, and a member of the group is no further from
        its mean than the group is wide: at most as many digits are lost as the number of rows has.
        """
        for column in np.flatnonzero(lost.any(axis=0)):
            at = np.flatnonzero(lost[:, column])
            values, chosen = self._values[:, column], weights[at]
            shift = values[np.argmax(chosen > 0, axis=1)]
            apart = values - shift[:, None]
            n = chosen.sum(axis=1)
            slip = np.einsum("kr,kr->k", chosen, apart) / n
            squares = np.einsum("kr,kr,kr->k", chosen, apart, apart) / n
            mean[at, column] = shift + slip
            variance[at, column] = np.maximum(squares - slip**2, 0.0)
