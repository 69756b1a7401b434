"""UTKFace as unpacked: labels are file names, and some names are not what they should be."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlmfair.config import read_yaml
from vlmfair.contracts import PROBLEMS, SAMPLES, read_table
from vlmfair.datasets import ParsedDataset, images, parse_dataset
from vlmfair.datasets.__main__ import main
from vlmfair.datasets.acceptance import acceptance_of, compare_counts
from vlmfair.datasets.utkface import (
    CORRECTIONS,
    GENDERS,
    POLICIES,
    RACES,
    Labels,
    canonical_path,
    labels_of,
)
from vlmfair.errors import ConfigError, RawDataError

REGULAR = "28_1_3_20170104223337415.jpg"
SPACE = "24_0_1_20170116220224657 .jpg"


def parsed_with(raw: Path, policy: str) -> ParsedDataset:
    return parse_dataset("utkface", raw, options={"policy": policy})


def ids(parsed: ParsedDataset) -> list[str]:
    return parsed.samples["sample_id"].to_pylist()


def reason_counts(parsed: ParsedDataset) -> Counter[str]:
    return Counter(parsed.problems["reason"].to_pylist())


@pytest.fixture
def utkface_dir(tmp_path: Path, picture: Callable[[Path], Path]) -> Path:
    """One regular name in each part, and the five irregular ones where they really are."""
    raw = tmp_path / "utkface"
    for part, name in (
        ("part1", REGULAR),
        ("part1", "61_1_20170109142408075.jpg"),
        ("part1", "61_3_20170109150557335.jpg"),
        ("part2", "3_0_1_20170110213755346.jpg"),
        ("part2", "39_1_20170116174525125.jpg"),
        ("part2", "53__0_20170116184028385.jpg"),
        ("part2", SPACE),
        ("part3", "1_1_2_20161219162843079.jpg"),
    ):
        picture(raw / part / name)
    return raw


def test_labels_are_read_off_the_name(utkface_dir: Path) -> None:
    row = parse_dataset("utkface", utkface_dir).samples.to_pylist()[0]
    assert row["sample_id"] == f"utkface/{REGULAR}"
    assert (row["age"], row["gender"], row["race"]) == ("28", "Female", "indian")
    assert (row["skin_tone"], row["occupation"], row["split"]) == (None, None, None)
    assert Path(row["image"]) == utkface_dir / "part1" / REGULAR
    assert json.loads(row["raw"]) == {"part": "part1", "file": REGULAR}


@pytest.mark.parametrize(
    ("name", "age", "gender", "race"),
    [
        ("116_0_0_20170112213001988.jpg", "116", "Male", "white"),
        ("1_1_1_20161219162843079.jpg", "1", "Female", "black"),
        ("1_1_2_20161219162843079.jpg", "1", "Female", "asian"),
        ("1_0_3_20161220222711441.jpg", "1", "Male", "indian"),
        ("23_1_4_20161223230008236.jpg", "23", "Female", "others"),
        ("14_0_0_2017011022340900.jpg", "14", "Male", "white"),  # 16 digits
        ("28_1_2_201701161846515488.jpg", "28", "Female", "asian"),  # 18 digits
        ("26_1_0_20170116171048641.jpg.chip.jpg", "26", "Female", "white"),  # aligned faces
    ],
)
def test_regular_names_mean_the_same_under_every_policy(
    name: str, age: str, gender: str, race: str
) -> None:
    for policy in POLICIES:
        labels = labels_of(name, policy)
        assert isinstance(labels, Labels)
        assert (labels.age, labels.gender, labels.race, labels.note) == (age, gender, race, "")


# What the public copies of the dataset say, and what the totals of the paper's Table 1 imply.
IRREGULAR = {
    "61_1_20170109142408075.jpg": (("Female", "black"), ("Female", "others")),
    "61_3_20170109150557335.jpg": (("Female", "indian"), ("Female", "others")),
    "39_1_20170116174525125.jpg": (("Male", "black"), ("Female", "others")),
    "53__0_20170116184028385.jpg": (("Female", "white"), ("Male", "white")),
}


@pytest.mark.parametrize("name", IRREGULAR)
def test_each_name_that_lacks_a_label_is_read_by_each_policy(name: str) -> None:
    corrected, defaulted = IRREGULAR[name]
    assert isinstance(labels_of(name, "drop"), str)
    for policy, expected in (("public_corrections", corrected), ("paper_table1", defaulted)):
        labels = labels_of(name, policy)
        assert isinstance(labels, Labels)
        assert (labels.gender, labels.race) == expected
    assert set(CORRECTIONS) == set(IRREGULAR)


@pytest.mark.parametrize(
    ("policy", "samples", "problems"),
    [
        ("drop", 4, {"malformed_name": 4, "space_in_name": 1}),
        ("public_corrections", 8, {"corrected_labels": 4, "space_in_name": 1}),
        ("paper_table1", 8, {"defaulted_labels": 4, "space_in_name": 1}),
    ],
)
def test_every_policy_accounts_for_every_file(
    utkface_dir: Path, policy: str, samples: int, problems: dict[str, int]
) -> None:
    parsed = parsed_with(utkface_dir, policy)
    assert len(parsed.samples) == samples
    assert reason_counts(parsed) == problems
    assert f"utkface/{SPACE}" in ids(parsed)


def test_problem_says_what_is_wrong_or_what_was_counted(utkface_dir: Path) -> None:
    def details(policy: str) -> dict[str, str]:
        rows = parsed_with(utkface_dir, policy).problems.to_pylist()
        return {row["record"].removeprefix("utkface/"): row["detail"] for row in rows}

    dropped, corrected = details("drop"), details("public_corrections")
    assert dropped["61_3_20170109150557335.jpg"] == (
        "the name has one label less than age, gender and race"
    )
    assert dropped["53__0_20170116184028385.jpg"] == "the gender is empty, not one of 0, 1"
    assert corrected["39_1_20170116174525125.jpg"] == "counted as 39 years, Male, black"


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("25_2_0_20170116171048641.jpg", "the gender is 2, not one of 0, 1"),
        ("25_1_7_20170116171048641.jpg", "the race is 7, not one of 0, 1, 2, 3, 4"),
        ("117_1_0_20170116171048641.jpg", "the age is above 116: 117"),
        ("1000_1_0_20170116171048641.jpg", "the name is not age_gender_race_time.jpg"),
        ("-5_1_0_20170116171048641.jpg", "the name is not age_gender_race_time.jpg"),
        ("NaN_1_0_20170116171048641.jpg", "the name is not age_gender_race_time.jpg"),
        ("25_1_0_2017.jpg", "the name is not age_gender_race_time.jpg"),
        ("25_1_0_20170116171048641.png", "the name is not age_gender_race_time.jpg"),
        ("٢٥_1_0_20170116171048641.jpg", "the name is not age_gender_race_time.jpg"),
        ("._25_1_0_20170116171048641.jpg", "the name is not age_gender_race_time.jpg"),
        ("Thumbs.db", "the name is not age_gender_race_time.jpg"),
    ],
)
def test_other_names_are_problems_with_a_reason(
    utkface_dir: Path, picture: Callable[[Path], Path], name: str, detail: str
) -> None:
    picture(utkface_dir / "part3/x.jpg").rename(utkface_dir / "part3" / name)
    parsed = parse_dataset("utkface", utkface_dir)
    noted = [row for row in parsed.problems.to_pylist() if row["record"] == f"utkface/{name}"]
    assert [(row["reason"], row["detail"]) for row in noted] == [("malformed_name", detail)]
    assert len(parsed.samples) == 4


def test_no_correction_is_made_up() -> None:
    found = labels_of("40_1_20170109142408075.jpg", "public_corrections")
    assert found == (
        "the name has one label less than age, gender and race, and no correction is published"
    )


def test_a_name_that_is_no_utf_8_is_stored_as_a_problem(utkface_dir: Path) -> None:
    (utkface_dir / "part1" / REGULAR).rename(utkface_dir / "part1" / os.fsdecode(b"\xff"))
    parsed = parse_dataset("utkface", utkface_dir)
    assert "utkface/?" in parsed.problems["record"].to_pylist()


def test_same_time_stamp_with_another_label_is_noted_and_both_stay(
    utkface_dir: Path, picture: Callable[[Path], Path]
) -> None:
    picture(utkface_dir / "part3/1_0_2_20161219162843079.jpg")
    picture(utkface_dir / "part3/2_0_1_20170110213755346.jpg")  # another age alone: no conflict
    parsed = parse_dataset("utkface", utkface_dir)
    noted = [row for row in parsed.problems.to_pylist() if row["reason"] == "shared_time"]
    assert {row["record"][8:] for row in noted} == {
        "1_0_2_20161219162843079.jpg",
        "1_1_2_20161219162843079.jpg",
    }
    assert {row["detail"] for row in noted} == {
        "another image of the same time stamp has another gender"
    }
    assert len(parsed.samples) == 6


def test_one_file_in_two_parts_counts_once(utkface_dir: Path) -> None:
    content = (utkface_dir / "part1" / REGULAR).read_bytes()
    (utkface_dir / "part3" / REGULAR).write_bytes(content)
    parsed = parse_dataset("utkface", utkface_dir)
    assert ids(parsed).count(f"utkface/{REGULAR}") == 1
    assert reason_counts(parsed)["duplicate_record"] == 1


def test_one_name_for_two_pictures_is_not_guessed_between(
    utkface_dir: Path, picture: Callable[[Path], Path]
) -> None:
    picture(utkface_dir / "part3/other.jpg").rename(utkface_dir / "part3" / REGULAR)
    parsed = parse_dataset("utkface", utkface_dir)
    assert f"utkface/{REGULAR}" not in ids(parsed)
    assert reason_counts(parsed)["ambiguous_image"] == 2


def test_ending_in_upper_case_is_the_same_image_and_noted(utkface_dir: Path) -> None:
    path = utkface_dir / "part1" / REGULAR
    path.rename(path.with_suffix(".JPG"))
    parsed = parse_dataset("utkface", utkface_dir)
    assert f"utkface/{REGULAR}" in ids(parsed)
    assert reason_counts(parsed)["other_case"] == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "image_empty"), (b"no picture", "image_unreadable")],
)
def test_a_damaged_image_costs_itself_alone(utkface_dir: Path, content: bytes, reason: str) -> None:
    (utkface_dir / "part1" / REGULAR).write_bytes(content)
    parsed = parse_dataset("utkface", utkface_dir)
    assert len(parsed.samples) == 3
    assert reason_counts(parsed)[reason] == 1


def test_a_folder_and_a_link_that_leads_out_are_no_images(utkface_dir: Path) -> None:
    (utkface_dir / "part3/4_0_0_20170110213755000.jpg").mkdir()
    outside = utkface_dir.parent / "outside.jpg"
    (utkface_dir / "part1" / REGULAR).rename(outside)
    (utkface_dir / "part1" / REGULAR).symlink_to(outside)
    counts = reason_counts(parse_dataset("utkface", utkface_dir))
    assert (counts["image_unreadable"], counts["path_outside"]) == (1, 1)


def test_parts_may_lie_where_the_authors_of_the_study_keep_them(utkface_dir: Path) -> None:
    (utkface_dir / "raw_imgs").mkdir()
    for part in ("part1", "part2", "part3"):
        (utkface_dir / part).rename(utkface_dir / "raw_imgs" / part)
    assert len(parse_dataset("utkface", utkface_dir).samples) == 4


def test_the_aligned_faces_alone_can_be_read_too(
    tmp_path: Path, picture: Callable[[Path], Path]
) -> None:
    picture(tmp_path / "UTKFace/26_1_0_20170116171048641.jpg.chip.jpg")
    parsed = parse_dataset("utkface", tmp_path)
    assert ids(parsed) == ["utkface/26_1_0_20170116171048641.jpg.chip.jpg"]


def test_a_part_that_was_not_unpacked_is_one_problem(utkface_dir: Path) -> None:
    (utkface_dir / "part3").rename(utkface_dir.parent / "elsewhere")
    problems = parse_dataset("utkface", utkface_dir).problems.to_pylist()
    assert problems[0]["record"] == "utkface/part3/"
    assert problems[0]["detail"] == "part3/ was not unpacked"


def test_only_restricts_what_is_opened(utkface_dir: Path) -> None:
    (utkface_dir / "part3/1_1_2_20161219162843079.jpg").write_bytes(b"never opened")
    parsed = parse_dataset("utkface", utkface_dir, only=[f"raw_imgs/part1/{REGULAR}", "gone.jpg"])
    assert ids(parsed) == [f"utkface/{REGULAR}"]
    assert {"not_annotated", "malformed_name"} <= set(reason_counts(parsed))
    assert "image_unreadable" not in reason_counts(parsed)


def test_faults_of_the_folder_are_sentences(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match=r"UTKFace does not exist\. Unpack part1\.tar\.gz"):
        parse_dataset("utkface", tmp_path / "nowhere")
    with pytest.raises(RawDataError, match=r"none of part1, part2, part3 is there\. Unpack"):
        parse_dataset("utkface", tmp_path)
    (tmp_path / "part1").mkdir()
    with pytest.raises(RawDataError, match=r"no record of utkface is usable \(folder_absent 2\)"):
        parse_dataset("utkface", tmp_path)
    (tmp_path / "part1/Thumbs.db").touch()
    with pytest.raises(RawDataError, match=r"usable \(folder_absent 2, malformed_name 1\)"):
        parse_dataset("utkface", tmp_path)


def test_wrong_options_name_the_right_ones(utkface_dir: Path) -> None:
    with pytest.raises(ConfigError, match=r"policy is 'guess'\. Write one of drop, public_cor"):
        parsed_with(utkface_dir, "guess")
    with pytest.raises(ConfigError, match=r"has no option tone_rule\. Use policy\."):
        parse_dataset("utkface", utkface_dir, options={"tone_rule": "mean"})
    with pytest.raises(ConfigError, match=r"fairface: the dataset has no option policy\. Leave"):
        parse_dataset("fairface", utkface_dir, options={"policy": "drop"})


def test_canonical_path_is_the_name_alone() -> None:
    assert canonical_path(f"raw_imgs/part1/{REGULAR}") == REGULAR
    assert canonical_path(r"part1\1_0_0_20170110213755346.JPG") == "1_0_0_20170110213755346.jpg"


@given(name=st.text(alphabet="0123459_.jpgJ \n'<", max_size=40), policy=st.sampled_from(POLICIES))
def test_any_name_has_labels_of_the_dataset_or_a_sentence(name: str, policy: str) -> None:
    found = labels_of(name, policy)
    if isinstance(found, str):
        assert found
        return
    assert 0 <= int(found.age) <= 116
    assert found.gender in GENDERS.values()
    assert found.race in RACES.values()


@pytest.fixture(scope="module")
def published_names(reference_dir: Path) -> list[str]:
    path = reference_dir / "utkface/utkface_annotations.csv"
    with path.open(newline="") as opened:
        return [row["filename"] for row in csv.DictReader(opened)]


def test_all_published_names_give_the_counts_of_the_paper_by_the_command(
    published_names: list[str],
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Table 1 of the study: male 12,582, female 11,524; its Asian and Indian are swapped."""
    # Only the names count here; that pictures are opened is shown above.
    monkeypatch.setattr(images, "check_image", lambda path: images.ImageFacts("0" * 64, 1, 1))
    raw, out = tmp_path / "raw", tmp_path / "out"
    for part in ("part1", "part2", "part3"):
        (raw / part).mkdir(parents=True)
    for number, name in enumerate(published_names):
        (raw / f"part{number % 3 + 1}" / name).touch()

    assert main(["utkface", str(raw), str(out), "--policy", "paper_table1"]) == 0

    assert f"{out}: 24106 samples, " in capsys.readouterr().out
    samples = read_table(out / "samples.parquet", SAMPLES)
    assert Counter(samples["gender"].to_pylist()) == {"Male": 12_582, "Female": 11_524}
    assert Counter(samples["race"].to_pylist()) == {
        "white": 10_222,
        "black": 4_558,
        "asian": 3_586,
        "indian": 4_027,
        "others": 1_713,
    }
    sheet = read_yaml(root / "config/datasets.yaml")["datasets"]
    compared = compare_counts(samples, acceptance_of(sheet, "utkface"))
    assert [count for count in compared if not count.agrees] == []
    swapped = {count.group: count.published for count in compared if count.note}
    assert swapped == {"asian": 4_027, "indian": 3_586}
    reasons = Counter(read_table(out / "problems.parquet", PROBLEMS)["reason"].to_pylist())
    assert reasons["defaulted_labels"] == 4
    assert reasons["space_in_name"] == 1


def test_other_policies_do_not_give_the_counts_of_the_paper(published_names: list[str]) -> None:
    """The reason for `paper_table1`: with the corrections there would be 1,710 others."""
    found = {policy: [labels_of(name, policy) for name in published_names] for policy in POLICIES}
    races = {p: Counter(f.race for f in found[p] if isinstance(f, Labels)) for p in POLICIES}
    assert races["public_corrections"]["black"] == 4_560
    assert races["public_corrections"]["indian"] == 4_028
    assert races["public_corrections"]["others"] == races["drop"]["others"] == 1_710
    assert races["drop"].total() == 24_102
