"""Reading label files: columns by name, every row kept as text, broken rows noted, nothing lost."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv

from vlmfair.datasets.base import ProblemLog
from vlmfair.errors import RawDataError

LINE = "__line__"
PATH_COLUMNS = ("file", "Image Path")
WRITE_LIST = "Write a comma-separated file with a header."
# No label row is near this; a longer one would not fit the parsers' own buffers.
MAX_LINE = 131_072
BLOCK_BYTES = 16 * 1024 * 1024
_LINE_END = re.compile(r"\r\n|\r|\n")


def read_label_file(
    path: Path,
    required: Sequence[str | tuple[str, ...]],
    log: ProblemLog,
    *,
    fetch: str,
    separator: str = ",",
) -> pd.DataFrame:
    """Read a comma-separated file into text columns, one row per line that has all its fields.

    Accepts LF, CRLF and CR, a byte order mark, a missing final newline, empty lines, quotes and
    columns beyond `required`; a tuple in `required` lists names of which one must be there. With
    another `separator`, as the tabulator, a quotation mark is a character like any other. The
    column `__line__` holds line numbers. Rows that repeat the header or do not have as many
    fields as it go to `log`. Raises RawDataError when the file is missing, empty or lacks a column.
    """
    text = _read_text(path, fetch)
    lines = _LINE_END.split(text)
    first = next(index for index, line in enumerate(lines) if line.strip())
    if len(lines[first]) > MAX_LINE:
        raise RawDataError(f"{path}: the first line is too long for a header. {fetch}")
    quoted = separator == ","
    names = next(csv.reader([lines[first]])) if quoted else lines[first].split(separator)
    header = [name.strip() for name in names]
    _check_header(path, header, required, fetch)
    body, numbers = _whole_lines(lines, first + 1, path, log, quoted)
    table, broken = _parse(body, header, path, fetch, separator)
    # Parsed and broken rows share one numbering of the lines that went into the parser.
    places = np.array([place for place, _ in broken], dtype=np.int64)
    for place, line in broken:
        log.add(f"{path.name}:{numbers[place]}", "malformed_row", raw=line)
    frame = table.to_pandas()
    frame = frame.astype(object)
    frame[LINE] = np.delete(numbers, places)
    repeated = (frame[header] == pd.Series(header, index=header)).all(axis=1)
    for line, raw in zip(frame[repeated][LINE], json_rows(frame[repeated][header])):
        log.add(f"{path.name}:{line}", "repeated_header", raw=raw)
    return frame[~repeated].reset_index(drop=True)


def header_of(path: Path, *, fetch: str) -> list[str]:
    """Return the column names of a comma-separated file; raises RawDataError as the reader does."""
    lines = _LINE_END.split(_read_text(path, fetch))
    first = next(line for line in lines if line.strip())[:MAX_LINE]
    return [name.strip() for name in next(csv.reader([first]))]


def read_paths(path: Path, *, fetch: str = WRITE_LIST) -> list[str]:
    """Return the image paths in the column `file` or `Image Path` of a list.

    Raises RawDataError, with `fetch` as the remedy, when the file or the column is missing.
    """
    table = read_label_file(path, [PATH_COLUMNS], ProblemLog("list"), fetch=fetch)
    return list(table[next(name for name in PATH_COLUMNS if name in table.columns)])


def json_rows(table: pd.DataFrame) -> list[str]:
    """Return each row of text columns as one line of JSON, columns in order.

    Encodes each distinct value once: label files have millions of rows and few labels.
    """
    lines = np.full(len(table), "{", dtype=object)
    for place, name in enumerate(table.columns):
        codes, distinct = pd.factorize(table[name])
        encoded = np.array([json.dumps(str(v), ensure_ascii=False) for v in distinct], dtype=object)
        lines += f"{', ' if place else ''}{json.dumps(str(name), ensure_ascii=False)}: "
        lines += encoded[codes]
    lines += "}"
    return [str(line) for line in lines]


def _read_text(path: Path, fetch: str) -> str:
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise RawDataError(f"{path}: the label file is missing. {fetch}") from error
    except OSError as error:
        raise RawDataError(f"{path}: the label file cannot be read ({error}). {fetch}") from error
    text = content.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise RawDataError(f"{path}: the label file is empty. {fetch}")
    return text


def _check_header(
    path: Path, header: list[str], required: Sequence[str | tuple[str, ...]], fetch: str
) -> None:
    for wanted in required:
        names = (wanted,) if isinstance(wanted, str) else wanted
        if not any(name in header for name in names):
            shown, found = " or ".join(names), ", ".join(header)[:200]
            raise RawDataError(f"{path}: column {shown} is missing; the file has {found}. {fetch}")
    repeated = {name for name in header if header.count(name) > 1}
    if repeated:
        raise RawDataError(f"{path}: column {sorted(repeated)[0]} appears more than once. {fetch}")


def _whole_lines(
    lines: list[str], start: int, path: Path, log: ProblemLog, quoted: bool
) -> tuple[str, np.ndarray]:
    """Return the lines from `start` on and their numbers, without empty, endless, unbalanced ones.

    A quote that never closes would swallow every row after it. No label has a line break in it,
    so each line stands alone.
    """
    whole = []
    for index in range(start, len(lines)):
        if len(lines[index]) > MAX_LINE:
            detail = f"the row has {len(lines[index])} characters"
            log.add(f"{path.name}:{index + 1}", "malformed_row", detail, lines[index][:500])
        elif quoted and '"' in lines[index] and not _quotes_close(lines[index]):
            log.add(f"{path.name}:{index + 1}", "malformed_row", raw=lines[index])
        elif lines[index].strip():
            whole.append(index)
    body = "".join(lines[index] + "\n" for index in whole)
    return body, np.array(whole, dtype=np.int64) + 1


def _quotes_close(line: str) -> bool:
    try:
        next(csv.reader([line], strict=True), None)
    except csv.Error:
        return False
    return True


def _parse(
    body: str, header: list[str], path: Path, fetch: str, separator: str
) -> tuple[pa.Table, list[tuple[int, str]]]:
    """Return the rows as text columns, and the place and text of rows with other field counts."""
    broken: list[tuple[int, str]] = []

    def note(row: pa_csv.InvalidRow) -> str:
        broken.append((row.number - 1, row.text))
        return "skip"

    types = pa.schema([(name, pa.string()) for name in header])
    if not body.strip():
        return types.empty_table(), broken
    encoded = body.encode("utf-8")
    try:
        table = pa_csv.read_csv(
            io.BytesIO(encoded),
            read_options=pa_csv.ReadOptions(
                use_threads=False, column_names=header, block_size=BLOCK_BYTES
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=separator,
                quote_char='"' if separator == "," and '"' in body else False,
                invalid_row_handler=note,
            ),
            convert_options=pa_csv.ConvertOptions(column_types=types, strings_can_be_null=False),
        )
    except pa.ArrowInvalid as error:
        raise RawDataError(f"{path}: not a table of separated values ({error}). {fetch}") from error
    return table, broken
