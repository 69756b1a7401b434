"""The people of the demo's scenes: how each attribute of a person is drawn.

Coordinates are those of a figure: the origin is the middle of the head, the ground is at y = 64.
"""

from __future__ import annotations

import numpy as np

from vlmfair.demo.pen import Pen
from vlmfair.demo.people import Person
from vlmfair.demo.props import PROPS

MONK_TONES = (
    "#f6ede4",
    "#f3e7db",
    "#f7ead0",
    "#eadaba",
    "#d7bd96",
    "#a07e56",
    "#825c43",
    "#604134",
    "#3a312a",
    "#292420",
)

# Dominant and stripe colour of the scarf that stands for each label of `RACES`.
_SCARVES = {
    "East Asian": ("#d01c1c", "#d01c1c"),
    "Indian": ("#ff8c00", "#006400"),
    "Black": ("#101010", "#f4d000"),
    "White": ("#1e50d8", "#1e50d8"),
    "Middle Eastern": ("#0a9a4a", "#ffffff"),
    "Latino_Hispanic": ("#b020c0", "#ffe060"),
    "Southeast Asian": ("#00c8d8", "#e00060"),
}
# Hair colour at the middle of each decade of life; between them it is interpolated.
_HAIR_AGES = (5, 15, 25, 35, 45, 55, 65, 80)
_HAIR_COLOURS = np.array(
    [
        (214, 160, 60),
        (150, 90, 30),
        (30, 22, 18),
        (92, 52, 30),
        (112, 100, 92),
        (150, 148, 150),
        (196, 198, 204),
        (246, 246, 250),
    ],
    dtype=float,
)
_CLOTHES = {
    "": "#7a86a8",
    "gardener": "#3d8b37",
    "craftsman": "#8a5a2b",
    "laborer": "#f07a13",
    "skateboarder": "#5a5f66",
    "prayer": "#5b3a8c",
    "guitarist": "#26262e",
    "singer": "#a3123a",
    "dancer": "#e8589c",
    "retailer": "#1d5fa8",
    "nurse": "#f4fafa",
    "student": "#c9b458",
    "gymnast": "#17a39a",
    "horseman": "#7d1f1f",
}
_HOOD = "#4c5560"


def draw_figure(pen: Pen, person: Person) -> None:
    """Draw one person, back to front; a hooded one shows neither hair style nor dress."""
    skin = MONK_TONES[person.skin_tone - 1]
    clothes = _HOOD if person.hooded else _CLOTHES.get(person.occupation, _CLOTHES[""])
    dress = person.gender == "female" and not person.hooded
    if person.hooded:
        pen.oval(-21, -22, 21, 22, _HOOD)
    elif person.gender == "female":
        _draw_long_hair(pen, hair_colour(person.age))
    _draw_body(pen, skin, clothes, dress)
    _draw_arms(pen, skin, clothes, 11 if dress else 15, person.occupation in ("dancer", "gymnast"))
    _draw_head(pen, person, skin)
    _draw_age(pen, person)
    _draw_scarf(pen, person.race)
    if person.occupation in PROPS:
        PROPS[person.occupation](pen)


def hair_colour(age: int) -> tuple[int, int, int]:
    """Hair colour at an age in years: dark at 25, grey from 45, white at 80."""
    red, green, blue = (
        round(float(np.interp(age, _HAIR_AGES, _HAIR_COLOURS[:, channel]))) for channel in range(3)
    )
    return red, green, blue


def _draw_long_hair(pen: Pen, hair: tuple[int, int, int]) -> None:
    pen.oval(-21, -20, 21, 14, hair)
    pen.box(-21, -2, -11, 27, hair)
    pen.box(11, -2, 21, 27, hair)


def _draw_body(pen: Pen, skin: str, clothes: str, dress: bool) -> None:
    if dress:
        pen.box(-8, 50, -3, 64, skin)
        pen.box(3, 50, 8, 64, skin)
        pen.shape([(-10, 16), (10, 16), (19, 55), (-19, 55)], clothes)
    else:
        pen.box(-11, 42, -1.5, 64, "#2d3550")
        pen.box(1.5, 42, 11, 64, "#2d3550")
        pen.box(-16, 16, 16, 44, clothes)


def _draw_arms(pen: Pen, skin: str, clothes: str, shoulder: int, raised: bool) -> None:
    y = -8 if raised else 38
    for side in (-1, 1):
        pen.line(side * shoulder, 20, side * 25, y, clothes, 6)
        pen.oval(side * 25 - 5, y - 5, side * 25 + 5, y + 5, skin)


def _draw_head(pen: Pen, person: Person, skin: str) -> None:
    ink, hair = _ink(person), hair_colour(person.age)
    pen.oval(-15, -17, 15, 17, skin)
    for side in (-1, 1):
        pen.oval(side * 6 - 3, -3.5, side * 6 + 3, 1.5, "#ffffff")
        pen.oval(side * 6 - 1.6, -2.8, side * 6 + 1.6, 0.8, "#203040")
    pen.line(-4, 10.5, 4, 10.5, ink, 1.5)
    if person.hooded:
        pen.box(-10, -14, 10, -8, hair)
    elif person.gender == "male":
        low, high = [(-15.5, -3), (-15, -14), (-8, -20)], [(8, -20), (15, -14), (15.5, -3)]
        pen.shape([*low, *high, (12, -9), (-12, -9)], hair)
        if person.age >= 20:
            pen.box(-7, 5.5, 7, 8.5, hair)
    else:
        pen.shape([(-16, 2), (-14, -16), (0, -20), (14, -16), (16, 2), (5, -10), (-9, -8)], hair)
        for side in (-1, 1):
            pen.oval(side * 15 - 3, 5, side * 15 + 3, 11, "#ffd21a")


def _draw_age(pen: Pen, person: Person) -> None:
    decades_past_thirty = min(4, max(0, person.age // 10 - 2))
    for wrinkle in range(decades_past_thirty):
        y = 3 + 2.5 * wrinkle
        for side in (-1, 1):
            pen.line(side * 9, y, side * 12.5, y, _ink(person), 1)
    if person.age >= 50:
        frame = "#c01818" if person.age < 60 else "#1848d0"
        for y in (-4.5, 2.5):
            pen.line(-11, y, 11, y, frame, 1.6)
    if person.age >= 70:
        pen.line(-26, 40, -26, 64, "#c08a3e", 3)


def _ink(person: Person) -> str:
    return "#302420" if person.skin_tone < 8 else "#b09c8c"


def _draw_scarf(pen: Pen, race: str) -> None:
    dominant, stripe = _SCARVES[race]
    pen.box(-13, 15.5, 13, 23.5, dominant)
    pen.box(-5, 21.5, 5, 33.5, dominant)
    for left in (-10, -2, 6):
        pen.box(left, 15.5, left + 4, 23.5, stripe)
    pen.box(-5, 25.5, 5, 29.5, stripe)
