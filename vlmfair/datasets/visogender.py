"""VisoGender: people in 23 occupations, with an object or with another person (Hall et al., 2023).

The repository has addresses and labels only; the photographs are kept under their row's number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pandas as pd
import pyarrow as pa

from vlmfair.datasets.base import (
    ParsedDataset,
    ProblemLog,
    as_records,
    chosen_rows,
    existing_folder,
    finish,
    restrict,
    with_images,
    without_repetitions,
)
from vlmfair.datasets.funnel import NOT_IN_POOL, READABLE, WITH_IMAGE, Step
from vlmfair.datasets.images import ImageFolder
from vlmfair.datasets.label_files import LINE, json_rows, read_label_file
from vlmfair.datasets.options import WHOLE_NUMBER
from vlmfair.datasets.splits import SEED, SplitRule, split
from vlmfair.errors import RawDataError

NAME = "visogender"
GENDERS = {"masculine": "Male", "feminine": "Female"}
NEWEST = "newest"
# The days of the repository's releases; `2024-01-11` reads the tables as they were on that day.
VERSIONS = (NEWEST, "2023-10-02", "2024-01-11", "2025-05-10")
OPTIONS = {"version": VERSIONS, "seed": WHOLE_NUMBER}
LAYOUTS = ("images", "images/OO", "images/OP", "OO", "OP", "")
# The folder of the tables, as the repository has it or from its root.
FOLDERS = ("", "visogender_data", "data/visogender_data")
FETCH = (
    "Copy data/visogender_data of https://github.com/oxai/visogender and save the photograph of "
    "each row as images/<IDX>.jpg below it, for example images/OO_1.jpg."
)
IDX, OCCUPATION = "IDX", "Occupation"
URL = ("URL type (Type NA if can't find)", "URL")
NO_ADDRESS = ("", "na", "n/a", "nan")
# The older names are those of the repository's first tables.
GENDER = ("Occupation_perceived_gender", "Occupation_Gender")
PARTICIPANT_GENDER = ("Participant_perceived_gender", "Participant_Gender")
LABELS = ["gender", "occupation", "companion", "participant_gender", "photograph"]
FUNNEL = (
    READABLE,
    Step("with a gender of two", ("unknown_gender",)),
    Step("with an address", ("no_url",)),
    WITH_IMAGE,
    NOT_IN_POOL,
)
_PICTURE_FILE = re.compile(r"\.(jpe?g|png|webp|gif|bmp)$", re.IGNORECASE)
_PEXELS = re.compile(r"/photos/([0-9]+)/")


@dataclass(frozen=True)
class Task:
    """One of the two tables: its name, the column of what the person is with, and its split.

    The counts of the split are those of VL-BICLE, appendix 0.A.1.
    """

    name: str
    companion: str
    split: SplitRule

    @property
    def genders(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the genders, each under all its names."""
        return (GENDER,) if self.name == "OO" else (GENDER, PARTICIPANT_GENDER)


_PICTURES = ("image_sha256", "photograph")
TASKS = (
    Task("OO", "Object", SplitRule(("occupation", "gender"), count=2, pictures=_PICTURES)),
    Task(
        "OP",
        "Participant",
        SplitRule(("occupation", "gender", "participant_gender"), count=2, pictures=_PICTURES),
    ),
)


def parse(
    raw_dir: Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    version: str = NEWEST,
    seed: str = SEED,
) -> ParsedDataset:
    """Read both tables, open each row's photograph, and divide each task into pool and queries.

    `only` holds numbers (`OO_1`) or image files (`images/OO_1.jpg`); `version` is one of
    `VERSIONS`. Further columns: `task` (`OO`, `OP`), `companion` (the object or participant),
    `participant_gender` and `photograph`, which is the same for two addresses of one photograph.
    Raises RawDataError when the folder, a table or a column is missing, or nothing is usable.
    """
    folder = folder_of_tables(existing_folder(Path(raw_dir), "VisoGender", FETCH))
    log = ProblemLog(NAME)
    rows = pd.concat([_read(folder, task, version, log) for task in TASKS], ignore_index=True)
    annotated = rows["relative"].tolist()
    rows = without_repetitions(rows, LABELS, log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), annotated, log)
    rows = _with_image_files(rows, folder, log)
    samples = with_images(rows, ImageFolder(folder, LAYOUTS), log, threads=threads, summarise=False)
    _note_shared_photographs(samples, log)
    tasks = samples["task"].to_pylist()
    sides = [
        split(samples.filter(pa.array([own == task.name for own in tasks])), task.split, seed, log)
        for task in TASKS
        if task.name in tasks
    ]
    return finish(pa.concat_tables(sides) if sides else samples, log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return a row's number: `images/OO_1.jpg` -> `OO_1`."""
    return path.strip().replace("\\", "/").rsplit("/", 1)[-1].split(".", 1)[0]


def photograph_of(url: str) -> str:
    """Return what two addresses of the same photograph have in common.

    Pexels serves one photograph in many sizes, under its number. Elsewhere a query behind a file's
    name is a size; behind any other path, as of a search engine's thumbnails, it is the picture.
    """
    try:
        parts = urlsplit(url.strip())
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        return url.strip()
    number = _PEXELS.search(parts.path)
    if host.endswith("pexels.com") and number:
        return f"pexels/{number[1]}"
    query = "" if _PICTURE_FILE.search(parts.path) else f"?{parts.query}"
    return f"{host}{parts.path}{query}"


def folder_of_tables(folder: Path) -> Path:
    """Return the folder that has OO/ and OP/, the raw folder or one in it; photographs go there."""
    places = [folder / place for place in FOLDERS]
    return next((place for place in places if (place / "OO").is_dir()), folder)


def table_path(folder: Path, task: str, version: str = NEWEST) -> Path:
    """Return a task's newest table, or the newest that the repository had at the version's day.

    Raises RawDataError when there is none.
    """
    name = re.compile(rf"{task}_Visogender_([0-9]{{2}})([0-9]{{2}})([0-9]{{4}})\.tsv")
    dated: dict[str, Path] = {}
    for place in (folder / task, folder):
        for found in sorted(os.listdir(place)) if place.is_dir() else []:
            match = name.fullmatch(found)
            if match:
                day, month, year = match.groups()
                dated.setdefault(f"{year}-{month}-{day}", place / found)
    days = [day for day in sorted(dated) if version == NEWEST or day <= version]
    if not days:
        until = "" if version == NEWEST else f" of {version} or before"
        raise RawDataError(
            f"{folder / task}: no table {task}_Visogender_<day>.tsv{until} is there. {FETCH}"
        )
    return dated[days[-1]]


def addresses(raw_dir: Path, version: str = NEWEST) -> list[tuple[str, str]]:
    """Return number and address of the photograph of each row of both tables that has one.

    Raises RawDataError as `parse` does, for what the tables lack.
    """
    folder = folder_of_tables(existing_folder(Path(raw_dir), "VisoGender", FETCH))
    log = ProblemLog(NAME)
    found = []
    for task in TASKS:
        table = read_label_file(
            table_path(folder, task.name, version), [IDX, URL], log, fetch=FETCH, separator="\t"
        )
        name = next(name for name in URL if name in table.columns)
        pairs = zip(table[IDX].str.strip(), table[name].str.strip(), strict=True)
        found += [pair for pair in pairs if pair[1].casefold() not in NO_ADDRESS]
    return found


def _read(folder: Path, task: Task, version: str, log: ProblemLog) -> pd.DataFrame:
    path = table_path(folder, task.name, version)
    required: list[str | tuple[str, ...]] = [IDX, OCCUPATION, task.companion, URL, *task.genders]
    table = read_label_file(path, required, log, fetch=FETCH, separator="\t")
    lines = table.pop(LINE)

    def column(names: str | tuple[str, ...]) -> pd.Series:
        known = (names,) if isinstance(names, str) else names
        return table[next(name for name in known if name in table.columns)].str.strip()

    genders = [column(names).str.casefold() for names in task.genders]
    rows = pd.DataFrame(
        {
            "relative": column(IDX),
            "task": task.name,
            "occupation": column(OCCUPATION).map(_spaced),
            "companion": column(task.companion).map(_spaced),
            "gender": genders[0].map(GENDERS),
            "participant_gender": genders[1].map(GENDERS) if len(genders) > 1 else None,
            "url": column(URL),
            "split": None,
        }
    )
    rows["photograph"] = rows["url"].map(photograph_of)
    rows["sample_id"] = NAME + "/" + rows["relative"]
    # A row's number may mean another photograph in another version of the table.
    rows["raw"] = json_rows(table.assign(table=path.name))
    faults = [_fault(row, task) for row in as_records(rows)]
    for line, row, fault in zip(lines, as_records(rows), faults, strict=True):
        if fault:
            reason, detail = fault
            named = reason != "malformed_row"
            record = row["sample_id"] if named else f"{path.name}:{line}"
            log.add(record, reason, detail, row["raw"])
    return chosen_rows(rows, [fault is None for fault in faults]).drop(columns=["url"])


def _fault(row: dict[str, str], task: Task) -> tuple[str, str] | None:
    """Return the reason, and a detail, for leaving a row out; None for a sound one."""
    if not re.fullmatch(rf"{task.name}_[0-9]{{1,6}}", row["relative"]):
        return "malformed_row", f"IDX is no number like {task.name}_1"
    for name in ("occupation", "companion"):
        if not row[name]:
            return "malformed_row", f"the {name} is empty"
    for name in ("gender", "participant_gender")[: len(task.genders)]:
        if row[name] not in GENDERS.values():
            return "unknown_gender", ""
    if row["url"].casefold() in NO_ADDRESS:
        return "no_url", ""
    return None


def _spaced(text: str) -> str:
    """`mixing_spoon` occurs once, `mixing spoon` nine times."""
    return " ".join(text.replace("_", " ").split())


def _with_image_files(rows: pd.DataFrame, folder: Path, log: ProblemLog) -> pd.DataFrame:
    """Put the image's file name in the place of the row's number; addresses have any ending."""
    names: dict[str, set[str]] = {}
    for layout in LAYOUTS:
        place = folder / layout
        for name in sorted(os.listdir(place)) if place.is_dir() else []:
            stem, _, ending = name.partition(".")
            if ending and not ending.casefold().endswith("tsv"):
                names.setdefault(stem, set()).add(name)
    found = [sorted(names.get(str(number), {f"{number}.jpg"})) for number in rows["relative"]]
    for row, files in zip(rows.itertuples(), found, strict=True):
        if len(files) > 1:
            detail = f"there are {' and '.join(files)}"
            log.add(str(row.sample_id), "ambiguous_image", detail, str(row.raw))
    rows = rows.assign(relative=[files[0] for files in found])
    return chosen_rows(rows, [len(files) == 1 for files in found])


def _note_shared_photographs(samples: pa.Table, log: ProblemLog) -> None:
    """Note photographs that several rows have, by their addresses or by their bytes."""
    rows = samples.select(["sample_id", *_PICTURES, "raw"]).to_pandas()
    for row in as_records(rows):
        same = pd.concat([rows[name] == row[name] for name in _PICTURES], axis=1).any(axis=1)
        others = [name for name in rows[same]["sample_id"] if name != row["sample_id"]]
        if others:
            detail = f"also the photograph of {', '.join(others)}"
            log.add(row["sample_id"], "shared_photograph", detail, row["raw"])
