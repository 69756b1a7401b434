"""Reading annotations in JSON: whole files, and files with one record per line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from vlmfair.errors import RawDataError

Reduce = Callable[[dict[str, Any]], Any]


def read_json(path: Path, *, fetch: str, reduce: Reduce | None = None) -> Any:
    """Return the content of a JSON file; raises RawDataError when it is missing or no JSON.

    `reduce` gets each object as soon as it is read, and returns what is kept of it: whole files
    of annotations would fill the memory.
    """
    try:
        return parse_json(path.read_bytes(), reduce)
    except FileNotFoundError as error:
        raise RawDataError(f"{path}: the file is missing. {fetch}") from error
    except OSError as error:
        raise RawDataError(f"{path}: the file cannot be read ({error}). {fetch}") from error
    except ValueError as error:
        raise RawDataError(f"{path}: not a JSON file ({error}). {fetch}") from error


def parse_json(content: bytes | str, reduce: Reduce | None = None) -> Any:
    """Return the value of a JSON text; raises ValueError on anything else, however deep it nests.

    A byte order mark is no fault.
    """
    text = content.decode("utf-8-sig", errors="replace") if isinstance(content, bytes) else content
    try:
        return json.loads(text, object_hook=reduce)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def read_lines(path: Path, *, fetch: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not empty; raises RawDataError without a file."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as opened:
            for number, line in enumerate(opened, start=1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise RawDataError(f"{path}: the file is missing. {fetch}") from error
    except OSError as error:
        raise RawDataError(f"{path}: the file cannot be read ({error}). {fetch}") from error


def text_of(record: Any, key: str) -> str | None:
    """Return a text of a JSON object without spaces around it; None when it is none or empty."""
    value = record.get(key) if isinstance(record, dict) else None
    if not isinstance(value, str):
        return None
    # A lone surrogate, which JSON can hold, cannot be stored.
    cleaned = " ".join(value.encode("utf-8", "replace").decode("utf-8").split())
    return cleaned or None
