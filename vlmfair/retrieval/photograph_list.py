"""The list of photographs: which are there, and why the others are not."""

from __future__ import annotations

import csv
import io
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from vlmfair.provenance import write_text

LIST = "photographs.csv"
OK, BY_HAND = "ok", "by_hand"
# Why a photograph is missing.
MISSING = {
    "refused": "the address, or one that it leads to, is none of the public web",
    "gone": "the server does not have it any more (404 or 410)",
    "forbidden": "the server does not give it out (401, 402, 403 or 451)",
    "server_error": "the server answers with another error",
    "unreachable": "the server is not there, or its name is unknown",
    "timed_out": "the server is too slow",
    "too_large": "there are more bytes, or pixels, than a photograph has",
    "no_image": "what comes is no image that can be decoded",
    "placeholder": "what comes stands for other photographs, too: a sign that they are gone",
}


@dataclass(frozen=True)
class Wanted:
    """A photograph: the number it is kept under, its address, and what tells it from others.

    `photograph` is the same for two addresses of one photograph.
    """

    number: str
    address: str
    photograph: str


@dataclass(frozen=True)
class Found:
    """What became of one photograph; the columns of the list.

    `status` is ok, by_hand (it was there and is not ours), or a key of `MISSING`. `file` is its
    name in the folder of images, `final_address` the one behind all redirects.
    """

    number: str
    status: str
    address: str
    final_address: str = ""
    file: str = ""
    bytes: int = 0
    sha256: str = ""
    width: int = 0
    height: int = 0
    detail: str = ""


COLUMNS = tuple(field.name for field in fields(Found))


def read_list(path: str | os.PathLike[str]) -> list[Found]:
    """Read a list that `write_list` wrote; empty where there is none that can be read."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as opened:
            return [_read_row(row) for row in csv.DictReader(opened)]
    except (OSError, KeyError, ValueError, TypeError):
        return []


def _read_row(row: Mapping[str, str]) -> Found:
    return Found(
        number=row["number"],
        status=row["status"],
        address=row["address"],
        final_address=row["final_address"],
        file=row["file"],
        bytes=int(row["bytes"]),
        sha256=row["sha256"],
        width=int(row["width"]),
        height=int(row["height"]),
        detail=row["detail"],
    )


def write_list(
    path: str | os.PathLike[str], found: Iterable[Found], wanted: Sequence[Wanted]
) -> None:
    """Write what became of photographs, in the order of `wanted`, whole or not at all."""
    places = {one.number: place for place, one in enumerate(wanted)}
    written = io.StringIO()
    lines = csv.writer(written, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows(astuple(one) for one in sorted(found, key=lambda one: places[one.number]))
    write_text(path, written.getvalue())


def count_by_status(found: Iterable[Found]) -> dict[str, int]:
    """Return how many photographs have each status, the most frequent first."""
    counts: dict[str, int] = defaultdict(int)
    for one in found:
        counts[one.status] += 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
