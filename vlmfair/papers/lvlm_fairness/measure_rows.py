"""The names that metric rows of this paper use for settings, groups and pairs of groups."""

from __future__ import annotations

from collections.abc import Mapping

PAPER = "lvlm_fairness"
INVALID = ("wrong", "excluded")
# Groups of fewer images are flagged: their recall moves by a tenth with one answer.
SMALL_CELL = 10
# In the order of the paper's columns; the last one, if any, is never compared.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "gender": ("Male", "Female"),
    "skin_tone": ("light", "medium", "dark", "unknown"),
    "age": ("young", "middle", "old", "unknown"),
    "race": ("white", "black", "asian", "indian", "others"),
}
# First minus second (section 3.5).
PAIRS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gender": (("Male", "Female"),),
    "skin_tone": (("light", "dark"),),
    "age": (("young", "old"),),
    "race": (("white", "black"), ("asian", "indian")),
}
# The attributes by which each dataset is grouped.
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "facet": ("gender", "skin_tone", "age"),
    "utkface": ("gender", "race"),
}


def setting_of(judge: str, invalid: str = "wrong") -> str:
    """Return the `setting` of metric rows: the judge, and whether invalid answers are left out.

    `wrong` counts them as wrong (what the paper did), `excluded` leaves them out (what it says).
    """
    if invalid not in INVALID:
        raise KeyError(f"invalid answers are {' or '.join(INVALID)}, not {invalid!r}")
    return judge if invalid == "wrong" else f"{judge}/excluded"


def pair_name(pair: tuple[str, str]) -> str:
    """Return the `group` of a disparity, like `Male-Female`."""
    return f"{pair[0]}-{pair[1]}"
