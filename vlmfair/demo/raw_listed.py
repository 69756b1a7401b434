"""Raw downloads of exactly the images that a selection list names, drawn under their paths.

The authors' lists name 5,010 images that not everybody may download. Drawn ones in their places go
through every step as the real ones would: the same paths, layouts, labels and formats.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd

from vlmfair.datasets.images import path_fault
from vlmfair.demo.raw_ai_face import FFHQ_SIDE, crop_size, label_row, write_ai_face
from vlmfair.demo.raw_fairface import COLUMNS, MEASURED_AGES, SIDE, write_fairface
from vlmfair.demo.raw_images import ACTIVITIES, TWO_PERSON_SHARE, DrawnImage, spread
from vlmfair.demo.scenes import GENDERS, RACES, Scene, sample_scene
from vlmfair.errors import ConfigError, RawDataError
from vlmfair.papers.gras.selection import FETCH_LIST, read_selection_list

_PATHS = {
    "fairface": re.compile(r"(train|val)/[0-9]+\.jpg"),
    "ai_face": re.compile(r"(FFHQ|imdb_wiki)/.+\.(png|jpg)"),
}
_DECADES = (20, 30, 40, 50, 60)


def draw_listed(out_dir: Path, dataset: str, list_path: Path, *, seed: int) -> None:
    """Write the raw folder of `fairface` or `ai_face` with the images of a list, labels last.

    Each picture shows the labels of its row; what the list does not say is spread evenly over the
    groups that are measured. The same list and seed write the same bytes. Raises ConfigError on
    another dataset, RawDataError as `read_selection_list` and on a path that is none of the
    dataset's.
    """
    images = plan_listed(dataset, list_path, seed=seed)
    write = write_fairface if dataset == "fairface" else write_ai_face
    write(Path(out_dir), images)


def plan_listed(dataset: str, list_path: Path, *, seed: int) -> list[DrawnImage]:
    """Decide the image of each row of a list, in its order; errors as `draw_listed`."""
    if dataset not in _PATHS:
        raise ConfigError(
            f"{dataset}: GRAS has no list of selected images of it. Write one of "
            f"{', '.join(_PATHS)}."
        )
    listed = read_selection_list(Path(list_path), dataset)
    listed["path"] = [name.removeprefix(f"{dataset}/") for name in listed["sample_id"]]
    for path in listed["path"]:
        if path_fault(path) or not _PATHS[dataset].fullmatch(path):
            raise RawDataError(
                f"{list_path}: {path[:100]!r} is no image of {dataset}. {FETCH_LIST}"
            )
    rng = np.random.default_rng([seed, sorted(_PATHS).index(dataset), 3])
    return (_fairface if dataset == "fairface" else _ai_face)(listed, rng)


def _fairface(listed: pd.DataFrame, rng: np.random.Generator) -> list[DrawnImage]:
    listed = _spread_within(listed, "gender", rng, tone=range(1, 11), activity=ACTIVITIES)
    images = []
    for row in listed.to_dict("records"):
        low, high = MEASURED_AGES[row["age"]]
        scene = _scene(
            rng,
            gender=row["gender"].lower(),
            race=row["race"],
            age=int(rng.integers(low, high + 1)),
            skin_tone=row["tone"],
            occupation=row["activity"],
        )
        further = {"service_test": "False", **json.loads(row["raw"])}
        labels = {**further, **row, "file": row["path"]}
        labels = {name: str(labels[name]) for name in COLUMNS}
        images.append(DrawnImage(row["path"], row["path"], labels, scene, SIDE, SIDE, True))
    return images


def _ai_face(listed: pd.DataFrame, rng: np.random.Generator) -> list[DrawnImage]:
    listed = _spread_within(
        listed,
        "skin_tone",
        rng,
        gender=GENDERS,
        race=RACES,
        decade=_DECADES,
        activity=ACTIVITIES,
    )
    images = []
    for row in listed.to_dict("records"):
        scene = _scene(
            rng,
            gender=row["gender"],
            race=row["race"],
            age=row["decade"] + int(rng.integers(10)),
            skin_tone=int(row["skin_tone"]),
            occupation=row["activity"],
        )
        from_ffhq = row["path"].startswith("FFHQ/")
        width, height = (FFHQ_SIDE, FFHQ_SIDE) if from_ffhq else crop_size(rng)
        stored = f"Real/{row['path']}"
        labels = label_row(stored, scene, "0")
        images.append(DrawnImage(row["path"], stored, labels, scene, width, height, True))
    return images


def _spread_within(
    listed: pd.DataFrame, group: str, rng: np.random.Generator, **values: object
) -> pd.DataFrame:
    """Return the rows with further columns, each spread evenly over the rows of a group."""
    parts = []
    for _, rows in listed.groupby(group, sort=True):
        further = {name: spread(rng, list(of), len(rows)) for name, of in values.items()}  # type: ignore[call-overload]
        parts.append(rows.assign(**further))
    return pd.concat(parts).sort_index()


def _scene(rng: np.random.Generator, **subject: object) -> Scene:
    two = bool(rng.random() < TWO_PERSON_SHARE)
    return sample_scene(rng, hooded=False, two=two, **subject)
