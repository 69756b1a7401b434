"""Numbers of images by split and gender (Table 1), and who is shown as a demonstration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import pyarrow as pa

from vlmfair.papers.vl_bicle.items import Items
from vlmfair.papers.vl_bicle.measure_rows import BicleRows, Place
from vlmfair.papers.vl_bicle.tasks import (
    ALL,
    FEMALE,
    MALE,
    POOL,
    QUERIES,
    Task,
    task_named,
)


def measure_data(items: Iterable[Items]) -> pa.Table:
    """Return the numbers of usable images of each task's pool and queries by gender.

    METRICS rows of the model `all`; `n` is the number of the split. Tasks of one dataset share a
    row, since they have the same images. Left-out samples are counted by reason in `left_out`.
    """
    rows, seen = BicleRows(), set()
    for own in items:
        dataset = own.task.dataset
        if dataset in seen:
            continue
        seen.add(dataset)
        place = Place("data", dataset)
        for split, found in ((POOL, own.pool), (QUERIES, own.queries)):
            counts = Counter(item.gender for item in found)
            for group, number in (
                (MALE, counts[MALE]),
                (FEMALE, counts[FEMALE]),
                (ALL, len(found)),
            ):
                rows.add(place.at(item=split), "images", group, number, len(found))
        reasons = Counter((left.split, left.reason) for left in own.left_out)
        for (split, reason), number in sorted(reasons.items()):
            total = number + (len(own.pool) if split == POOL else len(own.queries))
            rows.add(place.at(item=split, setting=reason), "left_out", ALL, number, total)
    return rows.table()


def measure_contexts(contexts: Sequence[pa.Table], items: Iterable[Items]) -> pa.Table:
    """Return the percentage of men among demonstrations, by setting, shots and run.

    METRICS rows of the model `all`: `male_share`, with run 0 for all runs together, and
    `pool_male_share` of the pools that were drawn from.
    """
    rows = BicleRows()
    for own in items:
        men = sum(item.gender == MALE for item in own.pool)
        if own.pool:
            value = 100.0 * men / len(own.pool)
            place = Place("contexts", own.task.dataset, prompt=own.task.prompt)
            rows.add(place, "pool_male_share", MALE, value, len(own.pool))
    counts: Counter[tuple[Task, str, str, int, int, bool]] = Counter()
    for table in contexts:
        names = ("task", "setting", "image_source", "shots", "run", "gender", "role")
        for row in table.select(list(names)).to_pylist():
            if row["role"] == "user" and row["gender"] in (MALE, FEMALE):
                key = (task_named(row["task"]), row["setting"], row["image_source"])
                is_man = row["gender"] == MALE
                counts[(*key, row["shots"], row["run"], is_man)] += 1
                counts[(*key, row["shots"], 0, is_man)] += 1
    cells = sorted({key[:5] for key in counts}, key=lambda key: (key[0].name, *key[1:]))
    for cell in cells:
        task, setting, source, shots, run = cell
        men, number = counts[(*cell, True)], counts[(*cell, True)] + counts[(*cell, False)]
        place = Place("contexts", task.dataset, prompt=task.prompt, setting=setting)
        place = place.at(image_source=source, shots=shots, run=run)
        rows.add(place, "male_share", MALE, 100.0 * men / number, number)
    return rows.table()
