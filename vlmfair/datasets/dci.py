"""DCI: SA-1B photographs with a short and an extra caption each (Urbanek et al., 2024)."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pandas as pd

from vlmfair.datasets.base import (
    ParsedDataset,
    ProblemLog,
    chosen_rows,
    existing_folder,
    finish,
    restrict,
    with_images,
    without_repetitions,
)
from vlmfair.datasets.funnel import AT_PARITY, NOT_IN_POOL, READABLE, WITH_IMAGE, Step
from vlmfair.datasets.images import MAX_BYTES, ImageFolder, path_fault
from vlmfair.datasets.json_files import parse_json, read_json, text_of
from vlmfair.datasets.options import WHOLE_NUMBER
from vlmfair.datasets.splits import FIFTH_OF_EACH_GENDER, SEED, split
from vlmfair.errors import RawDataError
from vlmfair.text.gender import BOTH, read_gender, several_people
from vlmfair.text.words import GenderWords, load_gender_words

NAME = "dci"
OPTIONS = {"seed": WHOLE_NUMBER}
# `complete` holds the same records with more in them, and may lack some.
RECORD_FOLDERS = ("annotations", "complete")
FOLDERS = ("", "densely_captioned_images")
LAYOUTS = ("photos", "images", "")
SPLITS = "splits.json"
SHORT, EXTRA, IMAGE = "short_caption", "extra_caption", "image"
ENDING = ".json"
FETCH = (
    "Unpack https://dl.fbaipublicfiles.com/densely_captioned_images/dci.tar.gz into this folder "
    "and the photographs of SA-1B's sa_000138.tar into photos/ beside annotations/."
)
FUNNEL = (
    READABLE,
    Step("with captions", ("no_captions",)),
    Step("without words for several people", ("mentions_several",)),
    Step("with gender words in both captions", ("no_gender_words",)),
    Step("of one gender in each caption", ("conflicting_gender_words",)),
    Step("with the same gender in both", ("captions_disagree",)),
    WITH_IMAGE,
    NOT_IN_POOL,
    AT_PARITY,
)


def parse(
    raw_dir: Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    seed: str = SEED,
) -> ParsedDataset:
    """Keep images of one person whose two captions agree on a gender, and divide them.

    The filters of VL-BICLE, appendix 0.A.3. `captions` has the short and the extra caption. `only`
    holds image names (`sa_1.jpg`). Raises RawDataError when the folder or its records are
    missing, or nothing is usable.
    """
    folder = existing_folder(Path(raw_dir), "DCI", FETCH)
    log = ProblemLog(NAME)
    root, place = _folders(folder)
    rows = _read_records(place, log)
    _note_missing_files(root, place, log)
    annotated = rows["relative"].tolist()
    rows = without_repetitions(rows, ["short", "extra"], log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), annotated, log)
    words = load_gender_words()
    genders, kept = [], []
    for row in rows.itertuples():
        found = _gender_of(str(row.short), str(row.extra), words)
        kept.append(isinstance(found, str))
        if isinstance(found, str):
            genders.append(found)
        else:
            log.add(str(row.sample_id), *found, str(row.raw))
    rows = chosen_rows(rows, kept)
    captions = [list(pair) for pair in zip(rows["short"], rows["extra"], strict=True)]
    rows = rows.drop(columns=["short", "extra"]).assign(gender=genders)
    rows["captions"] = pd.Series(captions, index=rows.index, dtype=object)
    images = ImageFolder(root, LAYOUTS)
    samples = with_images(rows, images, log, threads=threads, summarise=False)
    return finish(split(samples, FIFTH_OF_EACH_GENDER, seed, log), log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's file name: `photos/sa_1.jpg` -> `sa_1.jpg`."""
    return path.strip().replace("\\", "/").rsplit("/", 1)[-1]


def _folders(folder: Path) -> tuple[Path, Path]:
    """Return the folder of the dataset, and in it that of the records."""
    for place in FOLDERS:
        for name in RECORD_FOLDERS:
            if (folder / place / name).is_dir():
                return folder / place, folder / place / name
    raise RawDataError(f"{folder}: there is no folder annotations/ in it. {FETCH}")


def _read_records(place: Path, log: ProblemLog) -> pd.DataFrame:
    """Read the records one by one: their masks would fill the memory, and are not kept."""
    columns = ("relative", "short", "extra", "raw")
    read: list[tuple[str, str, str, str]] = []
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith(ENDING))
    except OSError as error:
        raise RawDataError(f"{place}: cannot be listed ({error}). {FETCH}") from error
    for name in names:
        record = _record(place / name)
        image = text_of(record, IMAGE) or ""
        fault = "the JSON cannot be read" if record is None else ""
        if not fault and path_fault(image):
            fault = "the record names no image of the dataset"
        if fault:
            log.add(f"{place.name}/{name}", "malformed_record", fault)
            continue
        kept = {key: record.get(key) for key in (IMAGE, SHORT, EXTRA)}
        raw = json.dumps({"file": name, **kept}, ensure_ascii=False)
        captions = (text_of(record, SHORT) or "", text_of(record, EXTRA) or "")
        read.append((canonical_path(image), *captions, raw))
    rows = pd.DataFrame(read, columns=columns, dtype=object)
    return rows.assign(sample_id=NAME + "/" + rows["relative"], split=None)


def _record(path: Path) -> Any:
    """Return a record as an object, or None when it is none."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        content = parse_json(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _note_missing_files(root: Path, place: Path, log: ProblemLog) -> None:
    """Note what the dataset's own split names and the archive lacks, as an early one does."""
    path = root / SPLITS
    if not path.is_file():
        return
    content = read_json(path, fetch=FETCH)
    parts = content.values() if isinstance(content, dict) else ()
    listed = {str(name) for part in parts if isinstance(part, list) for name in part}
    for name in sorted(listed - set(os.listdir(place))):
        log.add(f"{place.name}/{name}", "file_missing", f"{SPLITS} names it")


def _gender_of(short: str, extra: str, words: GenderWords) -> str | tuple[str, str]:
    """Return the gender that both captions have, or the reason, with a detail, for leaving out."""
    if not short and not extra:
        return "no_captions", ""
    several = several_people(f"{short} {extra}", words)
    if several:
        return "mentions_several", f"the captions have {', '.join(dict.fromkeys(several))}"
    genders = {"short": read_gender(short, words).gender, "extra": read_gender(extra, words).gender}
    for reason, gender in (("no_gender_words", None), ("conflicting_gender_words", BOTH)):
        found = [name for name, own in genders.items() if own == gender]
        if found:
            return reason, f"in the {' and the '.join(found)} caption"
    if genders["short"] != genders["extra"]:
        return "captions_disagree", f"short {genders['short']}, extra {genders['extra']}"
    return str(genders["short"])
