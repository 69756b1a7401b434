"""Published tables cell by cell: where a cell stands and what is printed there."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, fields
from os import PathLike

from vlmfair.audit.published import read_columns, rounds_to
from vlmfair.errors import ConfigError

NOT_MEASURED = "N/A"


@dataclass(frozen=True)
class Cell:
    """One cell as printed: its table (`2`, or `Section 4.3` for a sentence), panel and headings.

    `prompt` is the prompt's key in the metrics table, `value` the printed text with its decimals
    and without a percent sign; `N/A` where the paper prints that nothing was measured.
    """

    table: str
    panel: str
    model: str
    prompt: str
    column: str
    value: str

    @property
    def number(self) -> float:
        """The printed number; NaN where nothing was measured."""
        return math.nan if self.value == NOT_MEASURED else float(self.value)

    @property
    def decimals(self) -> int:
        """How many decimals are printed."""
        return len(self.value.partition(".")[2])

    @property
    def place(self) -> str:
        """The table, its panel, or the section: `Table 2a`, `Table 1 FACET`, `Section 4.3`."""
        name = f"Table {self.table}" if self.table.isdigit() else self.table
        return name + (self.panel if len(self.panel) == 1 else f" {self.panel}".rstrip())

    @property
    def location(self) -> str:
        """The cell in words: `Table 2a, GPT-4o, p1, R_Male`."""
        parts = (self.place, self.model, self.prompt, self.column)
        return ", ".join(part for part in parts if part)

    def agrees_with(self, recomputed: float) -> bool:
        """Whether a recomputed number, rounded as the print is, is the printed one."""
        return rounds_to(recomputed, self.number, self.decimals)


CellKey = tuple[str, str, str, str]


def load_cells(path: str | PathLike[str]) -> tuple[Cell, ...]:
    """Read published cells in file order.

    Raises ConfigError on a missing file or column, an empty table or column name, a value that is
    neither a finite number nor N/A, and a cell that is there twice.
    """
    cells = tuple(Cell(**row) for row in read_columns(path, [field.name for field in fields(Cell)]))
    seen: dict[tuple[str, ...], int] = {}
    for number, cell in enumerate(cells, start=2):
        where = f"{path}, line {number}"
        _check_cell(cell, where)
        first = seen.setdefault(astuple(cell)[:-1], number)
        if first != number:
            raise ConfigError(f"{where}: this cell is in line {first} already. Remove one of them.")
    return cells


def _check_cell(cell: Cell, where: str) -> None:
    if not cell.table or not cell.column:
        raise ConfigError(f"{where}: table or column is empty. Say where the number is printed.")
    try:
        finite = cell.value == NOT_MEASURED or math.isfinite(float(cell.value))
    except ValueError:
        finite = False
    if not finite:
        raise ConfigError(
            f"{where}: value is {cell.value!r}. Write the printed number or {NOT_MEASURED}."
        )


def by_key(cells: tuple[Cell, ...]) -> dict[CellKey, Cell]:
    """Return the measured cells by (place, model, prompt, column)."""
    return {
        (cell.place, cell.model, cell.prompt, cell.column): cell
        for cell in cells
        if cell.value != NOT_MEASURED
    }
