"""A small VisoGender repository of drawn scenes: its tables in two versions, and photographs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vlmfair.demo.raw_images import (
    MISSING,
    TRUNCATED,
    DrawnImage,
    image_size,
    spread,
    write_image,
)
from vlmfair.demo.scenes import GENDERS, PLACES, RACES, Person, Scene
from vlmfair.demo.wordings import COMPANIONS
from vlmfair.provenance import write_text

# Sector and specialisation of each occupation, as the repository has them.
SECTORS = {
    ("education", "institutional"): ("teacher",),
    ("education", "general_courses"): ("instructor",),
    ("medical", "mental_health"): ("counsellor",),
    ("medical", "hospital_worker"): ("physician", "specialist", "doctor"),
    ("office", "legal"): ("lawyer", "paralegal"),
    ("office", "financial"): ("accountant", "auditor", "broker", "advisor"),
    ("office", "structure"): ("architect", "engineer"),
    ("office", "general_office"): ("supervisor",),
    ("retail", "customer_facing"): ("clerk", "manager"),
    ("service", "food_service"): ("baker", "waiter", "bartender"),
    ("service", "fashion"): ("hairdresser",),
    ("service", "animal"): ("veterinarian",),
    ("service", "household"): ("painter",),
}
# What the person of an occupation is drawn as; the others do nothing in particular.
DRAWN_AS = {
    "teacher": "student",
    "physician": "nurse",
    "specialist": "nurse",
    "doctor": "nurse",
    "clerk": "retailer",
    "waiter": "retailer",
    "bartender": "retailer",
    "painter": "craftsman",
}
LABELS = {"male": "masculine", "female": "feminine"}
URL = "URL type (Type NA if can't find)"
OO_COLUMNS = (
    *("IDX", "Sector", "Specialisation", "Occupation", "Object", URL, "LICENSE OK?"),
    *("Occupation_perceived_gender", "Error codes", "Annotator"),
)
OP_COLUMNS = (
    *("IDX", "Sector", "Specialisation", "Occupation", "Participant", URL, "Licence"),
    *("Occupation_perceived_gender", "Participant_perceived_gender", "Error codes", "Annotator"),
)
OO_FILE = "OO/OO_Visogender_10052025.tsv"
OP_FILE, OP_OLDER_FILE = "OP/OP_Visogender_11012024.tsv", "OP/OP_Visogender_02102023.tsv"
ANNOTATORS = ("Thomas", "Siobhan", "Fernanda", "Hannah")
# Every third person wears a hood: nobody sees the gender that the annotators knew.
HOODED_EVERY = 3
SHORTEST, LONGEST = 100, 170


def plan_visogender(per_cell: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` of each occupation x gender with an object, and of each
    occupation x gender x gender of the other person.

    As in the repository, one object is written with an underscore, two photographs have two rows
    each, and three rows of the older table differ. Of each table one photograph is missing, one
    cannot be read, and one is no JPEG.
    """
    rng = np.random.default_rng([seed, 5])
    objects = _numbered("OO", list(_with_object(rng, per_cell)))
    participants = _numbered("OP", list(_with_participant(rng, per_cell)))
    spoons = [n for n, image in enumerate(objects) if image.row["Occupation"] == "baker"]
    objects[spoons[0]] = _changed(objects[spoons[0]], Object="mixing_spoon")
    for images in (objects, participants):
        _repeat_photograph(rng, images, resized=images is participants)
        gone, broken, other = rng.choice(len(images) // 3, 3, replace=False)
        images[gone] = images[gone].damaged(MISSING)
        images[broken] = images[broken].damaged(TRUNCATED)
        images[other] = images[other].stored_as(images[other].stored.removesuffix("jpg") + "png")
    for number in rng.choice(len(participants), 3, replace=False):
        image = participants[number]
        older = {**image.row, URL: _url(rng)}
        participants[number] = replace(image, more_rows=(older,))
    return [*objects, *participants]


def write_visogender(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write the photographs and, last, the newest table of each task and an older one."""
    for image in images:
        write_image(raw_dir, image)
    objects = [image.row for image in images if image.path.startswith("OO_")]
    participants = [image for image in images if image.path.startswith("OP_")]
    older = [image.more_rows[0] if image.more_rows else image.row for image in participants]
    write_text(raw_dir / OP_OLDER_FILE, _table(OP_COLUMNS, older))
    write_text(raw_dir / OP_FILE, _table(OP_COLUMNS, [image.row for image in participants]))
    write_text(raw_dir / OO_FILE, _table(OO_COLUMNS, objects))


def _with_object(rng: np.random.Generator, per_cell: int) -> Iterator[DrawnImage]:
    drawn = _persons(rng, 2 * per_cell * len(COMPANIONS))
    for (sector, specialisation), occupations in SECTORS.items():
        for occupation in occupations:
            for gender in GENDERS:
                for _ in range(per_cell):
                    scene = _scene(rng, next(drawn), gender, occupation)
                    row = {
                        "Sector": sector,
                        "Specialisation": specialisation,
                        "Occupation": occupation,
                        "Object": COMPANIONS[occupation][0],
                        "LICENSE OK?": "Yes",
                        "Occupation_perceived_gender": LABELS[gender],
                    }
                    yield _image(rng, scene, row)


def _with_participant(rng: np.random.Generator, per_cell: int) -> Iterator[DrawnImage]:
    drawn = _persons(rng, 4 * per_cell * len(COMPANIONS))
    for (sector, specialisation), occupations in SECTORS.items():
        for occupation in occupations:
            for gender in GENDERS:
                for other in GENDERS:
                    for _ in range(per_cell):
                        scene = _scene(rng, next(drawn), gender, occupation, other)
                        row = {
                            "Sector": sector,
                            "Specialisation": specialisation,
                            "Occupation": occupation,
                            "Participant": COMPANIONS[occupation][1],
                            "Licence": "Yes",
                            "Occupation_perceived_gender": LABELS[gender],
                            "Participant_perceived_gender": LABELS[other],
                        }
                        yield _image(rng, scene, row)


def _persons(rng: np.random.Generator, count: int) -> Iterator[tuple[str, int, int, bool]]:
    """Places, ages, skin tones and hoods, spread evenly; one of three in a row has a hood."""
    places, ages = spread(rng, PLACES, count), spread(rng, range(22, 66), count)
    tones = spread(rng, range(1, 11), count)
    for start in range(0, count, HOODED_EVERY):
        hooded = start + int(rng.integers(HOODED_EVERY))
        for number in range(start, min(start + HOODED_EVERY, count)):
            yield places[number], ages[number], tones[number], number == hooded


def _scene(
    rng: np.random.Generator,
    drawn: tuple[str, int, int, bool],
    gender: str,
    occupation: str,
    other: str | None = None,
) -> Scene:
    place, age, tone, hooded = drawn
    race = RACES[rng.integers(len(RACES))]
    people = [Person(gender, age, tone, race, DRAWN_AS.get(occupation, ""), hooded)]
    if other is not None:
        race = RACES[rng.integers(len(RACES))]
        people.append(Person(other, int(rng.integers(20, 66)), int(rng.integers(1, 11)), race))
    return Scene(tuple(people), place, int(rng.integers(2**31)))


def _image(rng: np.random.Generator, scene: Scene, row: Mapping[str, str]) -> DrawnImage:
    width, height = image_size(rng, SHORTEST, LONGEST)
    annotator = ANNOTATORS[rng.integers(len(ANNOTATORS))]
    full = {**row, URL: _url(rng), "Error codes": "", "Annotator": annotator}
    return DrawnImage("", "", full, scene, width, height)


def _url(rng: np.random.Generator) -> str:
    """Most photographs have a file's name and a size, some are thumbnails of a search engine."""
    number = int(rng.integers(10**5, 10**7))
    if rng.random() < 0.06:
        return f"https://thumbnails.example.org/images?q=tbn:{number:x}&usqp=CAU"
    ending = "webp" if rng.random() < 0.02 else "jpeg"
    return f"https://images.example.org/photos/{number}/photo-{number}.{ending}?cs=tinysrgb&w=600"


def _numbered(task: str, images: Sequence[DrawnImage]) -> list[DrawnImage]:
    named = []
    for number, image in enumerate(images, start=1):
        name = f"{task}_{number}"
        row = {**image.row, "IDX": name}
        named.append(replace(image, path=name, stored=f"images/{name}.jpg", row=row))
    return named


def _changed(image: DrawnImage, **cells: str) -> DrawnImage:
    return replace(image, row={**image.row, **cells})


def _repeat_photograph(rng: np.random.Generator, images: list[DrawnImage], resized: bool) -> None:
    """Give the photograph of a row in the middle third to one of another occupation at the end.

    Both show the same genders. `resized` makes it another file, under another size's address.
    """
    count = len(images)
    first = images[int(rng.integers(count // 3, count // 2))]
    genders = [name for name in first.row if name.endswith("_gender")]
    alike = [
        number
        for number in range(2 * count // 3, count)
        if all(images[number].row[name] == first.row[name] for name in genders)
    ]
    number = alike[int(rng.integers(len(alike)))]
    url = first.row[URL].replace("w=600", "w=1260") if resized else first.row[URL]
    if resized and url == first.row[URL]:
        url = f"{url.replace('images?q=', 'photo.jpeg?w=1260&q=')}"
    width, height = (
        (first.width + 24, first.height + 24) if resized else (first.width, first.height)
    )
    same = replace(images[number], scene=first.scene, width=width, height=height)
    images[number] = _changed(same, **{URL: url})


def _table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> str:
    """Return tab-separated lines without quotes and without an end of the last one, as released."""
    lines = ["\t".join(columns), *("\t".join(row[name] for name in columns) for row in rows)]
    return "\r\n".join(lines)
