"""A table described once and written three times: csv for numbers, LaTeX for print, HTML."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from vlmfair.render.files import write_together
from vlmfair.render.table import Column, Table
from vlmfair.render.table_html import table_page
from vlmfair.render.table_tex import table_tex

__all__ = ["Column", "Table", "write_table_files"]


def write_table_files(
    table: Table, stem: str | os.PathLike[str], label: str, *, title: str | None = None
) -> list[Path]:
    """Write `<stem>.csv`, `.tex` and `.html`; all three appear, or none.

    `label` is what LaTeX refers to the table by; `title`, where given, replaces the table's own.
    """
    if title is not None:
        table = replace(table, title=title)
    base = os.fspath(stem)
    return write_together(
        {
            f"{base}.csv": table.data.to_csv(index=False, lineterminator="\n").encode("utf-8"),
            f"{base}.tex": table_tex(table, label).encode("utf-8"),
            f"{base}.html": table_page(table).encode("utf-8"),
        }
    )
