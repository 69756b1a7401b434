"""The demo's downloads for VL-BICLE are parsed by the real parsers and give back their scenes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from vlmfair.datasets import ParsedDataset, funnel_of, parse_dataset, visogender
from vlmfair.datasets.base import KEPT
from vlmfair.datasets.images import check_image
from vlmfair.demo import wordings
from vlmfair.demo.people import OCCUPATIONS
from vlmfair.demo.planted import load_planted
from vlmfair.demo.questions import visual_question
from vlmfair.demo.raw_data import draw_raw, scene_of, scenes_of
from vlmfair.demo.raw_visogender import OO_COLUMNS, OP_COLUMNS, SECTORS
from vlmfair.errors import ConfigError

DATASETS = ("visogender", "coco_bias", "dci", "visual_cot")
# Shots of the longest context: each pool has as many of each gender.
MOST_SHOTS = 8


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four raw folders in their default sizes."""
    folder = tmp_path_factory.mktemp("demo")
    for dataset in DATASETS:
        draw_raw(folder / dataset, dataset)
    return folder


@pytest.fixture(scope="module")
def parsed(raw: Path) -> dict[str, ParsedDataset]:
    return {dataset: parse_dataset(dataset, raw / dataset) for dataset in DATASETS}


def samples_of(parsed: dict[str, ParsedDataset], dataset: str) -> pd.DataFrame:
    samples = parsed[dataset].samples.to_pandas()
    scenes = scenes_of(dataset)
    return samples.assign(scene=[scenes[name] for name in samples["sample_id"]])


@pytest.mark.parametrize("dataset", DATASETS)
def test_genders_are_those_of_the_scenes(parsed: dict[str, ParsedDataset], dataset: str) -> None:
    rows = samples_of(parsed, dataset)
    rows = rows[rows["split"] != "example"]
    drawn = [scene.subject.gender.capitalize() for scene in rows["scene"]]
    assert rows["gender"].tolist() == drawn
    alone = rows[[len(scene.people) == 1 for scene in rows["scene"]]]
    assert len(alone) == (rows["task"] == "OO").sum() if dataset == "visogender" else len(rows)


@pytest.mark.parametrize("dataset", DATASETS)
def test_groups_are_large_enough_for_every_cell_and_context(
    parsed: dict[str, ParsedDataset], dataset: str
) -> None:
    """Ten queries and eight demonstrations of each gender, and people under a hood among both."""
    rows = samples_of(parsed, dataset)
    rows = rows[rows["split"] != "example"]
    hooded = [scene.subject.hooded for scene in rows["scene"]]
    task = rows["task"] if dataset == "visogender" else rows["dataset"]
    for _, own in rows.assign(hooded=hooded).groupby(task):
        counts = own.groupby(["split", "gender"]).size()
        assert counts["pool"].min() >= MOST_SHOTS
        assert counts["queries"].min() >= 20
        queries = own[own["split"] == "queries"]
        assert 0.15 <= queries["hooded"].mean() <= 0.45
        assert queries["hooded"].sum() >= 10


@pytest.mark.parametrize("dataset", ["coco_bias", "dci", "visual_cot"])
def test_queries_are_at_parity_and_the_pool_has_more_men(
    parsed: dict[str, ParsedDataset], dataset: str
) -> None:
    counts = samples_of(parsed, dataset).groupby(["split", "gender"]).size()
    assert counts["queries", "Male"] == counts["queries", "Female"]
    assert counts["pool", "Male"] > counts["pool", "Female"]
    if dataset == "coco_bias":
        assert counts["pool", "Male"] >= 2 * counts["pool", "Female"]


def test_every_quirk_of_real_copies_is_met(parsed: dict[str, ParsedDataset]) -> None:
    found = {name: Counter(own.problems["reason"].to_pylist()) for name, own in parsed.items()}
    assert found["visogender"] == {
        "image_missing": 2,
        "image_unreadable": 2,
        "shared_photograph": 4,
    }
    assert found["coco_bias"] == {
        "no_captions": 2,
        "no_gender_words": 1,
        "conflicting_gender_words": 1,
        "several_persons": 2,
        "no_person": 1,
        "unclear_gender": 3,
        "label_disagrees": 1,
        "conflicting_record": 2,
        "duplicate_record": 1,
        "image_missing": 1,
        "image_unreadable": 1,
        "down_sampled": 42,
    }
    assert found["dci"] == {
        "mentions_several": 1,
        "no_captions": 1,
        "no_gender_words": 3,
        "conflicting_gender_words": 1,
        "captions_disagree": 1,
        "malformed_record": 2,
        "conflicting_record": 2,
        "duplicate_record": 1,
        "file_missing": 1,
        "image_missing": 1,
        "image_unreadable": 1,
        "down_sampled": 11,
    }
    shorter = found["visual_cot"].pop("shorter_question")
    assert 15 <= shorter <= 45
    assert found["visual_cot"] == {
        "no_thought": 1,
        "no_scene_graph": 1,
        "no_person": 3,
        "several_persons": 2,
        "no_gender_words": 1,
        "who_question": 1,
        "mentions_several": 1,
        "conflicting_gender_words": 1,
        "not_neutralisable": 1,
        "malformed_record": 2,
        "image_missing": 1,
        "image_unreadable": 1,
        "down_sampled": 11,
    }


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_record_is_a_sample_or_left_out_by_a_step_of_the_funnel(
    parsed: dict[str, ParsedDataset], dataset: str
) -> None:
    table = funnel_of(dataset, parsed[dataset])
    assert table is not None
    rows = {row["step"]: row for row in table.to_pylist()}
    samples = samples_of(parsed, dataset)
    used = (samples["split"] != "example").sum()
    lost = [r for r in parsed[dataset].problems["reason"].to_pylist() if r not in KEPT]
    lost = [reason for reason in lost if reason != "file_missing"]
    assert rows["all records"]["left"] == used + len(lost)
    assert rows["pool"]["left"] + rows["queries"]["left"] == used
    assert (
        rows["queries"]["male"]
        == ((samples["split"] == "queries") & (samples["gender"] == "Male")).sum()
    )


def test_visogender_has_its_occupations_objects_and_both_tables(
    raw: Path, parsed: dict[str, ParsedDataset]
) -> None:
    rows = samples_of(parsed, "visogender")
    assert {name for names in SECTORS.values() for name in names} == set(wordings.COMPANIONS)
    for task, place, cells in (("OO", 0, 23 * 2), ("OP", 1, 23 * 4)):
        own = rows[rows["task"] == task]
        pairs = {name: pair[place] for name, pair in wordings.COMPANIONS.items()}
        assert dict(zip(own["occupation"], own["companion"], strict=True)) == pairs
        assert cells * 2 == (own["split"] == "pool").sum()
        if place:
            others = [scene.people[1].gender.capitalize() for scene in own["scene"]]
            assert own["participant_gender"].tolist() == others
    older = parse_dataset(
        "visogender", raw / "visogender", only=["OP_1"], options={"version": "2025-05-10"}
    )
    assert json.loads(older.samples["raw"][0].as_py())["table"] == "OP_Visogender_11012024.tsv"


def test_visogender_tables_are_written_as_the_real_ones_are(raw: Path) -> None:
    """Tabulators, CRLF, no quotes, no end of the last line; three rows differ in the older one."""
    folder = raw / "visogender"
    texts = {
        name: (folder / name).read_bytes().decode("ascii")
        for name in (
            "OO/OO_Visogender_10052025.tsv",
            "OP/OP_Visogender_11012024.tsv",
            "OP/OP_Visogender_02102023.tsv",
        )
    }
    for name, text in texts.items():
        lines = text.split("\r\n")
        columns = OO_COLUMNS if name.startswith("OO") else OP_COLUMNS
        assert lines[0].split("\t") == list(columns)
        assert {len(line.split("\t")) for line in lines} == {len(columns)}
        assert '"' not in text
        assert not text.endswith("\n")
    assert texts["OO/OO_Visogender_10052025.tsv"].count("mixing_spoon") == 1
    newest, older = (texts[f"OP/OP_Visogender_{day}.tsv"] for day in ("11012024", "02102023"))
    assert sum(a != b for a, b in zip(newest.split("\r\n"), older.split("\r\n"), strict=True)) == 3


def test_visogender_columns_are_those_of_the_published_tables(reference_dir: Path) -> None:
    folder = reference_dir / "visogender"
    for name, columns in (("OO_*", OO_COLUMNS), ("OP_*", OP_COLUMNS)):
        path = next(iter(folder.glob(f"{name}.tsv")))
        assert path.read_text().splitlines()[0].split("\t") == list(columns)


def test_two_rows_of_a_photograph_are_on_one_side(parsed: dict[str, ParsedDataset]) -> None:
    rows = samples_of(parsed, "visogender").set_index("sample_id")
    problems = parsed["visogender"].problems.to_pandas()
    shared = problems[problems["reason"] == "shared_photograph"]
    for record, detail in zip(shared["record"], shared["detail"], strict=True):
        other = re.findall(r"visogender/\S+", detail)
        assert rows.loc[other, "split"].tolist() == [rows.loc[record, "split"]]
        assert rows.loc[record, "scene"] == rows.loc[other[0], "scene"]


def test_coco_captions_are_typed_as_people_type_and_say_what_is_drawn(
    raw: Path, parsed: dict[str, ParsedDataset]
) -> None:
    content = json.loads((raw / "coco_bias/annotations/captions_val2014.json").read_text())
    texts = [entry["caption"] for entry in content["annotations"]]
    assert {"info", "images", "licenses", "annotations"} == set(content)
    assert any(text.endswith("\n") for text in texts)
    assert any("  " in text for text in texts)
    assert any(not text.rstrip().endswith(".") for text in texts)
    rows = samples_of(parsed, "coco_bias")
    numbers = Counter(len(captions) for captions in rows["captions"])
    assert max(numbers, key=lambda count: numbers[count]) == 5
    per_image = Counter(entry["image_id"] for entry in content["annotations"])
    assert {5, 6, 7} <= set(per_image.values())
    for captions, scene in zip(rows["captions"], rows["scene"], strict=True):
        assert any(wordings.ACTIVITIES[scene.subject.occupation] in text for text in captions)
        assert not any("\n" in text or "  " in text for text in captions)
    hooded = rows[[scene.subject.hooded for scene in rows["scene"]]]
    assert all(any("person" in text for text in captions) for captions in hooded["captions"])


def test_coco_boxes_are_those_of_the_people(raw: Path) -> None:
    folder = raw / "coco_bias/annotations"
    content = json.loads((folder / "instances_val2014.json").read_text())
    assert {"id": 1, "name": "person", "supercategory": "person"} in content["categories"]
    sizes = {entry["id"]: (entry["width"], entry["height"]) for entry in content["images"]}
    assert sum(entry["iscrowd"] for entry in content["annotations"]) == 1
    for entry in content["annotations"]:
        x, y, width, height = entry["bbox"]
        assert x >= 0
        assert x + width <= sizes[entry["image_id"]][0] + 0.01
        assert y + height <= sizes[entry["image_id"]][1] + 0.01
        assert isinstance(entry["segmentation"], dict) == bool(entry["iscrowd"])


def test_one_coco_picture_is_there_twice(raw: Path, parsed: dict[str, ParsedDataset]) -> None:
    files = sorted((raw / "coco_bias/val2014").iterdir())
    digests = Counter(getattr(check_image(path), "sha256", path.name) for path in files)
    assert sorted(digests.values())[-2:] == [1, 2]
    sides = samples_of(parsed, "coco_bias").groupby("image_sha256")["split"].nunique()
    assert sides.max() == 1


def test_dci_records_are_written_as_the_real_ones_are(raw: Path) -> None:
    root = raw / "dci/densely_captioned_images"
    names = sorted(path.name for path in (root / "annotations").iterdir())
    assert all(re.fullmatch(r"\d{6}-data\.json", name) for name in names)
    assert {path.name for path in (root / "complete").iterdir()} < set(names)
    listed = json.loads((root / "splits.json").read_text())
    assert set(listed) == {"train", "valid", "test"}
    qualities = Counter()
    for path in (root / "annotations").iterdir():
        try:
            record = json.loads(path.read_text())
        except ValueError:
            continue
        assert set(record["mask_keys"]) == set(record["mask_data"])
        qualities.update(mask["mask_quality"] for mask in record["mask_data"].values())
    assert set(qualities) == {0, 1, 2}


def test_visual_questions_are_those_that_the_demos_models_know(
    root: Path, parsed: dict[str, ParsedDataset]
) -> None:
    table = load_planted(root / "resources/demo/planted.yaml")
    rng = np.random.default_rng(0)
    rows = samples_of(parsed, "visual_cot")
    for row in rows[rows["split"] != "example"].head(9).to_dict("records"):
        known = {}
        for _ in range(800):
            question = visual_question(
                row["scene"],
                rng,
                table,
                thought=True,
                yes_no=bool(rng.integers(2)),
                gendered=True,
            )
            text = question.text.removesuffix(f" {wordings.THOUGHT_SUFFIX}")
            first = question.demonstrated or next(iter(question.choices))
            known[text] = question.answer(first)
        assert row["question"] in known
        said = f" Thought: {row['thought'].removesuffix('.')}. Answer: {row['answer']}"
        assert known[row["question"]] == said
        assert row["neutral_question"].count("the person") == 1


def test_yes_and_no_are_about_as_frequent_for_each_gender(
    parsed: dict[str, ParsedDataset],
) -> None:
    rows = samples_of(parsed, "visual_cot")
    asked = rows[rows["answer"].isin(["yes", "no"])]
    for _, own in asked.groupby("gender"):
        assert 0.3 < (own["answer"] == "yes").mean() < 0.7
    example = rows[rows["split"] == "example"]
    assert [scene.people for scene in example["scene"]] == [()]
    assert example["question"].tolist() == ["What place is this?"]


def test_coco_has_twice_as_many_men_of_each_occupation() -> None:
    drawn = Counter(
        (scene.subject.gender, scene.subject.occupation)
        for scene in scenes_of("coco_bias").values()
        if len(scene.people) == 1
    )
    for occupation in OCCUPATIONS:
        # A few more are those that are left out.
        assert 4 <= drawn["female", occupation] <= 8 <= drawn["male", occupation]


@pytest.mark.parametrize("dataset", DATASETS)
def test_same_arguments_write_the_same_bytes_and_sizes_are_arguments(
    tmp_path: Path, dataset: str
) -> None:
    for name in ("one", "two"):
        draw_raw(tmp_path / name, dataset, per_cell=1, seed=3)
    files = sorted(path for path in (tmp_path / "one").rglob("*") if path.is_file())
    for path in files:
        again = tmp_path / "two" / path.relative_to(tmp_path / "one")
        assert again.read_bytes() == path.read_bytes(), path
    small = parse_dataset(dataset, tmp_path / "one").samples
    name = small["sample_id"][0].as_py().removeprefix(f"{dataset}/")
    assert scene_of(dataset, name, per_cell=1, seed=3).people
    with pytest.raises(ConfigError, match=r"per_cell is 0\. Write a whole number from 1 on"):
        draw_raw(tmp_path, dataset, per_cell=0)


def test_the_folders_are_small(raw: Path) -> None:
    for dataset in DATASETS:
        files = [path for path in (raw / dataset).rglob("*") if path.is_file()]
        assert sum(path.stat().st_size for path in files) < 8_000_000
    assert visogender.table_path(raw / "visogender", "OO").parent.name == "OO"
