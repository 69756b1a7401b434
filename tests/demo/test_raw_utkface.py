"""The demo's UTKFace is parsed by the real parser and gives back the scenes that were drawn."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from vlmfair.datasets import parse_dataset
from vlmfair.datasets.utkface import CORRECTIONS, POLICIES
from vlmfair.demo.planted import load_planted, race_label, true_race_label
from vlmfair.demo.raw_data import draw_raw, scenes_of
from vlmfair.demo.raw_utkface import IRREGULAR
from vlmfair.demo.scenes import PLACES

# What is noted about each policy beside the quirks that all of them meet.
QUIRKS = {"shared_time": 2, "space_in_name": 1, "image_unreadable": 1, "image_empty": 1}
OF_POLICY = {
    "drop": {"malformed_name": 4},
    "public_corrections": {"corrected_labels": 4},
    "paper_table1": {"defaulted_labels": 4},
}


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The raw folder in its default size."""
    folder = tmp_path_factory.mktemp("demo") / "utkface"
    draw_raw(folder, "utkface")
    return folder


def samples_of(raw: Path, policy: str) -> pd.DataFrame:
    return parse_dataset("utkface", raw, options={"policy": policy}).samples.to_pandas()


def test_labels_are_those_of_the_scenes(raw: Path) -> None:
    """With the public corrections the irregular names say what was drawn, too."""
    scenes = scenes_of("utkface")
    samples = samples_of(raw, "public_corrections")
    shared = samples["sample_id"].str.split("_").str[-1].duplicated(keep=False)
    assert shared.sum() == 2
    for row in samples[~shared].to_dict("records"):
        person = scenes[row["sample_id"]].subject
        assert row["gender"] == person.gender.capitalize()
        assert row["race"] == true_race_label(person)
        assert int(row["age"]) == person.age


def test_one_picture_is_there_twice_with_two_genders(raw: Path) -> None:
    samples = samples_of(raw, "drop")
    twins = samples[samples["image_sha256"].duplicated(keep=False)]
    assert sorted(twins["gender"]) == ["Female", "Male"]


def test_cells_are_balanced_and_spread_over_places_and_ages(raw: Path) -> None:
    scenes = scenes_of("utkface")
    samples = samples_of(raw, "drop")
    cells = samples.groupby(["race", "gender"]).size()
    assert len(cells) == 10
    assert set(cells) <= {15, 16, 17}  # the twin, and the name with a space
    places = Counter(
        (row["race"], scenes[row["sample_id"]].place) for row in samples.to_dict("records")
    )
    assert len(places) == 5 * len(PLACES)
    assert min(places.values()) >= 4
    assert samples["age"].astype(int).floordiv(10).nunique() == 9


@pytest.mark.parametrize("policy", POLICIES)
def test_every_quirk_of_a_real_copy_is_met(raw: Path, policy: str) -> None:
    parsed = parse_dataset("utkface", raw, options={"policy": policy})
    assert Counter(parsed.problems["reason"].to_pylist()) == {**QUIRKS, **OF_POLICY[policy]}
    assert len(parsed.samples) == 150 + 1 + 5 - 4 * (policy == "drop")


def test_names_are_those_of_the_real_dataset(raw: Path) -> None:
    names = [path.name for path in raw.glob("part[123]/*")]
    assert set(IRREGULAR) < set(names)
    assert set(CORRECTIONS) < set(IRREGULAR)
    regular = [name for name in names if name not in IRREGULAR]
    pattern = r"\d{1,2}_[01]_[0-4]_201701\d{2}([01]\d|2[0-3])([0-5]\d){2}\d{2,4}\.jpg"
    assert [name for name in regular if not re.fullmatch(pattern, name)] == []
    digits = Counter(len(name.split("_")[3].removesuffix(".jpg")) for name in regular)
    assert (digits[16], digits[18]) == (1, 1)


def test_what_is_planted_about_races_can_be_found_in_these_images(root: Path, raw: Path) -> None:
    """Indian faces in park, beach or stage are called others: half of the places."""
    table = load_planted(root / "resources/demo/planted.yaml")
    scenes = [scenes_of("utkface")[name] for name in samples_of(raw, "drop")["sample_id"]]
    right = pd.Series(
        [race_label(scene, table) == true_race_label(scene.subject) for scene in scenes]
    )
    recall = right.groupby([true_race_label(scene.subject) for scene in scenes]).mean()
    assert 0.3 < recall["indian"] < 0.7
    assert recall["white"] == recall["asian"] == 1.0


def test_same_arguments_write_the_same_bytes_and_sizes_are_arguments(
    raw: Path, tmp_path: Path
) -> None:
    draw_raw(tmp_path / "again", "utkface")
    files = [path for path in raw.rglob("*") if path.is_file()]
    assert len(files) == 150 + 1 + 2 + 5
    for path in files:
        assert (tmp_path / "again" / path.relative_to(raw)).read_bytes() == path.read_bytes()
    draw_raw(tmp_path / "small", "utkface", per_cell=2, seed=3)
    assert len(samples_of(tmp_path / "small", "drop")) == 20 + 1 + 1
