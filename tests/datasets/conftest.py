"""Raw folders to break: a few valid rows, and a picture for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from vlmfair.datasets.base import ParsedDataset

FAIRFACE_HEADER = "file,age,gender,race,service_test"
AI_FACE_HEADER = "Image Path,Gender,Age,Skin Tone,Intersection,Target"


@pytest.fixture
def picture() -> Callable[[Path], Path]:
    """Writes a small valid picture; the colour depends on the path."""

    def write(path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        colour = (len(path.name) * 7 % 256, sum(path.name.encode()) % 256, 90)
        Image.new("RGB", (12, 10), colour).save(path)
        return path

    return write


@pytest.fixture
def fairface_dir(tmp_path: Path, picture: Callable[[Path], Path]) -> Path:
    """Two training images and one validation image, as FairFace unpacks."""
    raw = tmp_path / "fairface"
    for relative in ("train/1.jpg", "train/2.jpg", "val/1.jpg"):
        picture(raw / relative)
    (raw / "fairface_label_train.csv").write_text(
        f"{FAIRFACE_HEADER}\n"
        "train/1.jpg,50-59,Male,East Asian,True\n"
        "train/2.jpg,more than 70,Female,Latino_Hispanic,False\n"
    )
    (raw / "fairface_label_val.csv").write_text(
        f"{FAIRFACE_HEADER}\nval/1.jpg,3-9,Female,White,True\n"
    )
    return raw


@pytest.fixture
def ai_face_dir(tmp_path: Path, picture: Callable[[Path], Path]) -> Path:
    """One image of each real source and a generated one, as AI-Face unpacks."""
    raw = tmp_path / "ai_face"
    for relative in (
        "Real/FFHQ/00003.png",
        "Real/imdb_wiki/imdb/79/nm0000379_rm4285046272_1982-4-30_2002_face1.jpg",
        "Real/imdb_wiki/wiki/22/2119922_1936-07-08_1961_face1.jpg",
        "GANs/StyleGAN2/000001.png",
    ):
        picture(raw / relative)
    (raw / "train.csv").write_text(
        f"{AI_FACE_HEADER}\n"
        "Real/FFHQ/00003.png,1,3,10,5,0\n"
        "Real/imdb_wiki/imdb/79/nm0000379_rm4285046272_1982-4-30_2002_face1.jpg,0,1,1,0,0\n"
    )
    (raw / "test.csv").write_text(
        f"{AI_FACE_HEADER}\n"
        "Real/imdb_wiki/wiki/22/2119922_1936-07-08_1961_face1.jpg,1,5,4,4,0\n"
        "GANs/StyleGAN2/000001.png,0,0,7,2,1\n"
    )
    return raw


FACET_HEADER = (
    "person_id,filename,class1,class2,bounding_box,gender_presentation_masc,"
    "gender_presentation_fem,gender_presentation_non_binary,gender_presentation_na,"
    + ",".join(f"skin_tone_{tone}" for tone in range(1, 11))
    + ",skin_tone_na,age_presentation_young,age_presentation_middle,age_presentation_older,"
    "age_presentation_na,visible_face"
)


@pytest.fixture
def facet_row() -> Callable[..., str]:
    """A line of FACET's annotations: a nurse, a woman, middle-aged, two votes for tone 2."""

    def line(**changes: str) -> str:
        cells = dict.fromkeys(FACET_HEADER.split(","), "0") | {
            "person_id": "130",
            "filename": "sa_922285.jpg",
            "class1": "nurse",
            "class2": "None",
            "bounding_box": '"{""x"": 913.1, ""y"": 295.5, ""width"": 526.7, ""height"": 1123.4}"',
            "gender_presentation_fem": "1",
            "skin_tone_2": "2",
            "age_presentation_middle": "1",
            "visible_face": "1",
        }
        assert set(changes) <= set(cells)
        return ",".join((cells | changes).values())

    return line


@pytest.fixture
def facet_dir(
    tmp_path: Path, picture: Callable[[Path], Path], facet_row: Callable[..., str]
) -> Path:
    """A woman who nurses and a man who plays the guitar, in two of the three image folders."""
    raw = tmp_path / "facet"
    for relative in ("imgs_1/sa_922285.jpg", "imgs_3/sa_7.jpg"):
        picture(raw / relative)
    (raw / "imgs_2").mkdir()
    guitarist = facet_row(
        person_id="131",
        filename="sa_7.jpg",
        class1="guitarist",
        class2="",
        gender_presentation_masc="1",
        gender_presentation_fem="0",
    )
    (raw / "annotations").mkdir()
    (raw / "annotations/annotations.csv").write_text(
        f"{FACET_HEADER}\n{facet_row()}\n{guitarist}\n"
    )
    return raw


@pytest.fixture
def reasons() -> Callable[[ParsedDataset], dict[str, str]]:
    """Maps each problem's record to its reason."""

    def of(parsed: ParsedDataset) -> dict[str, str]:
        return {row["record"]: row["reason"] for row in parsed.problems.to_pylist()}

    return of
