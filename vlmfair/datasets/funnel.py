"""The funnel of a dataset: how many records each of its filters leaves."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.csv as pa_csv

from vlmfair.datasets.base import LEFT_OUT, ParsedDataset
from vlmfair.datasets.splits import EXAMPLE, GENDERS, POOL, QUERIES
from vlmfair.errors import ContractError
from vlmfair.provenance import write_bytes

# Left out, but no record of the dataset was lost with it.
NO_RECORDS = {"repeated_header", "folder_absent", "not_annotated", "file_missing"}
SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("step", pa.string()),
        ("reasons", pa.string()),
        ("left_out", pa.int64()),
        ("left", pa.int64()),
        ("male", pa.int64()),
        ("female", pa.int64()),
    ]
)


@dataclass(frozen=True)
class Step:
    """One filter: what is left after it, and the reasons with which it leaves records out."""

    name: str
    reasons: tuple[str, ...]


READABLE = Step(
    "readable, and once",
    (
        *("malformed_row", "malformed_record", "invalid_path", "path_outside"),
        *("duplicate_record", "conflicting_record"),
    ),
)
WITH_IMAGE = Step(
    "with a usable image",
    (
        *("ambiguous_image", "image_missing", "image_empty", "image_too_large"),
        "image_unreadable",
    ),
)
NOT_IN_POOL = Step("without queries whose picture the pool has", ("pool_image",))
AT_PARITY = Step("with as many queries of each gender", ("down_sampled",))


def funnel(dataset: str, steps: Sequence[Step], parsed: ParsedDataset) -> pa.Table:
    """Return the records that are left after each filter, and the size of pool and queries.

    Columns: dataset, step, reasons (of the step, with commas), left_out, left; the first row is
    all records. The last rows are the two sides of the split, which alone have `male` and
    `female`. Raises ContractError when a record was left out for a reason that no step has.
    """
    record_problems = [
        reason
        for reason in parsed.problems["reason"].to_pylist()
        if reason in LEFT_OUT and reason not in NO_RECORDS
    ]
    counts = Counter(record_problems)
    unknown = set(counts) - {reason for step in steps for reason in step.reasons}
    if unknown:
        raise ContractError(
            f"{dataset}: no step of the funnel leaves records out as {', '.join(sorted(unknown))}. "
            f"Add the reason to one of the dataset's steps."
        )
    sides = parsed.samples["split"].to_pylist()
    # A record that shows the form of an answer is none of those that are filtered.
    left = len(record_problems) + sum(side != EXAMPLE for side in sides)
    rows = [{"step": "all records", "left": left, "left_out": 0, "reasons": ""}]
    for step in steps:
        lost = sum(counts[reason] for reason in step.reasons)
        left -= lost
        reasons = ", ".join(step.reasons)
        rows.append({"step": step.name, "left": left, "left_out": lost, "reasons": reasons})
    rows += [_side(parsed, sides, side) for side in (POOL, QUERIES)]
    return pa.Table.from_pylist([{"dataset": dataset, **row} for row in rows], schema=SCHEMA)


def write_funnel(path: str | os.PathLike[str], table: pa.Table) -> None:
    """Write a funnel as a comma-separated file, whole or not at all."""
    buffer = pa.BufferOutputStream()
    pa_csv.write_csv(table, buffer, pa_csv.WriteOptions(quoting_style="needed"))
    write_bytes(path, buffer.getvalue().to_pybytes())


def _side(parsed: ParsedDataset, sides: Sequence[str], side: str) -> dict[str, str | int]:
    genders = Counter(
        gender
        for gender, own in zip(parsed.samples["gender"].to_pylist(), sides, strict=True)
        if own == side
    )
    counts = {gender.lower(): genders[gender] for gender in GENDERS}
    return {"step": side, "reasons": "", "left": sum(genders.values()), "left_out": 0, **counts}
