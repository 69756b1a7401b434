"""A small AI-Face download of drawn scenes: Real/FFHQ, Real/imdb_wiki, a generator, annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vlmfair.demo.raw_images import (
    ACTIVITIES,
    EMPTY,
    MISSING,
    TWO_PERSON_SHARE,
    DrawnImage,
    csv_lines,
    spread,
    write_image,
)
from vlmfair.demo.scenes import GENDERS, RACES, Scene, sample_scene
from vlmfair.provenance import write_text

COLUMNS = ("Image Path", "Gender", "Age", "Skin Tone", "Intersection", "Target")
TONES = tuple(range(1, 11))
# Images per tone from FFHQ, IMDB and Wikipedia in the authors' list: source goes with tone.
SOURCE_COUNTS = {
    "FFHQ": (45, 49, 68, 46, 38, 50, 44, 29, 23, 14),
    "imdb": (48, 68, 51, 78, 89, 66, 77, 102, 107, 103),
    "wiki": (51, 27, 25, 20, 17, 28, 23, 13, 14, 27),
}
TEST_SHARE = 0.2
FFHQ_SIDE = 256
GENERATED = 4
# Rows of parts of the download that nobody needs for GRAS, so that they are not on the disk.
NOT_UNPACKED = ("deepfakes/DFDC/{}.png", "DMs/Palette/{}.png")
# Every eighth date says another age than the picture, as dates scraped from the web do.
WRONG_DATE_SHARE = 1 / 8


def plan_ai_face(per_tone: int, spare: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_tone` selected real ones and `spare` others of each skin tone.

    One selected image has no bytes. A few generated images are on the disk, a few only annotated.
    """
    rng = np.random.default_rng([seed, 2])
    images: list[DrawnImage] = []
    taken: set[str] = set()
    for selected, count in ((True, per_tone), (False, spare)):
        for tone in TONES:
            images += _real_images(rng, tone, count, selected, taken)
    images += _generated_images(rng)
    selected_places = [place for place, image in enumerate(images) if image.selected]
    empty = int(rng.choice(selected_places))
    images[empty] = images[empty].damaged(EMPTY)
    return [images[place] for place in rng.permutation(len(images))]


def write_ai_face(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write the images and, last, train.csv and test.csv; train.csv repeats its header once."""
    for image in images:
        write_image(raw_dir, image)
    test = round(len(images) * TEST_SHARE)
    halves = [images[test : test + len(images) // 2], images[test + len(images) // 2 :]]
    train = "".join(csv_lines(COLUMNS, [image.row for image in half]) for half in halves)
    write_text(raw_dir / "train.csv", train)
    write_text(raw_dir / "test.csv", csv_lines(COLUMNS, [image.row for image in images[:test]]))


def selection_of_ai_face(images: Sequence[DrawnImage]) -> str:
    """Return the text of selected_images_aiface.csv, unordered as the authors' list is."""
    rows = [
        {"file": f"AIFace/{image.path}", "Skin Tone": image.row["Skin Tone"]}
        for image in images
        if image.selected
    ]
    return csv_lines(("file", "Skin Tone"), rows)


def sources_of_tone(tone: int, count: int) -> list[str]:
    """Return the sources of `count` images of a tone, in the proportions of the authors' list."""
    shares = {source: counts[tone - 1] for source, counts in SOURCE_COUNTS.items()}
    exact = {source: share * count / sum(shares.values()) for source, share in shares.items()}
    counts = {source: int(value) for source, value in exact.items()}
    remainders = sorted(exact, key=lambda source: counts[source] - exact[source])
    for source in remainders[: count - sum(counts.values())]:
        counts[source] += 1
    return [source for source, number in counts.items() for _ in range(number)]


def _real_images(
    rng: np.random.Generator, tone: int, count: int, selected: bool, taken: set[str]
) -> list[DrawnImage]:
    images = []
    for source, gender, race, decade, activity in zip(
        sources_of_tone(tone, count),
        spread(rng, GENDERS, count),
        spread(rng, RACES, count),
        spread(rng, (20, 30, 40, 50, 60), count),
        spread(rng, ACTIVITIES, count),
        strict=True,
    ):
        scene = sample_scene(
            rng,
            gender=gender,
            race=race,
            age=decade + int(rng.integers(10)),
            skin_tone=tone,
            occupation=activity,
            hooded=False,
            two=bool(rng.random() < TWO_PERSON_SHARE),
        )
        path = _path(rng, source, scene.subject.age)
        while path in taken:
            path = _path(rng, source, scene.subject.age)
        taken.add(path)
        width, height = (FFHQ_SIDE, FFHQ_SIDE) if source == "FFHQ" else crop_size(rng)
        stored = f"Real/{path}"
        row = label_row(stored, scene, "0")
        images.append(DrawnImage(path, stored, row, scene, width, height, selected))
    return images


def _generated_images(rng: np.random.Generator) -> list[DrawnImage]:
    paths = [f"GANs/StyleGAN2/{number:06d}.png" for number in range(1, GENERATED + 1)]
    unpacked = len(paths)
    paths += [path.format(number) for path in NOT_UNPACKED for number in range(1, 4)]
    images = []
    for place, path in enumerate(paths):
        scene = sample_scene(rng, hooded=False, two=False)
        fault = "" if place < unpacked else MISSING
        images.append(
            DrawnImage(path, path, label_row(path, scene, "1"), scene, 128, 128, False, fault)
        )
    return images


def _path(rng: np.random.Generator, source: str, age: int) -> str:
    if source == "FFHQ":
        return f"FFHQ/{rng.integers(70_000):05d}.png"
    if rng.random() < WRONG_DATE_SHARE:
        age = max(1, age + int(rng.choice([-15, 15])))
    taken = int(rng.integers(1985, 2016))
    born, month, day = taken - age, int(rng.integers(1, 13)), int(rng.integers(1, 29))
    face = 2 if rng.random() < 0.01 else 1
    if source == "imdb":
        name = f"nm{rng.integers(10_000_000):07d}"
        picture = f"rm{rng.integers(10**8, 10**10)}"
        file = f"{name}_{picture}_{born}-{month}-{day}_{taken}_face{face}.jpg"
        return f"imdb_wiki/imdb/{name[-2:]}/{file}"
    page = str(rng.integers(10_000, 50_000_000))
    file = f"{page}_{born}-{month:02d}-{day:02d}_{taken}_face{face}.jpg"
    return f"imdb_wiki/wiki/{page[-2:]}/{file}"


def crop_size(rng: np.random.Generator) -> tuple[int, int]:
    """Draw width and height in pixels of a face cut from a photograph of IMDB or Wikipedia."""
    height = int(rng.integers(110, 250))
    return round(height * float(rng.uniform(0.88, 1.0))), height


def label_row(path: str, scene: Scene, target: str) -> dict[str, str]:
    """Return an image's annotation: `path` as it is written there, `target` 0 for a real one."""
    person = scene.subject
    gender = int(person.gender == "male")
    shade = 0 if person.skin_tone <= 3 else 1 if person.skin_tone <= 6 else 2
    values = (
        path,
        str(gender),
        _age_code(person.age),
        str(person.skin_tone),
        str(3 * gender + shade),
        target,
    )
    return dict(zip(COLUMNS, values, strict=True))


def _age_code(age: int) -> str:
    """Return the documented code: child, youth, adult, middle-aged, senior; there is no 2."""
    for code, below in (("0", 13), ("1", 25), ("3", 45), ("4", 65)):
        if age < below:
            return code
    return "5"
