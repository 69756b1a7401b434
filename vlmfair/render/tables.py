"""A table described once and written three times: csv for numbers, LaTeX for print, HTML."""

from __future__ import annotations

import os
from pathlib import Path

from vlmfair.render.files import write_together
from vlmfair.render.table import Column, Table
from vlmfair.render.table_html import table_page
from vlmfair.render.table_tex import table_tex

__all__ = ["Column", "Table", "write_table_files"]


def write_table_files(table: Table, stem: str | os.PathLike[str], label: str) -> list[Path]:
    """Write `<stem>.csv`, `.tex` and `.html`; all three appear, or none.

    `label` is what LaTeX refers to the table by.
    """
    base = os.fspath(stem)
    return write_together(
        {
            f"{base}.csv": table.data.to_csv(index=False, lineterminator="\n").encode("utf-8"),
            f"{base}.tex": table_tex(table, label).encode("utf-8"),
            f"{base}.html": table_page(table).encode("utf-8"),
        }
    )
