"""The list of datasets: what is there, what is missing, and what is not as a paper counts it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from vlmfair.config import read_yaml
from vlmfair.contracts import PROBLEMS, SAMPLES, conform
from vlmfair.datasets import ParsedDataset
from vlmfair.datasets.checklist import (
    CheckedDataset,
    as_checklist,
    as_markdown,
    check_parsed,
    read_checklist,
    require_complete,
    write_checklist,
)
from vlmfair.errors import RawDataError

# Fairness of LVLMs, Table 1, as printed.
TABLE_1 = {
    "facet": {
        "gender": {"Male": 3821, "Female": 1660},
        "age": {"young": 1286, "middle": 3145, "old": 468, "unknown": 582},
        "skin_tone": {"light": 2402, "medium": 1641, "dark": 325, "unknown": 1113},
    },
    "utkface": {
        "gender": {"Male": 12582, "Female": 11524},
        "race": {"white": 10222, "black": 4558, "asian": 4027, "indian": 3586, "others": 1713},
    },
}


@pytest.fixture(scope="module")
def sheet(root: Path) -> dict:
    return read_yaml(root / "config/datasets.yaml")["datasets"]


def parsed_with(name: str, groups: dict[str, dict[str, int]], reasons: list[str]) -> ParsedDataset:
    """Samples with so many of each group, and a problem for each reason."""
    labels = {
        attribute: [group for group, count in counts.items() for _ in range(count)]
        for attribute, counts in groups.items()
    }
    size = len(next(iter(labels.values())))
    samples = {
        "sample_id": [f"{name}/{number}" for number in range(size)],
        "dataset": [name] * size,
        "image": ["x.jpg"] * size,
        "image_sha256": ["0" * 64] * size,
        "raw": [json.dumps({})] * size,
    }
    problems = {
        "dataset": pa.array([name] * len(reasons), pa.string()),
        "record": pa.array([str(number) for number in range(len(reasons))], pa.string()),
        "reason": pa.array(reasons, pa.string()),
    }
    return ParsedDataset(
        conform(pa.table(samples | labels), SAMPLES), conform(pa.table(problems), PROBLEMS)
    )


@pytest.fixture(scope="module")
def facet(sheet: dict) -> CheckedDataset:
    parsed = parsed_with("facet", TABLE_1["facet"], ["other_class", "image_missing", "ignored_box"])
    return check_parsed("facet", "data/facet", parsed, sheet["facet"])


@pytest.fixture(scope="module")
def utkface(sheet: dict) -> CheckedDataset:
    """UTKFace as it is: the print swaps two of its races."""
    race = {**TABLE_1["utkface"]["race"], "asian": 3586, "indian": 4027}
    groups = {**TABLE_1["utkface"], "race": race}
    parsed = parsed_with("utkface", groups, [])
    options = {"policy": "paper_table1"}
    return check_parsed("utkface", "data/utkface", parsed, sheet["utkface"], options=options)


def test_a_download_with_the_counts_of_table_1_is_complete(facet, utkface):
    checklist = as_checklist([facet, utkface], drawn=False)

    require_complete(checklist, "check.md")
    counted = checklist[checklist["verdict"] != ""]
    assert len(counted) == (1 + 2 + 4 + 4) + (1 + 2 + 5)
    assert set(counted["verdict"]) == {"agrees"}
    first = checklist.iloc[0]
    assert (first["found"], first["images"]) == ("yes", "5481")
    assert first["left_out"] == "2", "a box that is ignored leaves no image out"
    asian = checklist[(checklist["group"] == "asian")].iloc[0]
    assert (asian["published"], asian["expected"], asian["counted"]) == ("4027", "3586", "3586")
    assert "the other way round" in asian["note"]
    assert set(checklist["next_step"]) == {""}


def test_faces_counted_as_the_print_has_them_by_mistake_differ(sheet):
    parsed = parsed_with("utkface", TABLE_1["utkface"], [])
    options = {"policy": "paper_table1"}
    checked = check_parsed("utkface", "data/utkface", parsed, sheet["utkface"], options=options)

    says = r"utkface race asian \(4027 for 3586\), utkface race indian \(3586 for 4027\)\. Do what"
    with pytest.raises(RawDataError, match=says):
        require_complete(as_checklist([checked], drawn=False), "check.md")


def test_what_is_missing_is_listed_with_how_to_get_it(facet, sheet):
    advice = sheet["utkface"]["get"]
    missing = CheckedDataset("utkface", "data/utkface", True, False, next_step=advice)
    unasked = CheckedDataset("dci", "data/dci", False, False, next_step="Not asked for.")
    checklist = as_checklist([facet, missing, unasked], drawn=False)

    with pytest.raises(RawDataError, match="missing: utkface. Do what results/check.md says"):
        require_complete(checklist, "results/check.md")
    text = as_markdown(checklist)
    assert "- utkface: Download part1.tar.gz" in text
    assert "| utkface | data/utkface | yes       | no    |" in text


def test_a_dataset_that_no_paper_asks_for_may_be_missing():
    unasked = CheckedDataset("dci", "data/dci", False, False, next_step="Not asked for.")
    require_complete(as_checklist([unasked], drawn=False), "check.md")


def test_other_skin_tones_point_to_the_rules_of_votes(sheet):
    tones = {"light": 2402, "medium": 1640, "dark": 326, "unknown": 1113}
    parsed = parsed_with("facet", {**TABLE_1["facet"], "skin_tone": tones}, [])

    checked = check_parsed("facet", "data/facet", parsed, sheet["facet"])

    assert "vlmfair.datasets.facet.tone_counts" in checked.next_step
    assert "problems.parquet" not in checked.next_step, "no image is missing"
    says = r"facet skin_tone medium \(1640 for 1641\), facet skin_tone dark \(326 for 325\)\. Do"
    with pytest.raises(RawDataError, match=says):
        require_complete(as_checklist([checked], drawn=False), "check.md")


def test_missing_images_point_to_the_problems(sheet):
    groups = {**TABLE_1["facet"], "gender": {"Male": 3820, "Female": 1660, "Unknown": 1}}
    checked = check_parsed("facet", "data/facet", parsed_with("facet", groups, []), sheet["facet"])
    assert "problems.parquet" in checked.next_step


def test_another_policy_than_that_of_the_printed_counts_is_named(sheet):
    groups = {"gender": {"Male": 12581, "Female": 11521}, "race": {"white": 24102}}
    parsed = parsed_with("utkface", groups, ["malformed_name"] * 4)

    checked = check_parsed(
        "utkface", "data/utkface", parsed, sheet["utkface"], options={"policy": "drop"}
    )

    assert checked.next_step.startswith(
        "The printed counts are those of datasets.utkface.policy: paper_table1."
    )


def test_drawn_files_are_counted_without_a_verdict(sheet):
    groups = {"gender": {"Male": 2}, "age": {"young": 2}, "skin_tone": {"dark": 2}}
    checked = check_parsed("facet", "raw/facet", parsed_with("facet", groups, []), sheet["facet"])

    checklist = as_checklist([checked], drawn=True)

    require_complete(checklist, "check.md")
    assert set(checklist["verdict"]) == {""}
    assert checklist[checklist["group"] == "Male"]["counted"].tolist() == ["2"]
    assert "Next steps" not in as_markdown(checklist)


def test_records_after_a_filter_are_compared_too(sheet):
    parsed = parsed_with("dci", {"gender": {"Male": 3}, "split": {"pool": 1, "queries": 2}}, [])

    checked = check_parsed("dci", "data/dci", parsed, sheet["dci"], asked_for=False)

    found = [(count.group, count.expected, count.found) for count in checked.counts]
    assert found == [("all records", 7805, 3), ("with the same gender in both", 371, 3)]


def test_a_checklist_is_read_as_it_was_written(facet, tmp_path):
    odd = CheckedDataset("dci", "a|b\nc", True, False, next_step='Say "NA", or\nnothing.')
    checklist = as_checklist([facet, odd], drawn=False)

    write_checklist(tmp_path / "check.csv", checklist)

    pd.testing.assert_frame_equal(read_checklist(tmp_path / "check.csv"), checklist)
    assert "| a\\|b c " in as_markdown(checklist)
