"""A small UTKFace download of drawn scenes: labels in the file names, irregular ones included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vlmfair.demo.raw_images import (
    ACTIVITIES,
    EMPTY,
    TRUNCATED,
    TWO_PERSON_SHARE,
    DrawnImage,
    spread,
    write_image,
)
from vlmfair.demo.scenes import GENDERS, PLACES, Scene, sample_scene

# The codes of the five races, and the labels of the scenes that stand for them.
RACES = {
    0: ("White",),
    1: ("Black",),
    2: ("East Asian", "Southeast Asian"),
    3: ("Indian",),
    4: ("Middle Eastern", "Latino_Hispanic"),
}
PARTS = ("part1", "part2", "part3")
DECADES = tuple(range(9))
TONES = tuple(range(1, 11))
# The five irregular names of the real dataset with what public copies say they show.
IRREGULAR = {
    "61_1_20170109142408075.jpg": (61, "female", "Black"),
    "61_3_20170109150557335.jpg": (61, "female", "Indian"),
    "39_1_20170116174525125.jpg": (39, "male", "Black"),
    "53__0_20170116184028385.jpg": (53, "female", "White"),
    "24_0_1_20170116220224657 .jpg": (24, "male", "Black"),
}
IRREGULAR_PARTS = dict(zip(IRREGULAR, ("part1", "part1", "part2", "part2", "part2"), strict=True))


def plan_utkface(per_cell: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` of each of five races x gender, spread over places and ages.

    Beside them the five irregular names, one picture that is there a second time under another
    gender, one truncated and one empty file. Two time stamps have one digit less or more.
    """
    rng = np.random.default_rng([seed, 4])
    codes = [(race, gender) for race in RACES for gender in GENDERS for _ in range(per_cell)]
    images: list[DrawnImage] = []
    stamps = _time_stamps(rng)
    for (race, _), scene in zip(codes, _cell_scenes(rng, codes), strict=True):
        images.append(_image(rng, scene, _name(scene, race, next(stamps))))
    for place, digits in zip(rng.choice(len(images), 2, replace=False), (16, 18), strict=True):
        images[place] = _renamed(images[place], digits)
    images.append(_labelled_again(images[int(rng.integers(len(images)))]))
    for fault in (TRUNCATED, EMPTY):
        scene = sample_scene(rng, race="White", hooded=False, two=False)
        images.append(_image(rng, scene, _name(scene, 0, next(stamps))).damaged(fault))
    images += _irregular(rng)
    return sorted(images, key=lambda image: image.stored)


def write_utkface(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write part1/, part2/ and part3/; there is no label file."""
    for image in images:
        write_image(raw_dir, image)


def _cell_scenes(rng: np.random.Generator, codes: Sequence[tuple[int, str]]) -> Iterator[Scene]:
    decades, tones = spread(rng, DECADES, len(codes)), spread(rng, TONES, len(codes))
    activities = spread(rng, ACTIVITIES, len(codes))
    per_cell = codes.count(codes[0])
    for number, (race, gender) in enumerate(codes):
        if number % per_cell == 0:
            places = spread(rng, PLACES, per_cell)
            labels = spread(rng, RACES[race], per_cell)
        yield sample_scene(
            rng,
            place=places[number % per_cell],
            race=labels[number % per_cell],
            gender=gender,
            age=max(1, 10 * decades[number] + int(rng.integers(10))),
            skin_tone=tones[number],
            occupation=activities[number],
            hooded=False,
            two=bool(rng.random() < TWO_PERSON_SHARE),
        )


def _image(
    rng: np.random.Generator, scene: Scene, name: str, part: str | None = None
) -> DrawnImage:
    height = int(rng.integers(150, 300))
    width = round(height * float(rng.uniform(0.9, 1.12)))
    part = part or PARTS[rng.integers(len(PARTS))]
    return DrawnImage(name, f"{part}/{name}", {}, scene, width, height)


def _irregular(rng: np.random.Generator) -> Iterator[DrawnImage]:
    for name, (age, gender, race) in IRREGULAR.items():
        scene = sample_scene(
            rng, age=age, gender=gender, race=race, occupation="", hooded=False, two=False
        )
        yield _image(rng, scene, name, IRREGULAR_PARTS[name])


def _name(scene: Scene, race: int, stamp: str) -> str:
    gender = GENDERS.index(scene.subject.gender)
    return f"{scene.subject.age}_{gender}_{race}_{stamp}.jpg"


def _time_stamps(rng: np.random.Generator) -> Iterator[str]:
    """Moments of the weeks in which the images were collected, each of them once: 17 digits."""
    taken: set[str] = set()
    while True:
        day, hour, second = int(rng.integers(4, 20)), int(rng.integers(24)), int(rng.integers(3600))
        clock = f"{hour:02d}{second // 60:02d}{second % 60:02d}{rng.integers(1000):03d}"
        stamp = f"201701{day:02d}{clock}"
        if stamp not in taken:
            taken.add(stamp)
            yield stamp


def _renamed(image: DrawnImage, digits: int) -> DrawnImage:
    """Return an image whose time stamp has lost its last digit or has it twice."""
    stem = image.path.removesuffix(".jpg")
    name = (stem[:-1] if digits == 16 else stem + stem[-1]) + ".jpg"
    return replace(image, path=name, stored=image.stored.replace(image.path, name))


def _labelled_again(image: DrawnImage) -> DrawnImage:
    """Return the same picture under a name with the other gender."""
    age, gender, race, stamp = image.path.split("_")
    name = "_".join([age, str(1 - int(gender)), race, stamp])
    return replace(image, path=name, stored=image.stored.replace(image.path, name))
