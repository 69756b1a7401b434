"""The six places of the demo world, drawn as backgrounds on a 96 x 96 canvas."""

from __future__ import annotations

from vlmfair.demo.pen import Pen

PLACES = ("park", "street", "beach", "kitchen", "office", "stage")


def draw_place(pen: Pen, place: str, shift: float) -> None:
    """Fill the canvas with a place, its parts moved by `shift` units."""
    horizon = 62 + shift
    if place == "park":
        pen.box(0, 0, 96, horizon, "#9fd3f2")
        pen.box(0, horizon, 96, 96, "#5fae4b")
        for x in (8 + shift, 88 + shift):
            pen.box(x - 2, 30, x + 2, horizon, "#6b4423")
            pen.oval(x - 11, 10, x + 11, 40, "#2f7d32")
    elif place == "street":
        pen.box(0, 0, 96, horizon, "#b9b4ae")
        pen.box(0, horizon, 96, 96, "#56585c")
        for x in (0, 72):
            pen.box(x, 8 + shift, x + 22, horizon, "#8c5a4a")
            for y in (14, 28, 42):
                pen.box(x + 4, y + shift, x + 9, y + 7 + shift, "#f3e08a")
                pen.box(x + 13, y + shift, x + 18, y + 7 + shift, "#f3e08a")
    elif place == "beach":
        pen.box(0, 0, 96, 34 + shift, "#bfe6ff")
        pen.box(0, 34 + shift, 96, horizon, "#2b7fc4")
        pen.box(0, horizon, 96, 96, "#efd9a0")
        pen.oval(76 + shift, 4, 90 + shift, 18, "#ffd23c")
    elif place == "kitchen":
        pen.box(0, 0, 96, 96, "#f2efe6")
        for x in range(0, 96, 12):
            pen.line(x, 0, x, horizon, "#c4d4d8", 1)
        pen.box(0, horizon, 96, 96, "#b98b5e")
        pen.box(70 + shift, 36, 96, horizon, "#d9dde0")
        pen.box(0, 8, 20 + shift, 24, "#a86f3d")
    elif place == "office":
        pen.box(0, 0, 96, 96, "#d5d9de")
        pen.box(4 + shift, 8, 26 + shift, 34, "#8ec6e8")
        pen.line(15 + shift, 8, 15 + shift, 34, "#ffffff", 2)
        pen.box(0, horizon, 96, 96, "#7d8791")
        pen.box(70 + shift, 40, 94 + shift, 56, "#22262b")
    else:
        pen.box(0, 0, 96, 96, "#3a1540")
        for x in (0, 14, 76, 90):
            pen.box(x + shift, 0, x + 7 + shift, horizon, "#a31230")
        pen.box(0, horizon, 96, 96, "#8a5f2f")
        pen.shape([(48, 0), (20, horizon), (76, horizon)], "#6a4a72")
