"""Checks of Table 1's totals, of the models' names, and of sentences that repeat a number."""

from __future__ import annotations

from vlmfair.audit.cells import Cell
from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_numbers import PaperNumbers, known_name, row

# What repeats a cell, and where that cell is.
REPEATS = {"Section 4.3": "Table 3", "Caption of Table 5": "Table 5", "Section 6": "Table 5"}


def sentence_checks(numbers: PaperNumbers) -> list[AuditRow]:
    """Return the checks of Table 1, of names, and of captions and sections."""
    return [
        *_totals(numbers),
        *_names(numbers),
        *_repeated(numbers),
        *_largest_disparity(numbers),
    ]


def _totals(numbers: PaperNumbers) -> list[AuditRow]:
    """Check that the groups of each attribute sum to all people."""
    rows = []
    for dataset in ("FACET", "UTKFace"):
        groups: dict[str, int] = {}
        for cell in numbers.of(f"Table 1 {dataset}"):
            attribute, _, group = cell.column.rpartition(" ")
            if attribute and group:
                groups[attribute] = groups.get(attribute, 0) + int(cell.number)
        people = numbers.people("Persons", dataset)
        rows += [
            row("group_sizes_in_total", f"Table 1, {dataset}, {attribute}", people, total)
            for attribute, total in groups.items()
        ]
    return rows


def _names(numbers: PaperNumbers) -> list[AuditRow]:
    """Check each model's name in each table or section against section 4.1."""
    shown = dict.fromkeys((cell.place, cell.model) for cell in numbers.cells if cell.model)
    return [
        row("model_name", f"Section 4.1 and {place}", name, known_name(name))
        for place, name in shown
    ]


def _repeated(numbers: PaperNumbers) -> list[AuditRow]:
    rows = []
    for place, table in REPEATS.items():
        for cell in numbers.of(place):
            original = numbers.cell(table, cell.model, cell.prompt, cell.column)
            where = f"{place} and {original.location}"
            rows.append(row("number_in_text", where, cell.value, original.value))
    return rows


def _largest_disparity(numbers: PaperNumbers) -> list[AuditRow]:
    """Check "gender imbalances with disparities of up to -0.0614" (section 4.3)."""

    def lowest(cells: list[Cell]) -> Cell:
        gender = [cell for cell in cells if cell.column == "GD_Male-Female"]
        return min(gender, key=lambda cell: cell.number)

    stated, found = (lowest(numbers.of(place)) for place in ("Section 4.3", "Table 3"))
    return [
        row(
            "largest_disparity_in_text",
            stated.location,
            f"{stated.value} ({stated.model})",
            f"{found.value} ({found.model})",
        )
    ]
