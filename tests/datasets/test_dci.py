"""DCI: a JSON file per photograph, whose two captions must agree on one person's gender."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlmfair.datasets import ParsedDataset, parse_dataset
from vlmfair.errors import RawDataError

SHORT, EXTRA = "A man sits on a bench.", "He wears a hat. The bench is green."
Write = Callable[..., None]


@pytest.fixture(autouse=True)
def _no_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The images are about filters; the split has tests of its own."""
    monkeypatch.setattr("vlmfair.datasets.dci.split", lambda samples, *_: samples)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "dci"


@pytest.fixture
def write(raw: Path) -> Write:
    """Writes record `unit` of photograph `image`, and the photograph."""

    def record(
        short: Any = SHORT, extra: Any = EXTRA, unit: int = 7, image: str = "sa_1.jpg", **more: Any
    ) -> None:
        root = raw / "densely_captioned_images"
        for name in ("annotations", "photos"):
            (root / name).mkdir(parents=True, exist_ok=True)
        content = {"short_caption": short, "extra_caption": extra, "image": image, **more}
        (root / f"annotations/{unit}-data.json").write_text(json.dumps(content))
        Image.new("RGB", (12, 10), (len(image), unit % 256, 9)).save(root / "photos/sa_1.jpg")

    return record


def reasons(parsed: ParsedDataset) -> list[tuple[str, str]]:
    return [(row["record"], row["reason"]) for row in parsed.problems.to_pylist()]


def other(raw: Path, write: Write) -> None:
    """A second record, so that the folder has something usable."""
    write("A woman.", "She.", unit=900, image="sa_9.jpg")
    photos = raw / "densely_captioned_images/photos"
    (photos / "sa_9.jpg").write_bytes((photos / "sa_1.jpg").read_bytes())


def test_reads_both_captions_of_the_image_that_the_record_names(raw: Path, write: Write) -> None:
    write(
        " A man sits\non a  bench. ",
        mask_data={"0": {"bounds": [[0, 0], [5, 5]]}},
        summaries={"base": "one text"},
    )
    for folder in (raw, raw / "densely_captioned_images"):
        row = parse_dataset("dci", folder).samples.to_pylist()[0]
        assert row["sample_id"] == "dci/sa_1.jpg"
        assert row["captions"] == ["A man sits on a bench.", EXTRA]
        assert row["gender"] == "Male"
        assert json.loads(row["raw"])["file"] == "7-data.json"
        assert "mask_data" not in json.loads(row["raw"])


@pytest.mark.parametrize(
    ("short", "extra", "reason", "detail"),
    [
        (SHORT, "He stands beside two people.", "mentions_several", "people"),
        ("Men at work.", "He digs.", "mentions_several", "men"),
        (SHORT, "A bench.", "no_gender_words", "in the extra caption"),
        (SHORT, "", "no_gender_words", "in the extra caption"),
        (SHORT, None, "no_gender_words", "in the extra caption"),
        ("A bench.", "Green.", "no_gender_words", "in the short and the extra caption"),
        (" ", "\n", "no_captions", ""),
        (7, ["He"], "no_captions", ""),
        (SHORT, "He is no woman.", "conflicting_gender_words", "in the extra caption"),
        (SHORT, "She wears a hat.", "captions_disagree", "short Male, extra Female"),
    ],
)
def test_a_record_that_fails_a_filter_is_a_problem(
    raw: Path, write: Write, short: Any, extra: Any, reason: str, detail: str
) -> None:
    write(short, extra)
    other(raw, write)
    problem = parse_dataset("dci", raw).problems.to_pylist()
    assert [(row["record"], row["reason"]) for row in problem] == [("dci/sa_1.jpg", reason)]
    assert detail in problem[0]["detail"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '"text"', "{}", '{"image": "../x.jpg"}', '{"image": 7}', "[" * 9999]
)
def test_a_record_that_cannot_be_read_costs_itself(raw: Path, write: Write, content: str) -> None:
    write()
    path = raw / "densely_captioned_images/annotations/5-data.json"
    path.write_text(content)
    parsed = parse_dataset("dci", raw)
    assert reasons(parsed) == [("annotations/5-data.json", "malformed_record")]
    assert len(parsed.samples) == 1


def test_a_split_that_names_a_missing_file_is_noted(raw: Path, write: Write) -> None:
    """Archives from before February 2024 name 122236-data.json."""
    write()
    content = {"train": ["7-data.json", "122236-data.json"], "valid": None}
    (raw / "densely_captioned_images/splits.json").write_text(json.dumps(content))
    assert reasons(parse_dataset("dci", raw)) == [("annotations/122236-data.json", "file_missing")]


def test_repeated_and_contradicting_records(raw: Path, write: Write) -> None:
    write()
    write(unit=8)
    parsed = parse_dataset("dci", raw)
    assert reasons(parsed) == [("dci/sa_1.jpg", "duplicate_record")]
    other(raw, write)
    write("A man stands.", unit=9)
    parsed = parse_dataset("dci", raw)
    assert reasons(parsed) == [("dci/sa_1.jpg", "conflicting_record")] * 3


def test_the_folder_with_summaries_is_read_where_there_is_no_other(raw: Path, write: Write) -> None:
    write()
    root = raw / "densely_captioned_images"
    (root / "annotations").rename(root / "complete")
    assert len(parse_dataset("dci", raw).samples) == 1


def test_only_restricts_images(raw: Path, write: Write) -> None:
    write()
    other(raw, write)
    parsed = parse_dataset("dci", raw, only=["photos/sa_9.jpg", "sa_3.jpg"])
    assert parsed.samples["sample_id"].to_pylist() == ["dci/sa_9.jpg"]
    assert reasons(parsed) == [("dci/sa_3.jpg", "not_annotated")]


@pytest.mark.parametrize("missing", ["folder", "annotations", "photos"])
def test_what_is_missing_is_named_with_the_remedy(raw: Path, write: Write, missing: str) -> None:
    write()
    root = raw / "densely_captioned_images"
    expected = {
        "folder": "the raw folder of DCI does not exist",
        "annotations": "there is no folder annotations/ in it",
        "photos": r"no record of dci is usable \(image_missing 1\)",
    }[missing]
    if missing == "folder":
        raw = raw.with_name("nowhere")
    else:
        (root / missing).rename(root / "elsewhere")
    with pytest.raises(RawDataError, match=expected + r".* Unpack https://dl\.fbaipublicfiles"):
        parse_dataset("dci", raw)
