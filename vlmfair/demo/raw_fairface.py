"""A small FairFace download of drawn scenes, with the faults that the real one meets on a disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vlmfair.demo.raw_images import (
    ACTIVITIES,
    MISSING,
    TRUNCATED,
    TWO_PERSON_SHARE,
    DrawnImage,
    csv_lines,
    spread,
    write_image,
)
from vlmfair.demo.scenes import GENDERS, RACES, sample_scene
from vlmfair.provenance import write_text

COLUMNS = ("file", "age", "gender", "race", "service_test")
# Inclusive years of the labels that GRAS measures, and of the others.
MEASURED_AGES = {
    "20-29": (20, 29),
    "30-39": (30, 39),
    "40-49": (40, 49),
    "50-59": (50, 59),
    "60-69": (60, 69),
}
# A spreadsheet program has turned the last label, 10-19, into a date.
OTHER_AGES = {
    "0-2": (1, 2),
    "3-9": (3, 9),
    "10-19": (10, 19),
    "more than 70": (71, 90),
    "Oct-19": (10, 19),
}
SPLIT_SIZES = {"train": 86744, "val": 10954}
VALIDATION_SHARE = 0.13
SIDE = 224


def plan_fairface(per_cell: int, spare: int, seed: int) -> list[DrawnImage]:
    """Decide every image: `per_cell` selected and `spare` others in each age x gender x race cell.

    Of the selected images one is truncated, one missing, and one stored as `.JPG`. Further images
    are of people under 20 or over 70, one of them with an age that is no label.
    """
    rng = np.random.default_rng([seed, 1])
    cells = [(age, gender, race) for age in MEASURED_AGES for gender in GENDERS for race in RACES]
    wanted = [(*cell, True) for cell in cells for _ in range(per_cell)]
    wanted += [(*cell, False) for cell in cells for _ in range(spare)]
    for age in OTHER_AGES:
        wanted += [(age, gender, RACES[rng.integers(len(RACES))], False) for gender in GENDERS]
    wanted.pop()
    paths = _paths(rng, len(wanted))
    tones, activities = _spread_by_gender(rng, wanted)
    images = []
    for (age, gender, race, selected), path, tone, activity in zip(
        wanted, paths, tones, activities, strict=True
    ):
        low, high = {**MEASURED_AGES, **OTHER_AGES}[age]
        scene = sample_scene(
            rng,
            gender=gender,
            race=race,
            age=int(rng.integers(low, high + 1)),
            skin_tone=tone,
            occupation=activity,
            hooded=False,
            two=bool(rng.random() < TWO_PERSON_SHARE),
        )
        service_test = str(bool(rng.random() < 0.5))
        labels = (path, age, gender.capitalize(), race, service_test)
        row = dict(zip(COLUMNS, labels, strict=True))
        images.append(DrawnImage(path, path, row, scene, SIDE, SIDE, selected))
    return _with_faults(rng, images)


def write_fairface(raw_dir: Path, images: Sequence[DrawnImage]) -> None:
    """Write train/, val/ and, last, the two label files, in the order of the images' numbers."""
    for image in images:
        write_image(raw_dir, image)
    for split in SPLIT_SIZES:
        rows = [image.row for image in images if image.path.startswith(f"{split}/")]
        rows.sort(key=lambda row: int(row["file"].split("/")[1].removesuffix(".jpg")))
        write_text(raw_dir / f"fairface_label_{split}.csv", csv_lines(COLUMNS, rows))


def selection_of_fairface(images: Sequence[DrawnImage]) -> str:
    """Return the text of selected_images_fairface.csv, in the order of age, gender, race."""
    rows = [{**i.row, "file": f"FairFace/{i.row['file']}"} for i in images if i.selected]
    rows.sort(key=lambda row: (row["age"], row["gender"], row["race"]))
    return csv_lines(COLUMNS, rows)


def _paths(rng: np.random.Generator, count: int) -> list[str]:
    in_validation = round(count * VALIDATION_SHARE)
    counts = {"train": count - in_validation, "val": in_validation}
    paths = [
        f"{split}/{number + 1}.jpg"
        for split, size in SPLIT_SIZES.items()
        for number in rng.choice(size, counts[split], replace=False)
    ]
    return [paths[place] for place in rng.permutation(count)]


def _spread_by_gender(
    rng: np.random.Generator, wanted: Sequence[tuple[str, str, str, bool]]
) -> tuple[list[int], list[str]]:
    tones, activities = [0] * len(wanted), [""] * len(wanted)
    for gender in GENDERS:
        for chosen in (True, False):
            places = [
                place
                for place, (_, other, _, selected) in enumerate(wanted)
                if other == gender and selected is chosen
            ]
            for place, tone, activity in zip(
                places,
                spread(rng, range(1, 11), len(places)),
                spread(rng, ACTIVITIES, len(places)),
                strict=True,
            ):
                tones[place], activities[place] = tone, activity
    return tones, activities


def _with_faults(rng: np.random.Generator, images: list[DrawnImage]) -> list[DrawnImage]:
    selected = [place for place, image in enumerate(images) if image.selected]
    truncated, missing, upper_case = rng.choice(selected, 3, replace=False)
    images[truncated] = images[truncated].damaged(TRUNCATED)
    images[missing] = images[missing].damaged(MISSING)
    images[upper_case] = images[upper_case].stored_as(
        images[upper_case].path.removesuffix(".jpg") + ".JPG"
    )
    return images
