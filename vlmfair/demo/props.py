"""What the people of the demo's scenes hold, wear or stand on, one drawing per occupation.

Coordinates are those of a figure: the origin is the middle of the head, the ground is at y = 64.
"""

from __future__ import annotations

from collections.abc import Callable

from vlmfair.demo.pen import Pen

Prop = Callable[[Pen], None]


def _gardener(pen: Pen) -> None:
    y = 38
    pen.box(20, y, 34, y + 12, "#2aa0b8")
    pen.line(34, y + 8, 41, y - 3, "#2aa0b8", 3)
    pen.shape([(-34, 52), (-18, 52), (-20, 64), (-32, 64)], "#b5552a")
    pen.oval(-35, 38, -17, 53, "#1fbf3a")


def _craftsman(pen: Pen) -> None:
    y = 36
    pen.line(25, y + 4, 25, y - 18, "#d9a05a", 3)
    pen.box(17, y - 24, 35, y - 16, "#5c6068")
    pen.box(-36, 50, -10, 60, "#e0b070")


def _laborer(pen: Pen) -> None:
    for left in (-11, 6):
        pen.box(left, 30, left + 5, 44, "#fff04a")
    pen.line(27, 14, 27, 56, "#8a6a40", 3)
    pen.shape([(20, 50), (34, 50), (27, 64)], "#b8bcc4")


def _skateboarder(pen: Pen) -> None:
    pen.box(-30, 59, 30, 63, "#e6c419")
    for wheel in (-22, 22):
        pen.oval(wheel - 4, 61, wheel + 4, 69, "#111111")


def _prayer(pen: Pen) -> None:
    pen.shape([(-5, 46), (0, 30), (5, 46)], "#f0c040")
    pen.box(-34, 59, 34, 66, "#7a1fb0")
    pen.box(-30, 61, 30, 63, "#f0c040")


def _guitarist(pen: Pen) -> None:
    y = 42
    pen.line(-8, y, 34, y - 18, "#5a2d10", 4)
    pen.oval(-22, y - 10, 2, y + 12, "#e07b1f")
    pen.oval(-12, y - 3, -5, y + 5, "#2a1206")


def _singer(pen: Pen) -> None:
    pen.line(19, 14, 19, 64, "#202020", 2.5)
    pen.oval(13, 3, 25, 16, "#c8c8d0")
    for note in (-34, 30):
        pen.oval(note, -12, note + 7, -6, "#101010")
        pen.line(note + 6, -9, note + 6, -22, "#101010", 2)


def _dancer(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line(side * 25, -8, side * 33, 28, "#ffd800", 4)
    pen.oval(-24, 59, 24, 67, "#ff9ad0")


def _retailer(pen: Pen) -> None:
    pen.box(-40, 46, 40, 68, "#c98b4a")
    pen.box(12, 34, 34, 47, "#30343a")
    pen.box(16, 36, 30, 41, "#7dff8a")
    pen.box(-32, 50, -14, 59, "#ffffff")


def _nurse(pen: Pen) -> None:
    pen.box(5, 36, 9, 48, "#e01020")
    pen.box(1, 40, 13, 44, "#e01020")
    pen.box(-36, 28, -20, 48, "#b07a40")
    pen.box(-34, 31, -22, 46, "#ffffff")


def _student(pen: Pen) -> None:
    for side in (-1, 1):
        pen.line(side * 10, 17, side * 12, 44, "#c02040", 4)
    y = 38
    pen.shape([(-14, y), (0, y + 4), (0, y + 16), (-14, y + 12)], "#ffffff")
    pen.shape([(14, y), (0, y + 4), (0, y + 16), (14, y + 12)], "#dce8ff")


def _gymnast(pen: Pen) -> None:
    for side in (-1, 1):
        centre = side * 25
        pen.line(centre, -60, centre, -14, "#f4f4f4", 2)
        pen.oval(centre - 8, -18, centre + 8, -2, "#f2b21a")
        pen.oval(centre - 5, -15, centre + 5, -5, "#7a4b12")


def _horseman(pen: Pen) -> None:
    y = 46
    pen.oval(-34, y - 4, 30, 68, "#6b3f1d")
    pen.shape([(20, y + 6), (30, y - 18), (42, y - 12), (36, y + 10)], "#6b3f1d")
    pen.line(24, y, 30, y - 20, "#1c0f06", 4)


PROPS: dict[str, Prop] = {
    "gardener": _gardener,
    "craftsman": _craftsman,
    "laborer": _laborer,
    "skateboarder": _skateboarder,
    "prayer": _prayer,
    "guitarist": _guitarist,
    "singer": _singer,
    "dancer": _dancer,
    "retailer": _retailer,
    "nurse": _nurse,
    "student": _student,
    "gymnast": _gymnast,
    "horseman": _horseman,
}
