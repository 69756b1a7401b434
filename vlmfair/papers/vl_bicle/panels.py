"""Judged answers of one task as arrays: one panel per cell, runs by queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.tasks import GENDERS, ZERO_SHOT
from vlmfair.text.captions import BLEU_COUNTS

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
CELL = ("image_source", "setting", "shots")
_VALUES = ("error", "revealed", "length", "clipscore", "both", "neutral", "formatted")
_ANSWERED = ("ok", "tie", "empty", "unjudged")


@dataclass(frozen=True)
class Queries:
    """The queries of a task in order of their ids; `male` marks those of men."""

    sample_ids: tuple[str, ...]
    male: Flags

    @property
    def codes(self) -> NDArray[np.int64]:
        """0 for men and 1 for women, for drawing within a gender."""
        return np.where(self.male, 0, 1)


@dataclass(frozen=True)
class Panel:
    """The answers of one cell; each array is [runs, queries], NaN where there is no number.

    `answered` did not fail, `judged` also have an error. `bleu` is [runs, queries, BLEU_COUNTS],
    with `has_bleu` marking the captions that are compared with references.
    """

    image_source: str
    setting: str
    shots: int
    runs: tuple[int, ...]
    asked: Flags
    answered: Flags
    values: Mapping[str, Floats]
    bleu: Floats
    has_bleu: Flags

    @property
    def judged(self) -> Flags:
        """Which answers have an error."""
        return ~np.isnan(self.values["error"])

    @property
    def is_zero_shot(self) -> bool:
        """Whether the panel is the baseline of the shifts."""
        return self.setting == ZERO_SHOT


def load_panels(judgements: pa.Table) -> tuple[Queries, list[Panel]]:
    """Return the queries of one task's JUDGEMENTS, and a panel of each cell, zero shots first.

    Raises ContractError when there is no judgement, one query was judged twice in a run, or a
    query has two genders.
    """
    wanted = ["sample_id", "gender", "status", "run", *CELL]
    if not len(judgements):
        raise ContractError(
            "vl_bicle: there are no judgements. Run the step that judges the answers of this model."
        )
    names = [name for name in (*wanted, *_VALUES) if name in judgements.column_names]
    frame = judgements.select(names).to_pandas()
    for name in ("sample_id", "gender", "status", "setting", "image_source"):
        frame[name] = frame[name].astype(str)
    queries = _queries(frame)
    place = {sample: row for row, sample in enumerate(queries.sample_ids)}
    frame["query"] = frame["sample_id"].map(place)
    repeated = frame.duplicated([*CELL, "run", "query"])
    if repeated.any():
        row = frame[repeated].iloc[0]
        raise ContractError(
            f"vl_bicle: {row['sample_id']} was judged twice with {row['shots']} shots of "
            f"{row['setting']}. Delete the judgements of this model and run again."
        )
    bleu = _bleu(judgements)
    panels = [
        _panel(key, own, bleu[own.index], len(place))
        for key, own in frame.groupby(list(CELL), sort=True)
    ]
    return queries, sorted(panels, key=lambda panel: not panel.is_zero_shot)


def _queries(frame: pd.DataFrame) -> Queries:
    genders = frame[["sample_id", "gender"]].drop_duplicates().sort_values("sample_id")
    twice = genders[genders["sample_id"].duplicated()]
    if len(twice):
        raise ContractError(
            f"vl_bicle: {twice['sample_id'].iloc[0]} is of two genders in the judgements. "
            f"Plan the requests of this task again."
        )
    unknown = genders[~genders["gender"].isin(GENDERS)]
    if len(unknown):
        raise ContractError(
            f"vl_bicle: {unknown['sample_id'].iloc[0]} has the gender "
            f"{unknown['gender'].iloc[0]!r}. Queries are of {' or '.join(GENDERS)}."
        )
    male = (genders["gender"] == GENDERS[0]).to_numpy()
    return Queries(tuple(genders["sample_id"]), male)


def _bleu(judgements: pa.Table) -> Floats:
    """Return the counts of BLEU [rows, BLEU_COUNTS], NaN where there are none."""
    counts = np.full((len(judgements), BLEU_COUNTS), np.nan)
    if "bleu" in judgements.column_names:
        for row, found in enumerate(judgements["bleu"].to_pylist()):
            if found is not None:
                counts[row] = found
    return counts


def _panel(key: Sequence[object], own: pd.DataFrame, bleu: Floats, number: int) -> Panel:
    runs = tuple(sorted({int(run) for run in own["run"]}))
    at = (own["run"].map({run: row for row, run in enumerate(runs)}), own["query"])
    rows, columns = (np.asarray(part, np.int64) for part in at)
    shape = (len(runs), number)
    values = {}
    for name in _VALUES:
        values[name] = np.full(shape, np.nan)
        if name in own:
            values[name][rows, columns] = pd.to_numeric(own[name]).astype(float)
    asked, answered = np.zeros(shape, bool), np.zeros(shape, bool)
    asked[rows, columns] = True
    answered[rows, columns] = own["status"].isin(_ANSWERED)
    counts = np.full((*shape, bleu.shape[1]), np.nan)
    counts[rows, columns] = bleu
    has_bleu = ~np.isnan(counts[..., 0])
    source, setting, shots = key
    return Panel(
        str(source),
        str(setting),
        int(str(shots)),
        runs,
        asked,
        answered,
        values,
        np.nan_to_num(counts),
        has_bleu,
    )
