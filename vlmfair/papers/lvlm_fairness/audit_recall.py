"""Checks of recalls, of their differences and of the F1 that follows: Tables 2, 3 and 13."""

from __future__ import annotations

from vlmfair.audit.cells import Cell
from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_numbers import (
    ATTRIBUTES,
    PaperNumbers,
    count_of,
    difference_of_printed,
    row,
)

RACES = ("White", "Black", "Asian", "Indian")
UTKFACE_SIZES = {
    **{group: f"Gender {group}" for group in ("Male", "Female")},
    **{group: f"Race {group}" for group in RACES},
}
FACET_PANELS = tuple(f"Table 2{attribute.panel}" for attribute in ATTRIBUTES)
F1_PANELS = tuple(f"Table 13{attribute.panel}" for attribute in ATTRIBUTES)


def recall_checks(numbers: PaperNumbers) -> list[AuditRow]:
    """Return every check of Tables 2, 3 and 13."""
    return [
        *_facet_recalls(numbers),
        *_invalid_answers(numbers),
        *_utkface_recalls(numbers),
        *_swapped_sizes(numbers),
        *_disparities(numbers),
        *_printed_disparities(numbers),
        *_unknown_people(numbers),
        *_f1(numbers),
        *_f1_disparities(numbers),
    ]


def count_row(check: str, share: Cell, people: int) -> AuditRow:
    """Check that a printed share is that of a whole number of people."""
    count = count_of(share, people)
    nearest = round(share.number * people)
    found = f"{nearest} of {people}" if count is None else f"{count} of {people}"
    nearest_share = f"{nearest / people:.{share.decimals}f}"
    return row(
        check,
        share.location,
        share.value,
        found if count is not None else f"no count; {found} is {nearest_share}",
        ok=count is not None,
    )


def _facet_recalls(numbers: PaperNumbers) -> list[AuditRow]:
    return [
        count_row("recall_is_count", cell, numbers.group_size(attribute, group))
        for attribute, place in zip(ATTRIBUTES, FACET_PANELS, strict=True)
        for group in attribute.groups
        for cell in numbers.of(place)
        if cell.column == f"R_{group}"
    ]


def _invalid_answers(numbers: PaperNumbers) -> list[AuditRow]:
    """Check "invalid answers are [...] excluded from the recall" (section 3.5)."""
    whole = _facet_recalls(numbers)
    fitting = sum(entry.ok for entry in whole)
    return [
        row(
            "invalid_answers_excluded",
            "Section 3.5 and Table 2",
            "invalid answers excluded",
            f"{fitting} of {len(whole)} recalls are counts of the whole group",
            ok=fitting < len(whole),
        )
    ]


def _utkface_recalls(numbers: PaperNumbers) -> list[AuditRow]:
    return [
        count_row("recall_is_count", cell, numbers.people(size, "UTKFace"))
        for group, size in UTKFACE_SIZES.items()
        for cell in numbers.of("Table 3")
        if cell.column == f"R_{group}"
    ]


def _swapped_sizes(numbers: PaperNumbers) -> list[AuditRow]:
    """Check which of Table 1's sizes of Asian and Indian the recalls of Table 3 are counts of."""

    def fitting(group: str, size: int) -> int:
        recalls = [cell for cell in numbers.of("Table 3") if cell.column == f"R_{group}"]
        return sum(count_of(cell, size) is not None for cell in recalls)

    sizes = {group: numbers.people(f"Race {group}", "UTKFace") for group in ("Asian", "Indian")}
    swapped = dict(zip(sizes, reversed(sizes.values()), strict=True))
    as_printed = sum(fitting(group, size) for group, size in sizes.items())
    as_swapped = sum(fitting(group, size) for group, size in swapped.items())
    rows = len(numbers.rows_of("Table 3"))

    def statement(named: dict[str, int], fits: int) -> str:
        return f"Asian {named['Asian']}, Indian {named['Indian']}: {fits} of {rows} recalls fit"

    return [
        row(
            "sizes_of_asian_and_indian",
            "Table 1, UTKFace and Table 3",
            statement(sizes, as_printed),
            statement(swapped, as_swapped),
            ok=as_printed >= as_swapped,
        )
    ]


def _disparities(numbers: PaperNumbers) -> list[AuditRow]:
    """Check GD = R1 - R2 (section 3.5), for Table 2 with recalls before rounding."""
    rows = []
    for attribute, place in zip(ATTRIBUTES, FACET_PANELS, strict=True):
        for model, prompt in numbers.rows_of(place):
            cell = numbers.cell(place, model, prompt, attribute.disparity)
            exact = numbers.disparity(model, prompt, attribute)
            rows.append(exact_row("disparity_is_difference", cell, exact))
    for cell, first, second in _utkface_pairs(numbers):
        # Three rounded numbers: the difference may be off by one unit of the last decimal.
        difference = difference_of_printed(first, second)
        unit = 10**-cell.decimals
        near = abs(float(difference) - cell.number) < 1.5 * unit
        rows.append(row("disparity_is_difference", cell.location, cell.value, difference, ok=near))
    return rows


def exact_row(check: str, cell: Cell, exact: float) -> AuditRow:
    """Check a printed number against the same number before it was rounded."""
    return row(
        check, cell.location, cell.value, f"{exact:.{cell.decimals}f}", ok=cell.agrees_with(exact)
    )


def _utkface_pairs(numbers: PaperNumbers) -> list[tuple[Cell, Cell, Cell]]:
    pairs = []
    for cell in numbers.of("Table 3"):
        if cell.column.startswith("GD_"):
            first, second = (
                numbers.cell("Table 3", cell.model, cell.prompt, f"R_{group}")
                for group in cell.column.removeprefix("GD_").split("-")
            )
            pairs.append((cell, first, second))
    return pairs


def _printed_disparities(numbers: PaperNumbers) -> list[AuditRow]:
    """Check disparities against the printed values alone: what differs is rounding."""
    pairs = _utkface_pairs(numbers)
    for measure, panels in (("R", FACET_PANELS), ("F1", F1_PANELS)):
        for attribute, place in zip(ATTRIBUTES, panels, strict=True):
            first, last = attribute.groups[0], attribute.groups[-1]
            for model, prompt in numbers.rows_of(place):
                pairs.append(
                    (
                        numbers.cell(place, model, prompt, attribute.disparity),
                        numbers.cell(place, model, prompt, f"{measure}_{first}"),
                        numbers.cell(place, model, prompt, f"{measure}_{last}"),
                    )
                )
    return [
        row(
            "disparity_of_rounded_values",
            cell.location,
            cell.value,
            difference_of_printed(first, second),
        )
        for cell, first, second in pairs
    ]


def _unknown_people(numbers: PaperNumbers) -> list[AuditRow]:
    """Check that what the named groups leave of the right answers fits the unknown group."""
    rows = []
    for attribute, place in zip(ATTRIBUTES[1:], FACET_PANELS[1:], strict=True):
        unknown = numbers.group_size(attribute, "Unknown")
        for model, prompt in numbers.rows_of(place):
            named = sum(
                numbers.right(model, prompt, attribute, group) for group in attribute.groups
            )
            rest = numbers.right_in_total(model, prompt) - named
            rows.append(
                row(
                    "right_answers_of_unknown_group",
                    f"{place}, {model}, {prompt}",
                    f"0 to {unknown}",
                    rest,
                    ok=0 <= rest <= unknown,
                )
            )
    return rows


def f1_of_shares(right: int, people: int, right_in_total: int) -> float:
    """Return the F1 of Table 13: precision is the group's share of all right answers.

    2PR / (P + R) with P = right / right_in_total and R = right / people.
    """
    return 2 * right / (people + right_in_total)


def _f1(numbers: PaperNumbers) -> list[AuditRow]:
    return [
        exact_row(
            "f1_follows_from_recall",
            numbers.cell(place, model, prompt, f"F1_{group}"),
            f1_of_shares(
                numbers.right(model, prompt, attribute, group),
                numbers.group_size(attribute, group),
                numbers.right_in_total(model, prompt),
            ),
        )
        for attribute, place in zip(ATTRIBUTES, F1_PANELS, strict=True)
        for model, prompt in numbers.rows_of(place)
        for group in attribute.groups
    ]


def _f1_disparities(numbers: PaperNumbers) -> list[AuditRow]:
    rows = []
    for attribute, place in zip(ATTRIBUTES, F1_PANELS, strict=True):
        for model, prompt in numbers.rows_of(place):
            total = numbers.right_in_total(model, prompt)
            first, last = (
                f1_of_shares(
                    numbers.right(model, prompt, attribute, group),
                    numbers.group_size(attribute, group),
                    total,
                )
                for group in (attribute.groups[0], attribute.groups[-1])
            )
            cell = numbers.cell(place, model, prompt, attribute.disparity)
            rows.append(exact_row("f1_disparity_is_difference", cell, first - last))
    return rows
