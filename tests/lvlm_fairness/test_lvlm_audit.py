"""The audit of the fairness of LVLMs: identities that hold, errors of the paper, misprints."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from vlmfair.audit.cells import Cell, load_cells
from vlmfair.audit.rows import AuditRow
from vlmfair.errors import ConfigError
from vlmfair.papers.lvlm_fairness.audit import audit
from vlmfair.papers.lvlm_fairness.audit_classes import class_checks, common_denominator
from vlmfair.papers.lvlm_fairness.audit_encoders import encoder_checks
from vlmfair.papers.lvlm_fairness.audit_numbers import AGE, GENDER, PaperNumbers, count_of
from vlmfair.papers.lvlm_fairness.audit_rationale import rationale_checks
from vlmfair.papers.lvlm_fairness.audit_recall import f1_of_shares, recall_checks
from vlmfair.papers.lvlm_fairness.audit_samples import expected_error, sample_checks
from vlmfair.papers.lvlm_fairness.audit_sentences import sentence_checks

CHECKS = (
    sentence_checks,
    recall_checks,
    rationale_checks,
    encoder_checks,
    class_checks,
    sample_checks,
)


@pytest.fixture(scope="module")
def published_path(root: Path) -> Path:
    return root / "resources/published/lvlm_fairness.csv"


@pytest.fixture(scope="module")
def cells(published_path: Path) -> tuple[Cell, ...]:
    return load_cells(published_path)


@pytest.fixture(scope="module")
def numbers(cells: tuple[Cell, ...]) -> PaperNumbers:
    return PaperNumbers(cells)


@pytest.fixture(scope="module")
def rows(published_path: Path) -> list[AuditRow]:
    return audit(published_path)


def rows_of(rows: list[AuditRow], check: str, where: str = "") -> list[AuditRow]:
    return [row for row in rows if row.check == check and where in row.location]


def wrong(rows: list[AuditRow], check: str) -> list[tuple[str, str, str]]:
    return [
        (row.location, row.published, row.recomputed) for row in rows_of(rows, check) if not row.ok
    ]


# ------------------------------------------------------------------------- what holds throughout


@pytest.mark.parametrize(
    ("check", "count"),
    [
        ("f1_follows_from_recall", 160),  # 20 rows of models and prompts, 2 + 3 + 3 groups
        ("f1_disparity_is_difference", 60),
        ("disparity_is_difference", 60 + 21 + 18),  # Tables 2, 3 and 4
        ("right_answers_of_unknown_group", 40),
        ("group_sizes_in_total", 5),
        ("before_is_table_2", 27),
        ("improvement_within_rounding", 27),
        ("answers_in_total", 3),
        ("answers_after_add_up", 9),
        ("yes_after_is_recall_of_table_4", 3),
        ("raw_is_table_2", 9),
        ("sample_average_is_possible", 27),
        ("sample_error_is_possible", 27),
        ("drawn_without_replacement", 3),
        ("number_in_text", 10),
        ("metrics_improved", 1),
    ],
)
def test_every_number_of_these_checks_agrees(rows: list[AuditRow], check: str, count: int) -> None:
    assert [row.ok for row in rows_of(rows, check)] == [True] * count


def test_every_recall_on_facet_is_a_count_of_the_whole_group(rows: list[AuditRow]) -> None:
    recalls = [row for row in rows_of(rows, "recall_is_count") if "Table 3" not in row.location]

    assert len(recalls) == 160 + 36  # Tables 2 and 4
    assert all(row.ok for row in recalls)
    # 2,722 / 3,821 = 0.71238, 2,721 would print as 0.7121 and 2,723 as 0.7126.
    (gpt,) = rows_of(recalls, "recall_is_count", "Table 2a, GPT-4o, p1, R_Male")
    assert (gpt.published, gpt.recomputed) == ("0.7124", "2722 of 3821")


def test_right_answers_add_up_to_the_printed_totals(numbers: PaperNumbers) -> None:
    # Table 5: Gemini 1.5 Pro answers Yes 4,443 times, LLaVA-1.6 (34B) 4,547 times.
    assert numbers.right_in_total("Gimini 1.5 Pro", "p2") == 4443
    assert numbers.right_in_total("LLaVA-1.6 (34B)", "p2") == 4547
    assert numbers.right("GPT-4o", "p1", AGE, "Old") == 327  # 0.6987 of 468
    assert numbers.disparity("GPT-4o", "p2", GENDER) == pytest.approx(3078 / 3821 - 1157 / 1660)


def test_f1_is_that_of_the_groups_share_of_right_answers() -> None:
    # Precision 30 / 120, recall 30 / 40: 2 * 0.25 * 0.75 / (0.25 + 0.75) = 0.375.
    assert f1_of_shares(30, 40, 120) == pytest.approx(0.375)


def test_the_error_of_a_mean_is_that_of_draws_without_replacement(numbers: PaperNumbers) -> None:
    male, female = 3078 / 3821, 1157 / 1660
    variance = male * (1 - male) / 1000 * 2821 / 3820 + female * (1 - female) / 1000 * 660 / 1659

    assert expected_error(numbers, "GPT-4o", 1000) == pytest.approx((variance / 20) ** 0.5)
    assert expected_error(numbers, "GPT-4o", 1660) < expected_error(
        numbers, "GPT-4o", 1660, replacement=True
    )


# ---------------------------------------------------------------------- the paper's known errors


def test_these_kinds_of_check_do_not_agree(rows: list[AuditRow]) -> None:
    assert Counter(row.check for row in rows if not row.ok) == {
        "model_name": 9,
        "largest_disparity_in_text": 1,
        "recall_is_count": 6,
        "invalid_answers_excluded": 1,
        "sizes_of_asian_and_indian": 1,
        "disparity_of_rounded_values": 37,
        "improvement_before_rounding": 4,
        "yes_before_is_recall_of_table_2": 1,
        "accuracy_is_count": 4,
        "encoder_of_table_2": 10,
        "every_model_is_shown": 6,
        "class_has_two_groups": 2,
        "caption_of_table_12": 1,
    }


def test_table_1_swaps_asian_and_indian(rows: list[AuditRow]) -> None:
    # UTKFace's file names have 3,586 Asian and 4,027 Indian faces.
    assert wrong(rows, "sizes_of_asian_and_indian") == [
        (
            "Table 1, UTKFace and Table 3",
            "Asian 4027, Indian 3586: 8 of 14 recalls fit",
            "Asian 3586, Indian 4027: 13 of 14 recalls fit",
        )
    ]
    assert {location.rpartition("_")[2] for location, _, _ in wrong(rows, "recall_is_count")} == {
        "Asian",
        "Indian",
    }


def test_sharegpt4v_34b_is_the_13b_model(rows: list[AuditRow]) -> None:
    names = {(printed, meant) for _, printed, meant in wrong(rows, "model_name")}
    (direct,) = rows_of(rows, "encoder_of_table_2", "p1 and Table 8, ShareGPT4V (34B)")

    assert names == {
        ("ShareGPT4V (34B)", "ShareGPT4V (13B)"),
        ("ShareGPT4V(13B)", "ShareGPT4V (13B)"),
        ("Gimini 1.5 Pro", "Gemini 1.5 Pro"),
        ("Gemini1.5Pro", "Gemini 1.5 Pro"),
    }
    assert (direct.recomputed, direct.ok) == ("0.6794 (Acc_CLIP)", True)


@pytest.mark.parametrize(
    ("prompt", "encoders"),
    [  # Llama-3.2-V fits none; LLaVA-1.5 (7B) fits none for the single choice
        ("p1", {"(Acc_CLIP)": 8, "(none)": 1}),
        ("p2", {"(Acc_RE)": 7, "(none)": 2}),
    ],
)
def test_single_choice_recalls_come_from_the_regular_expression(
    rows: list[AuditRow], prompt: str, encoders: dict[str, int]
) -> None:
    found = rows_of(rows, "encoder_of_table_2", f", {prompt} and")

    assert Counter(row.recomputed.partition(" ")[2] for row in found) == encoders


def test_llava_7b_has_two_numbers_of_yes(rows: list[AuditRow]) -> None:
    assert wrong(rows, "yes_before_is_recall_of_table_2") == [
        ("Table 5, LLaVA-1.5 (7B) and Table 2a", "5164", "5106")
    ]


def test_four_percentages_come_from_rounded_recalls(rows: list[AuditRow]) -> None:
    assert wrong(rows, "improvement_before_rounding") == [
        ("Table 4, GPT-4o, p2, R_Female Imp (%)", "14.86", "14.87"),
        ("Table 4, GPT-4o, p2, GD_Male-Female Imp (%)", "-33.79", "-33.73"),
        ("Table 4, Llama-3.2-V (11B), p2, R_Male Imp (%)", "1.46", "1.45"),
        ("Table 4, Llama-3.2-V (11B), p2, GD_Male-Female Imp (%)", "-44.91", "-44.93"),
    ]


def test_no_old_skateboarder_or_student_is_ever_recognised(rows: list[AuditRow]) -> None:
    found = {row.location: row.recomputed for row in rows_of(rows, "class_has_two_groups")}

    assert found["Table 11, skateboarder"] == (
        "multiples of 1/230, up to 0.9957: nobody old recognised"
    )
    assert found["Table 11, student"] == "multiples of 1/54, up to 0.9444: nobody old recognised"
    assert found["Table 10, nurse"] == "multiples of 1/285"
    assert found["Table 9, nurse"] == "no common denominator up to 1000"


def test_section_4_3_names_a_smaller_disparity_than_table_3_has(rows: list[AuditRow]) -> None:
    assert [row[1:] for row in wrong(rows, "largest_disparity_in_text")] == [
        ("-0.0614 (ShareGPT4V (34B))", "-0.0660 (ShareGPT4V (7B))")
    ]


def test_rounding_shows_in_the_last_digit_only(rows: list[AuditRow]) -> None:
    differing = wrong(rows, "disparity_of_rounded_values")

    assert ("Table 2a, GPT-4o, p2, GD_Male-Female", "0.1086", "0.1085") in differing
    assert all(abs(float(left) - float(right)) < 0.00015 for _, left, right in differing)


# ---------------------------------------------------------------------------- misprints, made here


def misprint(cells: tuple[Cell, ...], value: str, **keys: str) -> PaperNumbers:
    """Return the paper with one cell printed otherwise."""
    (target,) = [
        cell for cell in cells if all(getattr(cell, name) == key for name, key in keys.items())
    ]
    return PaperNumbers(
        tuple(replace(cell, value=value) if cell is target else cell for cell in cells)
    )


GPT = {"model": "GPT-4o", "prompt": "p1"}
MINI = {"model": "MiniCPM-V (8B)", "prompt": "p2"}


@pytest.mark.parametrize(
    ("keys", "value", "check", "where"),
    [
        ({"table": "2", **GPT, "column": "R_Dark"}, "0.6180", "recall_is_count", "R_Dark"),
        ({"table": "2", **GPT, "column": "GD_Light-Dark"}, "0.1289", "disparity_is_dif", "GPT"),
        ({"table": "2", **GPT, "column": "R_Male"}, "0.7129", "f1_follows_from_recall", "p1"),
        ({"table": "13", **GPT, "column": "F1_Old"}, "0.1482", "f1_follows_from", "F1_Old"),
        ({"table": "13", **GPT, "column": "GD_Young-Old"}, "0.2330", "f1_disparity_is_", "GD"),
        (
            {"table": "3", "model": "LLaVA-1.6 (34B)", "column": "GD_White-Black"},
            "0.0028",
            *("disparity_is_difference", "Table 3"),
        ),
        ({"table": "1", "panel": "FACET", "column": "Age Old"}, "486", "group_sizes_in_", "Age"),
        ({"table": "4", **MINI, "column": "R_Male Imp (%)"}, "4.82", "improvement_within", "Male"),
        ({"table": "4", **MINI, "column": "R_Female Raw"}, "0.8313", "before_is_table_2", "Raw"),
        ({"table": "4", **MINI, "column": "GD_Male-Female Raw"}, "0.0239", "disparity_is", "Raw"),
        ({"table": "4", **MINI, "column": "R_Male Imp (%)"}, "-4.28", "metrics_improved", ""),
        ({"table": "12", **MINI, "column": "Raw"}, "0.0230", "raw_is_table_2", "MiniCPM"),
        ({"table": "12", **MINI, "column": "Sample 500 Avg"}, "0.0549", "sample_average", "500"),
        ({"table": "12", **MINI, "column": "Sample 500 Error"}, "0.0440", "sample_error", "500"),
        (
            {"table": "5", "model": "LLaVA-1.6 (34B)", "column": "Raw Unknown to No"},
            "228",
            *("answers_after_add_up", "Unknown"),
        ),
        (
            {"table": "5", "model": "LLaVA-1.6 (34B)", "column": "Raw No to Yes"},
            "45",
            *("yes_after_is_recall_of_table_4", "LLaVA-1.6"),
        ),
        ({"table": "8", **GPT, "column": "Acc_CLIP"}, "0.7230", "encoder_of_table_2", "GPT-4o, p1"),
        ({"table": "8", **GPT, "column": "Acc_T5"}, "0.7177", "accuracy_is_count", "GPT-4o, p1"),
        ({"table": "Section 6", "column": "Raw Unknown"}, "789", "number_in_text", "Section 6"),
    ],
)
def test_a_misprint_is_found(
    cells: tuple[Cell, ...], keys: dict[str, str], value: str, check: str, where: str
) -> None:
    def failing(numbers: PaperNumbers) -> set[str]:
        return {
            f"{row.check} {row.location}"
            for checks in CHECKS
            for row in checks(numbers)
            if not row.ok and row.check.startswith(check) and where in row.location
        }

    assert failing(misprint(cells, value, **keys)) - failing(PaperNumbers(cells))


@pytest.mark.parametrize(
    ("printed", "people", "count"),
    [("0.7124", 3821, 2722), ("0.6185", 325, 201), ("0.6180", 325, None), ("0.0000", 325, 0)],
)
def test_a_share_is_a_count_or_not(printed: str, people: int, count: int | None) -> None:
    assert count_of(Cell("2", "b", "m", "p1", "R_Dark", printed), people) == count


def test_the_smallest_common_denominator_is_found() -> None:
    def cells(*values: str) -> list[Cell]:
        return [Cell("9", "a", str(n), "p1", "nurse", value) for n, value in enumerate(values)]

    # 1/3 - 1/4 = 1/12, 2/3 - 1/4 = 5/12.
    assert common_denominator(cells("0.0833", "0.4167", "-0.2500")) == 12
    assert common_denominator(cells("0.0834", "0.0833")) is None


def test_a_missing_cell_ends_in_one_sentence(cells: tuple[Cell, ...]) -> None:
    without = tuple(cell for cell in cells if cell.location != "Table 2a, GPT-4o, p2, R_Male")

    with pytest.raises(ConfigError, match="Table 2a, GPT-4o, p2, R_Male is missing. Restore it"):
        recall_checks(PaperNumbers(without))
