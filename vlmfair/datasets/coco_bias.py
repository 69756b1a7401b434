"""COCOBias: COCO 2014 captions of one person, whose gender annotators saw (Zhao et al., 2021)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

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
from vlmfair.datasets.funnel import AT_PARITY, NOT_IN_POOL, READABLE, WITH_IMAGE, Step
from vlmfair.datasets.images import ImageFolder
from vlmfair.datasets.json_files import read_json, text_of
from vlmfair.datasets.label_files import LINE, header_of, json_rows, read_label_file
from vlmfair.datasets.options import WHOLE_NUMBER
from vlmfair.datasets.splits import FIFTH_OF_EACH_GENDER, SEED, split
from vlmfair.errors import RawDataError
from vlmfair.text.gender import BOTH, read_captions
from vlmfair.text.words import GenderWords, load_gender_words

NAME = "coco_bias"
GENDERS = ("Male", "Female")
UNCLEAR = ("both", "unsure", "", "nan", "none")
SKIN_TONES = {"light": "light", "dark": "dark"}
ID, GENDER, SKIN = "id", "bb_gender", "bb_skin"
# The table of persons has it; its `id` is none of an image.
PERSONS_IMAGE = "image_id"
# Names under which the labels are given out; the columns say whether a row is an image.
LABEL_FILES = (
    *("images_val2014.csv", "images_2014all.csv", "bbAnnotations_2017combined.csv"),
    *("instances_val2014.csv", "instances_2014all.csv"),
)
LABEL_FOLDERS = ("", "annotations", "labels", "imagecaptioning-bias")
CAPTIONS, INSTANCES = "captions_val2014.json", "instances_val2014.json"
ANNOTATION_FOLDERS = ("annotations", "")
LAYOUTS = ("val2014", "images/val2014", "images", "")
PERSON = 1
FETCH = (
    "Unpack val2014.zip and annotations_trainval2014.zip of https://cocodataset.org into this "
    "folder, and put images_val2014.csv beside them, which is given out on request at "
    "https://github.com/princetonvisualai/imagecaptioning-bias."
)
# Whether a region of a crowd is a person: by `counts`, an image with one is none of one person.
CROWDS = ("counts", "ignored")
OPTIONS = {"crowd": CROWDS, "seed": WHOLE_NUMBER}
FUNNEL = (
    READABLE,
    Step("with captions", ("no_captions",)),
    Step("with gender words in the captions", ("no_gender_words",)),
    Step("of one gender in all captions", ("conflicting_gender_words",)),
    Step("with exactly one person", ("no_person", "several_persons")),
    Step("with a gender that annotators saw", ("unclear_gender", "unknown_gender")),
    Step("with the same gender in both", ("label_disagrees",)),
    WITH_IMAGE,
    NOT_IN_POOL,
    AT_PARITY,
)
_ID = re.compile(r"([0-9]{1,12})(\.0*)?")


def parse(
    raw_dir: Path,
    *,
    only: Collection[str] | None = None,
    threads: int = 1,
    crowd: str = "counts",
    seed: str = SEED,
) -> ParsedDataset:
    """Keep images of one person whose gender captions and annotators agree on, and divide them.

    The filters of VL-BICLE, appendix 0.A.2, on the images that Zhao et al. labelled. `captions`
    has all captions of an image in the file's order, spaces tidied. `only` holds file names;
    `crowd` is one of `CROWDS`. Raises RawDataError when the folder or a file is missing, or nothing
    is usable.
    """
    folder = existing_folder(Path(raw_dir), "COCO", FETCH)
    log = ProblemLog(NAME)
    rows = _read_labels(folder, log)
    annotated = rows["relative"].tolist()
    rows = without_repetitions(rows, ["label", "skin"], log)
    if only is not None:
        rows = restrict(rows, map(canonical_path, only), annotated, log)
    wanted = set(rows["number"])
    captions, persons = _read_captions(folder, wanted), _count_persons(folder, wanted)
    own = [captions.get(number, []) for number in rows["number"]]
    rows["captions"] = pd.Series(own, index=rows.index, dtype=object)
    words = load_gender_words()
    faults = [_fault(row, persons[row["number"]], crowd, words) for row in as_records(rows)]
    for row, fault in zip(rows.itertuples(), faults, strict=True):
        if fault:
            log.add(str(row.sample_id), *fault, str(row.raw))
    rows = chosen_rows(rows, [fault is None for fault in faults])
    rows = rows.assign(gender=rows["label"], skin_tone=rows["skin"].map(SKIN_TONES))
    samples = with_images(
        rows.drop(columns=["number", "label", "skin"]),
        ImageFolder(folder, LAYOUTS),
        log,
        threads=threads,
        summarise=False,
    )
    return finish(split(samples, FIFTH_OF_EACH_GENDER, seed, log), log, folder, FETCH)


def canonical_path(path: str) -> str:
    """Return an image's file name: `val2014/COCO_val2014_1.jpg` -> `COCO_val2014_1.jpg`."""
    return path.strip().replace("\\", "/").rsplit("/", 1)[-1]


def file_name(number: int) -> str:
    """Return the file name of an image of COCO's validation set by its number."""
    return f"COCO_val2014_{number:012d}.jpg"


def _read_labels(folder: Path, log: ProblemLog) -> pd.DataFrame:
    path = _label_file(folder)
    table = read_label_file(path, (ID, GENDER), log, fetch=FETCH)
    lines = table.pop(LINE)
    raw = json_rows(table)
    numbers = [_ID.fullmatch(cell.strip()) for cell in table[ID]]
    for line, number, row in zip(lines, numbers, raw, strict=True):
        if number is None:
            detail = "the id is no number of an image"
            log.add(f"{path.name}:{line}", "malformed_row", detail, row)
    readable = [number is not None for number in numbers]
    skin = table[SKIN] if SKIN in table.columns else pd.Series("", index=table.index, dtype=object)
    rows = chosen_rows(
        pd.DataFrame(
            {
                "number": [int(number[1]) if number else 0 for number in numbers],
                "label": table[GENDER].str.strip(),
                "skin": skin.str.strip().str.casefold(),
                "split": None,
                "raw": raw,
            }
        ),
        readable,
    )
    rows["relative"] = rows["number"].map(file_name)
    rows["sample_id"] = NAME + "/" + rows["relative"]
    return rows


def _label_file(folder: Path) -> Path:
    """Return the table that has a row per image, whatever it is called."""
    places = [folder / place / name for name in LABEL_FILES for place in LABEL_FOLDERS]
    found = [place for place in places if place.is_file()]
    for path in found:
        columns = set(header_of(path, fetch=FETCH))
        if {ID, GENDER} <= columns and PERSONS_IMAGE not in columns:
            return path
    if found:
        raise RawDataError(
            f"{found[0]}: this is not the table with a row per image, whose columns are {ID} and "
            f"{GENDER}. {FETCH}"
        )
    return folder / LABEL_FILES[0]


def _annotations(folder: Path, name: str) -> list[Mapping[str, Any]]:
    places = [folder / place / name for place in ANNOTATION_FOLDERS]
    path = next((place for place in places if place.is_file()), places[0])
    content = read_json(path, fetch=FETCH, reduce=_without_outline)
    found = content.get("annotations") if isinstance(content, dict) else None
    if not isinstance(found, list):
        raise RawDataError(f"{path}: there is no list of annotations in it. {FETCH}")
    return [entry for entry in found if isinstance(entry, dict)]


def _without_outline(entry: dict[str, Any]) -> dict[str, Any]:
    entry.pop("segmentation", None)
    return entry


def _read_captions(folder: Path, wanted: Collection[int]) -> dict[int, list[str]]:
    """Return the captions of the wanted images that are more than white space, in their order."""
    captions: dict[int, list[str]] = {}
    for entry in _annotations(folder, CAPTIONS):
        number, text = entry.get("image_id"), text_of(entry, "caption")
        if text is not None and isinstance(number, int) and number in wanted:
            captions.setdefault(number, []).append(text)
    return captions


def _count_persons(folder: Path, wanted: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the number of boxes of one person and that of crowds in each wanted image."""
    found: Counter[tuple[int, bool]] = Counter()
    for entry in _annotations(folder, INSTANCES):
        number = entry.get("image_id")
        if entry.get("category_id") == PERSON and isinstance(number, int) and number in wanted:
            found[number, bool(entry.get("iscrowd"))] += 1
    return {number: (found[number, False], found[number, True]) for number in wanted}


def _fault(
    row: Mapping[str, Any], persons: Sequence[int], crowd: str, words: GenderWords
) -> tuple[str, str] | None:
    """Return the reason, and a detail, of the first filter that an image fails; None for none."""
    captions = row["captions"]
    if not captions:
        return "no_captions", ""
    reading = read_captions(captions, words)
    if reading.gender is None:
        return "no_gender_words", ""
    if reading.gender == BOTH:
        detail = f"{', '.join(dict.fromkeys(reading.masculine + reading.feminine))}"
        return "conflicting_gender_words", f"the captions have {detail}"
    alone, crowds = persons[0], persons[1] if crowd == "counts" else 0
    if alone + crowds == 0:
        return "no_person", ""
    if (alone, crowds) != (1, 0):
        return "several_persons", f"{alone} boxes of one person, {crowds} of a crowd"
    if row["label"].casefold() in UNCLEAR:
        return "unclear_gender", f"the label is {json.dumps(row['label'])}"
    if row["label"] not in GENDERS:
        return "unknown_gender", ""
    if row["label"] != reading.gender:
        return "label_disagrees", f"{reading.gender} in captions, {row['label']} by annotators"
    return None
