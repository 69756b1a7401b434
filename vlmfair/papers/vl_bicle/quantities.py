"""The columns of tables by setting and number of demonstrations, and the texts below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from vlmfair.papers.vl_bicle.cells import (
    Cells,
    Place,
    interval_text,
    signed_text,
    spread_text,
)
from vlmfair.papers.vl_bicle.study import ERROR_SIGNS, Study
from vlmfair.papers.vl_bicle.tasks import ALL, BALANCED_POOL, FEMALE, GAP, MALE, ZERO_SHOT
from vlmfair.render.numbers import MISSING
from vlmfair.render.tables import Column

SPREAD, INTERVAL, SHIFT = "spread", "interval", "shift"


@dataclass(frozen=True)
class Quantity:
    """One column: a metric of a group, written with its deviation over runs or as its interval.

    `digits` are the decimals.
    """

    label: str
    metric: str
    group: str = GAP
    form: str = SPREAD
    spanner: str = ""
    digits: int = 2

    def column(self, spanner: str = "") -> Column:
        """Return the heading, below `spanner` where the quantity has none of its own."""
        return Column(self.label, self.spanner or spanner)

    def text(self, cells: Cells, place: Place) -> str:
        """Return the cell of a place."""
        if self.form == SHIFT and place.setting == ZERO_SHOT:
            return MISSING
        cell = cells.look(self.metric, place, self.group)
        if self.form == INTERVAL:
            # Its number stands in the column before, and is in the csv already.
            return interval_text(cell, self.digits)
        cells.show(self.metric, place, self.group)
        if self.form == SHIFT:
            return signed_text(cell, self.digits) + cells.starred(cell)
        return spread_text(cell, self.digits)


_INTERVAL = "95% interval"
ERRORS = (
    Quantity(ERROR_SIGNS[MALE], "error_rate", MALE),
    Quantity(ERROR_SIGNS[FEMALE], "error_rate", FEMALE),
)
GAP_OF_ERRORS = (
    Quantity(ERROR_SIGNS[GAP], "error_rate"),
    Quantity(_INTERVAL, "error_rate", form=INTERVAL, digits=1),
)
SHIFT_OF_GAP = (
    Quantity("Shift", "error_shift", form=SHIFT),
    Quantity(_INTERVAL, "error_shift", form=INTERVAL, digits=1),
)
AMONG_REVEALED = (
    Quantity("RR_o", "reveal_rate", ALL, spanner="Gender revealed"),
    Quantity(ERROR_SIGNS[GAP], "revealed_error_rate", spanner="Gender revealed"),
)
REVEALED = Quantity("RR_o", "reveal_rate", ALL)
QUALITY = (
    Quantity("all", "bleu4", ALL, spanner="BLEU-4"),
    Quantity("m−f", "bleu4", spanner="BLEU-4"),
    Quantity("all", "clipscore", ALL, spanner="CLIP"),
    Quantity("m−f", "clipscore", spanner="CLIP"),
    Quantity("AvgL", "caption_length", ALL),
)


def places_of(
    start: Place, settings: Iterable[str], study: Study, sources: Sequence[str] = ()
) -> list[Place]:
    """Return zero-shot, if it was asked, and then each setting with each number of shots."""
    places = [start.after(ZERO_SHOT, 0)] if 0 in study.shots else []
    for source in sources or (start.source,):
        places += [
            start.after(setting, shots, source)
            for setting in settings
            for shots in study.shots
            if shots
        ]
    return places


def texts(cells: Cells, place: Place, quantities: Iterable[Quantity]) -> tuple[str, ...]:
    """Return the cells of one row."""
    return tuple(quantity.text(cells, place) for quantity in quantities)


def retrieval_of(study: Study, *, balanced: bool) -> tuple[str, ...]:
    """Return the settings of retrieval from the pool as it is, or from the balanced one."""
    return tuple(name for name in study.retrieval if name.endswith(BALANCED_POOL) == balanced)
