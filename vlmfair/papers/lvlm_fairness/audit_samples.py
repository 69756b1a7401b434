"""Checks of Table 12: the gender disparity of balanced samples."""

from __future__ import annotations

from math import sqrt

from scipy.stats import chi2, norm

from vlmfair.audit.cells import Cell
from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_numbers import (
    GENDER,
    SINGLE_CHOICE,
    PaperNumbers,
    row,
)

PLACE = "Table 12"
SIZES = (500, 1000, 1500)
# Section 4.2: "For each sample, 20 experiments were run".
DRAWS = 20
# 54 random numbers are checked: one of them contradicts only if it would in 1 of 1,000 papers.
IMPROBABLE = 0.001 / (2 * 9 * len(SIZES))


def sample_checks(numbers: PaperNumbers) -> list[AuditRow]:
    """Return every check of Table 12."""
    rows = _raw(numbers)
    for model, _ in numbers.rows_of(PLACE):
        for size in SIZES:
            rows += _size_checks(numbers, model, size)
    return rows + _drawing(numbers)


def _raw(numbers: PaperNumbers) -> list[AuditRow]:
    rows = []
    for model, prompt in numbers.rows_of(PLACE):
        cell = numbers.cell(PLACE, model, prompt, "Raw")
        main = numbers.cell("Table 2a", model, prompt, GENDER.disparity)
        rows.append(row("raw_is_table_2", cell.location, cell.value, main.value))
    same = sum(entry.ok for entry in rows)
    caption = row(
        "caption_of_table_12",
        f"Caption of {PLACE}",
        "Model Accuracy",
        f"{same} of {len(rows)} raw values are the gender disparity of Table 2",
        ok=same == 0,
    )
    return [*rows, caption]


def expected_error(
    numbers: PaperNumbers, model: str, size: int, *, replacement: bool = False
) -> float:
    """Return the standard error of the mean disparity of 20 draws of `size` people per gender."""
    variance = 0.0
    for group in GENDER.groups:
        recall = numbers.recall(model, SINGLE_CHOICE, GENDER, group)
        people = numbers.group_size(GENDER, group)
        left = 1.0 if replacement else (people - size) / (people - 1)
        variance += recall * (1 - recall) / size * left
    return sqrt(variance / DRAWS)


def _printed(numbers: PaperNumbers, model: str, size: int) -> tuple[Cell, Cell]:
    average, error = (
        numbers.cell(PLACE, model, SINGLE_CHOICE, f"Sample {size} {name}")
        for name in ("Avg", "Error")
    )
    return average, error


def _size_checks(numbers: PaperNumbers, model: str, size: int) -> list[AuditRow]:
    """Check a mean and its error against what draws without replacement give."""
    average, error = _printed(numbers, model, size)
    expected = expected_error(numbers, model, size)
    raw = numbers.disparity(model, SINGLE_CHOICE, GENDER)
    reach = float(norm.isf(IMPROBABLE / 2)) * expected
    low, high = (
        expected * sqrt(float(chi2.ppf(share, DRAWS - 1)) / (DRAWS - 1))
        for share in (IMPROBABLE / 2, 1 - IMPROBABLE / 2)
    )
    return [
        row(
            "sample_average_is_possible",
            average.location,
            average.value,
            f"{raw - reach:.4f} to {raw + reach:.4f}",
            ok=abs(average.number - raw) <= reach,
        ),
        row(
            "sample_error_is_possible",
            error.location,
            error.value,
            f"{low:.4f} to {high:.4f}",
            ok=low <= error.number <= high,
        ),
    ]


def _drawing(numbers: PaperNumbers) -> list[AuditRow]:
    """Check by size that people were drawn without replacement: the errors would be larger."""
    rows = []
    models = [model for model, _ in numbers.rows_of(PLACE)]
    for size in SIZES:
        printed = [_printed(numbers, model, size)[1].number for model in models]

        def ratio(replacement: bool, size: int = size, printed: list[float] = printed) -> float:
            """Return the root of the mean squared ratio of printed errors to expected ones."""
            squares = [
                (error / expected_error(numbers, model, size, replacement=replacement)) ** 2
                for model, error in zip(models, printed, strict=True)
            ]
            return sqrt(sum(squares) / len(squares))

        without, with_replacement = ratio(False), ratio(True)
        rows.append(
            row(
                "drawn_without_replacement",
                f"Section 4.2 and {PLACE}, samples of {size}",
                "1.00 of the expected error",
                f"{without:.2f}; {with_replacement:.2f} if drawn with replacement",
                ok=abs(without - 1) <= abs(with_replacement - 1),
            )
        )
    return rows
