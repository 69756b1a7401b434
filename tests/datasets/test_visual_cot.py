"""VisualCoT: one question about each GQA image of one person, with and without its gender."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from vlmfair.datasets import ParsedDataset, canonical_path, parse_dataset
from vlmfair.datasets.visual_cot import count_persons
from vlmfair.errors import RawDataError
from vlmfair.text.words import load_person_names

RECORD = {
    "question": "Is the woman sitting or standing?",
    "answer": "sitting",
    "full_answer": "The woman is sitting.",
    "image": "1.jpg",
    "bboxs": [[1, 2, 3, 4]],
    "dataset": "gqa",
    "split": "train",
    "thought": "1. Locate the person in the image. 2. Look at what they do.",
}
EMPTY = {
    **RECORD,
    "image": "9.jpg",
    "question": "Is the horse brown?",
    "answer": "yes",
    "full_answer": "Yes, the horse is brown.",
    "thought": "1. Look at the horse.",
}
Write = Callable[..., None]


@pytest.fixture(autouse=True)
def _no_parity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The images are about filters; the split has tests of its own."""
    monkeypatch.setattr("vlmfair.datasets.visual_cot.split", lambda samples, *_: samples)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "cot"


@pytest.fixture
def write(raw: Path) -> Write:
    """Writes records (those that are text as they stand), scene graphs by image, and images."""

    def files(
        records: list[Any], graphs: dict[str, list[str]] | None = None, val: list[Any] = ()
    ) -> None:
        folder = raw / "cot_with_detailed_reasoning_steps"
        for name in (folder, raw / "sceneGraphs", raw / "images"):
            name.mkdir(parents=True, exist_ok=True)
        for part, rows in (("train", records), ("val", val)):
            lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
            (folder / f"gqa_cot_{part}.jsonl").write_text("\n".join(lines))
        named = {"1": ["chair", "woman"], "2": ["man"], "9": ["horse"], **(graphs or {})}
        content = {
            image: {
                "objects": {str(n): {"name": name, "relations": []} for n, name in enumerate(names)}
            }
            for image, names in named.items()
        }
        (raw / "sceneGraphs/train_sceneGraphs.json").write_text("{}")
        (raw / "sceneGraphs/val_sceneGraphs.json").write_text(json.dumps(content))
        for image in named:
            Image.new("RGB", (12, 10), (int(image), 9, 9)).save(raw / f"images/{image}.jpg")

    return files


def other(**changes: Any) -> dict[str, Any]:
    """A record of the man, which stays."""
    return {**RECORD, "image": "2.jpg", "question": "Is the man here?", **changes}


def reasons(parsed: ParsedDataset) -> list[str]:
    return parsed.problems["reason"].to_pylist()


def test_reads_question_answer_and_steps_and_takes_the_gender_out(raw: Path, write: Write) -> None:
    write([RECORD])
    row = parse_dataset("visual_cot", raw).samples.to_pylist()[0]
    assert row["sample_id"] == "visual_cot/1.jpg"
    assert (row["gender"], row["answer"]) == ("Female", "sitting")
    assert row["question"] == "Is the woman sitting or standing?"
    assert row["neutral_question"] == "Is the person sitting or standing?"
    assert (row["thought"], row["full_answer"]) == (RECORD["thought"], RECORD["full_answer"])
    assert json.loads(row["raw"]) == RECORD


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"thought": None}, "no_thought"),
        ({"thought": " "}, "no_thought"),
        ({"image": "77.jpg"}, "no_scene_graph"),
        ({"image": "9.jpg"}, "no_person"),
        ({"question": "Is the horse brown?"}, "no_gender_words"),
        ({"question": "Is the cowboy hat brown?"}, "no_gender_words"),
        ({"question": "Who is the woman on the left?"}, "who_question"),
        ({"question": "Is the woman beside the children?"}, "mentions_several"),
        ({"full_answer": "The woman sits between the men."}, "mentions_several"),
        ({"question": "Is the woman left of the man?"}, "conflicting_gender_words"),
        ({"question": "Is the woman holding her hat?"}, "not_neutralisable"),
        ({"question": "Is the policeman sitting?"}, "not_neutralisable"),
        ({"question": "Is she sitting?"}, None),
        ({"thought": "1. They look at other people."}, None),
    ],
)
def test_a_record_that_fails_a_filter_is_a_problem(
    raw: Path, write: Write, change: dict[str, Any], reason: str | None
) -> None:
    write([{**RECORD, **change}, other()])
    parsed = parse_dataset("visual_cot", raw)
    assert reasons(parsed) == ([reason] if reason else [])
    expected = "gqa_cot_train.jsonl:1" if reason else None
    assert (parsed.problems["record"].to_pylist() or [None]) == [expected]


@pytest.mark.parametrize(
    ("names", "alone", "several"),
    [
        (["woman", "shirt", "hand"], 1, 0),
        (["Man", "tennis player"], 2, 0),
        (["woman", "people"], 1, 1),
        (["spectators"], 0, 1),
        (["snowman", "mannequin"], 0, 0),
    ],
)
def test_persons_are_counted_by_the_names_of_objects(
    names: list[str], alone: int, several: int
) -> None:
    objects = {str(n): {"name": name} for n, name in enumerate(names)}
    known = load_person_names()
    assert count_persons({"objects": objects}, known) == (alone, several)
    for broken in (None, [], {}, {"objects": []}, {"objects": {"1": "woman", "2": {"name": 7}}}):
        assert count_persons(broken, known) == (0, 0)


@pytest.mark.parametrize("names", [["woman", "man"], ["woman", "people"], ["crowd"]])
def test_several_persons_of_the_graph(raw: Path, write: Write, names: list[str]) -> None:
    write([RECORD, other()], {"1": names})
    assert reasons(parse_dataset("visual_cot", raw)) == ["several_persons"]


def test_the_longest_question_of_an_image_stays_the_first_of_equals(
    raw: Path, write: Write
) -> None:
    asked = ["Is the woman sad?", "Is the woman tall?", "Is the woman calm?"]
    write(
        [{**RECORD, "question": asked[0]}, {**RECORD, "question": asked[1]}],
        val=[{**RECORD, "question": asked[2], "image": "1.jpg###[0, 0, 9, 9]"}],
    )
    parsed = parse_dataset("visual_cot", raw)
    assert parsed.samples["question"].to_pylist() == [asked[1]]
    assert reasons(parsed) == ["shorter_question", "shorter_question"]
    assert parsed.problems["record"].to_pylist() == [
        "gqa_cot_train.jsonl:1",
        "gqa_cot_val.jsonl:1",
    ]
    assert asked[1] in parsed.problems["detail"].to_pylist()[0]
    assert canonical_path("visual_cot", "cot/gqa/1.jpg###[0, 0, 9, 9]") == "1.jpg"


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "7", '"text"', "[" * 9999, json.dumps({**RECORD, "answer": ""})]
    + [json.dumps({**RECORD, "image": image}) for image in ("", "..", None, "a\nb.jpg")],
)
def test_a_line_that_cannot_be_read_costs_itself(raw: Path, write: Write, line: str) -> None:
    write([line, "", other()])
    parsed = parse_dataset("visual_cot", raw)
    kept = parsed.samples["sample_id"].to_pylist()
    assert "visual_cot/2.jpg" in kept
    assert len(kept) == 1
    assert len(reasons(parsed)) == 1


def test_one_record_about_nobody_is_the_example(raw: Path, write: Write) -> None:
    """Section 0.C.3: a non-human example shows the form of an answer at zero shots."""
    write([RECORD, other(), EMPTY])
    rows = parse_dataset("visual_cot", raw).samples.to_pylist()
    example = [row for row in rows if row["split"] == "example"]
    assert [(row["sample_id"], row["gender"]) for row in example] == [("visual_cot/9.jpg", None)]
    assert (example[0]["question"], example[0]["thought"]) == (
        "Is the horse brown?",
        "1. Look at the horse.",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"question": "Is the woman's horse brown?"},
        {"answer": "person", "question": "What is on the horse?"},
        {"full_answer": "The horse of these people is brown."},
        {"thought": "1. Find the man."},
        {"thought": None},
        {"image": "1.jpg"},
    ],
)
def test_no_person_is_in_the_examples_image_or_text(
    raw: Path, write: Write, change: dict[str, Any]
) -> None:
    write([other(), {**EMPTY, **change}])
    assert "example" not in parse_dataset("visual_cot", raw).samples["split"].to_pylist()


def test_an_example_whose_image_cannot_be_opened_is_passed_over(raw: Path, write: Write) -> None:
    write(
        [other(), EMPTY, {**EMPTY, "image": "8.jpg"}, {**EMPTY, "image": "7.jpg"}],
        {"8": ["horse"], "7": []},
    )
    (raw / "images/9.jpg").unlink()
    (raw / "images/8.jpg").write_bytes(b"no image")
    for seed in ("0", "1", "2"):
        parsed = parse_dataset("visual_cot", raw, options={"seed": seed})
        sides = dict(
            zip(parsed.samples["sample_id"].to_pylist(), parsed.samples["split"].to_pylist())
        )
        assert sides == {"visual_cot/2.jpg": None, "visual_cot/7.jpg": "example"}


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("cot_with_detailed_reasoning_steps/gqa_cot_val.jsonl", None, "the file is missing"),
        ("sceneGraphs/val_sceneGraphs.json", None, "the file is missing"),
        ("sceneGraphs/val_sceneGraphs.json", "[]", "no scene graphs by image"),
        ("sceneGraphs/train_sceneGraphs.json", "{", "not a JSON file"),
    ],
)
def test_a_missing_or_broken_file_is_named_with_the_remedy(
    raw: Path, write: Write, file: str, content: str | None, message: str
) -> None:
    write([RECORD])
    if content is None:
        (raw / file).unlink()
    else:
        (raw / file).write_text(content)
    with pytest.raises(RawDataError, match=rf"{Path(file).name}: .*{message}.* Fetch cot_with"):
        parse_dataset("visual_cot", raw)
