"""FairFace: `train/<n>.jpg`, `val/<n>.jpg` and a label file for each (Karkkainen and Joo, 2021)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pandas as pd

from vlmfair.datasets.base import (
    ParsedDataset,
    ProblemLog,
    existing_folder,
    finish,
    restrict,
    with_clean_paths,
    with_images,
    without_repetitions,
)
from vlmfair.datasets.images import ImageFolder
from vlmfair.datasets.label_files import LINE, json_rows, read_label_file

NAME = "fairface"
GENDERS = ("Female", "Male")
RACES = (
    "Black",
    "East Asian",
    "Indian",
    "Latino_Hispanic",
    "Middle Eastern",
    "Southeast Asian",
    "White",
)
AGES = ("0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70")
LABELS = {"age": AGES, "gender": GENDERS, "race": RACES}
LABEL_FILES = {"train": "fairface_label_train.csv", "val": "fairface_label_val.csv"}
# The zip unpacks to train/ and val/; some programs put them into a folder of the zip's name, and
# the GRAS code asks for a folder called FairFace.
LAYOUTS = ("", "FairFace", "fairface-img-margin025-trainval", "fairface-img-margin125-trainval")
FETCH = (
    "Unpack fairface-img-margin025-trainval.zip into this folder and put fairface_label_train.csv "
    "and fairface_label_val.csv beside train/ and val/; all are linked at "
    "https://github.com/joojs/fairface."
)


def parse(raw_dir: Path, *, only: Collection[str] | None = None, threads: int = 1) -> ParsedDataset:
    """Read the labels of all images and check and hash the images, or those in `only`.

    `only` holds paths as label files or the GRAS selection write them (`train/1.jpg`,
    `FairFace/train/1.jpg`). Raises RawDataError when the folder, a label file or a column is
    missing, or nothing is usable.
    """
    folder = existing_folder(Path(raw_dir), "FairFace", FETCH)
    log = ProblemLog(NAME)
    parts = [_read_split(folder, split, log) for split in LABEL_FILES]
    annotated = pd.concat(parts, ignore_index=True)
    rows = _known_labels(without_repetitions(annotated, list(LABELS), log), log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), annotated["relative"], log)
    images = ImageFolder(folder, LAYOUTS)
    samples = with_images(rows, images, log, threads=threads, summarise=only is None)
    return finish(samples, log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's path below the dataset: `FairFace/train/1.jpg` -> `train/1.jpg`."""
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part != "."]
    roots = {layout.casefold() for layout in LAYOUTS if layout}
    if len(parts) > 1 and parts[0].casefold() in roots:
        parts = parts[1:]
    return "/".join(parts)


def _read_split(folder: Path, split: str, log: ProblemLog) -> pd.DataFrame:
    places = [folder / layout / LABEL_FILES[split] for layout in LAYOUTS]
    path = next((place for place in places if place.is_file()), places[0])
    table = read_label_file(path, ["file", *LABELS], log, fetch=FETCH)
    lines = table.pop(LINE)
    rows = pd.DataFrame(
        {name: table[name].str.strip() for name in LABELS}
        | {"relative": table["file"].map(canonical_path), "split": split}
    )
    rows["sample_id"] = NAME + "/" + rows["relative"]
    rows["raw"] = json_rows(table)
    return with_clean_paths(rows, lines, path.name, log)


def _known_labels(rows: pd.DataFrame, log: ProblemLog) -> pd.DataFrame:
    """Keep rows whose age, gender and race are FairFace's own labels, letter for letter."""
    known = pd.Series(True, index=rows.index)
    for name, labels in LABELS.items():
        unknown = known & ~rows[name].isin(labels)
        for row in rows[unknown].to_dict("records"):
            log.add(row["sample_id"], f"unknown_{name}", _detail(name, row[name]), row["raw"])
        known &= ~unknown
    return rows[known]


def _detail(name: str, value: str) -> str:
    hint = ""
    if name == "age":
        hint = "; spreadsheet programs turn bins such as 3-9 into dates"
    return f"{name} {value[:60]!r} is not one of {', '.join(LABELS[name])}{hint}"
