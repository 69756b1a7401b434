"""The demo's FACET is parsed by the real parser and gives back the scenes that were drawn."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from vlmfair.datasets import facet, parse_dataset
from vlmfair.datasets.base import ParsedDataset
from vlmfair.demo import wordings
from vlmfair.demo.people import GENDERS, OCCUPATIONS
from vlmfair.demo.planted import age_label, load_planted, occupation_label, skin_label
from vlmfair.demo.raw_data import draw_raw, scene_of, scenes_of
from vlmfair.demo.scenes import PLACES, Scene, boxes, draw
from vlmfair.errors import ConfigError


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The raw folder in its default size."""
    folder = tmp_path_factory.mktemp("demo") / "facet"
    draw_raw(folder, "facet")
    return folder


@pytest.fixture(scope="module")
def parsed(raw: Path) -> ParsedDataset:
    return parse_dataset("facet", raw)


@pytest.fixture(scope="module")
def samples(parsed: ParsedDataset) -> pd.DataFrame:
    return parsed.samples.to_pandas()


def rows_of(raw: Path) -> list[dict[str, str]]:
    with (raw / "annotations/annotations.csv").open(newline="") as opened:
        return list(csv.DictReader(opened))


def with_scenes(samples: pd.DataFrame) -> Iterator[tuple[dict, Scene]]:
    scenes = scenes_of("facet")
    for row in samples.to_dict("records"):
        yield row, scenes[row["sample_id"]]


def test_every_occupation_and_gender_has_six_images_in_six_places(samples: pd.DataFrame) -> None:
    known = [(row, scene) for row, scene in with_scenes(samples) if row["gender"] != "Unknown"]
    cells = Counter((row["occupation"], row["gender"]) for row, _ in known)
    assert cells == {(o, g.capitalize()): 6 for o in facet.OCCUPATIONS for g in GENDERS}
    places = Counter((r["occupation"], r["gender"], scene.place) for r, scene in known)
    assert len(places) == 13 * 2 * len(PLACES)


def test_labels_are_those_of_the_scenes_or_unknown(samples: pd.DataFrame) -> None:
    for row, scene in with_scenes(samples):
        person = scene.subject
        assert row["occupation"] == person.occupation
        assert row["gender"] in (person.gender.capitalize(), "Unknown")
        assert row["age"] in (age_label(person), "unknown")
        assert row["skin_tone"] in (skin_label(person), "unknown")


def test_groups_are_large_enough_and_some_labels_are_open(samples: pd.DataFrame) -> None:
    """A fifth of the real images has no skin tone group and a tenth no age (Table 1)."""
    assert samples["gender"].value_counts()["Unknown"] == 4
    for name, groups in (("age", facet.AGES), ("skin_tone", facet.SKIN_TONES)):
        counts = samples[name].value_counts()
        assert set(counts.index) == set(groups)
        assert counts.drop("unknown").min() >= 30
        assert 0.05 < counts["unknown"] / len(samples) < 0.25


def test_the_rules_for_skin_tones_disagree_on_this_data(parsed: ParsedDataset) -> None:
    counts = facet.tone_counts(parsed.samples)
    assert len({tuple(groups.values()) for groups in counts.values()}) == len(facet.TONE_RULES)
    assert counts["strict"]["unknown"] > counts["majority"]["unknown"] > counts["argmax"]["unknown"]


def test_every_quirk_of_a_real_copy_is_met(parsed: ParsedDataset) -> None:
    assert Counter(parsed.problems["reason"].to_pylist()) == {
        "several_persons": 4,  # two images
        "other_class": 3,
        "conflicting_record": 2,  # one person
        "duplicate_record": 1,
        "image_missing": 1,
        "image_unreadable": 1,
        "other_case": 1,
    }


def test_files_are_laid_out_as_the_real_ones_are(raw: Path) -> None:
    assert sorted(path.name for path in raw.iterdir()) == [
        "annotations",
        "imgs_1",
        "imgs_2",
        "imgs_3",
    ]
    text = (raw / "annotations/annotations.csv").read_text()
    assert text.split("\n")[1].count('"{""x"": ') == 1
    rows = rows_of(raw)
    assert set(facet.REQUIRED) < set(rows[0])
    assert all(
        name.startswith("sa_") and name.endswith(".jpg") for name in {r["filename"] for r in rows}
    )
    numbers = [int(row["person_id"]) for row in rows]
    assert numbers == sorted(numbers)
    assert {"", "None"} < {row["class2"] for row in rows}
    flags = [name for name in rows[0] if name.split("_")[0] in ("gender", "age", "hair", "visible")]
    assert {row[name] for row in rows for name in flags} == {"0", "1"}
    assert {row[name] for row in rows for name in facet.TONE_COLUMNS} == {"0", "1", "2", "3"}
    boxes_read = [json.loads(row["bounding_box"]) for row in rows]
    assert {"x", "y", "width", "height"} in [set(box) for box in boxes_read]
    assert any("dict_attributes" in box for box in boxes_read)


def test_boxes_surround_the_person_that_was_drawn() -> None:
    """The box is where a scene differs from the same place without anybody."""
    for scene in list(scenes_of("facet").values())[:20]:
        bare = Scene((), scene.place, scene.seed)
        one = Scene((scene.subject,), scene.place, scene.seed)
        left, top, width, height = (96 * share for share in boxes(one)[0])
        change = np.abs(np.asarray(draw(one), float) - np.asarray(draw(bare), float)).sum(axis=2)
        inside = change[int(max(0, top)) : int(top + height), int(max(0, left)) : int(left + width)]
        assert (inside > 150).sum() > 0.7 * (change > 150).sum()


def test_boxes_lie_in_the_image_up_to_a_fraction_of_a_pixel(
    raw: Path, samples: pd.DataFrame
) -> None:
    for row in samples.to_dict("records"):
        box = facet.box_of(json.loads(row["raw"])["bounding_box"])
        assert box is not None
        assert box[0] + box[2] <= row["width"] + 0.5
        assert box[1] + box[3] <= row["height"] + 0.5
        with Image.open(row["image"]) as image:
            assert image.size == (row["width"], row["height"])


def test_what_is_planted_about_occupations_can_be_found_in_these_images(
    root: Path, samples: pd.DataFrame
) -> None:
    """Men who nurse on street, beach or stage are called doctors: three of six places."""
    table = load_planted(root / "resources/demo/planted.yaml")
    right = pd.Series(
        [occupation_label(scene, table) == row["occupation"] for row, scene in with_scenes(samples)]
    )
    recall = right.groupby([samples["occupation"], samples["gender"]]).mean()
    assert recall["nurse", "Male"] <= 0.5
    assert recall["nurse", "Female"] >= 0.5
    assert recall["guitarist", "Female"] <= 0.5
    control = table.control()
    assert all(
        occupation_label(scene, control) == row["occupation"] for row, scene in with_scenes(samples)
    )


def test_the_words_of_the_demo_are_the_classes_of_the_dataset() -> None:
    assert tuple(wordings.CLASSES.split(", ")) == facet.CLASSES
    assert OCCUPATIONS == facet.OCCUPATIONS


def test_same_arguments_write_the_same_bytes_and_sizes_are_arguments(
    raw: Path, tmp_path: Path
) -> None:
    draw_raw(tmp_path / "again", "facet")
    for path in sorted(raw.rglob("*")):
        if path.is_file():
            assert (tmp_path / "again" / path.relative_to(raw)).read_bytes() == path.read_bytes()
    draw_raw(tmp_path / "small", "facet", per_cell=1, seed=3)
    small = parse_dataset("facet", tmp_path / "small").samples
    assert len(small) == 26 + 4
    assert scene_of("facet", small["sample_id"][0].as_py()[6:], per_cell=1, seed=3).people
    with pytest.raises(ConfigError, match=r"per_cell is 0\. Write a whole number from 1 on"):
        draw_raw(tmp_path, "facet", per_cell=0)
