"""The schemas of the tables that steps hand to each other, and how they are read and written."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vlmfair.errors import ContractError, reason_of
from vlmfair.provenance import atomic_path, library_versions, write_json

_WORD = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class Contract:
    """The columns of one kind of table, those that may not be null, and its key."""

    name: str
    schema: pa.Schema
    required: tuple[str, ...]
    key: tuple[str, ...] = ()


SAMPLES = Contract(
    "samples",
    pa.schema(
        [
            ("sample_id", pa.string()),
            ("dataset", pa.string()),
            ("image", pa.string()),
            ("image_sha256", pa.string()),
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("split", pa.string()),
            ("gender", pa.string()),
            ("race", pa.string()),
            ("age", pa.string()),
            ("skin_tone", pa.string()),
            ("occupation", pa.string()),
            ("captions", pa.list_(pa.string())),
            ("question", pa.string()),
            ("answer", pa.string()),
            ("raw", pa.string()),
        ]
    ),
    required=("sample_id", "dataset", "image", "image_sha256"),
    key=("sample_id",),
)

PROBLEMS = Contract(
    "problems",
    pa.schema(
        [
            ("dataset", pa.string()),
            ("record", pa.string()),
            ("reason", pa.string()),
            ("detail", pa.string()),
            ("raw", pa.string()),
        ]
    ),
    required=("dataset", "record", "reason"),
)

REQUESTS = Contract(
    "requests",
    pa.schema(
        [
            ("request_id", pa.string()),
            ("shard", pa.int32()),
            ("sample_id", _WORD),
            ("context_id", _WORD),
            ("image", _WORD),
            ("image_sha256", _WORD),
            ("image_transform", _WORD),
            ("text", _WORD),
            ("assistant_prefix", _WORD),
            ("mode", _WORD),
            ("label_set", _WORD),
            ("max_new_tokens", pa.int32()),
        ]
    ),
    required=("request_id", "shard", "sample_id", "text", "mode"),
    key=("request_id",),
)

RESPONSES = Contract(
    "responses",
    pa.schema(
        [
            ("request_id", pa.string()),
            ("logits", pa.list_(pa.float32())),
            ("logsumexp", pa.list_(pa.float32())),
            ("text", pa.string()),
            ("prompt_tokens", pa.int32()),
            ("completion_tokens", pa.int32()),
            ("finish_reason", _WORD),
            ("error", pa.string()),
            ("inference_mode", _WORD),
        ]
    ),
    required=("request_id", "inference_mode"),
    key=("request_id",),
)

JUDGEMENTS = Contract(
    "judgements",
    pa.schema(
        [
            ("request_id", pa.string()),
            ("sample_id", _WORD),
            ("predicted", _WORD),
            ("revealed", pa.bool_()),
            ("error", pa.float64()),
            ("status", _WORD),
            ("rule", _WORD),
        ]
    ),
    required=("request_id", "sample_id", "status", "rule"),
    key=("request_id",),
)

METRICS = Contract(
    "metrics",
    pa.schema(
        [
            ("paper", pa.string()),
            ("experiment", pa.string()),
            ("dataset", pa.string()),
            ("model", pa.string()),
            ("setting", pa.string()),
            ("shots", pa.int32()),
            ("run", pa.int32()),
            ("image_source", pa.string()),
            ("prompt", pa.string()),
            ("attribute", pa.string()),
            ("group", pa.string()),
            ("item", pa.string()),
            ("metric", pa.string()),
            ("value", pa.float64()),
            ("n", pa.int64()),
            ("ci_low", pa.float64()),
            ("ci_high", pa.float64()),
            ("p", pa.float64()),
            ("p_adjusted", pa.float64()),
            ("effect", pa.float64()),
        ]
    ),
    required=("paper", "experiment", "model", "metric"),
    key=(
        *("paper", "experiment", "dataset", "model", "setting", "shots", "run"),
        *("image_source", "prompt", "attribute", "group", "item", "metric"),
    ),
)


def conform(table: pa.Table, contract: Contract) -> pa.Table:
    """Return `table` in the contract's column order and types; columns beyond it stay at the end.

    A missing column is filled with nulls unless it is required. Raises ContractError on a
    missing required column, a null in one, a value that does not fit the type, or a repeated key.
    """
    columns: dict[str, Any] = {}
    for field in contract.schema:
        if field.name not in table.column_names:
            if field.name in contract.required:
                raise ContractError(
                    f"{contract.name}: column {field.name} is missing. Add it in the step that "
                    f"writes this table."
                )
            columns[field.name] = pa.nulls(len(table), field.type)
            continue
        try:
            columns[field.name] = table[field.name].cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ContractError(
                f"{contract.name}: column {field.name} does not fit {field.type}: "
                f"{reason_of(error)}. Convert it in the step that writes this table."
            ) from error
    for name in table.column_names:
        columns.setdefault(name, table[name])
    result = pa.table(columns)
    _check_rows(result, contract)
    return result


def _check_rows(table: pa.Table, contract: Contract) -> None:
    for name in contract.required:
        if table[name].null_count:
            raise ContractError(
                f"{contract.name}: column {name} has {table[name].null_count} empty values. "
                f"Record such rows as problems in the step that writes this table."
            )
    if contract.key and len(table):
        keys = table.select(list(contract.key))
        groups = keys.group_by(list(contract.key)).aggregate([([], "count_all")])
        if len(groups) != len(keys):
            twice = groups.filter(pc.greater(groups["count_all"], 1)).slice(0, 1).to_pylist()[0]
            shown = {name: twice[name] for name in contract.key if twice[name] not in (None, "")}
            raise ContractError(
                f"{contract.name}: the row {shown} appears {twice['count_all']} times. "
                f"Remove the repetition in the step that writes this table."
            )


def write_table(
    path: str | os.PathLike[str],
    table: pa.Table,
    contract: Contract,
    *,
    manifest: Mapping[str, Any] | None = None,
    row_group_size: int | None = None,
) -> None:
    """Write a table as Parquet and its manifest beside it, each whole or not at all.

    The manifest `<name>.manifest.json` states the contract, the number of rows, the library
    versions and whatever `manifest` adds. Raises ContractError as `conform` does.
    """
    conformed = conform(table, contract)
    target = Path(path)
    content = {
        "contract": contract.name,
        "rows": len(conformed),
        "columns": conformed.column_names,
        "libraries": library_versions(),
        **(manifest or {}),
    }
    with atomic_path(target) as temporary:
        pq.write_table(conformed, temporary, compression="zstd", row_group_size=row_group_size)
        # Only once the table is whole, and before its name appears.
        write_json(manifest_path(target), content)


def manifest_path(path: str | os.PathLike[str]) -> Path:
    """Return where the manifest of a table lies: `a/b.parquet` -> `a/b.manifest.json`."""
    return Path(path).with_suffix(".manifest.json")


def read_table(
    path: str | os.PathLike[str],
    contract: Contract,
    *,
    columns: Collection[str] | None = None,
    filters: Any = None,
) -> pa.Table:
    """Read a table and check that it has the contract's required columns (or the ones asked for).

    Raises ContractError when the file is missing, not Parquet, or lacks a column.
    """
    try:
        table = pq.read_table(path, columns=list(columns) if columns else None, filters=filters)
    except FileNotFoundError as error:
        raise ContractError(
            f"{path}: the {contract.name} table is missing. Run the step that writes it."
        ) from error
    except pa.ArrowInvalid as error:
        raise ContractError(
            f"{path}: not a readable {contract.name} table ({reason_of(error)}). "
            f"Delete it and run again."
        ) from error
    wanted = columns if columns is not None else contract.required
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise ContractError(
            f"{path}: {contract.name} lacks the columns {', '.join(missing)}. "
            f"Delete it and run again."
        )
    return table


def assert_same_ids(expected: Collection[str], found: Collection[str], what: str) -> None:
    """Raise ContractError unless `found` holds each expected id exactly once and nothing else."""
    found_set, expected_set = set(found), set(expected)
    missing, unknown = expected_set - found_set, found_set - expected_set
    repeated = len(found) - len(found_set)
    if missing or unknown or repeated:
        example = next(iter(sorted(missing) or sorted(unknown)), "")
        raise ContractError(
            f"{what}: {len(missing)} of {len(expected_set)} ids are missing, {len(unknown)} are "
            f"unknown and {repeated} are repeated (for example {example!r}). "
            f"Delete the shards of this table and run again; stored answers are reused."
        )
