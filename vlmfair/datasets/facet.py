"""FACET: photographs of people, one row of annotations per person (Gustafson et al., 2023)."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from vlmfair.datasets.base import (
    ParsedDataset,
    ProblemLog,
    existing_folder,
    finish,
    restrict,
    with_clean_paths,
    with_images,
    without_ambiguous_images,
)
from vlmfair.datasets.images import ImageFolder
from vlmfair.datasets.label_files import LINE, json_rows, read_label_file

NAME = "facet"
GENDERS = ("Female", "Male", "Unknown")
AGES = ("young", "middle", "old", "unknown")
SKIN_TONES = ("light", "medium", "dark", "unknown")
CLASSES = (
    *("astronaut", "backpacker", "ballplayer", "bartender", "basketball_player", "boatman"),
    *("carpenter", "cheerleader", "climber", "computer_user", "craftsman", "dancer"),
    *("disk_jockey", "doctor", "drummer", "electrician", "farmer", "fireman", "flutist"),
    *("gardener", "guard", "guitarist", "gymnast", "hairdresser", "horseman", "judge"),
    *("laborer", "lawman", "lifeguard", "machinist", "motorcyclist", "nurse", "painter"),
    *("patient", "prayer", "referee", "repairman", "reporter", "retailer", "runner"),
    *("sculptor", "seller", "singer", "skateboarder", "soccer_player", "soldier", "speaker"),
    *("student", "teacher", "tennis_player", "trumpeter", "waiter"),
)
# The classes with the largest differences in perceived gender (LVLM fairness, section 3.1).
OCCUPATIONS = (
    *("gardener", "craftsman", "laborer", "skateboarder", "prayer", "guitarist", "singer"),
    *("dancer", "retailer", "nurse", "student", "gymnast", "horseman"),
)
FILE, PERSON, CLASS, BOX = "filename", "person_id", "class1", "bounding_box"
MASCULINE, FEMININE = "gender_presentation_masc", "gender_presentation_fem"
AGE_COLUMNS = {
    "young": "age_presentation_young",
    "middle": "age_presentation_middle",
    "old": "age_presentation_older",
}
TONE_COLUMNS = tuple(f"skin_tone_{tone}" for tone in range(1, 11))
TONE_UNSURE, AGE_UNSURE = "skin_tone_na", "age_presentation_na"
REQUIRED = (FILE, PERSON, CLASS, MASCULINE, FEMININE, *AGE_COLUMNS.values(), *TONE_COLUMNS)
LABEL_FILE = "annotations.csv"
LABEL_FOLDERS = ("annotations", "")
IMAGE_FOLDERS = ("imgs_1", "imgs_2", "imgs_3")
LAYOUTS = (*IMAGE_FOLDERS, "images", "")
FETCH = (
    "Request FACET at https://ai.meta.com/datasets/facet-downloads and unpack the annotations into "
    "annotations/ and the three image archives into imgs_1/, imgs_2/ and imgs_3/ below the folder."
)
_INTEGER = re.compile(r"([0-9]{1,6})(\.0*)?")


def parse(
    raw_dir: Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    tone_rule: str = "majority",
) -> ParsedDataset:
    """Read the persons and keep images with one annotated person of one of the 13 occupations.

    `only` holds file names (`sa_1.jpg`) or paths (`imgs_1/sa_1.jpg`); `tone_rule` is one of
    `TONE_RULES`. A gender, age or skin tone that the annotators left open stays, as unknown.
    Raises RawDataError when the folder, the annotations or a column is missing, or nothing is
    usable.
    """
    folder = existing_folder(Path(raw_dir), "FACET", FETCH)
    log = ProblemLog(NAME)
    persons = _read_persons(folder, log)
    rows = _of_an_occupation(_alone(persons, log), log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), persons["relative"], log)
    images = ImageFolder(folder, LAYOUTS)
    _note_absent_folders(images, log)
    rows = _with_labels(without_ambiguous_images(rows, images, log), tone_rule, log)
    samples = with_images(rows, images, log, threads=threads, summarise=False)
    return finish(samples, log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's file name: `imgs_1/sa_1.jpg` -> `sa_1.jpg`."""
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part != "."]
    if len(parts) > 1 and parts[0] and parts[0].casefold() in LAYOUTS:
        parts = parts[1:]
    return "/".join(parts)


def gender_of(row: Mapping[str, str]) -> str | None:
    """Return the gender by the masculine and the feminine column; None when they are unreadable.

    One of them alone decides; both or none mean `Unknown`, whatever the other columns say.
    """
    masculine, feminine = _flag(row[MASCULINE]), _flag(row[FEMININE])
    if masculine is None or feminine is None:
        return None
    if masculine == feminine:
        return "Unknown"
    return "Male" if masculine else "Female"


def age_of(row: Mapping[str, str]) -> str | None:
    """Return the age group; None when a column is unreadable, `unknown` unless just one is set."""
    flags = {name: _flag(row[column]) for name, column in AGE_COLUMNS.items()}
    unsure = _flag(row.get(AGE_UNSURE, "0"))
    if unsure is None or None in flags.values():
        return None
    chosen = [name for name, flag in flags.items() if flag]
    return chosen[0] if len(chosen) == 1 and not unsure else "unknown"


def tone_votes(row: Mapping[str, str]) -> tuple[list[int], int] | None:
    """Return the votes for the Monk tones 1 to 10 and for none of them; None when unreadable."""
    votes = [_count(row[column]) for column in TONE_COLUMNS]
    unsure = _count(row.get(TONE_UNSURE, "0"))
    readable = [vote for vote in votes if vote is not None]
    if unsure is None or len(readable) < len(votes):
        return None
    return readable, unsure


def tone_group(votes: Sequence[int], unsure: int = 0, rule: str = "majority") -> str:
    """Return `light` (tones 1-3), `medium` (4-6), `dark` (7-10) or `unknown` by a named rule.

    `votes` has ten counts, `unsure` those of `skin_tone_na`. The paper's own rule is unpublished.
    Raises KeyError on a rule that is none of `TONE_RULES`.
    """
    return TONE_RULES[rule](votes, unsure) if any(votes) else "unknown"


def tone_counts(samples: pa.Table) -> dict[str, dict[str, int]]:
    """Count the skin tone groups of samples under each rule, from the votes kept in `raw`.

    On a real download, the rule whose counts are nearest to the paper's Table 1 is the likely one.
    """
    votes = [tone_votes(json.loads(raw)) or ([0] * 10, 0) for raw in samples["raw"].to_pylist()]
    found = {rule: Counter(tone_group(*vote, rule) for vote in votes) for rule in TONE_RULES}
    return {rule: {group: count[group] for group in SKIN_TONES} for rule, count in found.items()}


def box_of(cell: str) -> tuple[float, float, float, float] | None:
    """Return x, y, width and height in pixels of a bounding box cell, or None when unreadable."""
    try:
        box: Any = json.loads(cell)
        x, y, width, height = (float(box[name]) for name in ("x", "y", "width", "height"))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        return None
    sound = all(map(math.isfinite, (x, y, width, height))) and width > 0 and height > 0
    return (x, y, width, height) if sound else None


def _by_bucket(votes: Sequence[int]) -> dict[str, int]:
    return {"light": sum(votes[:3]), "medium": sum(votes[3:6]), "dark": sum(votes[6:])}


def _bucket(tone: float) -> str:
    return "light" if tone < 3.5 else "medium" if tone < 6.5 else "dark"


def _majority(votes: Sequence[int], unsure: int) -> str:
    """Most votes in a group; a tie is unknown."""
    buckets = _by_bucket(votes)
    winners = [name for name, count in buckets.items() if count == max(buckets.values())]
    return winners[0] if len(winners) == 1 else "unknown"


def _argmax(votes: Sequence[int], unsure: int) -> str:
    """Most votes for a tone; the lightest of a tie."""
    return _bucket(votes.index(max(votes)) + 1)


def _mean(votes: Sequence[int], unsure: int) -> str:
    """Mean of the distinct tones that were named; unknown when any annotator was unsure."""
    named = [tone for tone, count in enumerate(votes, 1) if count]
    return "unknown" if unsure else _bucket(sum(named) / len(named))


def _strict(votes: Sequence[int], unsure: int) -> str:
    """All votes in one group."""
    named = [name for name, count in _by_bucket(votes).items() if count]
    return named[0] if len(named) == 1 else "unknown"


TONE_RULES: dict[str, Callable[[Sequence[int], int], str]] = {
    "majority": _majority,
    "argmax": _argmax,
    "mean": _mean,
    "strict": _strict,
}
OPTIONS = {"tone_rule": tuple(TONE_RULES)}


def _read_persons(folder: Path, log: ProblemLog) -> pd.DataFrame:
    places = [folder / place / LABEL_FILE for place in LABEL_FOLDERS]
    path = next((place for place in places if place.is_file()), places[0])
    table = read_label_file(path, REQUIRED, log, fetch=FETCH)
    lines = table.pop(LINE)
    rows = pd.DataFrame(
        {
            "relative": table[FILE].map(canonical_path),
            "person": table[PERSON].str.strip(),
            "occupation": table[CLASS].str.strip(),
            "split": None,
        }
    )
    rows["sample_id"] = NAME + "/" + rows["relative"]
    rows["raw"] = json_rows(table)
    return with_clean_paths(rows, lines, path.name, log)


def _alone(persons: pd.DataFrame, log: ProblemLog) -> pd.DataFrame:
    """Keep the persons who are the only annotated one of their image.

    The same row again is no second person; two different rows of one person contradict each other.
    """
    # On most disks, names that differ in case only are the same image.
    image = persons["relative"].str.casefold()
    key = image + "\0" + persons["person"]
    duplicate = (key + "\0" + persons["raw"]).duplicated()
    conflicting = ~duplicate & key.isin(key[~duplicate][key[~duplicate].duplicated()])
    count = image.map(key.groupby(image).nunique())
    several = ~duplicate & ~conflicting & (count > 1)
    for row in persons[duplicate].itertuples():
        log.add(str(row.sample_id), "duplicate_record", raw=str(row.raw))
    for row in persons[conflicting].itertuples():
        detail = f"person {str(row.person)[:60]!r} has different labels; none of them stays"
        log.add(str(row.sample_id), "conflicting_record", detail, str(row.raw))
    for row, number in zip(persons[several].itertuples(), count[several]):
        detail = f"the image has {number} annotated persons"
        log.add(str(row.sample_id), "several_persons", detail, str(row.raw))
    return persons[~duplicate & ~conflicting & ~several]


def _of_an_occupation(rows: pd.DataFrame, log: ProblemLog) -> pd.DataFrame:
    wanted = rows["occupation"].isin(OCCUPATIONS)
    for row in rows[~wanted].itertuples():
        name = str(row.occupation)
        if name in CLASSES:
            log.add(str(row.sample_id), "other_class", f"the class is {name}", str(row.raw))
        else:
            detail = f"class {name[:60]!r} is not one of FACET's {len(CLASSES)}"
            log.add(str(row.sample_id), "unknown_class", detail, str(row.raw))
    return rows[wanted]


def _with_labels(rows: pd.DataFrame, rule: str, log: ProblemLog) -> pd.DataFrame:
    """Add gender, age and skin tone; a cell that cannot be read makes its label unknown."""
    genders, ages, tones = [], [], []
    for sample_id, raw in zip(rows["sample_id"], rows["raw"], strict=True):
        row = json.loads(raw)
        gender, age, votes = gender_of(row), age_of(row), tone_votes(row)
        for name, value in (("gender", gender), ("age", age), ("skin_tone", votes)):
            if value is None:
                detail = f"a cell of {name.replace('_', ' ')} is no number of votes"
                log.add(sample_id, f"ignored_{name}", detail, raw)
        if BOX in row and box_of(row[BOX]) is None:
            log.add(sample_id, "ignored_box", raw=raw)
        genders.append(gender or "Unknown")
        ages.append(age or "unknown")
        tones.append("unknown" if votes is None else tone_group(*votes, rule))
    return rows.drop(columns=["person"]).assign(gender=genders, age=ages, skin_tone=tones)


def _note_absent_folders(images: ImageFolder, log: ProblemLog) -> None:
    """Say which archive is missing; a name does not tell in which of the three its image is."""
    there = {name: images.has_folder(name) for name in IMAGE_FOLDERS}
    for name, found in there.items():
        if any(there.values()) and not found:
            log.add(f"{NAME}/{name}/", "folder_absent", f"{name}/ was not unpacked")


def _count(text: str) -> int | None:
    match = _INTEGER.fullmatch(text.strip())
    return int(match[1]) if match else None


def _flag(text: str) -> bool | None:
    count = _count(text)
    return None if count is None or count > 1 else bool(count)
