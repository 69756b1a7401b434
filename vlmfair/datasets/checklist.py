"""Which datasets are there, and whether a real download has the counts that a paper prints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vlmfair.datasets import funnel_of
from vlmfair.datasets.acceptance import GroupCount, compare_counts, compare_funnel
from vlmfair.datasets.base import LEFT_OUT, ParsedDataset
from vlmfair.errors import RawDataError
from vlmfair.provenance import write_text

ABOUT_DATASET = ("dataset", "raw", "asked_for", "found", "images", "left_out")
ABOUT_COUNT = ("attribute", "group", "published", "expected", "counted", "verdict", "note")
COLUMNS = (*ABOUT_DATASET, *ABOUT_COUNT, "next_step")
AGREES, DIFFERS = "agrees", "differs"
YES, NO = "yes", "no"
# Counts that the error names; the checklist has all.
SHOWN = 3
TONE_RULES = (
    "The paper's rule from votes to skin tones is unpublished: compare Table 1 with the counts of "
    "vlmfair.datasets.facet.tone_counts(samples), and write the nearest rule into "
    "datasets.facet.tone_rule."
)
ALL_IMAGES = "Look into problems.parquet beside the samples for what was left out, and why."


@dataclass(frozen=True)
class CheckedDataset:
    """One dataset of the config: what was found in its raw folder, and what is to be done.

    `asked_for` says whether a paper that is built needs it. `images` and `left_out` are None
    where the folder was not read.
    """

    name: str
    raw: str
    asked_for: bool
    found: bool
    next_step: str = ""
    images: int | None = None
    left_out: int | None = None
    counts: tuple[GroupCount, ...] = ()


def check_parsed(
    name: str,
    raw: str,
    parsed: ParsedDataset,
    entry: Mapping[str, Any],
    *,
    asked_for: bool = True,
    options: Mapping[str, str] | None = None,
) -> CheckedDataset:
    """Compare a dataset that was read with its `acceptance` in `entry`, that of the sheet.

    `options` are the rules by which it was read. Problems that leave a record in are not counted
    as left out. Raises ConfigError on a step of the funnel that the dataset does not have.
    """
    acceptance = entry.get("acceptance", {})
    counts = compare_counts(parsed.samples, acceptance)
    funnel = funnel_of(name, parsed)
    if funnel is not None:
        counts += compare_funnel(funnel, acceptance)
    return CheckedDataset(
        name,
        raw,
        asked_for,
        found=True,
        next_step=_hints(name, counts, acceptance.get("options", {}), options or {}),
        images=len(parsed.samples),
        left_out=sum(reason in LEFT_OUT for reason in parsed.problems["reason"].to_pylist()),
        counts=tuple(counts),
    )


def _hints(
    name: str,
    counts: Sequence[GroupCount],
    accepted: Mapping[str, str],
    options: Mapping[str, str],
) -> str:
    """Return what may explain the counts that differ, nothing where all agree."""
    differing = {count.attribute for count in counts if not count.agrees}
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
                "left_out": dataset.left_out,
                "next_step": dataset.next_step if not drawn or not dataset.found else "",
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
                "verdict": "" if drawn else AGREES if count.agrees else DIFFERS,
                "note": count.note,
            }
            for count in dataset.counts
        ]
    written = [
        ["" if row.get(name) is None else str(row[name]) for name in COLUMNS] for row in rows
    ]
    return pd.DataFrame(written, columns=list(COLUMNS), dtype=object)


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
    parts += _bullets("Notes", notes, "note")
    parts += _bullets("Next steps", datasets[datasets["next_step"] != ""], "next_step")
    return "\n\n".join(parts) + "\n"


def require_complete(checklist: pd.DataFrame, where: str) -> None:
    """Raise RawDataError when a dataset that is asked for is missing or a count differs.

    `where` is the file that says what to do.
    """
    missing = checklist[(checklist["asked_for"] == YES) & (checklist["found"] == NO)]
    differing = checklist[checklist["verdict"] == DIFFERS]
    faults = []
    if len(missing):
        faults.append(f"missing: {', '.join(missing['dataset'])}")
    if len(differing):
        named = [
            f"{row.dataset} {row.attribute} {row.group} ({row.counted} for {row.expected})"
            for row in differing.itertuples()
        ]
        more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
        faults.append(f"not as a paper counts them: {', '.join(named[:SHOWN])}{more}")
    if faults:
        raise RawDataError(
            f"the datasets are not complete; {'; '.join(faults)}. Do what {where} says under Next "
            f"steps, and run snakemake check again."
        )


def _yes(fact: bool) -> str:
    return YES if fact else NO


def _table(rows: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return a Markdown table whose columns are also aligned on a screen."""
    lines = [[name.replace("_", " ") for name in columns]]
    lines += [[_cell(value) for value in row] for row in rows[list(columns)].to_numpy().tolist()]
    widths = [max(3, *(len(line[place]) for line in lines)) for place in range(len(columns))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |"
        for line in lines
    )


def _cell(text: str) -> str:
    """Return a text on one line, in which a bar ends no cell."""
    return " ".join(text.split()).replace("|", "\\|")


def _bullets(title: str, rows: pd.DataFrame, column: str) -> list[str]:
    lines = [f"- {name}: {_cell(text)}" for name, text in zip(rows["dataset"], rows[column])]
    return [f"{title}:", "\n".join(lines)] if lines else []
