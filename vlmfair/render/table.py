"""What a table says, apart from the format it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd


@dataclass(frozen=True)
class Column:
    """One shown column: its heading, the heading it shares with neighbours, and its alignment.

    `width` in inches makes a column whose text wraps in print.
    """

    label: str
    spanner: str = ""
    align: str = "right"
    width: float | None = None


@dataclass(frozen=True)
class Table:
    """What a table says: `data` holds the raw numbers, `rows` the formatted cells that are shown.

    The first `stubs` columns name the row; in all of them but the last, a repeated name is shown
    once. A cell is plain text from anywhere: it is escaped when it is written.
    """

    title: str
    data: pd.DataFrame
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    stubs: int = 1

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"{self.title}: a row has {len(row)} cells and the table "
                    f"{len(self.columns)} columns. Give one cell per column."
                )


@dataclass(frozen=True)
class Cell:
    """One shown cell; `span` counts the rows it covers, 0 when the cell above covers it."""

    text: str
    align: str
    wraps: bool
    stub: bool
    span: int


def spanners(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Return the shared headings with how many columns each covers; empty if there are none."""
    runs = [(text, len(list(run))) for text, run in groupby(columns, lambda c: c.spanner)]
    return runs if any(text for text, _ in runs) else []


def cells(table: Table) -> list[list[Cell]]:
    """Return the rows of cells, repeated row names merged downwards."""
    spans = [[1] * len(table.columns) for _ in table.rows]
    for level in range(table.stubs - 1):
        start = 0
        for i in range(1, len(table.rows)):
            if table.rows[i][: level + 1] == table.rows[start][: level + 1]:
                spans[start][level] += 1
                spans[i][level] = 0
            else:
                start = i
    return [
        [
            Cell(text, column.align, column.width is not None, position < table.stubs, span)
            for position, (text, column, span) in enumerate(zip(row, table.columns, spans[i]))
        ]
        for i, row in enumerate(table.rows)
    ]
