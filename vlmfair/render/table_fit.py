"""How wide the columns of a printed table are, and in which print they fit onto the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from vlmfair.render.table import Table, cells, spanners

# Text width and height of LaTeX's standard article class on letter paper, in points.
PAGE_WIDTH, PAGE_HEIGHT = 345.0, 550.0
_INCH = 72.27  # points
# Font size, width of a digit of Computer Modern in points, space at each side of a column.
_SIZES = (("small", 4.65, 6.0), ("footnotesize", 4.3, 4.0), ("scriptsize", 4.05, 3.0))
# Distance between lines in points, by font size; notes below a table are in footnotesize.
_LEADING = {"small": 11.0, "footnotesize": 9.5, "scriptsize": 8.0}
_CAPTION = 36.0  # points that a caption and the rules of a table take
# How much of its stated width a column may lose.
_SHRINKS = (1.0, 0.85, 0.7)
_LONG_NAME, _SHORTEST_HEADING = 16, 7  # digits
# What stays together on a line, with the space before it.
_PIECES = re.compile(r"(\s*)([^\s-]+-*|-+)")
# Widths of characters of Computer Modern in digits, by class; every other one counts 1.
_CLASSES = (
    (1.6, frozenset("mw<>{}\\%&@_~^…")),
    (0.9, frozenset("acesvxyz")),
    (0.75, frozenset("fijlrtI.,:;'|!()[] ")),
)
_CAPITAL = 1.5
_FIRST_WITHOUT_GLYPH = 0x2500


@dataclass(frozen=True)
class Fit:
    """The print that a table is set in, lengths in points.

    `widths` has the width of each column, `fixed` that of the columns whose text wraps and None
    for the others; `character` is the width of one character, `padding` the space at each side of
    a column. `turned` means by 90 degrees, across the page.
    """

    size: str
    character: float
    padding: float
    widths: tuple[float, ...]
    fixed: tuple[float | None, ...]
    turned: bool


def fit_columns(table: Table) -> Fit:
    """Return the largest print in which a table fits onto the page, upright if possible.

    Row names of more than 16 characters wrap where they must. If nothing fits, it is the smallest.
    """
    fits = list(_fits(table))
    room = {False: PAGE_WIDTH, True: PAGE_HEIGHT}
    for fit in fits:
        if sum(fit.widths) + 2 * fit.padding * len(fit.widths) <= room[fit.turned]:
            return fit
    return fits[-1]


def is_too_high(table: Table, fit: Fit) -> bool:
    """Return whether a table with its notes is higher than one page, so that it has to be parted.

    One that is also wider than the page is not: only as a whole it can be scaled down.
    """
    width, height = PAGE_WIDTH, PAGE_HEIGHT
    if fit.turned:
        width, height = height, width
    if sum(fit.widths) + 2 * fit.padding * len(fit.widths) > width:
        return False
    lines = sum(
        max(
            len(folded_lines(cell.text, room / fit.character)) if room and cell.span else 1
            for cell, room in zip(row, fit.fixed)
        )
        for row in cells(table)
    )
    headings = [heading_lines(table, i) for i in range(len(table.columns))]
    lines += max(map(len, headings)) + bool(spanners(table.columns))
    _, character, _ = _SIZES[1]
    notes = sum(len(folded_lines(note, width / character)) for note in table.notes)
    return _CAPTION + lines * _LEADING[fit.size] + notes * _LEADING["footnotesize"] > height


def heading_lines(table: Table, position: int, room: float | None = None) -> list[str]:
    """Return a column's heading on lines of `room` digits, or little wider than its cells."""
    if room is None:
        room = max([_printed(row[position]) for row in table.rows] + [_SHORTEST_HEADING])
    return folded_lines(table.columns[position].label, room)


def folded_lines(text: str, room: float) -> list[str]:
    """Return a text on lines of at most `room` digits, broken at spaces and after hyphens.

    A longer piece has a line of its own.
    """
    lines = [""]
    for space, piece in _PIECES.findall(text.strip()):
        longer = lines[-1] + (" " if space else "") + piece
        if lines[-1] and _printed(longer) > room:
            lines.append(piece)
        else:
            lines[-1] = longer
    return lines


def _fits(table: Table) -> Iterator[Fit]:
    longest = [_longest_line(table, i) for i in range(len(table.columns))]
    long_names = {i for i in range(table.stubs) if longest[i] > _LONG_NAME}
    for turned in (False, True):
        for wrapped in (set(), long_names):
            for size, character, padding in _SIZES:
                for shrink in _SHRINKS:
                    fixed = tuple(
                        _fixed_width(table, i, i in wrapped, character, shrink)
                        for i in range(len(table.columns))
                    )
                    widths = [
                        length * character if width is None else width
                        for length, width in zip(longest, fixed)
                    ]
                    spread = _under_spanners(table, widths, character, padding)
                    yield Fit(size, character, padding, spread, fixed, turned)


def _longest_line(table: Table, position: int) -> float:
    """Return the width of the longest line of a column that does not wrap, in digits."""
    heading = heading_lines(table, position)
    return max(map(_printed, [*heading, *(row[position] for row in table.rows)]))


def _fixed_width(
    table: Table, position: int, wrapped: bool, character: float, shrink: float
) -> float | None:
    """Return the width of a column whose text wraps, None for another; no word is broken."""
    column = table.columns[position]
    if column.width is None and not wrapped:
        return None
    wanted = _LONG_NAME * character if column.width is None else column.width * _INCH * shrink
    texts = [column.label, *(row[position] for row in table.rows)]
    return max([wanted, *(_longest_piece(text) * character for text in texts)])


def _longest_piece(text: str) -> float:
    return max((_printed(piece) for _, piece in _PIECES.findall(text)), default=0.0)


def _under_spanners(
    table: Table, widths: list[float], character: float, padding: float
) -> tuple[float, ...]:
    """Return the widths with the last column under a shared heading as wide as that asks for."""
    end = 0
    for text, count in spanners(table.columns):
        start, end = end, end + count
        room = sum(widths[start:end]) + 2 * padding * (count - 1)
        widths[end - 1] += max(_longest_piece(text) * character - room, 0.0)
    return tuple(widths)


def _printed(text: str) -> float:
    """Return the width of a text in digits; a character that LaTeX lacks is printed as its code."""
    return sum(_width_of(character) for character in text)


@cache
def _width_of(character: str) -> float:
    if ord(character) >= _FIRST_WITHOUT_GLYPH:
        return len("[U+1F600]")
    for width, characters in _CLASSES:
        if character in characters:
            return width
    return _CAPITAL if character.isupper() else 1.0
