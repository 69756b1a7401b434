"""The demo's downloads are parsed by the real parsers, and give back the scenes that were drawn."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from vlmfair.datasets import parse_dataset
from vlmfair.datasets.fairface import RACES
from vlmfair.datasets.label_files import read_paths
from vlmfair.demo import scenes
from vlmfair.demo.raw_ai_face import sources_of_tone
from vlmfair.demo.raw_data import draw_raw, draw_selection, scene_of, scenes_of
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.papers.gras.selection import select_images, selection_statistics

DATASETS = tuple(LIST_FILES)
PATTERNS = (
    r"AIFace/FFHQ/\d{5}\.png",
    r"AIFace/imdb_wiki/imdb/(\d\d)/nm\d{5}\1_rm\d+_\d{4}-\d{1,2}-\d{1,2}_\d{4}_face[12]\.jpg",
    r"AIFace/imdb_wiki/wiki/(\d\d)/\d+\1_\d{4}-\d\d-\d\d_\d{4}_face[12]\.jpg",
)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both raw folders and the lists, in their default sizes."""
    folder = tmp_path_factory.mktemp("demo")
    for dataset in DATASETS:
        draw_raw(folder / dataset, dataset)
    draw_selection(folder / "gras")
    return folder


def lists_in(demo: Path) -> dict[str, Path]:
    return {dataset: demo / "gras" / name for dataset, name in LIST_FILES.items()}


def test_labels_that_parsers_read_are_those_of_the_drawn_scenes(demo: Path) -> None:
    scenes_by_id = scenes_of("fairface")
    for row in parse_dataset("fairface", demo / "fairface").samples.to_pylist():
        person = scenes_by_id[row["sample_id"]].subject
        assert row["gender"] == person.gender.capitalize()
        assert row["race"] == person.race
        low, _, high = row["age"].replace("more than 70", "71-200").partition("-")
        assert int(low) <= person.age <= int(high)


def test_skin_tones_that_parsers_read_are_those_of_the_drawn_scenes(demo: Path) -> None:
    scenes_by_id = scenes_of("ai_face")
    for row in parse_dataset("ai_face", demo / "ai_face").samples.to_pylist():
        person = scenes_by_id[row["sample_id"]].subject
        assert row["skin_tone"] == str(person.skin_tone)
        assert row["gender"] == person.gender.capitalize()
        assert (row["target"] == "fake") == row["sample_id"].startswith("ai_face/GANs/")


def test_fairface_meets_every_quirk_of_a_real_copy(demo: Path) -> None:
    problems = parse_dataset("fairface", demo / "fairface").problems["reason"].to_pylist()
    assert Counter(problems) == {
        "image_unreadable": 1,
        "image_missing": 1,
        "other_case": 1,
        "unknown_age": 1,
    }


def test_ai_face_meets_every_quirk_of_a_real_copy(demo: Path) -> None:
    problems = parse_dataset("ai_face", demo / "ai_face").problems["reason"].to_pylist()
    assert Counter(problems) == {"image_empty": 1, "repeated_header": 1, "folder_absent": 2}


def test_selection_is_balanced_and_loses_three_images(demo: Path) -> None:
    lists = lists_in(demo)
    parsed = {d: parse_dataset(d, demo / d, only=read_paths(lists[d])) for d in DATASETS}
    chosen = select_images(
        {d: p.samples for d, p in parsed.items()},
        method="published",
        lists=lists,
        problems={d: p.problems for d, p in parsed.items()},
    )
    counts = selection_statistics(chosen.samples, chosen.problems)
    totals = counts[counts["attribute"] == "all"].set_index("dataset")
    columns = ["listed", "used", "missing", "unreadable"]
    assert list(totals.loc["fairface", columns]) == [140, 138, 1, 1]
    assert list(totals.loc["ai_face", columns]) == [80, 79, 0, 1]
    cells = counts[counts["attribute"] == "age x gender x race"]
    assert (len(cells), set(cells["listed"])) == (70, {2})
    assert set(counts[counts["attribute"] == "skin_tone"]["listed"]) == {8}
    assert "label_conflict" not in chosen.problems["reason"].to_pylist()


def test_resample_works_on_the_demo_too(demo: Path) -> None:
    samples = {d: parse_dataset(d, demo / d).samples for d in DATASETS}
    chosen = select_images(samples, method="resample", per_cell=2, per_tone=8, seed=1)
    assert len(chosen.samples) == 140 + 80
    assert len(chosen.problems) == 0


def test_files_are_written_as_the_real_ones_are(demo: Path) -> None:
    fairface = (demo / "fairface/fairface_label_train.csv").read_text().split("\n")
    assert fairface[0] == "file,age,gender,race,service_test"
    ages, races = r"(\d+-\d+|more than 70|Oct-19)", "|".join(RACES)
    row = rf"train/\d+\.jpg,{ages},(Female|Male),({races}),(True|False)"
    assert all(re.fullmatch(row, line) for line in fairface[1:-1])
    numbers = [int(re.findall(r"\d+", line)[0]) for line in fairface[1:-1]]
    assert numbers == sorted(numbers)
    ai_face = (demo / "ai_face/train.csv").read_text().split("\n")
    assert ai_face[0] == "Image Path,Gender,Age,Skin Tone,Intersection,Target"
    row = r"(Real|GANs|DMs|deepfakes)/[\w/.-]+,[01],[01345],([1-9]|10),[0-5],[01]"
    assert [line for line in ai_face[1:-1] if not re.fullmatch(row, line)] == [ai_face[0]]


def test_selection_lists_have_the_names_of_the_real_ones(demo: Path) -> None:
    fairface, ai_face = (lists_in(demo)[name].read_text().split("\n") for name in DATASETS)
    assert fairface[0] == "file,age,gender,race,service_test"
    assert all(re.match(r"FairFace/(train|val)/\d+\.jpg,", line) for line in fairface[1:-1])
    assert ai_face[0] == "file,Skin Tone"
    for line in ai_face[1:-1]:
        file, tone = line.split(",")
        assert any(re.fullmatch(pattern, file) for pattern in PATTERNS), file
        assert 1 <= int(tone) <= 10
    text = "\n".join(ai_face)
    assert re.search(r"imdb/.*_\d{4}-\d-\d+_", text)
    assert re.search(r"wiki/wiki/.*_\d{4}-0\d-\d\d_", text)


def test_sources_go_with_tones_as_in_the_authors_list() -> None:
    full = {tone: Counter(sources_of_tone(tone, 144)) for tone in (1, 10)}
    assert full[1] == {"FFHQ": 45, "imdb": 48, "wiki": 51}
    assert full[10] == {"FFHQ": 14, "imdb": 103, "wiki": 27}
    assert all(len(sources_of_tone(tone, 8)) == 8 for tone in range(1, 11))


def test_selected_people_are_plain_to_see_and_other_attributes_are_spread(demo: Path) -> None:
    lists = lists_in(demo)
    for dataset in DATASETS:
        prefix = {"fairface": "FairFace/", "ai_face": "AIFace/"}[dataset]
        chosen = [
            scene_of(dataset, path.removeprefix(prefix)) for path in read_paths(lists[dataset])
        ]
        assert not any(person.hooded for scene in chosen for person in scene.people)
        assert all(20 <= scene.subject.age <= 69 for scene in chosen)
        assert sum(len(scene.people) == 1 for scene in chosen) > 0.8 * len(chosen)
        by_gender = Counter((s.subject.gender, s.subject.skin_tone) for s in chosen)
        expected = {"fairface": 7, "ai_face": 4}[dataset]
        assert by_gender == {(g, t): expected for g in scenes.GENDERS for t in range(1, 11)}


def test_same_arguments_write_the_same_bytes(demo: Path, tmp_path: Path) -> None:
    draw_raw(tmp_path / "ai_face", "ai_face")
    for path in sorted((demo / "ai_face").rglob("*")):
        if path.is_file():
            again = tmp_path / "ai_face" / path.relative_to(demo / "ai_face")
            assert again.read_bytes() == path.read_bytes(), path


def test_sizes_are_arguments(tmp_path: Path) -> None:
    draw_raw(tmp_path / "raw", "ai_face", per_tone=1, spare=0, seed=5)
    draw_selection(tmp_path, per_cell=1, per_tone=1, spare=0, seed=5)
    listed = read_paths(tmp_path / LIST_FILES["ai_face"])
    parsed = parse_dataset("ai_face", tmp_path / "raw", only=listed)
    assert (len(listed), len(parsed.samples)) == (10, 9)
    assert len(read_paths(tmp_path / LIST_FILES["fairface"])) == 70


def test_impossible_arguments_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="celeba: no such demo dataset"):
        draw_raw(tmp_path, "celeba")
    with pytest.raises(ConfigError, match=r"per_cell is 0\. Write a whole number from 1 on"):
        draw_raw(tmp_path, "fairface", per_cell=0)
