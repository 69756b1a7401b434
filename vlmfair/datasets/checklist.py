"""Which datasets are there, and whether a real download has the counts that a paper prints."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from vlmfair.datasets import funnel_of, parse_dataset
from vlmfair.datasets.acceptance import GroupCount, compare_counts, compare_funnel
from vlmfair.datasets.base import LEFT_OUT, ParsedDataset
from vlmfair.datasets.images import without_opening
from vlmfair.errors import RawDataError
from vlmfair.provenance import write_text
from vlmfair.screen_tables import aligned_table, bullets

ABOUT_DATASET = ("dataset", "raw", "asked_for", "found", "images", "expected", "left_out")
ABOUT_COUNT = ("attribute", "group", "published", "expected", "counted", "verdict", "note")
COLUMNS = tuple(dict.fromkeys((*ABOUT_DATASET, *ABOUT_COUNT, "next_step")))
YES, NO = "yes", "no"
AGREES, DIFFERS, MAY_DIFFER = "agrees", "differs", "may differ"
# Reasons of problems that mean: the labels name an image, and it is not there.
NOT_THERE = ("image_missing", "image_empty")
# Counts that the error names; the checklist has all.
SHOWN = 3
TONE_RULES = (
    "The paper's rule from votes to skin tones is unpublished: compare Table 1 with the counts of "
    "vlmfair.datasets.facet.tone_counts(samples), and write the nearest rule into "
    "datasets.facet.tone_rule."
)
ALL_IMAGES = (
    "problems.parquet beside the samples, written when the dataset is read, says what was left "
    "out, and why."
)
FETCH_IMAGES = "unpack or fetch what is missing."
GONE_IMAGES = "photographs.csv in the raw folder says why; some are gone for good."


@dataclass(frozen=True)
class CheckedDataset:
    """One dataset of the config: what was found in its raw folder, and what is to be done.

    `asked_for` says whether a paper that is built needs it. `images` of the `expected` ones, those
    that the labels name, are there; where photographs vanish, `may_lack` some. The numbers are
    None where the folder was not read.
    """

    name: str
    raw: str
    asked_for: bool
    found: bool
    next_step: str = ""
    images: int | None = None
    expected: int | None = None
    left_out: int | None = None
    counts: tuple[GroupCount, ...] = ()
    may_lack: bool = False


def check_raw(
    name: str,
    raw: str,
    entry: Mapping[str, Any],
    *,
    only: Collection[str] | None = None,
    asked_for: bool = True,
    drawn: bool = False,
    options: Mapping[str, str] | None = None,
    threads: int = 1,
) -> CheckedDataset:
    """Read the labels of a raw folder, and look which images are there without opening one.

    `only` are the images that a published list names. A folder that cannot be read counts as not
    found, with the parser's sentence as the next step. Damaged images are found when the dataset
    is read for good.
    """
    try:
        with without_opening() as seen:
            parsed = parse_dataset(name, Path(raw), only=only, threads=threads, options=options)
    except RawDataError as error:
        return CheckedDataset(name, raw, asked_for, found=False, next_step=str(error))
    return check_parsed(
        name,
        raw,
        parsed,
        entry,
        images=len(seen),
        asked_for=asked_for,
        drawn=drawn,
        listed=only is not None,
        options=options,
    )


def check_parsed(
    name: str,
    raw: str,
    parsed: ParsedDataset,
    entry: Mapping[str, Any],
    *,
    images: int,
    asked_for: bool = True,
    drawn: bool = False,
    listed: bool = False,
    options: Mapping[str, str] | None = None,
) -> CheckedDataset:
    """Compare a dataset that was read with its `acceptance` in `entry`, that of the sheet.

    `images` is the number of image files that are there; `listed` says that only those of a
    published list were looked for, `drawn` that it is not as large as the released one, and
    `options` are the rules by which it was read. Problems that leave a record in are not counted
    as left out. Raises ConfigError on a step of the funnel that the dataset does not have.
    """
    acceptance = entry.get("acceptance", {})
    if acceptance.get("of_list") and not listed:
        acceptance = {}
    counts = compare_counts(parsed.samples, acceptance)
    funnel = funnel_of(name, parsed)
    if funnel is not None:
        counts += compare_funnel(funnel, acceptance)
    expected = images + _images_not_there(parsed)
    if entry.get("labels_in_names") and not drawn:
        expected = max(expected, entry["images"])
    hints = _hints(name, counts, acceptance.get("options", {}), options or {})
    if images < expected:
        what = GONE_IMAGES if entry.get("photographs") else FETCH_IMAGES
        hints = f"{_missing_images(parsed, expected - images)}: {what} {hints}".strip()
    return CheckedDataset(
        name,
        raw,
        asked_for,
        found=True,
        next_step=hints,
        images=images,
        expected=expected,
        left_out=sum(reason in LEFT_OUT for reason in parsed.problems["reason"].to_pylist()),
        counts=tuple(counts),
        may_lack=bool(entry.get("photographs")),
    )


def _images_not_there(parsed: ParsedDataset) -> int:
    """Return how many images the labels name that are not there."""
    problems = parsed.problems.select(["reason", "detail"]).to_pylist()
    absent = [row["detail"] for row in problems if row["reason"] == "folder_absent"]
    # One problem stands for all images below a folder that was never unpacked.
    below = [re.match(r"\d+", detail or "") for detail in absent]
    single = sum(row["reason"] in NOT_THERE for row in problems)
    return single + sum(int(number[0]) for number in below if number)


def _missing_images(parsed: ParsedDataset, count: int) -> str:
    reasons = (*NOT_THERE, "folder_absent")
    problems = parsed.problems.select(["record", "reason"]).to_pylist()
    named = [str(row["record"]) for row in problems if row["reason"] in reasons]
    such = f", such as {', '.join(named[:SHOWN])}" if named else ""
    images = "1 image is" if count == 1 else f"{count} images are"
    return f"{images} missing{such}"


def _hints(
    name: str,
    counts: Sequence[GroupCount],
    accepted: Mapping[str, str],
    options: Mapping[str, str],
) -> str:
    """Return what may explain the counts that differ, nothing where all agree."""
    differing = {count.attribute for count in counts if not count.agrees and not count.may_differ}
    if not differing:
        return ""
    hints = [
        f"The printed counts are those of datasets.{name}.{option}: {value}."
        for option, value in accepted.items()
        if options.get(option, value) != value
    ]
    of_tones = name == "facet" and "skin_tone" in differing
    if of_tones:
        hints.append(TONE_RULES)
    if not hints or (of_tones and differing != {"skin_tone"}):
        hints.append(ALL_IMAGES)
    return " ".join(hints)


def as_checklist(checked: Iterable[CheckedDataset], *, drawn: bool) -> pd.DataFrame:
    """Return a row for each dataset, and below it one for each of its counts; all text.

    Columns: `COLUMNS`; what does not apply is empty. Counts of drawn files get no verdict.
    """
    rows = []
    for dataset in checked:
        named = {"dataset": dataset.name, "raw": dataset.raw}
        rows.append(
            {
                **named,
                "asked_for": _yes(dataset.asked_for),
                "found": _yes(dataset.found),
                "images": dataset.images,
                "expected": dataset.expected,
                "left_out": dataset.left_out,
                "next_step": dataset.next_step if not drawn or not dataset.found else "",
                "verdict": "" if drawn else _verdict_on_images(dataset),
            }
        )
        rows += [
            {
                **named,
                "attribute": count.attribute,
                "group": count.group,
                "published": count.published,
                "expected": count.expected,
                "counted": count.found,
                "verdict": "" if drawn else _verdict(count),
                "note": count.note,
            }
            for count in dataset.counts
        ]
    written = [
        ["" if row.get(name) is None else str(row[name]) for name in COLUMNS] for row in rows
    ]
    return pd.DataFrame(written, columns=list(COLUMNS), dtype=object)


def _verdict(count: GroupCount) -> str:
    return AGREES if count.agrees else MAY_DIFFER if count.may_differ else DIFFERS


def _verdict_on_images(dataset: CheckedDataset) -> str:
    if dataset.images is None or dataset.expected is None:
        return ""
    complete = dataset.images >= dataset.expected
    return AGREES if complete else MAY_DIFFER if dataset.may_lack else DIFFERS


def write_checklist(path: str | os.PathLike[str], checklist: pd.DataFrame) -> None:
    """Write a checklist as a comma-separated file, whole or not at all."""
    write_text(path, checklist.to_csv(index=False, lineterminator="\n"))


def read_checklist(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read what `write_checklist` wrote."""
    return pd.read_csv(path, dtype=object, keep_default_na=False)


def as_markdown(checklist: pd.DataFrame) -> str:
    """Return a checklist as two tables, of datasets and of counts, the notes and the next steps."""
    of_dataset = checklist["found"] != ""
    datasets, counts = checklist[of_dataset], checklist[~of_dataset]
    parts = [_table(datasets, ABOUT_DATASET)]
    if len(counts):
        parts.append(_table(counts, ("dataset", *ABOUT_COUNT[:-1])))
    notes = counts[counts["note"] != ""].drop_duplicates(["dataset", "note"])
    parts += bullets("Notes", zip(notes["dataset"], notes["note"]))
    steps = datasets[datasets["next_step"] != ""]
    parts += bullets("Next steps", zip(steps["dataset"], steps["next_step"]))
    return "\n\n".join(parts) + "\n"


def require_complete(checklist: pd.DataFrame, where: str) -> None:
    """Raise RawDataError when what is asked for is missing, lacks images, or a count differs.

    Counts are compared for every dataset that is there. `where` is the file that says what to do.
    """
    of_dataset = checklist["found"] != ""
    asked = of_dataset & (checklist["asked_for"] == YES)
    differs = checklist["verdict"] == DIFFERS
    missing = checklist[asked & (checklist["found"] == NO)]["dataset"].tolist()
    faults = {
        "missing": [", ".join(missing)] if missing else [],
        "without some images": [
            f"{row.dataset} ({row.images} of {row.expected})"
            for row in checklist[asked & differs].itertuples()
        ],
        "not as a paper counts them": [
            f"{row.dataset} {row.attribute} {row.group} ({row.counted} for {row.expected})"
            for row in checklist[~of_dataset & differs].itertuples()
        ],
    }
    named = [f"{fault}: {_first(names)}" for fault, names in faults.items() if names]
    if named:
        raise RawDataError(
            f"the datasets are not complete; {'; '.join(named)}. Do what {where} says under Next "
            f"steps, and run snakemake check again."
        )


def _first(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{', '.join(names[:SHOWN])}{more}"


def _yes(fact: bool) -> str:
    return YES if fact else NO


def _table(rows: pd.DataFrame, columns: Sequence[str]) -> str:
    head = [name.replace("_", " ") for name in columns]
    return aligned_table([head, *rows[list(columns)].to_numpy().tolist()])
