"""The responses of a shard, put together from stored and fresh answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.contracts import RESPONSES, conform
from vlmfair.inference.queries import Answer

_WORD = pa.dictionary(pa.int32(), pa.string())
RESPONSE_ROWS = pa.schema([*RESPONSES.schema, ("label_tokens", _WORD)])


@dataclass(frozen=True)
class ShardAnswers:
    """The responses of a shard in the order of its requests, and what its manifest says."""

    responses: pa.Table
    manifest: dict[str, Any]


def make_responses(
    requests: pa.Table,
    keys: Sequence[bytes],
    unique: Sequence[bytes],
    stored: pa.Table,
    answers: Mapping[bytes, Answer],
) -> pa.Table:
    """Return one response per request, in their order.

    `keys` has the answer's key of each request, `unique` each key once; `stored` is what
    `AnswerStore.find(unique)` returned, and `answers` has the others by their keys.
    """
    place = {key: row for row, key in enumerate(unique)}
    columns = [field.name for field in RESPONSE_ROWS if field.name != "request_id"]
    fresh = pa.Table.from_pylist(
        [
            {"row": place[key], **{name: getattr(answer, name) for name in columns}}
            for key, answer in answers.items()
        ],
        schema=pa.schema([*(RESPONSE_ROWS.field(name) for name in columns), ("row", pa.int32())]),
    )
    kept = stored.append_column("error", pa.nulls(len(stored), pa.string()))
    rows = pa.concat_tables([kept.select(fresh.column_names).cast(fresh.schema), fresh])
    rows = rows.unify_dictionaries().sort_by("row").drop_columns("row")
    taken = rows.take(pa.array([place[key] for key in keys], pa.int64()))
    return conform(taken.append_column("request_id", requests["request_id"]), RESPONSES)


def count_values(column: pa.ChunkedArray) -> dict[str, int]:
    """Return how often each value of a text column appears."""
    counts = pc.value_counts(column).to_pylist()
    return {item["values"]: item["counts"] for item in counts}
