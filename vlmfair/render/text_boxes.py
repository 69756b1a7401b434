"""Part of figures: texts from anywhere, wrapped into boxes, nothing in them taken as a command."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.patches import FancyBboxPatch

from vlmfair.render.panels import write_at
from vlmfair.render.style import SMALL

LINE = SMALL * 1.32 / 72  # inches from one line to the next
PADDING = 0.06
HEADING = 0.17
_CUT = " …"
# By how much a letter is set wider than its outline says, at most, in a picture of 300 dpi.
_HINTED = 1.045
_MARKS = {"right": ("✓ right", "#00694a"), "wrong": ("✗ wrong", "#a03c00")}
# More characters than fit on a line of any figure.
_MOST_A_LINE = 1000
_PIECES = re.compile(r"(\s*)(\S+)")


@dataclass(frozen=True)
class Box:
    """A text under a heading; `mark` says that an answer is right or wrong.

    `most` is how many lines are shown at most, all if it is None; `last` is a line below them that
    is always shown; `dashed` draws a dashed outline.
    """

    heading: str
    text: str
    mark: str = ""
    most: int | None = None
    dashed: bool = False
    last: str = ""

    def lines(self, width: float) -> list[str]:
        """Return the lines of a box that is so many inches wide."""
        inside = width - 2 * PADDING
        lines = wrapped(self.text, inside, self.most)
        return [*lines, *wrapped(self.last, inside, 1)] if self.last else lines


@cache
def _font() -> FT2Font:
    return FT2Font(findfont(FontProperties(family="DejaVu Sans")))


@cache
def _glyphs() -> frozenset[int]:
    return frozenset(_font().get_charmap())


@cache
def _advance(character: str) -> float:
    glyph = _font().load_char(ord(character), flags=LoadFlags.NO_SCALE)
    return float(glyph.horiAdvance) / _font().units_per_EM * SMALL / 72 * _HINTED


def line_width(text: str) -> float:
    """Return how wide in inches a line of the small size can get; quick, for many lines."""
    return sum(map(_advance, text))


def printable(text: str) -> str:
    """Return a text with what the font lacks, control and direction characters as `[U+202E]`.

    So are marks that would be set over other characters. Line breaks of any kind become a newline,
    tabs a space.
    """
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"\r\n|[\r\v\f\x85\u2028\u2029]", "\n", text).replace("\t", " ")
    return "".join(
        character if character == "\n" or _is_plain(character) else f"[U+{ord(character):04X}]"
        for character in text
    )


@cache
def _is_plain(character: str) -> bool:
    return ord(character) in _glyphs() and unicodedata.category(character)[0] not in "CM"


def wrapped(text: str, width: float, most: int | None = None) -> list[str]:
    """Return a printable text on lines of at most `width` inches; a longer word is broken.

    Of more than `most` lines the last one kept ends in an ellipsis; what is cut is not looked at.
    """
    paragraphs = printable(text if most is None else text[: most * _MOST_A_LINE]).split("\n")
    folded = (line for paragraph in paragraphs for line in _fold(paragraph, width))
    lines = list(islice(folded, None if most is None else most + 1))
    if most is not None and len(lines) > most:
        kept = lines[most - 1]
        while line_width(kept + _CUT) > width and " " in kept:
            kept = kept.rpartition(" ")[0]
        while line_width(kept + _CUT) > width and kept:
            kept = kept[:-1]
        lines = [*lines[: most - 1], kept + _CUT]
    return lines


def _fold(paragraph: str, width: float) -> Iterator[str]:
    line = ""
    for space, word in _PIECES.findall(paragraph):
        longer = line + space * bool(line) + word
        if line_width(longer) <= width:
            line = longer
            continue
        for piece in _broken(word, width):
            if line:
                yield line
            line = piece
    yield line


def _broken(word: str, width: float) -> Iterator[str]:
    """Yield the parts of a word that fit into a width, at least one character each."""
    while line_width(word) > width and len(word) > 1:
        count = max(1, int(len(word) * width / line_width(word)))
        while count > 1 and line_width(word[:count]) > width:
            count -= 1
        yield word[:count]
        word = word[count:]
    yield word


def box_height(box: Box, width: float) -> float:
    """Return how many inches high a box of a width is."""
    return HEADING + len(box.lines(width)) * LINE + 2 * PADDING


def draw_box(
    figure: Figure, box: Box, left: float, top: float, width: float, height: float | None = None
) -> float:
    """Draw a box with its upper left corner at a place in inches; return where its bottom is."""
    high = box_height(box, width) if height is None else height
    figure_width, figure_height = figure.get_size_inches()
    figure.add_artist(
        FancyBboxPatch(
            (left / figure_width, 1 - (top + high) / figure_height),
            width / figure_width,
            high / figure_height,
            boxstyle="square,pad=0",
            facecolor="#f6f6f4",
            edgecolor="#8a8a8a",
            linewidth=0.7,
            linestyle="--" if box.dashed else "-",
            transform=figure.transFigure,
        )
    )
    write_at(figure, left + PADDING, top + PADDING, printable(box.heading), weight="bold")
    if box.mark:
        text, colour = _MARKS[box.mark]
        write_at(
            *(figure, left + width - PADDING, top + PADDING, text),
            ha="right",
            weight="bold",
            color=colour,
        )
    for number, line in enumerate(box.lines(width)):
        write_at(figure, left + PADDING, top + PADDING + HEADING + number * LINE, line)
    return top + high


def draw_column(
    figure: Figure, boxes: Sequence[Box], left: float, top: float, width: float, gap: float = 0.08
) -> float:
    """Draw boxes below each other; return where the bottom of the last one is."""
    for number, box in enumerate(boxes):
        top = draw_box(figure, box, left, top + gap * bool(number), width)
    return top


def column_height(boxes: Sequence[Box], width: float, gap: float = 0.08) -> float:
    """Return how many inches boxes below each other take."""
    return sum(box_height(box, width) for box in boxes) + gap * max(len(boxes) - 1, 0)
