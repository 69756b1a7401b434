"""A small COCO 2014 download of drawn scenes, with captions, boxes and labels of annotators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vlmfair.demo.questions import captions
from vlmfair.demo.raw_images import (
    MISSING,
    TRUNCATED,
    DrawnImage,
    csv_lines,
    image_size,
    lone_people,
    write_image,
)
from vlmfair.demo.scenes import OCCUPATIONS, Scene, boxes, sample_scene
from vlmfair.provenance import write_text

# Women and men of each occupation, times the number per cell: two thirds are men, as in COCO.
SHARES = {"female": 1, "male": 2}
HOODED_SHARE = 0.25
SHORTEST, LONGEST = 160, 250
LARGEST_ID = 581_929
WORDS = {"male": "man", "female": "woman"}
# The ids of some of COCO's 80 categories, and what is drawn of them.
CATEGORIES = {
    1: ("person", "person"),
    19: ("horse", "animal"),
    41: ("skateboard", "sports"),
    62: ("chair", "furniture"),
    84: ("book", "indoor"),
}
PROPS = {"horseman": 19, "skateboarder": 41, "student": 84}
LABEL_COLUMNS = ("", "id", "bb_skin", "bb_gender", "split", "skin", "ratio")
CREATED = "2015-01-27 09:11:52.357475"


def plan_coco_bias(per_cell: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` women and twice as many men of each occupation.

    Beside them, one image for each way to be left out: no caption, white space, no gender word,
    words of both genders, two persons, a crowd, no person, three unclear labels, another label than
    the captions', a missing and a broken file. One image is there under two numbers, one row
    stands twice, one twice with different labels, and one image has no row.
    """
    rng = np.random.default_rng([seed, 6])
    cells = [
        (gender, occupation)
        for occupation in OCCUPATIONS
        for gender, share in SHARES.items()
        for _ in range(share * per_cell)
    ]
    images = [_image(rng, scene) for scene in lone_people(rng, cells, HOODED_SHARE)]
    same, twice, six, seven = (int(n) for n in rng.choice(len(images), 4, replace=False))
    for number, count in ((six, 6), (seven, 7)):
        images[number] = _told(images[number], _captions(rng, images[number].scene, count))
    images[twice] = replace(images[twice], more_rows=(images[twice].row,))
    images += [*_left_out(rng), images[same]]
    return _numbered(rng, images)


def write_coco_bias(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write val2014/, the annotations and, last, the annotators' labels."""
    for image in images:
        write_image(raw_dir, image)
    told: list[dict[str, Any]] = []
    instances: list[dict[str, Any]] = []
    for image in images:
        number = int(image.row["id"])
        for caption in json.loads(image.row["captions"]):
            told.append({"image_id": number, "id": 7 * len(told) + 38, "caption": caption})
        for box in json.loads(image.row["instances"]):
            instances.append({"id": 3 * len(instances) + 900, "image_id": number, **box})
    folder = raw_dir / "annotations"
    head = _head(images)
    # COCO's captions are in no order of the images.
    told.sort(key=lambda entry: (entry["id"] % 5, entry["id"]))
    categories = [
        {"supercategory": above, "id": number, "name": name}
        for number, (name, above) in CATEGORIES.items()
    ]
    write_text(folder / "captions_val2014.json", json.dumps({**head, "annotations": told}))
    content = {**head, "annotations": instances, "categories": categories}
    write_text(folder / "instances_val2014.json", json.dumps(content))
    rows = [row for image in images for row in (image.row, *image.more_rows) if row["labelled"]]
    rows = [{**row, "": str(number)} for number, row in enumerate(rows)]
    write_text(raw_dir / "images_val2014.csv", csv_lines(LABEL_COLUMNS, rows))


def _image(rng: np.random.Generator, scene: Scene) -> DrawnImage:
    """Return an image with its captions, the boxes of its people, and true labels."""
    width, height = image_size(rng, SHORTEST, LONGEST)
    places = [_instance(1, place, width, height) for place in boxes(scene)]
    prop = PROPS.get(scene.subject.occupation)
    if prop:
        places.append(_instance(prop, (0.3, 0.6, 0.3, 0.3), width, height))
    elif rng.random() < 0.3:
        places.append(_instance(62, (0.02, 0.6, 0.2, 0.3), width, height))
    skin = "Light" if scene.subject.skin_tone <= 5 else "Dark"
    row = {
        "bb_gender": scene.subject.gender.capitalize(),
        "bb_skin": skin if rng.random() < 0.9 else "Unsure",
        "split": "train" if rng.random() < 0.8 else "val",
        "skin": json.dumps([skin]),
        "ratio": json.dumps([round(float(rng.uniform(0.05, 0.6)), 4)]),
        "captions": json.dumps(_captions(rng, scene, 5)),
        "instances": json.dumps(places),
        "labelled": "yes",
    }
    return DrawnImage("", "", row, scene, width, height)


def _instance(
    category: int, place: Sequence[float], width: int, height: int, crowd: bool = False
) -> dict[str, Any]:
    left, top = max(0.0, place[0]) * width, max(0.0, place[1]) * height
    right = min(1.0, place[0] + place[2]) * width
    bottom = min(1.0, place[1] + place[3]) * height
    box = [round(value, 2) for value in (left, top, right - left, bottom - top)]
    corners = [round(value, 2) for value in (left, top, right, top, right, bottom, left, bottom)]
    outline: Any = {"counts": [0, width * height], "size": [height, width]} if crowd else [corners]
    return {
        "category_id": category,
        "bbox": box,
        "area": round(box[2] * box[3], 4),
        "iscrowd": int(crowd),
        "segmentation": outline,
    }


def _captions(
    rng: np.random.Generator, scene: Scene, count: int, word: str | None = None
) -> list[str]:
    """Captions as people typed them; of someone under a hood, every second says no gender."""
    told = []
    for number in range(count):
        named = word or WORDS[scene.subject.gender]
        if word is None and number % 2 == 1 and scene.subject.hooded:
            named = "person"
        told.append(_typed(rng, captions(scene, named)[number % 5]))
    return [told[place] for place in rng.permutation(count)]


def _typed(rng: np.random.Generator, caption: str) -> str:
    kind = int(rng.integers(12))
    if kind == 0:
        return caption.removesuffix(".")
    if kind == 1:
        return f" {caption}  "
    if kind == 2:
        return f"{caption}\n"
    if kind == 3:
        return caption.replace(" is ", "  is ")
    return caption[0].lower() + caption[1:] if kind == 4 else caption


def _told(image: DrawnImage, told: Sequence[str]) -> DrawnImage:
    return _changed(image, captions=json.dumps(told))


def _changed(image: DrawnImage, **cells: str) -> DrawnImage:
    return replace(image, row={**image.row, **cells})


def _left_out(rng: np.random.Generator) -> Iterator[DrawnImage]:
    def alone(**subject: Any) -> DrawnImage:
        return _image(rng, sample_scene(rng, two=False, hooded=False, **subject))

    yield _told(alone(), [])
    yield _told(alone(), [" ", "\n", ""])
    neither = alone()
    yield _told(neither, _captions(rng, neither.scene, 5, word="person"))
    both = alone(gender="male")
    first = _captions(rng, both.scene, 4, word="man")
    yield _told(both, [*first, *_captions(rng, both.scene, 1, word="woman")])
    yield _image(rng, sample_scene(rng, two=True, hooded=False))
    crowd = alone()
    place = (0.0, 0.3, 1.0, 0.3)
    beside = _instance(1, place, crowd.width, crowd.height, crowd=True)
    yield _changed(crowd, instances=json.dumps([*json.loads(crowd.row["instances"]), beside]))
    yield _changed(alone(), instances="[]")
    for label in ("Both", "Unsure", ""):
        yield _changed(alone(), bb_gender=label)
    yield _changed(alone(gender="female"), bb_gender="Male")
    twice = alone(gender="female")
    yield replace(twice, more_rows=({**twice.row, "bb_gender": "Unsure"},))
    yield alone().damaged(MISSING)
    yield alone().damaged(TRUNCATED)
    yield _changed(alone(), labelled="")


def _numbered(rng: np.random.Generator, images: Sequence[DrawnImage]) -> list[DrawnImage]:
    """Give images their numbers, in one random order."""
    numbers = np.sort(rng.choice(LARGEST_ID, len(images), replace=False)) + 1
    named = []
    for number, place in zip(numbers, rng.permutation(len(images)), strict=True):
        image = images[place]
        name = f"COCO_val2014_{number:012d}.jpg"
        more = tuple({**row, "id": str(number)} for row in image.more_rows)
        row = {**image.row, "id": str(number)}
        named.append(replace(image, path=name, stored=f"val2014/{name}", row=row, more_rows=more))
    return named


def _head(images: Sequence[DrawnImage]) -> dict[str, Any]:
    info = {
        "description": "drawn scenes",
        "url": "https://example.org",
        "version": "1.0",
        "year": 2014,
        "contributor": "",
        "date_created": CREATED,
    }
    entries = [
        {
            "license": 5,
            "file_name": image.path,
            "coco_url": f"https://example.org/{image.path}",
            "height": image.height,
            "width": image.width,
            "date_captured": "2013-11-18 09:55:00",
            "flickr_url": f"https://example.org/{image.row['id']}",
            "id": int(image.row["id"]),
        }
        for image in images
    ]
    licences = [{"url": "https://example.org/licence", "id": 5, "name": "drawn"}]
    return {"info": info, "images": entries, "licenses": licences}
