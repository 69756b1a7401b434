"""The GRAS image set: the authors' published lists, or a fresh draw of the same balance (§ 3.1)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from vlmfair.contracts import SAMPLES, conform
from vlmfair.datasets import ai_face, canonical_path, fairface
from vlmfair.datasets.base import KEPT, LEFT_OUT, ParsedDataset, ProblemLog
from vlmfair.datasets.label_files import LINE, json_rows, read_label_file
from vlmfair.errors import ConfigError, RawDataError
from vlmfair.provenance import sha256_of_file

METHODS = ("published", "resample")
GROUPS = {
    "gender": fairface.GENDERS,
    "race": fairface.RACES,
    "age": ("20-29", "30-39", "40-49", "50-59", "60-69"),
    "skin_tone": ai_face.SKIN_TONES,
}
MEASURED = {"fairface": ("gender", "race", "age"), "ai_face": ("skin_tone",)}
CELL = {"fairface": ("age", "gender", "race"), "ai_face": ("skin_tone",)}
LIST_COLUMNS = {"skin_tone": "Skin Tone"}
PER_CELL, PER_TONE = 51, 144
FETCH_LIST = "Fetch the list again from https://github.com/shaivimalik/gras_bias_bench."


def select_images(
    samples: Mapping[str, pa.Table],
    *,
    method: str,
    lists: Mapping[str, Path] | None = None,
    problems: Mapping[str, pa.Table] | None = None,
    per_cell: int = PER_CELL,
    per_tone: int = PER_TONE,
    seed: int = 0,
) -> ParsedDataset:
    """Choose the images of `fairface` and `ai_face`; only the labels measured on each stay.

    `published` takes the images of the authors' `lists`, with the lists' labels. A listed image
    without a sample becomes a problem, for the reason that `problems` (the parsers') gives.
    `resample` draws `per_cell` images from each age x gender x race cell of FairFace and
    `per_tone` real images of each skin tone of AI-Face; the draw depends on `seed` and the sample
    ids, not on row order. Raises ConfigError on an unknown method or a missing list, RawDataError
    on a list with an unknown group or a repeated image, or when a cell has too few images.
    """
    chosen = []
    for dataset in _datasets(samples):
        if method == "published":
            path = (lists or {}).get(dataset)
            if path is None:
                raise ConfigError(
                    f"the GRAS selection has no list for {dataset}. Give the path of the authors' "
                    f"selected_images file or write selection: resample."
                )
            listed = read_selection_list(path, dataset)
            table = (problems or {}).get(dataset)
            chosen.append(_published(samples[dataset], listed, dataset, table))
        elif method == "resample":
            wanted = per_cell if dataset == "fairface" else per_tone
            rng = np.random.default_rng([seed, sorted(MEASURED).index(dataset)])
            drawn = _resample(samples[dataset], dataset, wanted, rng)
            chosen.append(ParsedDataset(drawn, ProblemLog(dataset).table()))
        else:
            raise ConfigError(
                f"{method}: no such GRAS selection. Write one of {', '.join(METHODS)}."
            )
    return ParsedDataset(
        pa.concat_tables([part.samples for part in chosen]),
        pa.concat_tables([part.problems for part in chosen]),
    )


def check_list_digest(path: Path, sha256: str) -> None:
    """Raise RawDataError unless the file exists and has this SHA-256."""
    if not path.is_file():
        raise RawDataError(f"{path}: the selection list is missing. {FETCH_LIST}")
    found = sha256_of_file(path)
    if found != sha256:
        raise RawDataError(
            f"{path}: the SHA-256 is {found}, not {sha256} as the configuration states. "
            f"{FETCH_LIST} If another list is meant, write its SHA-256 into the configuration."
        )


def read_selection_list(path: Path, dataset: str) -> pd.DataFrame:
    """Read a list: columns sample_id, raw (JSON) and the attributes measured on the dataset.

    Raises RawDataError with the line when a label is no group of GRAS, an image is listed twice,
    or a row is broken: a list that is not exactly right is not the authors' sample.
    """
    names = {name: LIST_COLUMNS.get(name, name) for name in MEASURED[dataset]}
    log = ProblemLog(dataset)
    table = read_label_file(path, ["file", *names.values()], log, fetch=FETCH_LIST)
    broken = log.table().to_pylist()
    if broken:
        raise RawDataError(f"{path}: {broken[0]['record']}: {broken[0]['detail']}. {FETCH_LIST}")
    lines = table.pop(LINE)
    rows = pd.DataFrame({name: table[column].str.strip() for name, column in names.items()})
    rows["sample_id"] = [f"{dataset}/{canonical_path(dataset, file)}" for file in table["file"]]
    rows["raw"] = json_rows(table)
    for name in names:
        for line, value in zip(lines, rows[name], strict=True):
            if value not in GROUPS[name]:
                raise RawDataError(
                    f"{path}:{line}: {names[name]} {value[:60]!r} is not a group of GRAS "
                    f"({', '.join(GROUPS[name])}). {FETCH_LIST}"
                )
    repeated = rows["sample_id"].duplicated()
    if repeated.any():
        line, sample_id = lines[repeated].iloc[0], rows.loc[repeated, "sample_id"].iloc[0]
        raise RawDataError(f"{path}:{line}: {sample_id} is listed twice. {FETCH_LIST}")
    return rows


def selection_statistics(images: pa.Table, problems: pa.Table) -> pd.DataFrame:
    """Count listed, used, missing and unreadable images per dataset, attribute and group.

    Columns dataset, attribute, group, listed, used, missing, unreadable; listed is the sum of the
    other three, and unreadable has every reason but a file that is not there. Beside the
    attributes there are `all`, the cells `age x gender x race` and `source x skin_tone`, with
    groups joined by " / ". Groups without images are listed with 0.
    """
    rows = pd.concat([_used(images), _left_out(problems)], ignore_index=True)
    rows["source"] = [_source(sample_id) for sample_id in rows["sample_id"]]
    tables = []
    for dataset in _datasets(dict.fromkeys(rows["dataset"])):
        of_dataset = rows[rows["dataset"] == dataset]
        for names in [(), *((name,) for name in MEASURED[dataset]), _cross(dataset)]:
            counted = _count(of_dataset, names)
            counted.insert(0, "dataset", dataset)
            tables.append(counted)
    return pd.concat(tables, ignore_index=True)


def check_share_left_out(
    selected: ParsedDataset, limit: float, problem_files: Mapping[str, str | PathLike[str]]
) -> None:
    """Raise RawDataError when more than `limit` (0 to 1) of a dataset's listed images are lost.

    `problem_files` are the parsers' tables of problems by dataset, which the message names: the
    selection's own is not written when this stops it.
    """
    counts = selection_statistics(selected.samples, selected.problems)
    for row in counts[counts["attribute"] == "all"].to_dict("records"):
        lost = row["missing"] + row["unreadable"]
        if lost > limit * row["listed"]:
            raise RawDataError(
                f"{row['dataset']}: {lost} of {row['listed']} selected images cannot be used "
                f"({row['missing']} missing, {row['unreadable']} unreadable). Complete the raw "
                f"folder; {problem_files[row['dataset']]} has the reasons."
            )


def _datasets(found: Iterable[str]) -> list[str]:
    unknown = [name for name in found if name not in MEASURED]
    if unknown:
        raise ConfigError(
            f"{unknown[0]}: GRAS measures nothing on this dataset. Give {', '.join(MEASURED)}."
        )
    return [name for name in MEASURED if name in found]


def _published(
    samples: pa.Table, listed: pd.DataFrame, dataset: str, problems: pa.Table | None
) -> ParsedDataset:
    log = ProblemLog(dataset)
    notes: dict[str, list[dict[str, Any]]] = {}
    for row in problems.to_pylist() if problems is not None else []:
        notes.setdefault(row["record"], []).append(row)
    place_of = {name: place for place, name in enumerate(samples["sample_id"].to_pylist())}
    known = samples.select(["sample_id", *MEASURED[dataset]]).to_pylist()
    places, chosen = [], []
    for listed_row in listed.to_dict("records"):
        row = {str(name): str(value) for name, value in listed_row.items()}
        place = place_of.get(row["sample_id"])
        # A sample may have a twin that was left out; that twin is not what the list means.
        told = LEFT_OUT if place is None else KEPT
        noted = [note for note in notes.get(row["sample_id"], []) if note["reason"] in told]
        for note in noted:
            log.add(row["sample_id"], note["reason"], note["detail"], row["raw"])
        if place is not None:
            _note_conflicts(row, known[place], dataset, log)
            places.append(place)
            chosen.append(row)
        elif not noted:
            log.add(row["sample_id"], "image_missing", raw=row["raw"])
    labels = {name: [row[name] for row in chosen] for name in MEASURED[dataset]}
    return ParsedDataset(_measured(samples.take(places), dataset, labels), log.table())


def _note_conflicts(
    row: Mapping[str, str], known: Mapping[str, str | None], dataset: str, log: ProblemLog
) -> None:
    for name in MEASURED[dataset]:
        if known[name] is not None and known[name] != row[name]:
            detail = f"{name}: the list says {row[name]}, the dataset {known[name]}"
            log.add(row["sample_id"], "label_conflict", detail, row["raw"])


def _resample(samples: pa.Table, dataset: str, wanted: int, rng: np.random.Generator) -> pa.Table:
    rows = samples.select(["sample_id", *CELL[dataset]]).to_pandas()
    rows["place"] = np.arange(len(rows))
    if "target" in samples.column_names:
        rows = rows[(samples["target"].to_pandas() == "real").to_numpy()]
    if dataset == "ai_face" and rows["skin_tone"].isna().all():
        raise RawDataError(
            "ai_face: the annotations have no skin tones to draw by. Fetch version 2 of train.csv "
            "and test.csv, with the column Skin Tone, from "
            "https://github.com/Purdue-M2/AI-Face-FairnessBench."
        )
    rows = rows.sort_values("sample_id")
    places: list[int] = []
    for cell in _cells(CELL[dataset]):
        inside = np.logical_and.reduce(
            [rows[name] == group for name, group in zip(CELL[dataset], cell, strict=True)]
        )
        candidates = rows.loc[inside, "place"].to_numpy()
        if len(candidates) < wanted:
            raise RawDataError(
                f"{dataset}: {' / '.join(cell)} has {len(candidates)} usable images, and {wanted} "
                f"are to be drawn. Complete the raw folder or draw fewer images per cell."
            )
        places.extend(rng.choice(candidates, wanted, replace=False))
    chosen = samples.take(sorted(places, key=lambda place: samples["sample_id"][place].as_py()))
    labels = {name: chosen[name].to_pylist() for name in MEASURED[dataset]}
    return _measured(chosen, dataset, labels)


def _measured(samples: pa.Table, dataset: str, labels: Mapping[str, list[str]]) -> pa.Table:
    """Return the contract's columns with the groups of the measured attributes and no others."""
    table = samples.select([name for name in SAMPLES.schema.names if name in samples.column_names])
    for name in GROUPS:
        values = labels.get(name, [None] * len(table))
        column = pa.array(values, pa.string())
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, column)
        else:
            table = table.append_column(name, column)
    return conform(table, SAMPLES)


def _cells(names: Iterable[str]) -> list[tuple[str, ...]]:
    cells: list[tuple[str, ...]] = [()]
    for name in names:
        groups = ai_face.SOURCES if name == "source" else GROUPS[name]
        cells = [(*cell, group) for cell in cells for group in groups]
    return cells


def _cross(dataset: str) -> tuple[str, ...]:
    return CELL["fairface"] if dataset == "fairface" else ("source", "skin_tone")


def _used(images: pa.Table) -> pd.DataFrame:
    rows = images.select(["sample_id", "dataset", *GROUPS]).to_pandas()
    return rows.assign(state="used")


def _left_out(problems: pa.Table) -> pd.DataFrame:
    """Return one row per listed image that has no sample, with the list's labels."""
    rows = []
    for row in problems.to_pylist():
        if row["reason"] not in LEFT_OUT:
            continue
        listed = json.loads(row["raw"] or "{}")
        missing = row["reason"] in ("image_missing", "not_annotated", "folder_absent")
        rows.append(
            {"sample_id": row["record"], "dataset": row["dataset"]}
            | {name: listed.get(LIST_COLUMNS.get(name, name), "").strip() for name in GROUPS}
            | {"state": "missing" if missing else "unreadable"}
        )
    columns = ["sample_id", "dataset", *GROUPS, "state"]
    return pd.DataFrame(rows, columns=columns).drop_duplicates("sample_id")


def _source(sample_id: str) -> str:
    return ai_face.source(sample_id) if sample_id.startswith("ai_face/") else ""


def _count(rows: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
    cells = [tuple(row) for row in rows[list(names)].to_numpy().tolist()]
    found = Counter(zip(cells, rows["state"], strict=True))
    counts = []
    for cell in _cells(names):
        states = {state: found[cell, state] for state in ("used", "missing", "unreadable")}
        keys = {"attribute": " x ".join(names) or "all", "group": " / ".join(cell) or "all"}
        counts.append({**keys, "listed": sum(states.values()), **states})
    return pd.DataFrame(counts)
