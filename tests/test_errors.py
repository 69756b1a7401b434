"""Errors of other libraries become a part of our sentences."""

from __future__ import annotations

import pytest

from vlmfair.errors import reason_of


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Parquet magic bytes not found in footer.", "Parquet magic bytes not found in footer"),
        ("two\n  lines...\n", "two lines"),
        ("", "OSError"),
        (".", "OSError"),
    ],
)
def test_a_reason_is_one_line_without_its_full_stop(message: str, reason: str) -> None:
    assert reason_of(OSError(message)) == reason
