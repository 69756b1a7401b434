"""Checks of the answers before and after the rationale: Tables 4 and 5."""

from __future__ import annotations

from vlmfair.audit.cells import Cell
from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_numbers import (
    GENDER,
    SINGLE_CHOICE,
    PaperNumbers,
    known_name,
    row,
)
from vlmfair.papers.lvlm_fairness.audit_recall import count_row, exact_row

ANSWERS = ("Yes", "No", "Unknown")
BEFORE, AFTER, CHANGE = "Raw", "W/ Rationale", "Imp (%)"
RECALLS = tuple(f"R_{group}" for group in GENDER.groups)
MEASURES = (*RECALLS, GENDER.disparity)


def rationale_checks(numbers: PaperNumbers) -> list[AuditRow]:
    """Return every check of Tables 4 and 5."""
    models = [model for model, _ in numbers.rows_of("Table 4")]
    rows = [entry for model in models for entry in _model_checks(numbers, model)]
    return rows + _improved(numbers, models) + _answers(numbers)


def _cell(numbers: PaperNumbers, model: str, measure: str, when: str) -> Cell:
    return numbers.cell("Table 4", model, SINGLE_CHOICE, f"{measure} {when}")


def _exact(numbers: PaperNumbers, model: str, measure: str, when: str) -> float:
    """Return a value of Table 4 before it was rounded: a share of the group, or a difference."""
    if measure == GENDER.disparity:
        first, second = (_exact(numbers, model, recall, when) for recall in RECALLS)
        return first - second
    people = numbers.group_size(GENDER, measure.removeprefix("R_"))
    return round(_cell(numbers, model, measure, when).number * people) / people


def _model_checks(numbers: PaperNumbers, model: str) -> list[AuditRow]:
    rows = []
    for measure in MEASURES:
        before = _cell(numbers, model, measure, BEFORE)
        main = numbers.cell("Table 2a", model, SINGLE_CHOICE, measure)
        rows.append(row("before_is_table_2", before.location, before.value, main.value))
        for cell, when in ((before, BEFORE), (_cell(numbers, model, measure, AFTER), AFTER)):
            if measure in RECALLS:
                people = numbers.group_size(GENDER, measure.removeprefix("R_"))
                rows.append(count_row("recall_is_count", cell, people))
            else:
                exact = _exact(numbers, model, measure, when)
                rows.append(exact_row("disparity_is_difference", cell, exact))
        rows += _improvement(numbers, model, measure)
    return rows


def _improvement(numbers: PaperNumbers, model: str, measure: str) -> list[AuditRow]:
    """Check a percentage against recalls before rounding, and against what rounding allows."""
    cell = _cell(numbers, model, measure, CHANGE)
    before, after = (_cell(numbers, model, measure, when) for when in (BEFORE, AFTER))
    exact = [_exact(numbers, model, measure, when) for when in (BEFORE, AFTER)]
    half = 0.5 * 10**-before.decimals
    low, high = (
        100 * ((after.number + sign * half) / (before.number - sign * half) - 1) for sign in (-1, 1)
    )
    own = 0.5 * 10**-cell.decimals
    return [
        exact_row("improvement_before_rounding", cell, 100 * (exact[1] / exact[0] - 1)),
        row(
            "improvement_within_rounding",
            cell.location,
            cell.value,
            f"{low:.2f} to {high:.2f}",
            ok=low - own <= cell.number <= high + own,
        ),
    ]


def _improved(numbers: PaperNumbers, models: list[str]) -> list[AuditRow]:
    """Check "21 out of 27 metrics": recalls that rise and disparities that shrink."""
    caption = "Caption of Table 4"
    stated = [
        numbers.cell(caption, "", SINGLE_CHOICE, name).value for name in ("improved", "compared")
    ]
    changes = [
        (measure, _cell(numbers, model, measure, CHANGE).number)
        for model in models
        for measure in MEASURES
    ]
    better = sum(change > 0 if measure in RECALLS else change < 0 for measure, change in changes)
    return [
        row(
            "metrics_improved",
            caption,
            f"{stated[0]} of {stated[1]}",
            f"{better} of {len(changes)}",
        )
    ]


def _answers(numbers: PaperNumbers) -> list[AuditRow]:
    rows = []
    for model, prompt in numbers.rows_of("Table 5"):
        before = {name: _count(numbers, model, f"Raw {name}") for name in ANSWERS}
        moved = {
            (name, other): _count(numbers, model, f"Raw {name} to {other}")
            for name in ANSWERS
            for other in ANSWERS
        }
        where = f"Table 5, {model}"
        people = numbers.people("Persons")
        rows.append(row("answers_in_total", where, people, sum(before.values())))
        rows += [
            row(
                "answers_after_add_up",
                f"{where}, {name}",
                before[name],
                sum(moved[name, other] for other in ANSWERS),
            )
            for name in ANSWERS
        ]
        rows += [
            row(
                "yes_before_is_recall_of_table_2",
                f"{where} and Table 2a",
                before["Yes"],
                numbers.right_in_total(model, prompt),
            ),
            row(
                "yes_after_is_recall_of_table_4",
                f"{where} and Table 4",
                sum(moved[name, "Yes"] for name in ANSWERS),
                _right_after(numbers, model),
            ),
        ]
    return rows


def _count(numbers: PaperNumbers, model: str, column: str) -> int:
    return int(numbers.cell("Table 5", model, SINGLE_CHOICE, column).number)


def _right_after(numbers: PaperNumbers, model: str) -> int:
    return sum(
        round(_cell(numbers, known_name(model), f"R_{group}", AFTER).number * people)
        for group in GENDER.groups
        for people in [numbers.group_size(GENDER, group)]
    )
