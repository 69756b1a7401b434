"""A small FACET download of drawn scenes: annotations of persons, and images in three folders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vlmfair.demo.people import Person
from vlmfair.demo.raw_images import (
    MISSING,
    TRUNCATED,
    TWO_PERSON_SHARE,
    DrawnImage,
    csv_lines,
    spread,
    write_image,
)
from vlmfair.demo.scenes import GENDERS, OCCUPATIONS, PLACES, Scene, boxes, sample_scene
from vlmfair.provenance import write_text

TONES = tuple(range(1, 11))
COLUMNS = (
    *("person_id", "filename", "class1", "class2", "bounding_box"),
    *(f"gender_presentation_{name}" for name in ("masc", "fem", "non_binary", "na")),
    *(f"skin_tone_{tone}" for tone in TONES),
    "skin_tone_na",
    *(f"age_presentation_{name}" for name in ("young", "middle", "older", "na")),
    *(
        f"hair_color_{name}"
        for name in ("brown", "blonde", "grey", "na", "black", "colored", "red")
    ),
    *(
        f"hairtype_{name}"
        for name in ("coily", "dreadlocks", "bald", "straight", "curly", "wavy", "na")
    ),
    *("has_facial_hair", "has_tattoo", "has_cap", "has_mask", "has_headscarf", "has_eyeware"),
    *("visible_torso", "visible_face", "visible_minimal"),
    *(
        f"lighting_{name}"
        for name in ("underexposed", "dimly_lit", "well_lit", "na", "overexposed")
    ),
)
# Inclusive years of the three ages.
AGES = {"young": (16, 29), "middle": (30, 59), "older": (60, 85)}
FOLDERS = ("imgs_1", "imgs_2", "imgs_3")
# Classes that nobody asks about; the persons do nothing in particular.
OTHER_CLASSES = ("doctor", "guard", "speaker")
SECOND_CLASS = "backpacker"
ANNOTATORS = 3
# Annotators left the age open for one person in ten and the skin tone for one in eight; one in
# nine has as many votes for two groups.
AGE_OPEN, TONE_OPEN, TONE_TIED = 10, 8, 9
TIED_TONES = {1: 4, 2: 4, 3: 4, 4: 3, 5: 3, 6: 7, 7: 6, 8: 6, 9: 6, 10: 6}
LARGEST_ID = 11_185_362


def plan_facet(per_cell: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` of each occupation x gender, spread over places and ages.

    Beside them four images of a gender that is not known, two with two annotated persons, three of
    other classes, one with contradicting rows, one truncated and one missing. One of the cells'
    images is stored as `.JPG`, and one row stands twice.
    """
    rng = np.random.default_rng([seed, 3])
    scenes = _cell_scenes(rng, per_cell)
    images = [_image(rng, scene, scene.subject.occupation) for scene in scenes]
    images = [_with_open_labels(image, number) for number, image in enumerate(images)]
    upper_case, twice = (int(place) for place in rng.choice(len(images), 2, replace=False))
    images[upper_case] = images[upper_case].stored_as(
        images[upper_case].stored.removesuffix(".jpg") + ".JPG"
    )
    images[twice] = replace(images[twice], more_rows=(images[twice].row,))
    images += [*_of_unknown_gender(rng), *_left_out(rng)]
    return _numbered(rng, images)


def write_facet(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write the three image folders and, last, annotations/annotations.csv."""
    for image in images:
        write_image(raw_dir, image)
    rows = [row for image in images for row in (image.row, *image.more_rows)]
    rows.sort(key=lambda row: int(row["person_id"]))
    write_text(raw_dir / "annotations" / "annotations.csv", csv_lines(COLUMNS, rows))


def _cell_scenes(rng: np.random.Generator, per_cell: int) -> Iterator[Scene]:
    for gender in GENDERS:
        number = per_cell * len(OCCUPATIONS)
        tones, ages = spread(rng, TONES, number), spread(rng, list(AGES), number)
        for place, occupation in enumerate(OCCUPATIONS):
            own = slice(place * per_cell, (place + 1) * per_cell)
            for where, tone, age in zip(spread(rng, PLACES, per_cell), tones[own], ages[own]):
                low, high = AGES[age]
                yield sample_scene(
                    rng,
                    place=where,
                    gender=gender,
                    skin_tone=tone,
                    age=int(rng.integers(low, high + 1)),
                    occupation=occupation,
                    hooded=False,
                    two=bool(rng.random() < TWO_PERSON_SHARE),
                )


def _image(rng: np.random.Generator, scene: Scene, label: str) -> DrawnImage:
    """Return an image whose only annotated person is the subject; its name comes later."""
    height = int(rng.integers(220, 360))
    width = round(height * float(rng.uniform(0.9, 1.12)))
    row = _row(rng, scene, scene.subject, label, boxes(scene)[0], (width, height))
    return DrawnImage("", "", row, scene, width, height)


def _of_unknown_gender(rng: np.random.Generator) -> Iterator[DrawnImage]:
    """Two persons under a hood, one seen as both, and one as neither."""
    columns = [("na",), ("na",), ("masc", "fem"), ("non_binary",)]
    for place, chosen in enumerate(columns):
        occupation = str(rng.choice(OCCUPATIONS))
        scene = sample_scene(
            rng, two=False, hooded="na" in chosen, occupation=occupation, age=25 + 10 * place
        )
        image = _image(rng, scene, occupation)
        names = ("masc", "fem", "non_binary", "na")
        flags = {f"gender_presentation_{name}": str(int(name in chosen)) for name in names}
        yield replace(image, row={**image.row, **flags})


def _left_out(rng: np.random.Generator) -> Iterator[DrawnImage]:
    """Images that the study does not use, and three that cannot be used."""
    for _ in range(2):
        scene = sample_scene(rng, two=True, hooded=False)
        image = _image(rng, scene, scene.subject.occupation)
        second, place = scene.people[1], boxes(scene)[1]
        row = _row(rng, scene, second, SECOND_CLASS, place, (image.width, image.height))
        yield replace(image, more_rows=(row,))
    for label in OTHER_CLASSES:
        yield _image(rng, sample_scene(rng, two=False, hooded=False, occupation=""), label)
    unsound = [
        _image(rng, scene, scene.subject.occupation)
        for scene in (sample_scene(rng, two=False, hooded=False) for _ in range(3))
    ]
    other = {**unsound[0].row, "class1": "seller"}
    yield replace(unsound[0], more_rows=(other,))
    yield unsound[1].damaged(TRUNCATED)
    yield unsound[2].damaged(MISSING)


def _numbered(rng: np.random.Generator, images: Sequence[DrawnImage]) -> list[DrawnImage]:
    """Give images their names and folders and persons their numbers, in one random order."""
    numbers = np.sort(rng.choice(LARGEST_ID, len(images), replace=False)) + 1
    person, named = 0, []
    for number, place in zip(numbers, rng.permutation(len(images)), strict=True):
        image = images[place]
        name = f"sa_{number}.jpg"
        suffix = ".JPG" if image.stored.endswith(".JPG") else ".jpg"
        stored = f"{FOLDERS[rng.integers(len(FOLDERS))]}/{name.removesuffix('.jpg')}{suffix}"
        person += 1
        row = {**image.row, "filename": name, "person_id": str(person)}
        more = []
        for further in image.more_rows:
            # Only another person has another box.
            person += further["bounding_box"] != row["bounding_box"]
            more.append({**further, "filename": name, "person_id": str(person)})
        named.append(replace(image, path=name, stored=stored, row=row, more_rows=tuple(more)))
    return named


def _with_open_labels(image: DrawnImage, number: int) -> DrawnImage:
    row = dict(image.row)
    if number % AGE_OPEN == 0:
        row |= {f"age_presentation_{name}": "0" for name in AGES} | {"age_presentation_na": "1"}
    if number % TONE_OPEN == 1:
        row |= {f"skin_tone_{tone}": "0" for tone in TONES} | {"skin_tone_na": str(ANNOTATORS)}
    elif number % TONE_TIED == 2:
        tone = image.scene.subject.skin_tone
        row |= {f"skin_tone_{other}": "0" for other in TONES}
        row |= {f"skin_tone_{tone}": "2", f"skin_tone_{TIED_TONES[tone]}": "2"}
    return replace(image, row=row)


def _row(
    rng: np.random.Generator,
    scene: Scene,
    person: Person,
    label: str,
    place: tuple[float, float, float, float],
    size: tuple[int, int],
) -> dict[str, str]:
    row = dict.fromkeys(COLUMNS, "0")
    row["class1"] = label
    # Another class, nothing, or the word.
    row["class2"] = str(rng.choice(["", "", "", "None", "None", "student"]))
    row["bounding_box"] = _box(rng, place, size)
    gender = "fem" if person.gender == "female" else "masc"
    age = next(name for name, (_, high) in AGES.items() if person.age <= high or name == "older")
    hair = "grey" if person.age >= 45 else "brown"
    chosen = [
        f"gender_presentation_{gender}",
        f"age_presentation_{age}",
        f"hair_color_{'na' if person.hooded else hair}",
        f"hairtype_{'na' if person.hooded else 'straight'}",
        *("visible_torso", "visible_face", "lighting_well_lit"),
    ]
    chosen += ["has_eyeware"] * (person.age >= 50) + ["has_headscarf"] * person.hooded
    chosen += ["has_facial_hair"] * (gender == "masc" and person.age >= 20 and not person.hooded)
    row |= dict.fromkeys(chosen, "1")
    return row | _votes(rng, person.skin_tone)


def _votes(rng: np.random.Generator, tone: int) -> dict[str, str]:
    """Every annotator names the tone, up to two of them another one near it as well."""
    votes = dict.fromkeys(TONES, 0)
    votes[tone] = ANNOTATORS
    for step in rng.choice([-3, -1, -1, 1, 1, 3], int(rng.integers(3)), replace=False):
        near = min(10, max(1, tone + int(step)))
        votes[near] += near != tone
    return {f"skin_tone_{name}": str(count) for name, count in votes.items()}


def _box(
    rng: np.random.Generator, place: tuple[float, float, float, float], size: tuple[int, int]
) -> str:
    """Return a box as the cell holds it; it may leave the image by a fraction of a pixel."""
    left, top, width, height = place
    x, y = max(0.0, left) * size[0], max(0.0, top) * size[1]
    right, bottom = min(1.0, left + width) * size[0], min(1.0, top + height) * size[1]
    spill = 0.3 * (left + width >= 1.0 or top + height >= 1.0)
    box = {"x": x, "y": y, "width": right - x + spill, "height": bottom - y + spill}
    cell: dict[str, object] = {name: round(value, 1) for name, value in box.items()}
    if rng.random() < 0.25:
        cell["dict_attributes"] = {}
    return json.dumps(cell)
