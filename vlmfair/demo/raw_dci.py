"""A small DCI download of drawn scenes: one JSON file for each photograph, with two captions."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlmfair.demo import wordings
from vlmfair.demo.questions import captions
from vlmfair.demo.raw_images import (
    MISSING,
    TRUNCATED,
    DrawnImage,
    image_size,
    lone_people,
    write_image,
)
from vlmfair.demo.scenes import OCCUPATIONS, Scene, sample_scene
from vlmfair.provenance import write_text

# Men of each occupation beyond the number of women.
MORE_MEN = 1
HOODED_SHARE = 0.25
SHORTEST, LONGEST = 160, 250
FOLDER = "densely_captioned_images"
WORDS = {"male": ("man", "He", "his"), "female": ("woman", "She", "her")}
FIRST_ID, FIRST_UNIT = 1_543_967, 100_000
# The split of an early archive names a file that is not in it.
ABSENT = "122236-data.json"


def plan_dci(per_cell: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` women and one man more of each occupation.

    Beside them, one record for each way to be left out: a word for several people, no extra
    caption, no gender word in it, words of both genders, captions that disagree, no image's name,
    broken JSON, a missing and a broken photograph. One record stands twice, one twice with
    different captions.
    """
    rng = np.random.default_rng([seed, 7])
    counts = {"female": per_cell, "male": per_cell + MORE_MEN}
    cells = [
        (gender, occupation)
        for occupation in OCCUPATIONS
        for gender, count in counts.items()
        for _ in range(count)
    ]
    images = [_image(rng, scene) for scene in lone_people(rng, cells, HOODED_SHARE)]
    twice = int(rng.integers(len(images)))
    images[twice] = replace(images[twice], more_rows=(images[twice].row,))
    return _numbered(rng, [*images, *_left_out(rng)])


def write_dci(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write photos/, the records in annotations/ and complete/ and, last, the archive's split."""
    root = raw_dir / FOLDER
    names = []
    for image in images:
        write_image(root, image)
        for row in (image.row, *image.more_rows):
            names.append(row["file"])
            write_text(root / "annotations" / row["file"], row["record"])
            # The copies with summaries lack some records.
            if len(names) % 10:
                write_text(root / "complete" / row["file"], _summarised(row["record"]))
    parts = {"train": names[2::3] + names[1::3], "valid": [ABSENT], "test": names[::3]}
    write_text(root / "splits.json", json.dumps(parts))


def _image(rng: np.random.Generator, scene: Scene, **changes: Any) -> DrawnImage:
    width, height = image_size(rng, SHORTEST, LONGEST)
    word, subject, own = WORDS[scene.subject.gender]
    record = {
        "short_caption": captions(scene, word)[0],
        "extra_caption": _extra(rng, scene, word, subject, own),
        "image": "",
        "height": height,
        "width": width,
        **_masks(rng, scene, width, height),
    }
    record = {key: value for key, value in {**record, **changes}.items() if value is not None}
    return DrawnImage("", "", {"record": json.dumps(record)}, scene, width, height)


def _extra(rng: np.random.Generator, scene: Scene, word: str, subject: str, own: str) -> str:
    """A longer text about the place, which names the gender once or more often."""
    place = wordings.PLACE_PHRASES[scene.place].rsplit(" ", 1)[-1]
    activity = wordings.ACTIVITIES[scene.subject.occupation]
    texts = (
        f"The {word} in the middle is {activity}. {subject} wears a scarf around {own} neck. "
        f"The {place} fills the background.",
        f"A drawn picture of the {place}. In front of it stands a {word} with a scarf, {activity}. "
        f"The light is even.",
        f"{subject} is {activity}, and the {place} is behind {own} back.\nThe colors are bright.",
    )
    return texts[int(rng.integers(len(texts)))]


def _masks(rng: np.random.Generator, scene: Scene, width: int, height: int) -> dict[str, Any]:
    """A good mask of the person, one of the place that has a label only, and a bad one."""
    half = {"topLeft": {"x": width // 4, "y": 0}, "bottomRight": {"x": width // 2, "y": height}}
    person = {
        "idx": 0,
        "outer_mask": _mask(rng),
        "mask_quality": 0,
        "label": "person",
        "caption": "someone with a scarf",
        "parent": -1,
        "requirements": [1],
        "area": width * height // 4,
        "bounds": half,
    }
    place = {**person, "idx": 1, "mask_quality": 1, "label": scene.place, "parent": 0}
    place.pop("caption")
    bad = {"idx": 3, "outer_mask": _mask(rng), "mask_quality": 2, "parent": -1, "requirements": []}
    data = {"0": person, "1": place, "3": {**bad, "area": 3, "bounds": [[0, 0], [3, 1]]}}
    return {"mask_keys": list(data), "mask_data": data}


def _mask(rng: np.random.Generator) -> str:
    buffer = io.BytesIO()
    pixels = rng.integers(0, 2, (8, 8), dtype=np.uint8) * 255
    Image.fromarray(pixels).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def _summarised(record: str) -> str:
    try:
        content = json.loads(record)
    except ValueError:
        return record
    short = content.get("short_caption", "")
    summaries = {"base": [short], "0": "someone with a scarf"}
    negatives = {"base": {"swaps": [short[::-1]], "layout": [], "basic": []}}
    return json.dumps({**content, "summaries": summaries, "negatives": negatives})


def _left_out(rng: np.random.Generator) -> Iterator[DrawnImage]:
    def alone(**changes: Any) -> DrawnImage:
        scene = sample_scene(rng, two=False, hooded=False, gender="female")
        return _image(rng, scene, **changes)

    yield _image(
        rng,
        sample_scene(rng, two=True, hooded=False),
        extra_caption="Two people stand in front of the background.",
    )
    yield alone(extra_caption="")
    yield alone(extra_caption=None)
    yield alone(extra_caption="A drawn picture in bright colors.")
    yield alone(extra_caption="The woman looks like a man from far away.")
    yield alone(extra_caption="He wears a scarf.")
    yield alone(short_caption=" ", extra_caption="\n")
    unnamed = alone()
    yield replace(unnamed, row={**unnamed.row, "unnamed": "yes"})
    broken = alone()
    yield replace(broken, row={**broken.row, "broken": "yes"})
    twice = alone()
    other = json.dumps({**json.loads(twice.row["record"]), "short_caption": "A man stands."})
    yield replace(twice, more_rows=({"record": other},))
    yield alone().damaged(MISSING)
    yield alone().damaged(TRUNCATED)


def _numbered(rng: np.random.Generator, images: Sequence[DrawnImage]) -> list[DrawnImage]:
    """Give images and records their numbers, which have nothing to do with each other."""
    count = sum(1 + len(image.more_rows) for image in images)
    photos = FIRST_ID + np.sort(rng.choice(20_000, len(images), replace=False))
    units = iter(FIRST_UNIT + rng.permutation(rng.choice(20_000, count, replace=False)))
    named = []
    for photo, place in zip(photos, rng.permutation(len(images)), strict=True):
        image = images[place]
        name = f"sa_{photo}.jpg"
        rows = [_record(row, name, next(units)) for row in (image.row, *image.more_rows)]
        named.append(
            replace(
                image, path=name, stored=f"photos/{name}", row=rows[0], more_rows=tuple(rows[1:])
            )
        )
    return named


def _record(row: Any, image: str, unit: int) -> dict[str, str]:
    content = json.loads(row["record"]) | ({} if "unnamed" in row else {"image": image})
    text = json.dumps(content)
    return {
        "file": f"{unit}-data.json",
        "record": text[: len(text) // 2 if "broken" in row else None],
    }
