"""Texts from anywhere in figures: wrapped, cut, and never taken as a command."""

from __future__ import annotations

import pytest

from vlmfair.render.style import figure_style, new_figure
from vlmfair.render.text_boxes import (
    Box,
    box_height,
    column_height,
    draw_column,
    line_width,
    printable,
    wrapped,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Is there a nurse?", "Is there a nurse?"),
        ("a\r\nb\x0bc\u2028d\te", "a\nb\nc\nd e"),
        # Bell, right-to-left override, and a language the font does not have.
        ("a\x07b", "a[U+0007]b"),
        ("\u202egnp.exe", "[U+202E]gnp.exe"),
        ("日", "[U+65E5]"),
        ("\U0001f9d1", "[U+1F9D1]"),
        # An accent belongs to its letter; a pile of them would be drawn over other lines.
        ("e\u0301", "é"),
        ("z\u0335\u0310", "z[U+0335][U+0310]"),
        (r"$x^2$ \frac <b>", r"$x^2$ \frac <b>"),
    ],
)
def test_what_cannot_be_printed_is_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_text_is_wrapped_between_words_and_keeps_its_line_breaks() -> None:
    lines = wrapped("one two three\n\nfour", line_width("one two") + 0.01)

    assert lines == ["one two", "three", "", "four"]


def test_a_word_wider_than_the_line_is_broken_and_nothing_is_lost() -> None:
    lines = wrapped("x " + "A" * 500, 1.0)

    assert "".join(lines) == "x" + "A" * 500
    assert all(line_width(line) <= 1.0 for line in lines)


@pytest.mark.parametrize("text", ["many words " * 50, "W" * 500])
def test_a_cut_text_says_so_and_fits(text: str) -> None:
    lines = wrapped(text, 1.5, most=3)

    assert len(lines) == 3
    assert lines[-1].endswith(" …")
    assert all(line_width(line) <= 1.5 for line in lines)
    assert "…" not in "".join(wrapped("short", 1.5, most=3))


@pytest.mark.parametrize("text", ["A" * 300, "W" * 300, "illi" * 100, "a b " * 150])
def test_no_line_is_drawn_over_the_edge_of_its_box(text: str) -> None:
    with figure_style():
        figure = new_figure(4.0, 4.0)
        draw_column(figure, [Box("Answer", text, "wrong", last="→ read as: No")], 0.5, 0.5, 3.0)
        figure.set_dpi(300)
        right = max(
            written.get_window_extent(figure.canvas.get_renderer()).x1  # type: ignore[attr-defined]
            for written in figure.texts
        )

    assert right / 300 <= 3.5


def test_boxes_stand_below_each_other_as_high_as_announced() -> None:
    boxes = [Box("First", "one\ntwo"), Box("Second", "three " * 80, most=4, last="end")]
    with figure_style():
        figure = new_figure(4.0, 4.0)
        bottom = draw_column(figure, boxes, 0.1, 0.2, 2.0)

    assert bottom == pytest.approx(0.2 + column_height(boxes, 2.0))
    assert box_height(boxes[1], 2.0) - box_height(boxes[0], 2.0) == pytest.approx(
        3 * (box_height(Box("", "a\nb"), 2.0) - box_height(Box("", "a"), 2.0))
    )
    assert "✗" not in [text.get_text() for text in figure.texts]


def test_a_mark_is_a_word_and_not_a_colour_alone() -> None:
    with figure_style():
        figure = new_figure(4.0, 4.0)
        draw_column(figure, [Box("A", "x", "right"), Box("B", "y", "wrong")], 0, 0, 2.0)

    texts = {text.get_text() for text in figure.texts}
    assert {"✓ right", "✗ wrong"} <= texts
