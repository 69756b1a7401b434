"""A model's answers as one dense array: P("Yes") of image x trait x template, every cell once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vlmfair.contracts import JUDGEMENTS, SAMPLES, read_table
from vlmfair.errors import ContractError
from vlmfair.stats.moments import Floats

TEMPLATES = (1, 2, 3, 4, 5)
PROMPTS = tuple(f"T{template}" for template in TEMPLATES)
_LABELS = ("gender", "race", "age", "skin_tone")
_KEYS = ("sample_id", "trait", "template", "status", "p_yes")
Source: TypeAlias = pa.Table | str | os.PathLike[str]


@dataclass(frozen=True)
class Cube:
    """Answers [image, trait, template] in float64, rows in the order of `images`.

    `p` is P("Yes") at temperature 1; `further` holds the other columns asked for, in the same
    shape. `dropped` lists the images left out because one of their answers failed.
    """

    p: Floats
    images: pd.DataFrame
    traits: tuple[str, ...]
    further: Mapping[str, Floats]
    dropped: pd.DataFrame

    def dataset(self, name: str) -> Cube:
        """Return the part of the cube whose images are from one dataset."""
        rows = np.flatnonzero(self.images["dataset"] == name)
        return Cube(
            self.p[rows],
            self.images.iloc[rows].reset_index(drop=True),
            self.traits,
            {column: values[rows] for column, values in self.further.items()},
            self.dropped[self.dropped["dataset"] == name].reset_index(drop=True),
        )

    @property
    def columns(self) -> Floats:
        """`p` as [image, trait x template], one column per question."""
        return self.p.reshape(len(self.p), -1)


def load_cube(
    judgements: Source,
    images: Source,
    *,
    traits: Sequence[str] | None = None,
    further: Sequence[str] = (),
) -> Cube:
    """Load the judgements of one model, whatever the order of their rows.

    `images` is the SAMPLES table of the images asked about; rows of the cube are in the order of
    sample_id. `traits` gives the order of the traits (default: alphabetical). Columns of
    `further` that the judgements do not have are left out. Raises ContractError unless each
    image x trait x template is answered exactly once, and when a probability is none.
    """
    table = _read_judgements(judgements, further)
    pictures = _read_images(images)
    words = tuple(traits) if traits is not None else _words(table)
    cells, shape = _cells(table, pictures, words)
    status = _codes(table["status"], ("ok",)) == 0
    p = _scatter(table["p_yes"], cells, shape)
    answered = np.zeros(shape, dtype=bool)
    answered.reshape(-1)[cells] = status
    wrong = np.count_nonzero(answered & ~((p >= 0) & (p <= 1)))
    if wrong:
        raise ContractError(
            f"judgements: {wrong} answers have status ok but a p_yes outside 0 to 1. "
            f"Delete the judgements of this model and judge its responses again."
        )
    kept = np.asarray(answered.all(axis=(1, 2)))
    if not kept.any():
        raise ContractError(
            f"judgements: each of the {len(pictures)} images has a failed answer, so that nothing "
            f"is left to measure. Look at the status column and at the log of the inference step."
        )
    columns = {
        name: _scatter(table[name], cells, shape)[kept]
        for name in further
        if name in table.column_names
    }
    return Cube(
        p[kept],
        pictures.loc[kept].reset_index(drop=True),
        words,
        columns,
        pictures.loc[~kept].reset_index(drop=True),
    )


def _read_judgements(source: Source, further: Sequence[str]) -> pa.Table:
    if not isinstance(source, pa.Table):
        path = Path(source)
        known = pq.read_schema(path).names if path.is_file() else []
        wanted = [*_KEYS, *(name for name in further if name in known)]
        return read_table(path, JUDGEMENTS, columns=wanted)
    missing = [name for name in _KEYS if name not in source.column_names]
    if missing:
        raise ContractError(
            f"judgements: the columns {', '.join(missing)} are missing. "
            f"Judge the model's responses with vlmfair.papers.gras.judge."
        )
    return source


def _read_images(source: Source) -> pd.DataFrame:
    wanted = ["sample_id", "dataset", *_LABELS]
    table = source if isinstance(source, pa.Table) else read_table(source, SAMPLES, columns=wanted)
    frame = table.select([name for name in wanted if name in table.column_names]).to_pandas()
    repeated = int(frame["sample_id"].duplicated().sum())
    if repeated:
        raise ContractError(
            f"images: {repeated} sample_id are there twice. "
            f"Remove the repetition in the step that selects the images."
        )
    return frame.sort_values("sample_id", ignore_index=True)


def _words(table: pa.Table) -> tuple[str, ...]:
    return tuple(sorted(pc.unique(table["trait"]).cast(pa.string()).to_pylist()))


def _codes(column: pa.ChunkedArray, values: Sequence[str]) -> NDArray[np.int64]:
    """Return each entry's place in `values`, or -1, by looking up the dictionary only."""
    codes = np.empty(len(column), dtype=np.int64)
    start = 0
    wanted = pa.array(values, pa.string())
    for chunk in column.chunks:
        encoded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        places = pc.index_in(encoded.dictionary.cast(pa.string()), value_set=wanted)
        places = np.append(places.fill_null(-1).to_numpy(zero_copy_only=False), -1)
        indices = encoded.indices.fill_null(len(places) - 1).to_numpy(zero_copy_only=False)
        codes[start : start + len(chunk)] = places[indices]
        start += len(chunk)
    return codes


def _cells(
    table: pa.Table, pictures: pd.DataFrame, words: Sequence[str]
) -> tuple[NDArray[np.int64], tuple[int, int, int]]:
    """Return each row's cell of the flat cube; every cell must be there exactly once."""
    shape = (len(pictures), len(words), len(TEMPLATES))
    image = _codes(table["sample_id"], pictures["sample_id"].tolist())
    trait = _codes(table["trait"], words)
    template = table["template"].to_numpy().astype(np.int64) - 1
    known = (image >= 0) & (trait >= 0) & (template >= 0) & (template < len(TEMPLATES))
    cells = (image * shape[1] + trait) * shape[2] + template
    times = np.bincount(cells[known], minlength=int(np.prod(shape)))
    missing, repeated = int((times == 0).sum()), int((times > 1).sum())
    unknown = int((~known).sum())
    if missing or repeated or unknown:
        example = ""
        if missing:
            i, j, k = (int(at) for at in np.unravel_index(int(np.argmin(times)), shape))
            example = f" (for example {pictures['sample_id'][i]!r}, {words[j]!r}, {PROMPTS[k]})"
        raise ContractError(
            f"judgements: of {times.size} cells image x trait x template {missing} are missing"
            f"{example} and {repeated} are repeated; {unknown} rows are about an unknown image, "
            f"trait or template. Delete the judgements of this model and judge its responses again."
        )
    return cells, shape


def _scatter(column: pa.ChunkedArray, cells: NDArray[np.int64], shape: tuple[int, ...]) -> Floats:
    values = np.empty(int(np.prod(shape)))
    start = 0
    for chunk in column.chunks:
        values[cells[start : start + len(chunk)]] = chunk.to_numpy(zero_copy_only=False)
        start += len(chunk)
    return values.reshape(shape)
