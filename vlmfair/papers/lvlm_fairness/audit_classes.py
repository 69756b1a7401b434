"""Checks of the disparities by occupation, Tables 9 to 11: which groups have anybody in them."""

from __future__ import annotations

from collections.abc import Sequence

from vlmfair.audit.cells import Cell
from vlmfair.audit.published import rounds_to
from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_numbers import (
    AGE,
    GENDER,
    LVLMS,
    SKIN_TONE,
    PaperNumbers,
    known_name,
    listed,
    row,
)

CLASS_TABLES = {"Table 9": GENDER, "Table 10": SKIN_TONE, "Table 11": AGE}
PANELS = ("a", "b")
# With 16 numbers of four decimals, a common denominator up to here is no accident: the chance is
# below (1000 / 10000) ** 16 for each.
LARGEST_DENOMINATOR = 1000
# A recall that some answer leaves no more room than this: the group is empty or never recognised.
NEARLY_NONE = 0.1


def class_checks(numbers: PaperNumbers) -> list[AuditRow]:
    """Return every check of Tables 9 to 11."""
    rows = []
    for table, attribute in CLASS_TABLES.items():
        places = [f"{table}{panel}" for panel in PANELS]
        cells = numbers.of(*places)
        rows += [_models(numbers, place) for place in places]
        for occupation in dict.fromkeys(cell.column for cell in cells):
            printed = [cell for cell in cells if cell.column == occupation]
            rows.append(_two_groups(table, occupation, attribute.groups, printed))
    return rows


def _models(numbers: PaperNumbers, place: str) -> AuditRow:
    """Check "results for each individual class and model" (appendix A.5)."""
    shown = {known_name(model) for model, _ in numbers.rows_of(place)}
    missing = [model for model in LVLMS if model not in shown]
    return row(
        "every_model_is_shown",
        f"Appendix A.5 and {place}",
        f"{len(LVLMS)} models",
        f"{len(LVLMS) - len(missing)} models; not shown: {listed(missing)}",
        ok=not missing,
    )


def common_denominator(cells: Sequence[Cell]) -> int | None:
    """Return the smallest N so that every cell is a rounded k / N; None above LARGEST_DENOMINATOR.

    A difference of two recalls is a multiple of 1 / (least common multiple of the two sizes).
    """
    for size in range(1, LARGEST_DENOMINATOR + 1):
        if all(
            rounds_to(round(cell.number * size) / size, cell.number, cell.decimals)
            for cell in cells
        ):
            return size
    return None


def _two_groups(
    table: str, occupation: str, groups: Sequence[str], cells: Sequence[Cell]
) -> AuditRow:
    """Check that both groups of a class can have been recognised by some model.

    When one group's recall is 0 throughout, all disparities have one sign and are shares of the
    other group, and the largest one leaves next to nothing of the missing group's recall.
    """
    denominator = common_denominator(cells)
    signs = {cell.number > 0 for cell in cells}
    largest = max(abs(cell.number) for cell in cells)
    lonely = denominator is not None and len(signs) == 1 and 1 - largest <= NEARLY_NONE
    shares = (
        f"multiples of 1/{denominator}"
        if denominator
        else f"no common denominator up to {LARGEST_DENOMINATOR}"
    )
    missing = groups[-1] if True in signs else groups[0]
    return row(
        "class_has_two_groups",
        f"{table}, {occupation}",
        f"{groups[0]} and {groups[-1]}",
        f"{shares}, up to {largest:.4f}: nobody {missing.lower()} recognised" if lonely else shares,
        ok=not lonely,
    )
