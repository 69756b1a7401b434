"""COCOBias: captions, boxes and annotators' labels of COCO 2014, and the filters of VL-BICLE."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlmfair.datasets import ParsedDataset, canonical_path, parse_dataset
from vlmfair.datasets.coco_bias import file_name
from vlmfair.errors import ConfigError, RawDataError

MAN = ["A man rides a horse.", "Somebody on a horse.", "A guy on a brown horse."]
WOMAN = ["A woman rides a horse."]
ALONE: Sequence[dict[str, Any]] = ({"category_id": 1, "iscrowd": 0},)
# A man and a woman that stay, so that a single image may be left out.
OTHERS = (101, 102)
Write = Callable[..., Path]


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "coco"


@pytest.fixture
def write(raw: Path) -> Write:
    """Writes image 42 as asked, and two that can be used; returns the table of labels."""

    def files(
        captions: Sequence[Any] = MAN,
        boxes: Sequence[dict[str, Any]] = ALONE,
        label: str = "Male",
        table: str = "images_val2014.csv",
        header: str = ",id,bb_skin,bb_gender,split",
    ) -> Path:
        images = {42: (captions, boxes, label), 101: (MAN, ALONE, "Male"), 102: (WOMAN, ALONE, "F")}
        told, found = [], []
        for number, (texts, places, _) in images.items():
            told += [{"image_id": number, "id": 1, "caption": text} for text in texts]
            found += [{"image_id": number, "id": 2, **place} for place in places]
            path = raw / "val2014" / file_name(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (12, 10), (number, 9, 9)).save(path)
        (raw / "annotations").mkdir(exist_ok=True)
        for name, entries in (("captions", told), ("instances", found)):
            content = {"info": {}, "images": [], "annotations": entries}
            (raw / f"annotations/{name}_val2014.json").write_text(json.dumps(content))
        labels = {42: label, 101: "Male", 102: "Female"}
        lines = [f"{n},{i},Light,{own},train" for n, (i, own) in enumerate(labels.items())]
        (raw / table).write_text("\n".join([header, *lines]) + "\n")
        return raw / table

    return files


def left_out(parsed: ParsedDataset) -> tuple[str, str] | None:
    """Reason and detail for image 42, or None where it stays; the other two must stay."""
    ids = parsed.samples["sample_id"].to_pylist()
    assert {f"coco_bias/{file_name(number)}" for number in OTHERS} <= set(ids)
    found = {row["record"]: (row["reason"], row["detail"]) for row in parsed.problems.to_pylist()}
    name = f"coco_bias/{file_name(42)}"
    assert (name in ids) != (name in found)
    return found.get(name)


def parse(raw: Path, **options: str) -> ParsedDataset:
    return parse_dataset("coco_bias", raw, options=options)


def kept(raw: Path, **options: str) -> dict[str, Any]:
    """Image 42's row."""
    rows = {row["sample_id"]: row for row in parse(raw, **options).samples.to_pylist()}
    return rows[f"coco_bias/{file_name(42)}"]


@pytest.fixture(autouse=True)
def _no_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    """These three images are about filters; the split has tests of its own."""
    monkeypatch.setattr("vlmfair.datasets.coco_bias.split", lambda samples, *_: samples)


def test_reads_labels_captions_and_boxes(raw: Path, write: Write) -> None:
    write(captions=[" A man  rides\na horse. ", "Somebody on a horse"])
    row = kept(raw)
    assert row["captions"] == ["A man rides a horse.", "Somebody on a horse"]
    assert (row["gender"], row["skin_tone"]) == ("Male", "light")
    assert Path(row["image"]) == raw / "val2014/COCO_val2014_000000000042.jpg"
    assert json.loads(row["raw"])["split"] == "train"
    assert canonical_path("coco_bias", f"val2014/{file_name(42)}") == file_name(42)


@pytest.mark.parametrize(
    ("captions", "reason"),
    [
        ([], "no_captions"),
        ([" ", "\n\t", ""], "no_captions"),
        ([None, 7, {"caption": "A man."}], "no_captions"),
        (["A person rides a horse.", "A cowboy hat on a chair."], "no_gender_words"),
        (["A man rides a horse.", "She rides a horse."], "conflicting_gender_words"),
        (["A man and a woman."], "conflicting_gender_words"),
        (["A woman rides a horse."], "label_disagrees"),
        (["A man."] + ["A person."] * 6, None),  # seven captions
        (["  ", "A man."], None),
        (["The man's hat."], None),
    ],
)
def test_all_captions_together_say_one_gender(
    raw: Path, write: Write, captions: list[Any], reason: str | None
) -> None:
    write(captions=captions)
    found = left_out(parse(raw))
    assert (found[0] if found else None) == reason


def test_seven_captions_all_stay(raw: Path, write: Write) -> None:
    told = [f"A man rides horse {number}." for number in range(7)]
    write(captions=told)
    assert kept(raw)["captions"] == told


PERSON, CROWD = {"category_id": 1, "iscrowd": 0}, {"category_id": 1, "iscrowd": 1}
HORSE = {"category_id": 19, "iscrowd": 0}


@pytest.mark.parametrize(
    ("boxes", "counts", "ignored"),
    [
        ([PERSON], None, None),
        ([PERSON, HORSE], None, None),
        ([PERSON, PERSON], "several_persons", "several_persons"),
        ([PERSON, CROWD], "several_persons", None),
        ([CROWD], "several_persons", "no_person"),
        ([HORSE], "no_person", "no_person"),
        ([], "no_person", "no_person"),
    ],
)
def test_exactly_one_person_and_two_rules_for_crowds(
    raw: Path, write: Write, boxes: list[dict], counts: str | None, ignored: str | None
) -> None:
    write(boxes=boxes)
    for rule, reason in (("counts", counts), ("ignored", ignored)):
        found = left_out(parse(raw, crowd=rule))
        assert (found[0] if found else None) == reason


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        ("Both", "unclear_gender"),
        ("Unsure", "unclear_gender"),
        ("", "unclear_gender"),
        ("nan", "unclear_gender"),
        ("Neutral", "unknown_gender"),
        ("Female", "label_disagrees"),
        (" Male ", None),
    ],
)
def test_annotators_must_have_seen_the_captions_gender(
    raw: Path, write: Write, label: str, reason: str | None
) -> None:
    write(label=label)
    found = left_out(parse(raw))
    assert (found[0] if found else None) == reason


def test_filters_are_in_the_papers_order(raw: Path, write: Write) -> None:
    """Appendix 0.A.2: captions first, then boxes, then the label."""
    write(captions=["A person."], boxes=[], label="Both")
    found = left_out(parse(raw))
    assert found is not None
    assert found[0] == "no_gender_words"
    write(boxes=[PERSON, PERSON], label="Both")
    found = left_out(parse(raw))
    assert found == ("several_persons", "2 boxes of one person, 0 of a crowd")


@pytest.mark.parametrize("table", ["images_2014all.csv", "bbAnnotations_2017combined.csv"])
def test_the_table_of_images_is_found_under_all_its_names(
    raw: Path, write: Write, table: str
) -> None:
    write(table=table)
    # The table of persons lies beside it, as it is given out.
    (raw / "instances_2014all.csv").write_text("id,image_id,bb_gender\n7,42,Female\n")
    assert left_out(parse(raw)) is None


def test_the_table_of_persons_alone_is_not_mistaken_for_it(raw: Path, write: Write) -> None:
    write().rename(raw / "README.csv")
    (raw / "instances_2014all.csv").write_text("id,image_id,bb_gender\n7,42,Female\n")
    with pytest.raises(RawDataError, match="this is not the table with a row per image, whose col"):
        parse(raw)


def test_repeated_and_contradicting_rows_and_ids_that_are_none(raw: Path, write: Write) -> None:
    path = write()
    path.write_text(path.read_text() + "9,101.0,Light,Male,train\n9,42,Light,Both,train\n9,x,,,\n")
    parsed = parse(raw)
    assert [(row["record"], row["reason"]) for row in parsed.problems.to_pylist()] == [
        ("images_val2014.csv:7", "malformed_row"),
        (f"coco_bias/{file_name(42)}", "conflicting_record"),
        (f"coco_bias/{file_name(42)}", "conflicting_record"),
        (f"coco_bias/{file_name(101)}", "duplicate_record"),
    ]


def test_images_without_a_label_are_no_part_of_the_dataset(raw: Path, write: Write) -> None:
    path = write()
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if ",42," not in line))
    parsed = parse(raw)
    assert (len(parsed.samples), len(parsed.problems)) == (2, 0)


def test_only_restricts_images(raw: Path, write: Write) -> None:
    write()
    parsed = parse_dataset("coco_bias", raw, only=[f"val2014/{file_name(102)}", file_name(7)])
    assert len(parsed.samples) == 1
    assert parsed.problems["reason"].to_pylist() == ["not_annotated"]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("annotations/captions_val2014.json", None, "the file is missing"),
        ("annotations/captions_val2014.json", "{", "not a JSON file"),
        ("annotations/instances_val2014.json", "[" * 99_999, "nests too deeply"),
        ("annotations/instances_val2014.json", '{"annotations": 7}', "no list of annotations"),
        ("images_val2014.csv", None, "the label file is missing"),
        ("images_val2014.csv", "id,gender\n42,Male\n", "not the table with a row per image"),
    ],
)
def test_a_missing_or_broken_file_is_named_with_the_remedy(
    raw: Path, write: Write, file: str, content: str | None, message: str
) -> None:
    write()
    if content is None:
        (raw / file).unlink()
    else:
        (raw / file).write_text(content)
    with pytest.raises(RawDataError, match=rf"{Path(file).name}: .*{message}.* Unpack val2014"):
        parse(raw)


def test_a_seed_is_a_whole_number(raw: Path, write: Write) -> None:
    write()
    assert left_out(parse(raw, seed="12")) is None
    with pytest.raises(ConfigError, match=r"coco_bias: seed is '-1'\. Write one of 0, 1, 2"):
        parse(raw, seed="-1")
