"""Raw downloads that are drawn for a list have the list's images, and real parsers read them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from vlmfair.datasets import parse_dataset
from vlmfair.datasets.label_files import read_paths
from vlmfair.demo.raw_data import draw_selection
from vlmfair.demo.raw_listed import draw_listed, plan_listed
from vlmfair.errors import ConfigError, RawDataError
from vlmfair.papers.gras.artefacts import LIST_FILES
from vlmfair.papers.gras.selection import select_images


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two lists in the authors' format: 70 images of FairFace, 20 of AI-Face."""
    folder = tmp_path_factory.mktemp("lists")
    draw_selection(folder, per_cell=1, per_tone=2, seed=3)
    return {dataset: folder / name for dataset, name in LIST_FILES.items()}


@pytest.fixture(scope="module")
def drawn(lists: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("listed")
    for dataset, path in lists.items():
        draw_listed(folder / dataset, dataset, path, seed=20)
    return {dataset: folder / dataset for dataset in lists}


def test_the_selection_finds_every_image_with_the_labels_of_the_list(
    lists: dict[str, Path], drawn: dict[str, Path]
) -> None:
    parsed = {
        name: parse_dataset(name, drawn[name], only=read_paths(path))
        for name, path in lists.items()
    }

    chosen = select_images(
        {name: one.samples for name, one in parsed.items()},
        method="published",
        lists=lists,
        problems={name: one.problems for name, one in parsed.items()},
    )

    assert Counter(chosen.samples["dataset"].to_pylist()) == {"fairface": 70, "ai_face": 20}
    assert chosen.problems.num_rows == 0, "neither a missing image nor another label"


def test_pictures_show_the_labels_of_their_rows(lists: dict[str, Path]) -> None:
    for image in plan_listed("fairface", lists["fairface"], seed=1):
        person, low = image.scene.subject, int(image.row["age"][:2])
        assert (person.gender.capitalize(), person.race) == (image.row["gender"], image.row["race"])
        assert low <= person.age <= low + 9
        assert not person.hooded
    for image in plan_listed("ai_face", lists["ai_face"], seed=1):
        assert str(image.scene.subject.skin_tone) == image.row["Skin Tone"]


def test_the_authors_lists_give_their_5010_images(reference_dir: Path) -> None:
    """Paper section 3.1: 51 images of each of 70 cells, 144 of each of 10 skin tones."""
    files = {name: reference_dir / "gras" / file for name, file in LIST_FILES.items()}
    faces = plan_listed("fairface", files["fairface"], seed=1)
    tones = plan_listed("ai_face", files["ai_face"], seed=1)

    cells = Counter(
        (image.row["age"], image.scene.subject.gender, image.scene.subject.race) for image in faces
    )
    assert (len(cells), set(cells.values())) == (70, {51})
    assert faces[0].stored == "train/25179.jpg"
    counts = Counter(image.scene.subject.skin_tone for image in tones)
    assert counts == dict.fromkeys(range(1, 11), 144)
    assert tones[0].stored == (
        "Real/imdb_wiki/imdb/79/nm0000379_rm4285046272_1982-4-30_2002_face1.jpg"
    )
    # What a list does not say must not go with what is measured.
    by_tone = Counter((i.scene.subject.skin_tone, i.scene.subject.gender) for i in tones)
    assert set(by_tone.values()) == {72}


def test_the_same_list_and_seed_write_the_same_bytes(
    lists: dict[str, Path], drawn: dict[str, Path], tmp_path: Path
) -> None:
    draw_listed(tmp_path, "ai_face", lists["ai_face"], seed=20)

    files = [path for path in sorted(tmp_path.rglob("*")) if path.is_file()]
    assert len(files) == 20 + 2
    for path in files:
        assert path.read_bytes() == (drawn["ai_face"] / path.relative_to(tmp_path)).read_bytes()


@pytest.mark.parametrize(
    "path",
    ["FairFace/../../x.jpg", "FairFace/train/1.png", "/etc/train/1.jpg", "FairFace/test/1.jpg"],
)
def test_a_path_that_leads_elsewhere_is_refused_before_anything_is_written(
    path: str, tmp_path: Path
) -> None:
    hostile = tmp_path / "list.csv"
    hostile.write_text(f"file,age,gender,race,service_test\n{path},20-29,Female,Black,True\n")

    with pytest.raises(RawDataError, match=r"is no image of fairface\. Fetch the list again"):
        draw_listed(tmp_path / "out", "fairface", hostile, seed=1)

    assert not (tmp_path / "out").exists()


def test_a_dataset_without_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="facet: GRAS has no list"):
        draw_listed(tmp_path, "facet", tmp_path / "list.csv", seed=1)
