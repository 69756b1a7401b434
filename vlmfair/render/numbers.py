"""How numbers are written in tables and figures."""

from __future__ import annotations

import math

MISSING = "–"
MINUS = "−"


def format_number(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed count of decimals and a typographic minus; an en dash for none.

    A value that rounds to zero loses its sign: `-0.001` with two digits is `0.00`.
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}f}"
    if text.startswith("-"):
        text = text[1:] if float(text) == 0 else MINUS + text[1:]
    return text


def format_signed(value: float | None, digits: int = 1) -> str:
    """Return a number as `format_number` does, with a plus sign before a positive one."""
    text = format_number(value, digits)
    if value is None or not math.isfinite(value) or text.startswith(MINUS) or float(text) == 0:
        return text
    return f"+{text}"


def format_count(value: float | None) -> str:
    """Return a whole number with commas between thousands; an en dash for none."""
    return MISSING if value is None or math.isnan(value) else f"{round(value):,}"


def format_p(value: float | None, digits: int = 3) -> str:
    """Return a p-value, never as zero: below the last digit it is `<0.001`."""
    if value is None or math.isnan(value):
        return MISSING
    smallest = 10.0**-digits
    return f"<{smallest:.{digits}f}" if value < smallest else f"{value:.{digits}f}"


def format_interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """Return `[low, high]`, or an en dash when either end is missing."""
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return MISSING
    return f"[{format_number(low, digits)}, {format_number(high, digits)}]"
