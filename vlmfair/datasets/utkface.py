"""UTKFace in the wild: age, gender and race are in each file's name (Zhang et al., 2017)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from vlmfair.datasets.base import (
    ParsedDataset,
    ProblemLog,
    chosen_rows,
    existing_folder,
    finish,
    restrict,
    with_images,
    without_ambiguous_images,
)
from vlmfair.datasets.images import ImageFolder
from vlmfair.errors import RawDataError

NAME = "utkface"
GENDERS = {"0": "Male", "1": "Female"}
RACES = {"0": "white", "1": "black", "2": "asian", "3": "indian", "4": "others"}
OLDEST = 116
PARTS = ("part1", "part2", "part3")
# The authors of the LVLM study keep the parts in raw_imgs/.
LAYOUTS = ("", "raw_imgs")
ALIGNED = "UTKFace"
FETCH = (
    "Unpack part1.tar.gz, part2.tar.gz and part3.tar.gz of the in-the-wild faces into this folder; "
    "they are linked at https://susanqq.github.io/UTKFace."
)
# 18 and 16 digits occur, and one name has a space; the aligned faces end in .jpg.chip.jpg.
_ENDING = r"(?P<time>[0-9]{16,18})(?P<space> *)\.jpg(?:\.chip\.jpg)?"
_NAME = re.compile(r"(?P<age>[0-9]{1,3})_(?P<gender>[01])_(?P<race>[0-4])_" + _ENDING)
# One label is absent, empty or no code of the dataset; the others stand where they should not.
_INCOMPLETE = re.compile(r"(?P<age>[0-9]{1,3})_(?P<gender>[0-9]?)_(?:(?P<race>[0-9]?)_)?" + _ENDING)
# The names with a missing label, as several public copies of the dataset correct them. For the
# third, two copies say Female.
CORRECTIONS = {
    "61_1_20170109142408075.jpg": ("Female", "black"),
    "61_3_20170109150557335.jpg": ("Female", "indian"),
    "39_1_20170116174525125.jpg": ("Male", "black"),
    "53__0_20170116184028385.jpg": ("Female", "white"),
}
POLICIES = ("drop", "public_corrections", "paper_table1")
OPTIONS = {"policy": POLICIES}


@dataclass(frozen=True)
class Labels:
    """What a file's name says; `note` is a reason of `base.KEPT`, or "" for a regular name."""

    age: str
    gender: str
    race: str
    time: str
    note: str = ""


def parse(
    raw_dir: Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    policy: str = "drop",
) -> ParsedDataset:
    """Read the labels off all file names and check and hash the images, or those in `only`.

    `policy` says what becomes of names that lack a label: `drop` leaves them out,
    `public_corrections` corrects the known ones, and `paper_table1` fills them in as the totals of
    the LVLM study's Table 1 imply. Raises RawDataError when the folder or all of its parts are
    missing, or nothing is usable.
    """
    folder = existing_folder(Path(raw_dir), "UTKFace", FETCH)
    log = ProblemLog(NAME)
    images, parts = _image_folders(folder, log)
    named = pd.concat([_list_part(folder, part) for part in parts], ignore_index=True)
    rows = _labelled(named, policy, log)
    _note_shared_times(rows, log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), named["relative"], log)
    rows = _named_once(rows, images, log).drop(columns=["time"])
    samples = with_images(rows, images, log, threads=threads, summarise=False)
    return finish(samples, log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's file name, its ending in lower case: `part1/1_0_2.JPG` -> `1_0_2.jpg`."""
    name = path.replace("\\", "/").rsplit("/", 1)[-1]
    return name[:-4] + ".jpg" if name[-4:].casefold() == ".jpg" else name


def labels_of(name: str, policy: str = "drop") -> Labels | str:
    """Return the labels in a file's name, or a sentence on why it has none that count.

    `paper_table1`, which the paper's totals imply without its saying so: labels are taken by their
    place; a gender that is missing or 0 is male, any other female; a race that is missing or none
    of 0 to 4 is others.
    """
    match, note = _NAME.fullmatch(name), ""
    if match is None:
        match = _INCOMPLETE.fullmatch(name)
        if match is None or policy == "drop":
            return _fault(match)
        if policy == "public_corrections" and name.removesuffix(".chip.jpg") not in CORRECTIONS:
            return f"{_fault(match)}, and no correction is published"
        note = "corrected_labels" if policy == "public_corrections" else "defaulted_labels"
    if int(match["age"]) > OLDEST:
        return f"the age is above {OLDEST}: {match['age']}"
    if note == "corrected_labels":
        gender, race = CORRECTIONS[name.removesuffix(".chip.jpg")]
    elif note:
        gender = "Male" if match["gender"] in ("", "0") else "Female"
        race = RACES.get(match["race"] or "", "others")
    else:
        gender, race = GENDERS[match["gender"]], RACES[match["race"]]
        note = "space_in_name" if match["space"] else ""
    return Labels(str(int(match["age"])), gender, race, match["time"], note)


def _fault(incomplete: re.Match[str] | None) -> str:
    if incomplete is None:
        return "the name is not age_gender_race_time.jpg"
    if incomplete["race"] is None:
        return "the name has one label less than age, gender and race"
    label, codes = ("race", RACES) if incomplete["gender"] in GENDERS else ("gender", GENDERS)
    return f"the {label} is {incomplete[label] or 'empty'}, not one of {', '.join(codes)}"


def _image_folders(folder: Path, log: ProblemLog) -> tuple[ImageFolder, list[str]]:
    """Return where images lie, as folders below the raw one; a part that is not there is noted."""
    for layout in LAYOUTS:
        places = {name: (Path(layout) / name).as_posix() for name in PARTS}
        parts = [place for place in places.values() if (folder / place).is_dir()]
        if parts:
            for name in [name for name, place in places.items() if place not in parts]:
                log.add(f"{NAME}/{name}/", "folder_absent", f"{name}/ was not unpacked")
            return ImageFolder(folder, parts), parts
    if (folder / ALIGNED).is_dir():
        return ImageFolder(folder, [ALIGNED]), [ALIGNED]
    raise RawDataError(f"{folder}: none of {', '.join(PARTS)} is there. {FETCH}")


def _list_part(folder: Path, part: str) -> pd.DataFrame:
    try:
        names = sorted(os.listdir(folder / part))
    except OSError as error:
        raise RawDataError(f"{folder / part}: cannot be listed ({error}). {FETCH}") from error
    columns = {
        "relative": [canonical_path(name) for name in names],
        "raw": [json.dumps({"part": part, "file": name}) for name in names],
    }
    rows = pd.DataFrame(columns, dtype=object)
    return rows.assign(sample_id=NAME + "/" + rows["relative"], split=None)


def _labelled(named: pd.DataFrame, policy: str, log: ProblemLog) -> pd.DataFrame:
    labels: list[Labels] = []
    kept = []
    for row in named.itertuples():
        found = labels_of(str(row.relative), policy)
        kept.append(isinstance(found, Labels))
        if isinstance(found, str):
            log.add(str(row.sample_id), "malformed_name", found, str(row.raw))
            continue
        labels.append(found)
        if found.note:
            detail = _note_detail(found)
            log.add(str(row.sample_id), found.note, detail, str(row.raw))
    columns = {
        name: [str(getattr(found, name)) for found in labels]
        for name in ("age", "gender", "race", "time")
    }
    return chosen_rows(named, kept).assign(**columns)


def _note_detail(labels: Labels) -> str:
    if labels.note == "space_in_name":
        return ""
    return f"counted as {labels.age} years, {labels.gender}, {labels.race}"


def _named_once(rows: pd.DataFrame, images: ImageFolder, log: ProblemLog) -> pd.DataFrame:
    """Drop the same file in a second part, or with its ending in another case."""
    if rows["sample_id"].is_unique:
        return rows
    rows = without_ambiguous_images(rows, images, log)
    repeated = rows["sample_id"].duplicated()
    for row in rows[repeated].itertuples():
        detail = "another file has this name, up to the case of its ending"
        log.add(str(row.sample_id), "duplicate_record", detail, str(row.raw))
    return rows[~repeated]


def _note_shared_times(rows: pd.DataFrame, log: ProblemLog) -> None:
    """Note images whose time stamp another one has, with a different gender or race.

    They are probably the same picture, labelled twice.
    """
    grouped = rows.groupby("time")[["gender", "race"]].nunique()
    for label in grouped.columns:
        times = grouped.index[grouped[label] > 1]
        for row in rows[rows["time"].isin(times)].itertuples():
            detail = f"another image of the same time stamp has another {label}"
            log.add(str(row.sample_id), "shared_time", detail, str(row.raw))
