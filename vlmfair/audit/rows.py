"""The rows of the audit: one statement of a paper beside what its own numbers give."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from os import PathLike

from vlmfair.provenance import write_text

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class AuditRow:
    """One checked statement: where it is, what is printed there, what was recomputed.

    `ok` is false where the two do not agree. That is a finding about the paper, not a failure.
    """

    paper: str
    check: str
    location: str
    published: str
    recomputed: str
    ok: bool


def compare(
    paper: str,
    check: str,
    location: str,
    published: object,
    recomputed: object,
    ok: bool | None = None,
) -> AuditRow:
    """Return a row of the audit; without `ok`, the two texts must be equal."""
    left, right = str(published), str(recomputed)
    return AuditRow(paper, check, location, left, right, left == right if ok is None else bool(ok))


COLUMNS = tuple(field.name for field in fields(AuditRow))


def write_rows(rows: Iterable[AuditRow], path: str | PathLike[str]) -> None:
    """Write rows as a csv with the columns COLUMNS, whole or not at all; ok is true or false."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        *texts, ok = astuple(row)
        writer.writerow([*texts, "true" if ok else "false"])
    write_text(path, buffer.getvalue())


def write_audit(rows: Sequence[AuditRow], path: str | PathLike[str]) -> None:
    """Write the rows of all papers and log every one that does not agree."""
    write_rows(rows, path)
    for row in rows:
        if not row.ok:
            _LOGGER.info(
                "%s: %s: printed %s, gives %s",
                *(row.location, row.check, row.published, row.recomputed),
            )
    _LOGGER.info("%s; see %s", summary(rows), path)


def summary(rows: Iterable[AuditRow]) -> str:
    """Return one line that counts the checks and those that do not agree."""
    listed = list(rows)
    wrong = sum(not row.ok for row in listed)
    return f"{len(listed)} checks of published numbers, {wrong} do not agree"


def in_words(number: float, decimals: int | None = None) -> str:
    """Return a number as a table prints it: whole numbers without a point, others as asked."""
    if decimals is not None:
        return f"{number:.{decimals}f}"
    return f"{number:.0f}" if float(number).is_integer() else f"{number:.10g}"
