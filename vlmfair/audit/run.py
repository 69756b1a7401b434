"""Runs the audit of every paper and writes one table of findings."""

from __future__ import annotations

import importlib
import logging
from os import PathLike
from pathlib import Path

from vlmfair.audit.rows import AuditRow, summary, write_rows

_LOGGER = logging.getLogger(__name__)

# Each module offers audit(published_path, results_dir | None) -> list[AuditRow].
AUDITS = {"gras": "vlmfair.papers.gras.audit"}


def run_audit(
    published_dir: str | PathLike[str],
    gras_evaluation_results: str | PathLike[str] | None,
    out: str | PathLike[str],
) -> list[AuditRow]:
    """Check the published numbers of every paper and write `out` (csv, one row per statement).

    `published_dir` holds `<paper>.csv`. `gras_evaluation_results` is a folder with the result files
    that the GRAS authors published; None leaves out the checks that need it. Raises RawDataError
    on a result file that is missing or not as published, ConfigError on a bad published table.
    """
    results: dict[str, Path | None] = {
        "gras": Path(gras_evaluation_results) if gras_evaluation_results else None
    }
    rows: list[AuditRow] = []
    for paper, module in AUDITS.items():
        check = importlib.import_module(module).audit
        rows.extend(check(Path(published_dir) / f"{paper}.csv", results.get(paper)))
    write_rows(rows, out)
    for row in rows:
        if not row.ok:
            _LOGGER.info(
                "%s: %s: printed %s, gives %s",
                *(row.location, row.check, row.published, row.recomputed),
            )
    _LOGGER.info("%s; see %s", summary(rows), out)
    return rows
