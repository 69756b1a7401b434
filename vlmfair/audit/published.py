"""Published numbers: the cells and sentences of a paper, each with its location and keys."""

from __future__ import annotations

import csv
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from os import PathLike

from vlmfair.errors import ConfigError

RELATIONS = {
    "=": operator.eq,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


@dataclass(frozen=True)
class Published:
    """One number as printed, where it is printed, and which metric it states.

    The keys `model` to `item` have the meaning of the metrics table. `relation` says whether the
    text gives the number itself (`=`) or a bound (`>`, `>=`, `<`, `<=`).
    """

    paper: str
    location: str
    model: str
    setting: str
    prompt: str
    attribute: str
    group: str
    item: str
    metric: str
    relation: str
    value: str
    note: str

    @property
    def number(self) -> float:
        """The printed number."""
        return float(self.value)

    @property
    def decimals(self) -> int:
        """How many decimals are printed."""
        return len(self.value.partition(".")[2])

    @property
    def statement(self) -> str:
        """The printed number with its relation: `98.25`, `>= 88`."""
        return self.value if self.relation == "=" else f"{self.relation} {self.value}"

    def agrees_with(self, recomputed: float, decimals: int | None = None) -> bool:
        """Whether a recomputed number, rounded as the print is if `=`, is as stated.

        `decimals` is for tables that drop trailing zeros; otherwise the printed decimals count.
        """
        if self.relation == "=":
            kept = self.decimals if decimals is None else decimals
            return rounds_to(recomputed, self.number, kept)
        return bool(RELATIONS[self.relation](round(recomputed, 9), self.number))


def rounds_to(recomputed: float, printed: float, decimals: int) -> bool:
    """Whether a number printed with so many decimals can be the recomputed one, rounded."""
    return abs(recomputed - printed) <= 0.5 * 10**-decimals + 1e-12


def load_published(path: str | PathLike[str]) -> tuple[Published, ...]:
    """Read published numbers in file order.

    Raises ConfigError on a missing file or column, an empty location, a relation that is not one of
    RELATIONS, and a value that is not a finite number.
    """
    names = [field.name for field in fields(Published)]
    rows = read_columns(path, names)
    published = tuple(Published(**row) for row in rows)
    for number, entry in enumerate(published, start=2):
        _check_entry(entry, f"{path}, line {number}")
    return published


def read_columns(path: str | PathLike[str], names: Sequence[str]) -> list[dict[str, str]]:
    """Read the named columns of a csv of published numbers; an empty cell is an empty text.

    Raises ConfigError on a missing file or column and on a file that is not UTF-8 text.
    """
    try:
        with open(path, encoding="utf-8", newline="") as opened:
            reader = csv.DictReader(opened)
            missing = [name for name in names if name not in (reader.fieldnames or ())]
            if missing:
                raise ConfigError(
                    f"{path}: the column {missing[0]} is missing. Write the columns "
                    f"{', '.join(names)}."
                )
            return [{name: line[name] or "" for name in names} for line in reader]
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the published numbers are missing. Restore them from the repository."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(
            f"{path}: this is not a csv file in UTF-8. Restore it from the repository."
        ) from error


def _check_entry(entry: Published, where: str) -> None:
    if not entry.location or not entry.metric:
        raise ConfigError(f"{where}: location or metric is empty. Say where and what is printed.")
    if entry.relation not in RELATIONS:
        raise ConfigError(
            f"{where}: relation is {entry.relation!r}. Write one of {', '.join(RELATIONS)}."
        )
    try:
        finite = math.isfinite(entry.number)
    except ValueError:
        finite = False
    if not finite:
        raise ConfigError(f"{where}: value is {entry.value!r}. Write the printed number.")


def select(published: Iterable[Published], **keys: str) -> list[Published]:
    """Return the numbers whose fields equal all the keys given, in file order."""
    return [
        entry
        for entry in published
        if all(getattr(entry, name) == value for name, value in keys.items())
    ]
