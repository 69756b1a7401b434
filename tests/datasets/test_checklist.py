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
    check_raw,
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
        "detail": pa.array(["7 images lie below it"] * len(reasons), pa.string()),
    }
    return ParsedDataset(
        conform(pa.table(samples | labels), SAMPLES), conform(pa.table(problems), PROBLEMS)
    )


@pytest.fixture(scope="module")
def facet(sheet: dict) -> CheckedDataset:
    parsed = parsed_with("facet", TABLE_1["facet"], ["other_class", "unknown_class", "ignored_box"])
    return check_parsed("facet", "data/facet", parsed, sheet["facet"], images=5481)


@pytest.fixture(scope="module")
def utkface(sheet: dict) -> CheckedDataset:
    """UTKFace as it is: the print swaps two of its races."""
    race = {**TABLE_1["utkface"]["race"], "asian": 3586, "indian": 4027}
    groups = {**TABLE_1["utkface"], "race": race}
    parsed = parsed_with("utkface", groups, [])
    options = {"policy": "paper_table1"}
    return check_parsed(
        "utkface", "data/utkface", parsed, sheet["utkface"], images=24106, options=options
    )


def test_a_download_with_the_counts_of_table_1_is_complete(facet, utkface):
    checklist = as_checklist([facet, utkface], drawn=False)

    require_complete(checklist, "check.md")
    counted = checklist[checklist["verdict"] != ""]
    # The images of each, and of each the groups of Table 1.
    assert len(counted) == 2 + (1 + 2 + 4 + 4) + (1 + 2 + 5)
    assert set(counted["verdict"]) == {"agrees"}
    first = checklist.iloc[0]
    assert (first["found"], first["images"], first["expected"]) == ("yes", "5481", "5481")
    assert first["left_out"] == "2", "a box that is ignored leaves no image out"
    asian = checklist[(checklist["group"] == "asian")].iloc[0]
    assert (asian["published"], asian["expected"], asian["counted"]) == ("4027", "3586", "3586")
    assert "the other way round" in asian["note"]
    assert set(checklist["next_step"]) == {""}


def test_faces_counted_as_the_print_has_them_by_mistake_differ(sheet):
    parsed = parsed_with("utkface", TABLE_1["utkface"], [])
    options = {"policy": "paper_table1"}
    checked = check_parsed(
        "utkface", "data/utkface", parsed, sheet["utkface"], images=24106, options=options
    )

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
    assert "| utkface | data/utkface | yes       | no    |        |          |" in text


def test_images_that_the_labels_name_and_that_are_not_there_are_missing(sheet):
    """Two images, and the seven below a folder that was not unpacked."""
    reasons = ["image_missing", "image_empty", "folder_absent", "image_unreadable"]
    parsed = parsed_with("facet", TABLE_1["facet"], reasons)
    checked = check_parsed("facet", "data/facet", parsed, sheet["facet"], images=5481)

    assert (checked.images, checked.expected) == (5481, 5490)
    assert checked.next_step == (
        "9 images are missing, such as 0, 1, 2: unpack or fetch what is missing."
    )
    with pytest.raises(RawDataError, match=r"without some images: facet \(5481 of 5490\)\. Do"):
        require_complete(as_checklist([checked], drawn=False), "check.md")


def test_photographs_may_vanish(sheet):
    """VL-BICLE reached 670 of 690; how many are left is no mistake of the download."""
    labels = {"gender": {"Male": 9}, "split": {"pool": 4, "queries": 5}}
    parsed = parsed_with("visogender", labels, ["image_missing"] * 681)
    checked = check_parsed("visogender", "raw", parsed, sheet["visogender"], images=9)

    checklist = as_checklist([checked], drawn=False)

    require_complete(checklist, "check.md")
    assert checklist["verdict"].tolist() == ["may differ", "agrees", "may differ", "may differ"]
    assert checked.next_step.startswith("681 images are missing, such as 0, 1, 2: photographs.csv")


def test_counts_of_a_list_are_compared_where_the_list_is_used(sheet):
    parsed = parsed_with("fairface", {"gender": {"Male": 2}, "race": {"White": 2}}, [])

    listed = check_parsed("fairface", "raw", parsed, sheet["fairface"], images=2, listed=True)
    whole = check_parsed("fairface", "raw", parsed, sheet["fairface"], images=2)

    assert [count.group for count in listed.counts][:3] == ["all", "Male", "Female"]
    assert whole.counts == ()


def test_a_folder_that_cannot_be_read_is_not_found_and_says_why(sheet, tmp_path):
    (tmp_path / "train").mkdir()

    checked = check_raw("fairface", str(tmp_path), sheet["fairface"])

    assert not checked.found
    assert "fairface_label_train.csv" in checked.next_step


def test_every_missing_dataset_is_named_also_where_there_are_many():
    names = ["fairface", "ai_face", "facet", "utkface", "dci"]
    checklist = as_checklist(
        [CheckedDataset(name, f"data/{name}", True, False) for name in names], drawn=False
    )
    with pytest.raises(RawDataError, match="missing: fairface, ai_face, facet, utkface, dci. Do"):
        require_complete(checklist, "check.md")


def test_a_dataset_that_no_paper_asks_for_may_be_missing():
    unasked = CheckedDataset("dci", "data/dci", False, False, next_step="Not asked for.")
    require_complete(as_checklist([unasked], drawn=False), "check.md")


def test_other_skin_tones_point_to_the_rules_of_votes(sheet):
    tones = {"light": 2402, "medium": 1640, "dark": 326, "unknown": 1113}
    parsed = parsed_with("facet", {**TABLE_1["facet"], "skin_tone": tones}, [])

    checked = check_parsed("facet", "data/facet", parsed, sheet["facet"], images=5481)

    assert "vlmfair.datasets.facet.tone_counts" in checked.next_step
    assert "problems.parquet" not in checked.next_step, "no image is missing"
    says = r"facet skin_tone medium \(1640 for 1641\), facet skin_tone dark \(326 for 325\)\. Do"
    with pytest.raises(RawDataError, match=says):
        require_complete(as_checklist([checked], drawn=False), "check.md")


def test_missing_images_point_to_the_problems(sheet):
    groups = {**TABLE_1["facet"], "gender": {"Male": 3820, "Female": 1660, "Unknown": 1}}
    parsed = parsed_with("facet", groups, [])
    checked = check_parsed("facet", "data/facet", parsed, sheet["facet"], images=5481)
    assert "problems.parquet" in checked.next_step


def test_another_policy_than_that_of_the_printed_counts_is_named(sheet):
    groups = {"gender": {"Male": 12581, "Female": 11521}, "race": {"white": 24102}}
    parsed = parsed_with("utkface", groups, ["malformed_name"] * 4)

    options = {"policy": "drop"}
    checked = check_parsed(
        "utkface", "data/utkface", parsed, sheet["utkface"], images=24106, options=options
    )

    assert checked.next_step.startswith(
        "The printed counts are those of datasets.utkface.policy: paper_table1."
    )


def test_drawn_files_are_counted_without_a_verdict(sheet):
    groups = {"gender": {"Male": 2}, "age": {"young": 2}, "skin_tone": {"dark": 2}}
    parsed = parsed_with("facet", groups, [])
    checked = check_parsed("facet", "raw/facet", parsed, sheet["facet"], images=2)

    checklist = as_checklist([checked], drawn=True)

    require_complete(checklist, "check.md")
    assert set(checklist["verdict"]) == {""}
    assert checklist[checklist["group"] == "Male"]["counted"].tolist() == ["2"]
    assert "Next steps" not in as_markdown(checklist)


def test_records_after_a_filter_are_compared_too(sheet):
    parsed = parsed_with("dci", {"gender": {"Male": 3}, "split": {"pool": 1, "queries": 2}}, [])

    checked = check_parsed("dci", "data/dci", parsed, sheet["dci"], images=3, asked_for=False)

    found = [(count.group, count.expected, count.found) for count in checked.counts]
    assert found == [("all records", 7805, 3), ("with the same gender in both", 371, 3)]


def test_a_checklist_is_read_as_it_was_written(facet, tmp_path):
    odd = CheckedDataset("dci", "a|b\nc", True, False, next_step='Say "NA", or\nnothing.')
    checklist = as_checklist([facet, odd], drawn=False)

    write_checklist(tmp_path / "check.csv", checklist)

    pd.testing.assert_frame_equal(read_checklist(tmp_path / "check.csv"), checklist)
    assert "| a\\|b c " in as_markdown(checklist)
