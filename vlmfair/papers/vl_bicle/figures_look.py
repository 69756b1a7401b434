"""How the figures of this paper show settings, genders and sources of images: always the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from matplotlib.lines import Line2D

from vlmfair.papers.vl_bicle.study import SETTING_MEANINGS, Study
from vlmfair.papers.vl_bicle.tasks import BALANCED_POOL, FEMALE, MALE, REAL
from vlmfair.render.style import OKABE_ITO

_BLUE, _VERMILLION, _GREEN, _PURPLE, _ORANGE, _SKY, _BLACK = OKABE_ITO
MARKER_SIZE = 3.2
Dashes = Literal["-", "--", "-.", ":"]


@dataclass(frozen=True)
class Look:
    """How a line is drawn: told apart without its colour as well."""

    colour: str
    marker: str
    dashes: Dashes = "-"


# Settings in the order of the paper; women's colour is that of FS, men's that of MS.
SETTING_LOOKS = {
    "RS": Look("#6E6E6E", "o"),
    "MS": Look(_BLUE, "s"),
    "FS": Look(_VERMILLION, "D"),
    "BS": Look(_GREEN, "^"),
    "SIIR": Look(_PURPLE, "v"),
    "SITR": Look(_ORANGE, ">"),
}
GENDER_COLOURS = {MALE: _BLUE, FEMALE: _VERMILLION}
SOURCE_LOOKS = {
    REAL: Look(_BLACK, "o"),
    "flux": Look(_SKY, "s", "--"),
    "sd35l": Look("#8C510A", "^", ":"),
}
_OTHER_SOURCES = (Look(_GREEN, "D", "-."), Look(_PURPLE, "v", "--"), Look(_ORANGE, "P", ":"))


def setting_look(setting: str) -> Look:
    """Return how a setting is drawn; one with a balanced pool has the look of its own setting."""
    return SETTING_LOOKS[setting.removesuffix(BALANCED_POOL)]


def source_look(source: str, study: Study) -> Look:
    """Return how a source of images is drawn; a generator that the paper lacks has its own look."""
    if source in SOURCE_LOOKS:
        return SOURCE_LOOKS[source]
    others = [name for name in study.image_sources if name not in SOURCE_LOOKS]
    return _OTHER_SOURCES[others.index(source) % len(_OTHER_SOURCES)]


def handle(label: str, look: Look, *, hollow: bool = False, line: bool = True) -> Line2D:
    """Return what a legend shows for a look."""
    return Line2D(
        *([], []),
        linestyle=look.dashes if line else "none",
        marker=look.marker,
        markersize=MARKER_SIZE + 0.6,
        markerfacecolor="white" if hollow else look.colour,
        markeredgecolor=look.colour,
        markeredgewidth=0.8 if hollow else 0,
        color=look.colour,
        label=label,
    )


def setting_handles(settings: tuple[str, ...], *, line: bool = True) -> list[Line2D]:
    """Return what a legend shows for settings, with what they mean."""
    return [
        handle(f"{name}: {SETTING_MEANINGS[name]}", setting_look(name), line=line)
        for name in SETTING_LOOKS
        if name in settings
    ]
