"""AI-Face in both versions of its annotations, with the quirks that its own code works around."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from vlmfair.datasets import ParsedDataset, parse_dataset
from vlmfair.datasets.ai_face import canonical_path, source
from vlmfair.errors import RawDataError

HEADER = "Image Path,Gender,Age,Skin Tone,Intersection,Target"
FFHQ = "ai_face/FFHQ/00003.png"


def rows_of(parsed: ParsedDataset) -> dict[str, dict]:
    return {row["sample_id"]: row for row in parsed.samples.to_pylist()}


def test_ids_have_no_trace_of_where_the_download_keeps_real_images(ai_face_dir: Path) -> None:
    parsed = parse_dataset("ai_face", ai_face_dir)
    assert set(rows_of(parsed)) == {
        "ai_face/FFHQ/00003.png",
        "ai_face/imdb_wiki/imdb/79/nm0000379_rm4285046272_1982-4-30_2002_face1.jpg",
        "ai_face/imdb_wiki/wiki/22/2119922_1936-07-08_1961_face1.jpg",
        "ai_face/GANs/StyleGAN2/000001.png",
    }
    assert len(parsed.problems) == 0


def test_labels_are_decoded_and_the_raw_row_is_kept(ai_face_dir: Path) -> None:
    rows = rows_of(parse_dataset("ai_face", ai_face_dir))
    first = rows[FFHQ]
    assert (first["gender"], first["age"], first["skin_tone"]) == ("Male", "adult", "10")
    assert (first["split"], first["target"], first["race"]) == ("train", "real", None)
    assert first["image"] == str(ai_face_dir / "Real/FFHQ/00003.png")
    assert json.loads(first["raw"])["Age"] == "3"
    assert rows["ai_face/GANs/StyleGAN2/000001.png"]["target"] == "fake"


@pytest.mark.parametrize("layout", ["", "AIFace", "AlFace"])
def test_layouts_of_gras_hold_the_same_images(ai_face_dir: Path, layout: str) -> None:
    plain = parse_dataset("ai_face", ai_face_dir).samples.drop_columns(["image"])
    (ai_face_dir / layout).mkdir(exist_ok=True)
    for name in ("FFHQ", "imdb_wiki"):
        (ai_face_dir / "Real" / name).rename(ai_face_dir / layout / name)
    (ai_face_dir / "Real").rmdir()
    assert parse_dataset("ai_face", ai_face_dir).samples.drop_columns(["image"]).equals(plain)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("AIFace/imdb_wiki/imdb/79/x.jpg", "imdb_wiki/imdb/79/x.jpg"),
        ("AlFace/FFHQ/00001.png", "FFHQ/00001.png"),
        ("/home/me/AI-Face/Real/FFHQ/00001.png", "FFHQ/00001.png"),
        ("../data/Real/FFHQ/00001.png", "FFHQ/00001.png"),
        (r"Real\FFHQ\00001.png", "FFHQ/00001.png"),
        ("/data/GANs/Real/FFHQ/00001.png", "FFHQ/00001.png"),
        ("GANs/StyleGAN2/FFHQ/00001.png", "GANs/StyleGAN2/FFHQ/00001.png"),
        ("Real/ffhq/00001.png", "FFHQ/00001.png"),
    ],
)
def test_canonical_path_starts_at_the_top_folder(written: str, canonical: str) -> None:
    assert canonical_path(written) == canonical


@pytest.mark.parametrize(
    ("column", "codes", "ages"),
    [
        ("Age", "0 1 3 4 5", ["child", "youth", "adult", "middle-aged", "senior"]),
        ("Predicted Age", "0 1 2 3 4", ["child", "youth", "adult", "middle-aged", "senior"]),
        ("Age", "0 1 2 3 4", ["child", "youth", "adult", "middle-aged", "senior"]),
        ("Predicted Age", "0 1 3 4 5", ["child", "youth", "adult", "middle-aged", "senior"]),
        ("Age", "3 4 3 4 3", ["adult", "middle-aged", "adult", "middle-aged", "adult"]),
        ("Predicted Age", "3 4 3 4 3", ["middle-aged", "senior"] * 2 + ["middle-aged"]),
        ("Age", "0 1 2 5 3", ["child", "youth", None, None, None]),
        ("Age", "0.0 1.0 3.0 4.0 5.0", ["child", "youth", "adult", "middle-aged", "senior"]),
    ],
)
def test_both_age_codings_are_told_apart(
    ai_face_dir: Path,
    picture: Callable[[Path], Path],
    column: str,
    codes: str,
    ages: list[str | None],
) -> None:
    lines = [HEADER.replace("Age", column)]
    for number, code in enumerate(codes.split()):
        picture(ai_face_dir / f"Real/FFHQ/0001{number}.png")
        lines.append(f"Real/FFHQ/0001{number}.png,1,{code},5,4,0")
    (ai_face_dir / "train.csv").write_text("\n".join(lines))
    rows = rows_of(parse_dataset("ai_face", ai_face_dir))
    assert [rows[f"ai_face/FFHQ/0001{n}.png"]["age"] for n in range(5)] == ages


def test_version_1_has_genders_and_ages_but_no_skin_tones(ai_face_dir: Path) -> None:
    header = (
        "Image Path,Uncertainty Score Gender,Uncertainty Score Age,Uncertainty Score Race,"
        "Ground Truth Gender,Ground Truth Age,Ground Truth Race,Intersection,Target"
    )
    (ai_face_dir / "train.csv").write_text(f"{header}\nReal/FFHQ/00003.png,.1,.2,.3,0,2,1,5,0\n")
    parsed = parse_dataset("ai_face", ai_face_dir)
    row = rows_of(parsed)[FFHQ]
    assert (row["gender"], row["age"], row["skin_tone"]) == ("Female", "senior", None)
    assert len(parsed.problems) == 0


def test_repeated_header_rows_are_noted_and_cost_nothing(ai_face_dir: Path) -> None:
    path = ai_face_dir / "train.csv"
    path.write_text(path.read_text() + path.read_text().replace("FFHQ/00003", "FFHQ/00004"))
    (ai_face_dir / "Real/FFHQ/00004.png").write_bytes(
        (ai_face_dir / "Real/FFHQ/00003.png").read_bytes()
    )
    parsed = parse_dataset("ai_face", ai_face_dir)
    assert "ai_face/FFHQ/00004.png" in rows_of(parsed)
    assert sorted(parsed.problems["reason"].to_pylist()) == ["duplicate_record", "repeated_header"]


@pytest.mark.parametrize(
    ("row", "reason", "label"),
    [
        ("Real/FFHQ/00003.png,7,3,10,5,0", "ignored_gender", "gender"),
        ("Real/FFHQ/00003.png,1,9,10,5,0", "ignored_age", "age"),
        ("Real/FFHQ/00003.png,1,3,11,5,0", "ignored_skin_tone", "skin_tone"),
        ("Real/FFHQ/00003.png,1,3,,5,0", "ignored_skin_tone", "skin_tone"),
    ],
)
def test_unknown_code_keeps_the_image_without_the_label(
    ai_face_dir: Path, row: str, reason: str, label: str
) -> None:
    (ai_face_dir / "train.csv").write_text(f"{HEADER}\n{row}\n")
    parsed = parse_dataset("ai_face", ai_face_dir)
    assert rows_of(parsed)[FFHQ][label] is None
    assert parsed.problems["reason"].to_pylist() == [reason]


def test_image_that_may_be_generated_or_not_is_left_out(ai_face_dir: Path) -> None:
    (ai_face_dir / "train.csv").write_text(f"{HEADER}\nReal/FFHQ/00003.png,1,3,10,5,maybe\n")
    parsed = parse_dataset("ai_face", ai_face_dir)
    assert FFHQ not in rows_of(parsed)
    assert parsed.problems["reason"].to_pylist() == ["unknown_target"]


@pytest.mark.parametrize("path", ["Real/FFHQ/../../../secret.png", "../secret.png", "/secret.png"])
def test_path_that_leaves_the_folder_is_not_opened(ai_face_dir: Path, path: str) -> None:
    (ai_face_dir / "train.csv").write_text(f"{HEADER}\n{path},1,3,10,5,0\n")
    parsed = parse_dataset("ai_face", ai_face_dir)
    assert parsed.problems["reason"].to_pylist() == ["path_outside"]
    assert parsed.problems["record"].to_pylist() == ["train.csv:2"]


def test_parts_that_were_not_downloaded_are_one_problem_each(ai_face_dir: Path) -> None:
    path = ai_face_dir / "train.csv"
    fakes = "".join(f"deepfakes/DFDC/{number}.png,1,3,5,4,1\n" for number in range(30))
    path.write_text(path.read_text() + fakes)
    parsed = parse_dataset("ai_face", ai_face_dir)
    assert parsed.problems.select(["record", "reason", "detail"]).to_pylist() == [
        {
            "record": "ai_face/deepfakes/",
            "reason": "folder_absent",
            "detail": "30 labelled images lie below deepfakes/, which was not unpacked",
        }
    ]


def test_asked_for_by_name_each_absent_image_is_a_problem(ai_face_dir: Path) -> None:
    path = ai_face_dir / "train.csv"
    path.write_text(path.read_text() + "deepfakes/DFDC/1.png,1,3,5,4,1\n")
    wanted = ["AIFace/FFHQ/00003.png", "deepfakes/DFDC/1.png"]
    parsed = parse_dataset("ai_face", ai_face_dir, only=wanted)
    assert list(rows_of(parsed)) == [FFHQ]
    assert parsed.problems["record"].to_pylist() == ["ai_face/deepfakes/DFDC/1.png"]
    assert parsed.problems["reason"].to_pylist() == ["image_missing"]


def test_annotations_may_lie_where_the_authors_code_wants_them(ai_face_dir: Path) -> None:
    (ai_face_dir / "dataset").mkdir()
    for name in ("train.csv", "test.csv"):
        (ai_face_dir / name).rename(ai_face_dir / "dataset" / name)
    assert len(parse_dataset("ai_face", ai_face_dir).samples) == 4


def test_without_annotations_the_error_says_what_to_fetch(ai_face_dir: Path) -> None:
    (ai_face_dir / "train.csv").unlink()
    with pytest.raises(RawDataError, match=r"train\.csv: the label file is missing\. Unpack FFHQ"):
        parse_dataset("ai_face", ai_face_dir)


def test_missing_column_names_every_spelling_that_would_do(ai_face_dir: Path) -> None:
    path = ai_face_dir / "train.csv"
    path.write_text(path.read_text().replace("Gender", "Sex", 1))
    with pytest.raises(RawDataError, match="column Gender or Predicted Gender or Ground Truth"):
        parse_dataset("ai_face", ai_face_dir)


def test_source_of_a_sample_is_its_folder() -> None:
    assert source("ai_face/FFHQ/00003.png") == "FFHQ"
    assert source("ai_face/imdb_wiki/wiki/22/2.jpg") == "imdb_wiki/wiki"
    assert source("ai_face/GANs/StyleGAN2/FFHQ/1.png") == ""
