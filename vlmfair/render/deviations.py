"""The table of what a paper leaves open or says differently, and what is done here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass

import pandas as pd

from vlmfair.render.tables import Column, Table


@dataclass(frozen=True)
class Deviation:
    """One place of a paper, what it says or leaves open, and what this project does."""

    place: str
    paper: str
    here: str


def deviations_table(
    found: Iterable[Deviation], *, title: str, widths: tuple[float, float, float], note: str
) -> Table:
    """Return deviations, one a row; `widths` are those of the three columns beside each other."""
    rows = tuple(astuple(one) for one in found)
    headings = ("Place", "In the paper", "Here")
    return Table(
        title=title,
        data=pd.DataFrame(rows, columns=["place", "paper", "here"]),
        columns=tuple(
            Column(heading, align="left", width=width)
            for heading, width in zip(headings, widths, strict=True)
        ),
        rows=rows,
        notes=(note,),
    )
