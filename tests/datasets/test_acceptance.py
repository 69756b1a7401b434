"""Printed counts of groups against samples, and what is known to be wrong in print."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from vlmfair.config import check_config, read_yaml
from vlmfair.datasets import facet, utkface
from vlmfair.datasets.acceptance import acceptance_of, compare_counts, deviation_notes
from vlmfair.errors import ConfigError

ACCEPTANCE = {
    "location": "Some paper, Table 1",
    "known": ["gender"],
    "counts": {"all": {"all": 3}, "gender": {"Female": 2, "Male": 1}, "race": {"asian": 2}},
    "deviations": [{"attribute": "race", "counts": {"asian": 1}, "note": "Swapped in print."}],
}


@pytest.fixture
def samples() -> pa.Table:
    return pa.table(
        {
            "gender": ["Female", "Male", "Female", "Unknown", None],
            "race": ["asian", "indian", None, "asian", "asian"],
        }
    )


@pytest.fixture(scope="module")
def sheet(root: Path) -> dict:
    return read_yaml(root / "config/datasets.yaml")["datasets"]


def test_counts_leave_out_unknown_labels_and_use_the_corrected_number(samples: pa.Table) -> None:
    found = compare_counts(samples, ACCEPTANCE)
    assert [(c.attribute, c.group, c.published, c.expected, c.found) for c in found] == [
        ("all", "all", 3, 3, 3),
        ("gender", "Female", 2, 2, 2),
        ("gender", "Male", 1, 1, 1),
        ("race", "asian", 2, 1, 1),
    ]
    assert all(count.agrees for count in found)
    assert [count.note for count in found] == ["", "", "", "Swapped in print."]


def test_a_missing_image_shows_as_a_disagreement(samples: pa.Table) -> None:
    wrong = [count for count in compare_counts(samples.slice(1), ACCEPTANCE) if not count.agrees]
    assert [(count.group, count.expected, count.found) for count in wrong] == [
        ("all", 3, 2),
        ("Female", 2, 1),
        ("asian", 1, 0),
    ]


def test_sheet_has_the_counts_of_table_1_of_the_study(sheet: dict) -> None:
    """Fairness of LVLMs, Table 1, as printed."""
    counts = acceptance_of(sheet, "facet")["counts"]
    assert counts["all"] == {"all": 5481}
    assert list(counts["gender"].values()) == [3821, 1660]
    assert counts["age"] == {"young": 1286, "middle": 3145, "old": 468, "unknown": 582}
    assert counts["skin_tone"] == {"light": 2402, "medium": 1641, "dark": 325, "unknown": 1113}
    assert {sum(groups.values()) for groups in counts.values()} == {5481}
    counts = acceptance_of(sheet, "utkface")["counts"]
    assert counts["gender"] == {"Male": 12582, "Female": 11524}
    assert list(counts["race"].values()) == [10222, 4558, 4027, 3586, 1713]
    assert {sum(groups.values()) for groups in counts.values()} == {24106}


def test_groups_of_the_sheet_are_those_of_the_parsers(sheet: dict) -> None:
    counts = acceptance_of(sheet, "facet")["counts"]
    assert set(counts["gender"]) | {"Unknown"} == set(facet.GENDERS)
    assert set(counts["age"]) == set(facet.AGES)
    assert set(counts["skin_tone"]) == set(facet.SKIN_TONES)
    entry = acceptance_of(sheet, "utkface")
    assert set(entry["counts"]["race"]) == set(utkface.RACES.values())
    assert set(entry["counts"]["gender"]) == set(utkface.GENDERS.values())
    assert entry["options"]["policy"] in utkface.POLICIES


def test_the_swapped_numbers_are_recorded_with_the_right_ones(sheet: dict) -> None:
    entry = acceptance_of(sheet, "utkface")
    right = entry["deviations"][0]["counts"]
    printed = entry["counts"]["race"]
    assert (right["asian"], right["indian"]) == (printed["indian"], printed["asian"])
    assert "the other way round" in deviation_notes(entry)[0]
    assert deviation_notes(acceptance_of(sheet, "facet")) == []


def test_a_dataset_without_printed_counts_says_so(sheet: dict) -> None:
    with pytest.raises(ConfigError, match="visual_cot: no counts are known to compare with. Write"):
        acceptance_of(sheet, "visual_cot")


def test_a_misspelt_attribute_of_the_sheet_is_refused(root: Path, sheet: dict) -> None:
    entry = {**sheet["facet"], "acceptance": {**ACCEPTANCE, "counts": {"tone": {"light": 1}}}}
    schema = root / "config/schemas/datasets.schema.json"
    with pytest.raises(ConfigError, match="Write an attribute of samples, or all"):
        check_config({"datasets": {"facet": entry}}, schema, "config/datasets.yaml")
