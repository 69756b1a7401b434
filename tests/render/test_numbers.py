"""How numbers are written: never a p-value of zero, never a minus before zero."""

from __future__ import annotations

import math

import pytest

from vlmfair.render.numbers import (
    format_count,
    format_interval,
    format_number,
    format_p,
    format_signed,
)


@pytest.mark.parametrize(
    ("p", "digits", "text"),
    [
        (0.0, 3, "<0.001"),
        (1e-300, 3, "<0.001"),
        (0.00099, 3, "<0.001"),
        (0.001, 3, "0.001"),
        (0.05, 3, "0.050"),
        (1.0, 3, "1.000"),
        (0.0, 4, "<0.0001"),
        (0.0268, 4, "0.0268"),
        (math.nan, 3, "–"),
        (None, 3, "–"),
    ],
)
def test_p_values_are_never_written_as_zero(p: float | None, digits: int, text: str) -> None:
    assert format_p(p, digits) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(-0.001, "0.00"), (0.001, "0.00"), (-1.5, "−1.50"), (98.25, "98.25"), (math.nan, "–")],
)
def test_numbers_have_a_typographic_minus_and_no_negative_zero(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.04, "0.0"), (-0.04, "0.0"), (0.06, "+0.1"), (-5.71, "−5.7")]
)
def test_signed_numbers_show_a_sign_unless_they_round_to_zero(value: float, text: str) -> None:
    assert format_signed(value) == text


def test_infinite_numbers_are_written_and_not_hidden() -> None:
    assert format_number(math.inf) == "∞"
    assert format_signed(-math.inf) == "−∞"


def test_counts_have_commas_between_thousands() -> None:
    assert format_count(2_505_000) == "2,505,000"


def test_an_interval_with_one_missing_end_is_no_interval() -> None:
    assert format_interval(0.1, math.nan) == "–"
    assert format_interval(-1, 2.25, 1) == "[−1.0, 2.2]"
