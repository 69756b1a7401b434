"""Who can be in a scene of the demo world: the attributes of a person and their values."""

from __future__ import annotations

from dataclasses import dataclass

RACES = (
    "East Asian",
    "Indian",
    "Black",
    "White",
    "Middle Eastern",
    "Latino_Hispanic",
    "Southeast Asian",
)
OCCUPATIONS = (
    "gardener",
    "craftsman",
    "laborer",
    "skateboarder",
    "prayer",
    "guitarist",
    "singer",
    "dancer",
    "retailer",
    "nurse",
    "student",
    "gymnast",
    "horseman",
)
GENDERS = ("male", "female")


@dataclass(frozen=True)
class Person:
    """One drawn person; age in years (1 to 90), skin tone on the Monk scale (1 to 10)."""

    gender: str
    age: int
    skin_tone: int
    race: str
    occupation: str = ""
    hooded: bool = False
