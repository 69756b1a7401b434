"""A part of a plan: what one experiment of a paper asks one model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add

from vlmfair.cost.amounts import Amounts
from vlmfair.cost.image_tokens import ImageLoad

NO_IMAGE = ImageLoad(0, 0, 0)


@dataclass(frozen=True)
class Part:
    """An experiment's amounts for one model.

    `image` is what its images become, all of one size; `scored` tells questions whose answer is
    one position's probabilities from those that generate; `announced` whether numbers of images
    are those that a sheet announces, and not counted samples.
    """

    paper: str
    experiment: str
    model: str
    image: ImageLoad
    amounts: Amounts
    scored: bool
    announced: bool


def total(amounts: Iterable[Amounts]) -> Amounts:
    """Return the sum of amounts."""
    return reduce(add, amounts, Amounts())
