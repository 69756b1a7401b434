"""What every dataset parser hands back, and the closed list of reasons for leaving a record out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from vlmfair.contracts import PROBLEMS, SAMPLES, conform
from vlmfair.datasets.images import ImageFacts, ImageFolder, check_images, path_fault
from vlmfair.errors import RawDataError

LEFT_OUT = {
    "malformed_row": "the row has too few or too many fields, or a quote that never closes",
    "repeated_header": "the row repeats the header, as concatenated files have it",
    "invalid_path": "the image path is empty or holds control characters",
    "path_outside": "the image path, or a link on it, leaves the raw folder",
    "duplicate_record": "the same image again with the same labels; the first one stays",
    "conflicting_record": "the same image with different labels; none of them stays",
    "unknown_age": "the age is not one of the dataset's labels",
    "unknown_gender": "the gender is not one of the dataset's labels",
    "unknown_race": "the race is not one of the dataset's labels",
    "unknown_target": "the row does not say whether the image is real or generated",
    "unknown_class": "the class is not one of the dataset's",
    "other_class": "the person's class is none of those that are asked about",
    "several_persons": "the image has more than one annotated person",
    "malformed_name": "the file name does not state age, gender, race and time",
    "malformed_record": "the JSON cannot be read, or lacks what the dataset promises",
    "file_missing": "a list of the dataset names this file, and it is not there",
    "no_url": "the row has no address of a photograph",
    "no_person": "no person is annotated in the image",
    "no_scene_graph": "the scene graphs have no entry for the image",
    "no_thought": "the record has no reasoning steps",
    "no_captions": "the image has no caption, or only white space",
    "no_gender_words": "the text that must have a gender word has none",
    "conflicting_gender_words": "there are words of both genders",
    "captions_disagree": "one caption says man and the other woman",
    "mentions_several": "the text has a plural or collective noun for people",
    "unclear_gender": "the annotators' label is Both, Unsure or missing",
    "label_disagrees": "the words and the annotators disagree on the gender",
    "who_question": "the question asks who",
    "not_neutralisable": "a gender word of the question has no neutral equivalent",
    "shorter_question": "a longer question about the same image is used",
    "pool_image": "the demonstration pool has the same picture",
    "down_sampled": "left out at random, so that the queries have as many of each gender",
    "not_annotated": "the image was asked for, and no label file has a row for it",
    "folder_absent": "no image below this folder was unpacked; one problem for all its rows",
    "ambiguous_image": "several files have this name, with different contents",
    "image_missing": "no such file in the raw folder",
    "image_empty": "the file has no bytes",
    "image_too_large": "the file or the picture is larger than any photograph of this kind",
    "image_unreadable": "the file cannot be decoded to the last pixel, or is no regular file",
}
KEPT = {
    "other_case": "the file's name differs from the label file's in upper and lower case only",
    "ignored_age": "the age code is unknown; the image stays, without an age",
    "ignored_gender": "the gender code is unknown; the image stays, without a gender",
    "ignored_skin_tone": "the skin tone is unknown; the image stays, without a skin tone",
    "ignored_box": "the bounding box cannot be read; the image stays, without a box",
    "corrected_labels": "the file name lacks a label; a published correction gives it",
    "defaulted_labels": "the file name lacks a label; it is filled in as the paper's totals imply",
    "space_in_name": "the file name has a space in it; its labels are complete",
    "shared_time": "another image of the same time stamp has another gender or race; both stay",
    "shared_photograph": "another record shows the same photograph; both stay, on one side",
    "label_conflict": "a selection list and the dataset disagree; the list's label is used",
}
REASONS = {**LEFT_OUT, **KEPT}
_TYPES = {"width": pa.int32(), "height": pa.int32(), "captions": pa.list_(pa.string())}


@dataclass(frozen=True)
class ParsedDataset:
    """The usable records (contract `samples`) and the others (contract `problems`)."""

    samples: pa.Table
    problems: pa.Table


class ProblemLog:
    """Collects problem records of one dataset; reasons outside the closed list are refused."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self._rows: list[tuple[str, str, str, str]] = []

    def add(self, record: str, reason: str, detail: str = "", raw: str = "") -> None:
        """Note one record; `raw` is the row as it was read. Raises KeyError on a new reason."""
        meaning = REASONS[reason]
        self._rows.append((record, reason, detail or meaning, raw))

    def counts(self) -> str:
        """Return how often each reason occurs, most frequent first: `image_missing 3, ...`."""
        found = Counter(reason for _, reason, _, _ in self._rows)
        return ", ".join(f"{reason} {count}" for reason, count in found.most_common())

    def table(self) -> pa.Table:
        """Return the records as a table of the contract `problems`."""
        names = ("record", "reason", "detail", "raw")
        columns = [[_printable(row[place]) for row in self._rows] for place in range(len(names))]
        table = pa.table(
            {"dataset": pa.array([self.dataset] * len(self._rows), pa.string())}
            | {name: pa.array(column, pa.string()) for name, column in zip(names, columns)}
        )
        return conform(table, PROBLEMS)


def _printable(text: str) -> str:
    """Return text that can be stored, also where a file's name was no UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def chosen_rows(rows: pd.DataFrame, chosen: Sequence[bool]) -> pd.DataFrame:
    """Return the rows that are chosen; none of no rows, where pandas would drop the columns."""
    return rows[pd.Series(chosen, index=rows.index, dtype=bool)]


def as_records(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return each row as a dictionary by column name."""
    names = [str(name) for name in rows.columns]
    return [dict(zip(names, row, strict=True)) for row in rows.itertuples(index=False, name=None)]


def with_clean_paths(
    rows: pd.DataFrame, lines: Iterable[int], file_name: str, log: ProblemLog
) -> pd.DataFrame:
    """Keep the rows whose `relative` path stays below the raw folder; note the others by line."""
    faults = [path_fault(path) for path in rows["relative"]]
    for line, fault, raw in zip(lines, faults, rows["raw"], strict=True):
        if fault:
            log.add(f"{file_name}:{line}", fault, raw=raw)
    return chosen_rows(rows, [not fault for fault in faults])


def without_repetitions(rows: pd.DataFrame, labels: list[str], log: ProblemLog) -> pd.DataFrame:
    """Keep one row per `sample_id`: repeated rows go, rows whose `labels` contradict all go.

    `rows` also has the column `raw` (JSON); what goes is noted in `log`.
    """
    repeated = rows["sample_id"].duplicated(keep=False)
    if not repeated.any():
        return rows
    suspects = rows[repeated].fillna(dict.fromkeys(labels, ""))
    variants = suspects.drop_duplicates(["sample_id", *labels]).groupby("sample_id").size()
    conflicting = rows["sample_id"].isin(variants.index[variants > 1])
    duplicate = rows["sample_id"].duplicated(keep="first") & ~conflicting
    for reason, chosen in (("conflicting_record", conflicting), ("duplicate_record", duplicate)):
        for row in rows[chosen].itertuples():
            log.add(str(row.sample_id), reason, raw=str(row.raw))
    return rows[~conflicting & ~duplicate]


def restrict(
    rows: pd.DataFrame, only: Iterable[str], annotated: Collection[str], log: ProblemLog
) -> pd.DataFrame:
    """Keep the rows whose `relative` path is in `only`; note those that no label file names."""
    wanted, known = dict.fromkeys(only), set(annotated)
    for relative in wanted:
        if relative not in known:
            log.add(f"{log.dataset}/{relative}", "not_annotated")
    return rows[rows["relative"].isin(list(wanted))]


def without_ambiguous_images(
    rows: pd.DataFrame, folder: ImageFolder, log: ProblemLog
) -> pd.DataFrame:
    """Drop the rows whose file name several folders have, with different contents."""
    ambiguous = [folder.is_ambiguous(relative) for relative in rows["relative"]]
    for row in chosen_rows(rows, ambiguous).itertuples():
        log.add(str(row.sample_id), "ambiguous_image", raw=str(row.raw))
    return chosen_rows(rows, [not fault for fault in ambiguous])


def with_images(
    rows: pd.DataFrame, folder: ImageFolder, log: ProblemLog, *, threads: int, summarise: bool
) -> pa.Table:
    """Open, check and hash the image of each row and return the table of the contract `samples`.

    `rows` has `sample_id`, `relative`, `split`, `raw` and label columns. `summarise` notes the
    rows below a folder that was never unpacked as one problem. Damaged images go to `log`.
    """
    if summarise:
        rows = _without_absent_folders(rows, folder, log)
    found = [folder.find(relative) for relative in rows["relative"]]
    checked = check_images([place.path for place in found if place.path is not None], threads)
    kept, facts, paths = [], [], []
    for sample_id, raw, place in zip(rows["sample_id"], rows["raw"], found, strict=True):
        fact = next(checked) if place.path is not None else None
        if place.reason:
            log.add(sample_id, place.reason, place.detail, raw)
        if isinstance(fact, ImageFacts):
            facts.append(fact)
            paths.append(str(place.path))
        elif fact is not None:
            log.add(sample_id, fact.reason, fact.detail, raw)
        kept.append(isinstance(fact, ImageFacts))
    samples = chosen_rows(rows, kept).drop(columns=["relative"])
    samples = samples.assign(
        dataset=log.dataset,
        image=paths,
        image_sha256=[fact.sha256 for fact in facts],
        width=[fact.width for fact in facts],
        height=[fact.height for fact in facts],
    )
    return conform(_to_table(samples), SAMPLES)


def _without_absent_folders(
    rows: pd.DataFrame, folder: ImageFolder, log: ProblemLog
) -> pd.DataFrame:
    top = rows["relative"].str.partition("/")
    absent = []
    for name, count in top.loc[top[1] == "/", 0].value_counts(sort=False).items():
        if not folder.has_folder(str(name)):
            absent.append(name)
            detail = f"{count} labelled images lie below {name}/, which was not unpacked"
            log.add(f"{log.dataset}/{name}/", "folder_absent", detail)
    return rows[~((top[1] == "/") & top[0].isin(absent))]


def _to_table(samples: pd.DataFrame) -> pa.Table:
    """Convert text columns with missing values to nulls, whatever pandas calls them."""
    columns = {}
    for name in samples.columns:
        values = [None if value is None or value != value else value for value in samples[name]]
        columns[str(name)] = pa.array(values, _TYPES.get(str(name), pa.string()))
    return pa.table(columns)


def existing_folder(raw_dir: Path, dataset: str, fetch: str) -> Path:
    """Return `raw_dir`; raise RawDataError when it is no folder, saying what to fetch."""
    if not raw_dir.is_dir():
        what = "is not a folder" if raw_dir.exists() else "does not exist"
        raise RawDataError(f"{raw_dir}: the raw folder of {dataset} {what}. {fetch}")
    return raw_dir


def finish(samples: pa.Table, log: ProblemLog, raw_dir: Path, advice: str) -> ParsedDataset:
    """Return both tables; raise RawDataError when no record is usable."""
    if not len(samples):
        reasons = log.counts() or "the label files hold no rows"
        raise RawDataError(f"{raw_dir}: no record of {log.dataset} is usable ({reasons}). {advice}")
    return ParsedDataset(samples, log.table())
