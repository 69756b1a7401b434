"""Checks of Table 8: accuracy by encoder, and which encoder the recalls of Table 2 come from."""

from __future__ import annotations

from vlmfair.audit.rows import AuditRow
from vlmfair.papers.lvlm_fairness.audit_numbers import PaperNumbers, known_name, listed, row
from vlmfair.papers.lvlm_fairness.audit_recall import count_row

PLACE = "Table 8"
# Appendix A.3: "We use CLIP to show the main table results."
STATED = "Acc_CLIP"
ENCODERS = ("Acc_RE", STATED, "Acc_T5")


def encoder_checks(numbers: PaperNumbers) -> list[AuditRow]:
    """Return every check of Table 8."""
    people = numbers.people("Persons")
    counts = [count_row("accuracy_is_count", cell, people) for cell in numbers.of(PLACE)]
    return counts + _encoder_of_table_2(numbers)


def _encoder_of_table_2(numbers: PaperNumbers) -> list[AuditRow]:
    """Check that all right answers of Table 2 over all people are the accuracy of CLIP."""
    rows = []
    for model, prompt in numbers.rows_of(PLACE):
        accuracy = numbers.right_in_total(model, prompt) / numbers.people("Persons")
        cells = {name: numbers.cell(PLACE, model, prompt, name) for name in ENCODERS}
        fitting = [name for name, cell in cells.items() if cell.agrees_with(accuracy)]
        stated = cells[STATED]
        rows.append(
            row(
                "encoder_of_table_2",
                f"Table 2a, {known_name(model)}, {prompt} and {PLACE}, {model}",
                f"{stated.value} ({STATED})",
                f"{accuracy:.{stated.decimals}f} ({listed(fitting)})",
                ok=STATED in fitting,
            )
        )
    return rows
