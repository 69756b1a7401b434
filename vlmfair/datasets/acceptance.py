"""Group counts that a paper prints for a dataset, compared with the samples of a real download."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vlmfair.errors import ConfigError

ALL = "all"
FUNNEL = "funnel"
MAY_DIFFER = "may_differ"


@dataclass(frozen=True)
class GroupCount:
    """One group of a printed table.

    `published` is the number as printed, `expected` the one that the data should have: the same,
    unless the print is known to be wrong, which `note` explains. `found` is the number of samples.
    `may_differ` where the number depends on what can still be fetched.
    """

    attribute: str
    group: str
    published: int
    expected: int
    found: int
    note: str = ""
    may_differ: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the samples have the expected number."""
        return self.found == self.expected


def compare_counts(samples: pa.Table, acceptance: Mapping[str, Any]) -> list[GroupCount]:
    """Count the samples in each group of an `acceptance` entry of config/datasets.yaml.

    Samples whose label is unknown for an attribute in `known` are left out of all counts, as the
    paper leaves them out. The total has the attribute and the group `all`.
    """
    rows = samples.select([name for name in samples.column_names if name != "raw"]).to_pandas()
    for attribute in acceptance.get("known", []):
        rows = rows[rows[attribute].notna() & (rows[attribute].str.casefold() != "unknown")]
    wrong = {
        (entry["attribute"], group): (count, entry["note"])
        for entry in acceptance.get("deviations", [])
        for group, count in entry["counts"].items()
    }
    compared = []
    for attribute, groups in acceptance.get("counts", {}).items():
        for group, published in groups.items():
            expected, note = wrong.get((attribute, group), (published, ""))
            found = len(rows) if attribute == ALL else int((rows[attribute] == group).sum())
            compared.append(GroupCount(attribute, group, published, expected, found, note))
    return compared


def compare_funnel(table: pa.Table, acceptance: Mapping[str, Any]) -> list[GroupCount]:
    """Compare what is left after steps of a funnel with the numbers of an `acceptance` entry.

    `table` is that of `vlmfair.datasets.funnel.funnel`. Raises ConfigError on an unknown step.
    """
    left = dict(zip(table["step"].to_pylist(), table["left"].to_pylist(), strict=True))
    compared = []
    for step, published in acceptance.get(FUNNEL, {}).items():
        if step not in left:
            raise ConfigError(
                f"acceptance.funnel: {step} is no step of the dataset. Write one of "
                f"{', '.join(left)}."
            )
        free = step in acceptance.get(MAY_DIFFER, [])
        compared.append(GroupCount(FUNNEL, step, published, published, left[step], may_differ=free))
    return compared


def acceptance_of(datasets: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a dataset's `acceptance` entry; raises ConfigError when it has none."""
    entry: Mapping[str, Any] | None = datasets.get(name, {}).get("acceptance")
    if entry is None:
        raise ConfigError(
            f"{name}: no counts are known to compare with. Write acceptance: <counts that a paper "
            f"prints> into the sheet of datasets."
        )
    return entry


def deviation_notes(acceptance: Mapping[str, Any]) -> list[str]:
    """Return what is known to be wrong in the printed counts, one sentence or two each."""
    return [str(entry["note"]) for entry in acceptance.get("deviations", [])]
