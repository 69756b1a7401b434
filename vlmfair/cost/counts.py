"""Numbers of images, and texts, from samples that are prepared already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from vlmfair.cost.lvlm_fairness import Counted, announced_counts
from vlmfair.cost.plan import Asked, Resources
from vlmfair.cost.vl_bicle import Queries, announced_queries
from vlmfair.papers.lvlm_fairness.plan import evaluated_people, truth_of
from vlmfair.papers.lvlm_fairness.questions import (
    UTKFACE_PROMPTS,
    Prompts,
    load_classes,
    load_prompts,
)
from vlmfair.papers.vl_bicle.items import Item, Items, Wording, load_wording, read_items
from vlmfair.papers.vl_bicle.tasks import task_named

# Texts that a mean is taken over.
SAMPLE = 200


def counted_people(samples: pa.Table) -> dict[str, float]:
    """Return the number of people of each occupation that FACET's samples have for the paper."""
    return {
        occupation: float(number)
        for occupation, number in Counter(
            row["occupation"] for row in evaluated_people(samples)
        ).items()
    }


def counted_faces(
    samples: pa.Table, prompts: Prompts, attributes: Iterable[str]
) -> dict[str, float]:
    """Return the number of UTKFace's samples whose right answer to each attribute is known."""
    rows = samples.to_pylist()
    return {
        name: float(sum(bool(truth_of(row, name, prompts)) for row in rows)) for name in attributes
    }


def counted_queries(items: Items) -> Queries:
    """Return how many queries a task has, and the texts of its demonstrations and queries."""
    pool, queries = _some(items.pool), _some(items.queries)
    texts = tuple(item.text for item in (*pool, *queries))
    return Queries(
        len(items.queries),
        tuple(item.answer for item in pool),
        texts,
        tuple(item.prefix for item in queries),
        announced=False,
        pool=len(items.pool),
    )


def _some(items: Sequence[Item]) -> Sequence[Item]:
    """Return evenly spaced items."""
    return items[:: max(1, len(items) // SAMPLE)]


def asked_by(
    config: Mapping[str, Any],
    resources: Resources,
    gras: Mapping[str, int],
    faces: Mapping[str, int],
    queries: Mapping[str, int],
    samples: Mapping[str, pa.Table],
) -> Asked:
    """Return how much a run asks about: from samples by dataset where they are given.

    Else `gras`, `faces` and `queries` hold, the announced numbers of images by dataset and task.
    Those that GRAS selected are given under its own name. Raises ContractError on samples without
    what a paper needs.
    """
    if "gras" in samples:
        gras = Counter(samples["gras"]["dataset"].to_pylist())
    lvlm = announced_counts(faces["facet"], faces["utkface"], UTKFACE_PROMPTS)
    if {"facet", "utkface"} <= set(samples):
        classes = load_classes(resources.words / "facet_classes.csv")
        prompts = load_prompts(resources.prompts / "lvlm_fairness.yaml", classes)
        people = counted_people(samples["facet"])
        asked = counted_faces(samples["utkface"], prompts, UTKFACE_PROMPTS)
        lvlm = Counted(people, asked, announced=False)
    wording = load_wording(
        resources.prompts / "vl_bicle.yaml",
        resources.words / "gender_words.yaml",
        config["vl_bicle"]["words"],
    )
    by_task = {
        task: _queries(task, number, wording, resources, samples)
        for task, number in queries.items()
    }
    return Asked(gras, lvlm, by_task)


def _queries(
    task: str,
    number: int,
    wording: Wording,
    resources: Resources,
    samples: Mapping[str, pa.Table],
) -> Queries:
    own = samples.get(task_named(task).samples)
    if own is None:
        usual = resources.assumptions.demonstrations
        return announced_queries(task, number, wording.prompts, usual)
    return counted_queries(read_items(own, task_named(task), wording))
