"""AI-Face: real and generated faces with predicted labels and skin tones (Lin et al., 2025)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
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

NAME = "ai_face"
SKIN_TONES = tuple(str(tone) for tone in range(1, 11))
SOURCES = ("FFHQ", "imdb_wiki/imdb", "imdb_wiki/wiki")
LABEL_FILES = {"train": "train.csv", "test": "test.csv"}
LABEL_FOLDERS = ("", "dataset", "annotations")
# `Real` is the download's own folder, AIFace that of the GRAS selection list, AlFace (with the
# letter l) the spelling of the GRAS instructions.
LAYOUTS = ("", "Real", "AIFace", "AlFace")
TOP_FOLDERS = ("FFHQ", "imdb_wiki", "deepfakes", "GANs", "DMs")
_SPELLING = {name.casefold(): name for name in TOP_FOLDERS}
PATH = "Image Path"
# Version 2 as documented, version 2 as its loader reads it, version 1.
GENDER = ("Gender", "Predicted Gender", "Ground Truth Gender")
AGE = ("Age", "Predicted Age", "Ground Truth Age")
SKIN_TONE = ("Skin Tone", "Predicted Skin Tone")
CODED = {"gender": GENDER, "age": AGE, "skin_tone": SKIN_TONE}
NO_COLUMN = "no such column"
GENDER_CODES = {"0": "Female", "1": "Male"}
TARGETS = {"0": "real", "1": "fake"}
# The documentation's codes leave out 2, the loader's do not reach 5.
AGE_DOCUMENTED = {"0": "child", "1": "youth", "3": "adult", "4": "middle-aged", "5": "senior"}
AGE_LOADER = {"0": "child", "1": "youth", "2": "adult", "3": "middle-aged", "4": "senior"}
AGE_VERSION_1 = {"0": "young", "1": "middle-aged", "2": "senior", "3": "others"}
FETCH = (
    "Unpack FFHQ.zip and imdb_wiki.zip into Real/ below this folder and put the annotation files "
    "train.csv and test.csv into the folder itself; both downloads are linked at "
    "https://github.com/Purdue-M2/AI-Face-FairnessBench."
)


def parse(raw_dir: Path, *, only: Collection[str] | None = None, threads: int = 1) -> ParsedDataset:
    """Read the annotations of all images and check and hash the images, or those in `only`.

    `only` holds paths in any spelling that `canonical_path` takes. The samples have one column
    beyond the contract, `target` (`real` or `fake`). Raises RawDataError when the folder, an
    annotation file or a column is missing, or nothing is usable.
    """
    folder = existing_folder(Path(raw_dir), "AI-Face", FETCH)
    log = ProblemLog(NAME)
    parts = [_read_split(folder, split, log) for split in LABEL_FILES]
    annotated = pd.concat(parts, ignore_index=True)
    rows = without_repetitions(_known_target(annotated, log), [*CODED, "target"], log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), annotated["relative"], log)
    _note_ignored(rows, log)
    rows = rows.drop(columns=[f"{name}_code" for name in CODED])
    images = ImageFolder(folder, LAYOUTS)
    samples = with_images(rows, images, log, threads=threads, summarise=only is None)
    return finish(samples, log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's path from its top folder on, wherever the writer kept the dataset.

    `/home/me/AI-Face/Real/FFHQ/00001.png`, `AIFace/FFHQ/00001.png` -> `FFHQ/00001.png`.
    """
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part != "."]
    lower = [part.casefold() for part in parts]
    # A generator's folder may be named after what it learnt from (GANs/StyleGAN2/FFHQ), so the
    # first top folder counts, and a user's own folders above Real/ do not.
    start = len(lower) - 1 - lower[::-1].index("real") if "real" in lower else 0
    for index in range(start, len(parts) - 1):
        if lower[index] in _SPELLING:
            return "/".join([_SPELLING[lower[index]], *parts[index + 1 :]])
    return "/".join(parts)


def source(sample_id: str) -> str:
    """Return which of `SOURCES` a real image is from, or "" for a generated one."""
    relative = sample_id.removeprefix(f"{NAME}/")
    return next((name for name in SOURCES if relative.startswith(f"{name}/")), "")


def _read_split(folder: Path, split: str, log: ProblemLog) -> pd.DataFrame:
    places = [folder / place / LABEL_FILES[split] for place in LABEL_FOLDERS]
    path = next((place for place in places if place.is_file()), places[0])
    table = read_label_file(path, [PATH, GENDER, AGE, "Target"], log, fetch=FETCH)
    lines = table.pop(LINE)
    rows = pd.DataFrame({"relative": [canonical_path(path) for path in table[PATH]]}, dtype=object)
    rows["split"] = split
    rows["sample_id"] = NAME + "/" + rows["relative"]
    rows["raw"] = json_rows(table)
    rows["target"] = _code(table["Target"]).map(TARGETS)
    for name, names in CODED.items():
        column = next((column for column in names if column in table.columns), None)
        codes = _code(table[column]) if column else pd.Series(NO_COLUMN, index=table.index)
        rows[f"{name}_code"] = codes
        rows[name] = codes.map(_meaning(name, column, codes)).astype(object)
    return with_clean_paths(rows, lines, path.name, log)


def _code(column: pd.Series) -> pd.Series:
    """Return integer codes as text, also where a spreadsheet wrote them as `3.0`."""
    meaning = {text: re.sub(r"^(\d+)\.0*$", r"\1", text.strip()) for text in column.unique()}
    return column.map(meaning)


def _meaning(name: str, column: str | None, codes: pd.Series) -> Mapping[str, str]:
    if name == "gender":
        return GENDER_CODES
    if name == "skin_tone":
        return {tone: tone for tone in SKIN_TONES}
    if column == "Ground Truth Age":
        return AGE_VERSION_1
    return _age_codes(set(codes), column)


def _age_codes(codes: Collection[str], column: str | None) -> Mapping[str, str]:
    """Decide which of the two age codings of version 2 a file uses.

    A 5 occurs only in the documented coding and a 2 only in the loader's. With both, codes from
    2 on mean nothing certain and are dropped; with neither, the column's name decides, since the
    loader has one of its own.
    """
    if "2" in codes and "5" in codes:
        return {code: AGE_LOADER[code] for code in ("0", "1")}
    if "2" in codes or ("5" not in codes and column == "Predicted Age"):
        return AGE_LOADER
    return AGE_DOCUMENTED


def _known_target(rows: pd.DataFrame, log: ProblemLog) -> pd.DataFrame:
    unknown = rows["target"].isna()
    for sample_id, raw in zip(rows.loc[unknown, "sample_id"], rows.loc[unknown, "raw"]):
        log.add(sample_id, "unknown_target", "Target is neither 0 (real) nor 1 (fake)", raw)
    return rows[~unknown]


def _note_ignored(rows: pd.DataFrame, log: ProblemLog) -> None:
    """Note codes that mean nothing; version 1 has no skin tones, which is no fault of a row."""
    for name in CODED:
        codes = rows[f"{name}_code"]
        ignored = rows[name].isna() & (codes != NO_COLUMN)
        for row in rows[ignored].to_dict("records"):
            detail = f"{name.replace('_', ' ')} code {row[f'{name}_code'][:60]!r} is unknown"
            log.add(row["sample_id"], f"ignored_{name}", detail, row["raw"])
