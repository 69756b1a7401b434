"""FairFace as distributed, and everything that can be wrong with a copy of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vlmfair.datasets import ParsedDataset, parse_dataset
from vlmfair.datasets.fairface import canonical_path
from vlmfair.errors import RawDataError

HEADER = "file,age,gender,race,service_test"


def add_rows(raw: Path, *lines: str, split: str = "train") -> None:
    path = raw / f"fairface_label_{split}.csv"
    path.write_text(path.read_text() + "".join(f"{line}\n" for line in lines))


def ids(parsed: ParsedDataset) -> list[str]:
    return parsed.samples["sample_id"].to_pylist()


def test_reads_labels_paths_hashes_and_keeps_the_raw_row(fairface_dir: Path) -> None:
    first = parse_dataset("fairface", fairface_dir).samples.to_pylist()[0]
    content = (fairface_dir / "train/1.jpg").read_bytes()
    assert first["sample_id"] == "fairface/train/1.jpg"
    assert (first["dataset"], first["split"]) == ("fairface", "train")
    assert (first["age"], first["gender"], first["race"]) == ("50-59", "Male", "East Asian")
    assert first["skin_tone"] is None
    assert Path(first["image"]).read_bytes() == content
    assert first["image_sha256"] == hashlib.sha256(content).hexdigest()
    assert (first["width"], first["height"]) == (12, 10)
    assert json.loads(first["raw"]) == {
        "file": "train/1.jpg",
        "age": "50-59",
        "gender": "Male",
        "race": "East Asian",
        "service_test": "True",
    }


def test_both_splits_are_read_in_order_without_problems(fairface_dir: Path) -> None:
    parsed = parse_dataset("fairface", fairface_dir)
    assert ids(parsed) == ["fairface/train/1.jpg", "fairface/train/2.jpg", "fairface/val/1.jpg"]
    assert len(parsed.problems) == 0


@pytest.mark.parametrize("layout", ["FairFace", "fairface-img-margin025-trainval"])
def test_images_may_lie_in_a_folder_of_the_zip_or_of_gras(fairface_dir: Path, layout: str) -> None:
    (fairface_dir / layout).mkdir()
    for split in ("train", "val"):
        (fairface_dir / split).rename(fairface_dir / layout / split)
    samples = parse_dataset("fairface", fairface_dir).samples
    assert samples["sample_id"][0].as_py() == "fairface/train/1.jpg"
    assert Path(samples["image"][0].as_py()).is_file()


def test_spreadsheet_habits_change_nothing(fairface_dir: Path) -> None:
    plain = parse_dataset("fairface", fairface_dir).samples
    for split in ("train", "val"):
        path = fairface_dir / f"fairface_label_{split}.csv"
        header, *rows = path.read_text().strip().split("\n")
        order = [4, 3, 2, 1, 0]
        lines = [[line.split(",")[i] for i in order] for line in [header, *rows]]
        shuffled = [",".join(["note", *lines[0]]), *(",".join(['"x, y"', *r]) for r in lines[1:])]
        path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(shuffled).encode())
    samples = parse_dataset("fairface", fairface_dir).samples
    assert samples.drop_columns(["raw"]).equals(plain.drop_columns(["raw"]))
    assert json.loads(samples["raw"][0].as_py())["note"] == "x, y"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("train/2.jpg,Mar-09,Male,Black,True", "unknown_age"),
        ("train/2.jpg,70+,Male,Black,True", "unknown_age"),
        ("train/2.jpg,20-29,male,Black,True", "unknown_gender"),
        ("train/2.jpg,20-29,Male,Martian,True", "unknown_race"),
        ("train/2.jpg,20-29,Male,,True", "unknown_race"),
        ("train/9.jpg,20-29,Male,Black,True", "image_missing"),
        ("../secret.jpg,20-29,Male,Black,True", "path_outside"),
        ("train/../../secret.jpg,20-29,Male,Black,True", "path_outside"),
        ("/etc/passwd,20-29,Male,Black,True", "path_outside"),
        (r"C:\data\1.jpg,20-29,Male,Black,True", "path_outside"),
        (",20-29,Male,Black,True", "invalid_path"),
        ("train/\x0b2.jpg,20-29,Male,Black,True", "invalid_path"),
        ("train/2.jpg,20-29,Male", "malformed_row"),
        ("train/2.jpg,20-29,Male,Black,True,more", "malformed_row"),
        ('train/2.jpg,"20-29,Male,Black,True', "malformed_row"),
        (HEADER, "repeated_header"),
    ],
)
def test_a_bad_row_becomes_a_problem_and_costs_no_other_row(
    fairface_dir: Path, row: str, reason: str
) -> None:
    (fairface_dir.parent / "secret.jpg").write_bytes((fairface_dir / "train/1.jpg").read_bytes())
    path = fairface_dir / "fairface_label_train.csv"
    path.write_text(f"{HEADER}\n{row}\ntrain/1.jpg,50-59,Male,East Asian,True\n")
    parsed = parse_dataset("fairface", fairface_dir)
    assert ids(parsed) == ["fairface/train/1.jpg", "fairface/val/1.jpg"]
    problems = parsed.problems.to_pylist()
    assert [problem["reason"] for problem in problems] == [reason]
    assert problems[0]["raw"]


def test_problem_names_the_line_when_a_row_has_no_usable_path(fairface_dir: Path) -> None:
    add_rows(fairface_dir, "", "too,few", split="val")
    problem = parse_dataset("fairface", fairface_dir).problems.to_pylist()[0]
    assert problem["record"] == "fairface_label_val.csv:4"
    assert problem["raw"] == "too,few"


def test_backslashes_of_windows_are_the_same_path(fairface_dir: Path) -> None:
    path = fairface_dir / "fairface_label_val.csv"
    path.write_text(f"{HEADER}\nval\\1.jpg,3-9,Female,White,True\n")
    assert "fairface/val/1.jpg" in ids(parse_dataset("fairface", fairface_dir))


def test_same_row_twice_counts_once(fairface_dir: Path) -> None:
    add_rows(fairface_dir, "train/1.jpg,50-59,Male,East Asian,True")
    parsed = parse_dataset("fairface", fairface_dir)
    assert ids(parsed).count("fairface/train/1.jpg") == 1
    assert parsed.problems["reason"].to_pylist() == ["duplicate_record"]


def test_contradicting_rows_of_one_image_are_all_left_out(fairface_dir: Path) -> None:
    add_rows(fairface_dir, "train/1.jpg,50-59,Female,East Asian,True")
    parsed = parse_dataset("fairface", fairface_dir)
    assert "fairface/train/1.jpg" not in ids(parsed)
    assert parsed.problems["reason"].to_pylist() == ["conflicting_record"] * 2


def test_file_of_another_case_is_found_and_noted(fairface_dir: Path) -> None:
    (fairface_dir / "train/2.jpg").rename(fairface_dir / "train/2.JPG")
    parsed = parse_dataset("fairface", fairface_dir)
    assert parsed.samples["image"][1].as_py().endswith("train/2.JPG")
    assert parsed.problems.to_pylist()[0]["reason"] == "other_case"
    assert parsed.problems.to_pylist()[0]["detail"] == "found as train/2.JPG"


def test_two_files_of_other_case_are_not_guessed_between(fairface_dir: Path) -> None:
    content = (fairface_dir / "train/2.jpg").read_bytes()
    (fairface_dir / "train/2.jpg").unlink()
    for name in ("2.JPG", "2.Jpg"):
        (fairface_dir / "train" / name).write_bytes(content)
    parsed = parse_dataset("fairface", fairface_dir)
    assert parsed.problems.to_pylist()[0]["detail"] == "several files differ from it in case only"


def test_link_out_of_the_raw_folder_is_not_followed(fairface_dir: Path) -> None:
    outside = fairface_dir.parent / "outside.jpg"
    (fairface_dir / "train/2.jpg").rename(outside)
    (fairface_dir / "train/2.jpg").symlink_to(outside)
    parsed = parse_dataset("fairface", fairface_dir)
    assert ids(parsed) == ["fairface/train/1.jpg", "fairface/val/1.jpg"]
    assert parsed.problems["reason"].to_pylist() == ["path_outside"]


def test_link_within_the_raw_folder_and_a_linked_raw_folder_are_fine(fairface_dir: Path) -> None:
    (fairface_dir / "train/2.jpg").unlink()
    (fairface_dir / "train/2.jpg").symlink_to(fairface_dir / "train/1.jpg")
    linked = fairface_dir.parent / "linked"
    linked.symlink_to(fairface_dir)
    assert len(parse_dataset("fairface", linked).samples) == 3


def test_linked_folder_that_leads_out_says_so(fairface_dir: Path) -> None:
    (fairface_dir / "train").rename(fairface_dir.parent / "elsewhere")
    (fairface_dir / "train").symlink_to(fairface_dir.parent / "elsewhere")
    parsed = parse_dataset("fairface", fairface_dir)
    assert parsed.problems["reason"].to_pylist() == ["path_outside"] * 2


def test_only_restricts_what_is_opened_and_reports_what_nobody_labelled(
    fairface_dir: Path,
) -> None:
    (fairface_dir / "train/2.jpg").write_bytes(b"never opened")
    add_rows(fairface_dir, "train/3.jpg,Mar-09,Male,Black,True")
    wanted = ["FairFace/train/1.jpg", "val/1.jpg", "train/77.jpg"]
    parsed = parse_dataset("fairface", fairface_dir, only=wanted)
    assert ids(parsed) == ["fairface/train/1.jpg", "fairface/val/1.jpg"]
    assert {row["record"]: row["reason"] for row in parsed.problems.to_pylist()} == {
        "fairface/train/77.jpg": "not_annotated",
        "fairface/train/3.jpg": "unknown_age",
    }


def test_folder_that_was_not_unpacked_is_one_problem(fairface_dir: Path) -> None:
    (fairface_dir / "val/1.jpg").unlink()
    (fairface_dir / "val").rmdir()
    parsed = parse_dataset("fairface", fairface_dir)
    assert parsed.problems.to_pylist()[0]["record"] == "fairface/val/"
    assert parsed.problems.to_pylist()[0]["detail"].startswith("1 labelled images lie below val/")


def test_threads_change_nothing(fairface_dir: Path) -> None:
    (fairface_dir / "train/2.jpg").write_bytes(b"")
    one, four = (parse_dataset("fairface", fairface_dir, threads=n) for n in (1, 4))
    assert one.samples.equals(four.samples)
    assert one.problems.equals(four.problems)


def test_missing_folder_says_what_to_fetch(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"does not exist\. Unpack fairface-img-margin025"):
        parse_dataset("fairface", tmp_path / "nowhere")


def test_missing_label_file_is_named(fairface_dir: Path) -> None:
    (fairface_dir / "fairface_label_val.csv").unlink()
    with pytest.raises(RawDataError, match=r"fairface_label_val\.csv: the label file is missing"):
        parse_dataset("fairface", fairface_dir)


def test_missing_column_is_named(fairface_dir: Path) -> None:
    path = fairface_dir / "fairface_label_train.csv"
    path.write_text(path.read_text().replace("race", "ethnicity", 1))
    with pytest.raises(RawDataError, match=r"column race is missing; the file has file, age"):
        parse_dataset("fairface", fairface_dir)


def test_column_that_is_there_twice_is_refused(fairface_dir: Path) -> None:
    path = fairface_dir / "fairface_label_train.csv"
    path.write_text(path.read_text().replace("service_test", "age", 1))
    with pytest.raises(RawDataError, match="column age appears more than once"):
        parse_dataset("fairface", fairface_dir)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_label_file_is_named(fairface_dir: Path, content: bytes) -> None:
    (fairface_dir / "fairface_label_train.csv").write_bytes(content)
    with pytest.raises(RawDataError, match="the label file is empty"):
        parse_dataset("fairface", fairface_dir)


def test_nothing_usable_stops_with_the_reasons(fairface_dir: Path) -> None:
    for path in fairface_dir.rglob("*.jpg"):
        path.write_bytes(b"not a picture")
    with pytest.raises(RawDataError, match=r"no record of fairface is usable \(image_unreadable 3"):
        parse_dataset("fairface", fairface_dir)


def test_canonical_path_drops_the_root_that_others_write() -> None:
    assert canonical_path("FairFace/train/1.jpg") == "train/1.jpg"
    assert canonical_path("./train/1.jpg") == "train/1.jpg"
    assert canonical_path("fairface/val/2.jpg") == "val/2.jpg"


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(lines=st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=6))
def test_hostile_lines_never_crash_nor_hide_a_good_row(
    fairface_dir: Path, lines: list[str]
) -> None:
    good = "train/1.jpg,50-59,Male,East Asian,True"
    text = "\n".join([HEADER, *lines, good, *lines])
    (fairface_dir / "fairface_label_train.csv").write_bytes(text.encode())
    parsed = parse_dataset("fairface", fairface_dir)
    assert ids(parsed) == ["fairface/train/1.jpg", "fairface/val/1.jpg"]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(content=st.binary(max_size=200))
def test_hostile_bytes_end_in_a_table_or_in_a_sentence(fairface_dir: Path, content: bytes) -> None:
    header = f"{HEADER}\n".encode()
    (fairface_dir / "fairface_label_train.csv").write_bytes(header + content)
    assert ids(parse_dataset("fairface", fairface_dir)) == ["fairface/val/1.jpg"]
