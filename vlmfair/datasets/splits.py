"""Demonstration pool and queries: drawn once by a seed, with no picture on both sides.

A record's place in a draw follows from the seed and its own id alone. The same records are drawn
on any machine and in any order of the files, and a missing image does not shuffle the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from vlmfair.datasets.base import ProblemLog
from vlmfair.errors import RawDataError

POOL, QUERIES = "pool", "queries"
# One record without people, which shows the form of an answer where there are no demonstrations.
EXAMPLE = "example"
GENDERS = ("Male", "Female")
SEED = "0"


@dataclass(frozen=True)
class SplitRule:
    """How a dataset is divided into pool and queries.

    Each combination of the columns `strata` is divided by itself: `count` of its records, or the
    fifth that `one_in` 5 means, are the pool's. `balanced` leaves out queries of the majority
    gender, at random, until both genders have as many. Records are of the same picture when they
    have the same value in one of the columns `pictures`.
    """

    strata: tuple[str, ...]
    count: int = 0
    one_in: int = 0
    balanced: bool = False
    pictures: tuple[str, ...] = ("image_sha256",)

    def pool_size(self, records: int) -> int:
        """How many of a stratum's records are the pool's; a share is rounded to the nearest."""
        if self.one_in:
            return (2 * records + self.one_in) // (2 * self.one_in)
        return min(self.count, records)


# Appendix 0.A of VL-BICLE: a fifth of each gender, and then queries of both genders alike.
FIFTH_OF_EACH_GENDER = SplitRule(strata=("gender",), one_in=5, balanced=True)


def split(samples: pa.Table, rule: SplitRule, seed: str, log: ProblemLog) -> pa.Table:
    """Return the samples with the column `split`, in their order, without those of neither side.

    Within a stratum, pictures of several records are drawn last; a query whose picture the pool
    has nevertheless is left out, as are queries above parity: both are noted in `log`. Samples
    that have a split already, as the example, keep it, unless there are no others. Raises
    RawDataError where a balanced dataset has one gender only.
    """
    rows = samples.select(["sample_id", "split", "gender", "raw"]).to_pandas()
    for column in (*rule.strata, *rule.pictures):
        rows[column] = samples[column].to_pylist()
    divided = rows[rows["split"].isna()]
    if not len(divided):
        return samples.slice(0, 0)
    pictures = pd.Series(_pictures(divided, rule.pictures), index=divided.index)
    pool = _pool(divided, pictures, rule, seed)
    queries = divided.index.difference(pool)
    shared = queries[pictures[queries].isin(set(pictures[pool]))]
    _note(divided.loc[shared], "pool_image", log)
    queries = queries.difference(shared)
    if rule.balanced:
        ids, genders = divided.loc[queries, "sample_id"], divided.loc[queries, "gender"]
        _check_genders(genders, log.dataset)
        kept = set(keep_balanced(ids.tolist(), genders.tolist(), seed))
        surplus = queries[~ids.isin(kept)]
        _note(divided.loc[surplus], "down_sampled", log)
        queries = queries.difference(surplus)
    rows.loc[pool, "split"] = POOL
    rows.loc[queries, "split"] = QUERIES
    column = pa.array([None if pd.isna(side) else side for side in rows["split"]], pa.string())
    place = samples.column_names.index("split")
    return samples.set_column(place, "split", column).filter(column.is_valid())


def keep_balanced(sample_ids: Sequence[str], genders: Sequence[str], seed: str) -> list[str]:
    """Return as many ids of each gender as the smallest has, drawn by the seed, in their order."""
    by_gender: dict[str, list[str]] = {}
    for sample_id, gender in zip(sample_ids, genders, strict=True):
        by_gender.setdefault(gender, []).append(sample_id)
    size = min((len(ids) for ids in by_gender.values()), default=0)
    kept = {
        sample_id
        for ids in by_gender.values()
        for sample_id in sorted(ids, key=lambda own: rank(own, seed, "parity"))[:size]
    }
    return [sample_id for sample_id in sample_ids if sample_id in kept]


def rank(sample_id: str, seed: str, purpose: str) -> str:
    """Return the place of a record in a draw, as text that sorts: random, but always the same."""
    return hashlib.sha256(f"{seed}/{purpose}/{sample_id}".encode()).hexdigest()


def _pool(rows: pd.DataFrame, pictures: pd.Series, rule: SplitRule, seed: str) -> pd.Index:
    order = rows.assign(
        repeated=pictures.duplicated(keep=False),
        rank=[rank(sample_id, seed, "pool") for sample_id in rows["sample_id"]],
    ).sort_values(["repeated", "rank"])
    chosen: list[int] = []
    for _, stratum in order.groupby(list(rule.strata), sort=True):
        chosen += stratum.index[: rule.pool_size(len(stratum))].tolist()
    return pd.Index(sorted(chosen), dtype=rows.index.dtype)


def _pictures(rows: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.int32]:
    """Number the pictures: records that share a value, directly or over others, have the same."""
    # Only here: importing it takes long, and most datasets are not divided.
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    places = np.arange(len(rows))
    first = [
        pd.Series(places).groupby(rows[name].to_numpy(), dropna=False).transform("min")
        for name in columns
    ]
    edges = (np.concatenate([places] * len(columns)), np.concatenate(first))
    graph = coo_array((np.ones(len(edges[0])), edges), shape=(len(rows), len(rows)))
    numbers: NDArray[np.int32] = connected_components(graph, directed=False)[1]
    return numbers


def _check_genders(genders: pd.Series, dataset: str) -> None:
    for gender in GENDERS:
        if gender not in set(genders):
            raise RawDataError(
                f"{dataset}: no usable image of gender {gender} is left for the queries, which "
                f"need both genders alike. Unpack the whole of the dataset."
            )


def _note(rows: pd.DataFrame, reason: str, log: ProblemLog) -> None:
    for sample_id, raw in zip(rows["sample_id"], rows["raw"], strict=True):
        log.add(sample_id, reason, raw=raw)
