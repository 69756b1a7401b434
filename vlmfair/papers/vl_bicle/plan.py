"""Requests of VL-BICLE: every query after every context, and the cells that a model cannot take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.contracts import REQUESTS, conform
from vlmfair.errors import ConfigError, ContractError
from vlmfair.inference.sharding import shard_count
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.vl_bicle.contexts import check_contexts
from vlmfair.papers.vl_bicle.items import Item, Items
from vlmfair.papers.vl_bicle.questions import LABEL_SET
from vlmfair.papers.vl_bicle.tasks import PRONOUN, REAL, ZERO_SHOT
from vlmfair.provenance import content_id

WORD = pa.dictionary(pa.int32(), pa.string())
_FROM_ITEM = ("sample_id", "image", "image_sha256", "text", "prefix", "gender", "truth", "question")


@dataclass(frozen=True)
class Skipped:
    """A cell that is not asked, and the number of images that its prompts would hold."""

    task: str
    setting: str
    shots: int
    run: int
    image_source: str
    images: int
    reason: str


@dataclass(frozen=True)
class Plan:
    """The requests of one task and model, and the cells that are left out."""

    requests: pa.Table
    skipped: tuple[Skipped, ...]

    def skipped_rows(self) -> list[dict[str, object]]:
        """Return the skipped cells as JSON has them."""
        return [asdict(cell) for cell in self.skipped]


@dataclass(frozen=True)
class _Cell:
    setting: str
    shots: int
    run: int
    image_source: str
    # Context and its digest by query, "" for a context of all queries.
    contexts: dict[str, tuple[str, str]]
    images: int


def plan_task(
    items: Items,
    entry: ModelEntry,
    contexts: Sequence[pa.Table],
    *,
    shots: Sequence[int],
    images_per_shard: int,
    max_new_tokens: int,
    groups_per_shard: int = 1,
    most_images: int | None = None,
) -> Plan:
    """Return one request per cell and query; a cell is a setting, a number of shots and a run.

    `contexts` are the tables of all settings and runs, that of zero shots among them. Cells whose
    prompts hold more than `most_images` images are left out and listed. A shard holds
    `images_per_shard` queries of `groups_per_shard` pairs of setting and run with all numbers of
    shots, so that the engine finds shared demonstrations side by side. The result is a REQUESTS
    table with `task`, `experiment`, `dataset`, `prompt`, `setting`, `shots`, `run`, `image_source`,
    `gender`, `truth`, `question` and `rendering`. Raises ConfigError on numbers that are not
    positive and when the model takes no cell at all, ContractError on a context that shows a query
    or misses one.
    """
    for name, number in (
        ("max_new_tokens", max_new_tokens),
        ("groups_per_shard", groups_per_shard),
    ):
        if number < 1:
            raise ConfigError(f"vl_bicle: {name} is {number}. Write at least 1.")
    transform = entry.image_transforms.get(items.task.samples, "none")
    if transform != "none":
        raise ConfigError(
            f"{entry.sheet}: {entry.name}: image_transforms.{items.task.samples} would change the "
            f"queries and not the demonstrations. Remove it."
        )
    chunks = shard_count(len(items.queries), images_per_shard)
    cells, skipped = [], []
    for table in contexts:
        check_contexts(table, items.queries)
        cells += _cells(table, shots)
    if 0 in shots and not any(cell.setting == ZERO_SHOT for cell in cells):
        # Without an example the context of zero shots has no turn, and so no row.
        cells.insert(0, _Cell(ZERO_SHOT, 0, 1, REAL, {"": ("", "")}, 0))
    cells.sort(key=lambda cell: (cell.shots > 0, cell.setting, cell.image_source, cell.run))
    for cell in list(cells):
        if most_images is not None and cell.images + 1 > most_images:
            cells.remove(cell)
            skipped.append(_skip(items, entry, cell, most_images))
    if not cells:
        raise ConfigError(
            f"vl_bicle: {entry.name} takes no more than {most_images} images and can be asked "
            f"nothing about {items.task.name}. Take it out of vl_bicle.models."
        )
    groups = list(dict.fromkeys((cell.setting, cell.image_source, cell.run) for cell in cells))
    parts = []
    for place, group in enumerate(groups):
        first = place // groups_per_shard * chunks
        own = [c for c in cells if (c.setting, c.image_source, c.run) == group]
        for cell in sorted(own, key=lambda cell: cell.shots):
            parts.append(_requests(items, cell, first, images_per_shard, max_new_tokens))
    table = pa.concat_tables(parts).unify_dictionaries()
    # The order within a shard stays: one group after the other, few shots first.
    order = np.argsort(table["shard"].to_numpy(), kind="stable")
    return Plan(conform(table.take(pa.array(order)), REQUESTS), tuple(skipped))


def number_of_shards(
    number_of_queries: int, groups: int, images_per_shard: int, groups_per_shard: int = 1
) -> int:
    """Return the number of shards of `groups` pairs of setting and run, zero shots included.

    Raises ConfigError when a number for a shard is not positive.
    """
    chunks = shard_count(number_of_queries, images_per_shard)
    return shard_count(groups, groups_per_shard) * chunks


def _cells(table: pa.Table, shots: Sequence[int]) -> list[_Cell]:
    """Return the cells of a contexts table whose number of shots is asked for."""
    found: dict[tuple[str, int, int, str], dict[str, list[dict[str, object]]]] = {}
    for row in table.sort_by([("context_id", "ascending"), ("turn", "ascending")]).to_pylist():
        if row["shots"] in shots:
            key = (row["setting"], row["shots"], row["run"], row["image_source"])
            found.setdefault(key, {}).setdefault(row["query"], []).append(row)
    return [
        _Cell(
            *key,
            contexts={q: (str(turns[0]["context_id"]), _digest(turns)) for q, turns in own.items()},
            images=max(sum(bool(turn["image"]) for turn in turns) for turns in own.values()),
        )
        for key, own in found.items()
    ]


def _digest(turns: Sequence[dict[str, object]]) -> str:
    names = ("role", "text", "image_sha256", "image_transform")
    return content_id(*(str(turn[name] or "") for turn in turns for name in names))


def _skip(items: Items, entry: ModelEntry, cell: _Cell, most: int) -> Skipped:
    needed = cell.images + 1
    reason = f"{entry.name} takes {most} images in a prompt, and {needed} are needed"
    return Skipped(
        items.task.name, cell.setting, cell.shots, cell.run, cell.image_source, needed, reason
    )


def _requests(
    items: Items, cell: _Cell, first_shard: int, images_per_shard: int, max_new_tokens: int
) -> pa.Table:
    task, number = items.task, len(items.queries)
    scored = task.experiment == PRONOUN
    mode = ("score", LABEL_SET, 0) if scored else ("generate", "", max_new_tokens)
    named = [_context_of(cell, query) for query in items.queries]
    place = (task.name, cell.setting, str(cell.shots), str(cell.run), cell.image_source)
    ids = [
        content_id(
            *place, query.sample_id, query.image_sha256, digest, query.text, query.prefix,
            mode[0], mode[1], str(mode[2]),
        )
        for query, (_, digest) in zip(items.queries, named, strict=True)
    ]  # fmt: skip
    own = {name: [getattr(query, name) for query in items.queries] for name in _FROM_ITEM}
    own["context_id"] = [name for name, _ in named]
    own["assistant_prefix"] = own.pop("prefix")
    same = {
        "image_transform": "none",
        "mode": mode[0],
        "label_set": mode[1],
        "task": task.name,
        "experiment": task.experiment,
        "dataset": task.dataset,
        "prompt": task.prompt,
        "setting": cell.setting,
        "image_source": cell.image_source,
        "rendering": "chat",
    }
    counts = {"max_new_tokens": max_new_tokens, "shots": cell.shots, "run": cell.run}
    shard = first_shard + np.arange(number, dtype=np.int32) // images_per_shard
    columns: dict[str, pa.Array] = {"request_id": pa.array(ids), "shard": pa.array(shard)}
    for name, values in own.items():
        columns[name] = pa.array(values, pa.string()).dictionary_encode().cast(WORD)
    for name, value in same.items():
        columns[name] = pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(number, np.int32)), pa.array([value])
        )
    for name, count in counts.items():
        columns[name] = pa.array(np.full(number, count, np.int32))
    return pa.table(columns)


def _context_of(cell: _Cell, query: Item) -> tuple[str, str]:
    found = cell.contexts.get("") or cell.contexts.get(query.sample_id)
    if found is None:
        raise ContractError(
            f"vl_bicle: {cell.setting} with {cell.shots} shots has no context of the query "
            f"{query.sample_id}. Retrieve the demonstrations of this dataset again."
        )
    return found


def cells_of(requests: pa.Table) -> list[tuple[str, int, int, str]]:
    """Return each setting, number of shots, run and image source that was planned."""
    columns = ["setting", "shots", "run", "image_source"]
    plain = requests.select(columns).set_column(0, "setting", requests["setting"].cast(pa.string()))
    plain = plain.set_column(3, "image_source", pc.cast(requests["image_source"], pa.string()))
    rows = plain.group_by(columns).aggregate([]).to_pylist()
    return sorted((row["setting"], row["shots"], row["run"], row["image_source"]) for row in rows)
