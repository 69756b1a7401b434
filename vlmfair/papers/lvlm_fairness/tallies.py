"""Numbers of right answers by group and item, as observed and in resampled images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from vlmfair.papers.lvlm_fairness.measure_rows import INVALID
from vlmfair.papers.lvlm_fairness.panels import Flags, Grouping, Panel, Population
from vlmfair.stats.bootstrap import draw_weights
from vlmfair.stats.moments import Codes, Floats


@dataclass(frozen=True)
class Tally:
    """Right answers and images [1 + replicates, groups, items + 1]; the last item is all of them.

    The first entry is the sample itself. `everyone` is the number of right answers of all images,
    those of no group included, [1 + replicates, items + 1].
    """

    panel: Panel
    invalid: str
    grouping: Grouping
    right: Floats
    n: Floats
    everyone: Floats

    @property
    def recall(self) -> Floats:
        """Share of right answers; NaN for a group without images."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.right / self.n)

    @property
    def f1_paper(self) -> Floats:
        """The paper's F1 of each group; NaN for a group without images."""
        return f1_paper(self.right, self.n, self.everyone[:, None])


def f1_paper(right: Floats, n: Floats, everyone: Floats) -> Floats:
    """Return the F1 of Table 13: 2PR / (P + R), P being a group's share of all right answers.

    With P = right / everyone and R = right / n this is 2 right / (n + everyone), so that it grows
    with the group. NaN where n is 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 0, 2 * right / (n + everyone), np.nan)


class Resamples:
    """Weights of images, [1 + replicates, images]: the sample itself, then resamples of it.

    Images are drawn with replacement within their group of an attribute, so that groups keep
    their sizes. All panels are counted with the same drawings, so their differences are paired.
    """

    def __init__(self, grouping: Grouping, replicates: int, random: np.random.Generator) -> None:
        """Draw the images of each replicate."""
        ones = np.ones(len(grouping.codes))
        drawn = [draw_weights(grouping.codes, random) for _ in range(replicates)]
        # Counts of images are exact in float32, which halves the memory.
        self._weights = np.ascontiguousarray(np.stack([ones, *drawn]).T, dtype=np.float32)
        self._known: dict[tuple[int, bytes, bytes], Floats] = {}

    def count(self, cells: Codes, number: int, counted: Flags) -> Floats:
        """Return how often images that are counted fall into each cell, [1 + replicates, number].

        `cells[image]` is -1 for no cell.
        """
        key = (number, cells.tobytes(), counted.tobytes())
        if key not in self._known:
            rows = np.flatnonzero(counted & (cells >= 0))
            one = np.ones(len(rows), np.float32)
            shape = (number, len(cells))
            matrix = sparse.csr_matrix((one, (cells[rows], rows)), shape=shape)
            self._known[key] = np.asarray(matrix @ self._weights, dtype=np.float64).T
        return self._known[key]


def tally_panels(
    population: Population, grouping: Grouping, panels: Sequence[Panel], resamples: Resamples
) -> list[Tally]:
    """Return the tally of each panel with invalid answers as wrong, then with them excluded."""
    return [
        _tally(population, grouping, panel, invalid, resamples)
        for panel in panels
        for invalid in INVALID
    ]


def _tally(
    population: Population, grouping: Grouping, panel: Panel, invalid: str, resamples: Resamples
) -> Tally:
    items, groups = len(population.items), len(grouping.groups)
    # Images of no group go into one more group, which is only counted in `everyone`.
    group = np.where(grouping.codes < 0, groups, grouping.codes)
    cells = np.where(population.item_codes < 0, -1, group * items + population.item_codes)
    included = panel.included(invalid)
    number = (groups + 1) * items

    def by_group(counted: Flags) -> Floats:
        counts = resamples.count(cells, number, counted).reshape(-1, groups + 1, items)
        return np.concatenate([counts, counts.sum(axis=2, keepdims=True)], axis=2)

    right, n = by_group(included & panel.right), by_group(included)
    return Tally(
        panel, invalid, grouping, right[:, :groups], n[:, :groups], everyone=right.sum(axis=1)
    )
