"""In-context demonstrations chosen by gender: RS, MS, FS and BS (section 3.2).

One sequence per run is shared by all queries, and k demonstrations are the first k of it. What is
drawn follows from SHA-256 alone: no generator, no order of rows, no hash seed, no machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from vlmfair.contracts import conform
from vlmfair.errors import ConfigError, ContractError
from vlmfair.inference.queries import CONTEXTS
from vlmfair.papers.vl_bicle.items import Item, Items
from vlmfair.papers.vl_bicle.tasks import (
    BALANCED,
    FEMALE,
    FEMALE_ONLY,
    MALE,
    MALE_ONLY,
    RANDOM,
    REAL,
    SAMPLED,
    ZERO_SHOT,
    Task,
)

# What tells cells apart beside the turns; the words repeat from row to row.
_WORDS = ("role", "image_transform", "task", "setting", "image_source", "gender")


def shuffled(pool: Iterable[Item], *key: str) -> list[Item]:
    """Return items in the random order that belongs to a key."""

    def rank(item: Item) -> tuple[str, str]:
        parts = "\x1f".join((*key, item.sample_id))
        return hashlib.sha256(parts.encode()).hexdigest(), item.sample_id

    return sorted(pool, key=rank)


def draw_sequence(
    pool: Sequence[Item], setting: str, run: int, *, dataset: str, length: int, seed: int
) -> tuple[Item, ...]:
    """Return `length` demonstrations of one run, of which the first k are those of k shots.

    Raises ConfigError on a setting that is not sampled, an odd number in BS, and a pool that is
    too small.
    """
    if setting not in SAMPLED:
        raise ConfigError(
            f"vl_bicle.settings: {setting} is not sampled. Use one of {', '.join(SAMPLED)}."
        )
    if setting == BALANCED and length % 2:
        raise ConfigError(
            f"vl_bicle.shots: {BALANCED} has as many men as women, which {length} demonstrations "
            f"cannot be. Write even numbers."
        )
    key = ("vl_bicle", str(seed), dataset, setting, str(run))
    men, women = ([item for item in pool if item.gender == gender] for gender in (MALE, FEMALE))
    if setting == RANDOM:
        _check_size(dataset, setting, length, {"images": (len(pool), length)})
        return tuple(shuffled(pool, *key)[:length])
    if setting == BALANCED:
        half = length // 2
        needed = {"men": (len(men), half), "women": (len(women), half)}
        _check_size(dataset, setting, length, needed)
        pairs = zip(shuffled(men, *key)[:half], shuffled(women, *key)[:half], strict=True)
        return tuple(chain.from_iterable(pairs))
    own = men if setting == MALE_ONLY else women
    name = {MALE_ONLY: "men", FEMALE_ONLY: "women"}[setting]
    _check_size(dataset, setting, length, {name: (len(own), length)})
    return tuple(shuffled(own, *key)[:length])


def _check_size(
    dataset: str, setting: str, length: int, numbers: Mapping[str, tuple[int, int]]
) -> None:
    for name, (found, needed) in numbers.items():
        if found < needed:
            raise ConfigError(
                f"vl_bicle: {setting} with {length} demonstrations needs {needed} {name} in the "
                f"pool of {dataset}, and there are {found}. Lower vl_bicle.shots or make the pool "
                f"larger."
            )


def context_id(
    task: str, setting: str, shots: int, run: int, *, image_source: str = REAL, query: str = ""
) -> str:
    """Return the name of a context; retrieved ones belong to one query."""
    parts = (task, image_source, setting, f"run{run}", f"k{shots}", query)
    return "/".join(part for part in parts if part)


def shared_contexts(
    items: Items,
    setting: str,
    run: int,
    *,
    shots: Sequence[int],
    seed: int,
    image_source: str = REAL,
) -> pa.Table:
    """Return one run's contexts of all positive numbers of shots, in the CONTEXTS contract.

    Besides the turns a row has `task`, `setting`, `shots`, `run`, `image_source`, `query` (empty:
    shared by all), and the demonstration's `sample_id` and `gender`. Raises ConfigError as
    `draw_sequence`.
    """
    numbers = positive_shots(shots)
    sequence = draw_sequence(
        items.pool,
        setting,
        run,
        dataset=items.task.dataset,
        length=max(numbers),
        seed=seed,
    )
    return contexts_table(
        (items.task, setting, number, run, image_source, "", sequence[:number])
        for number in numbers
    )


def positive_shots(shots: Sequence[int]) -> list[int]:
    """Return the numbers of shots above 0, each once, ascending. Raises ConfigError without any."""
    numbers = sorted({number for number in shots if number > 0})
    if not numbers:
        raise ConfigError("vl_bicle.shots lists no number above 0. Write 0, 2, 4, 6, 8.")
    return numbers


def zero_shot_contexts(items: Items) -> pa.Table:
    """Return the context of zero shots: the example of visual questions, else an empty table."""
    example = () if items.example is None else (items.example,)
    return contexts_table([(items.task, ZERO_SHOT, 0, 1, REAL, "", example)])


Cell = tuple[Task, str, int, int, str, str, Sequence[Item]]


def contexts_table(cells: Iterable[Cell]) -> pa.Table:
    """Return the turns of contexts, each demonstration a user's turn and an answer."""
    rows = [row for cell in cells for row in _turns(*cell)]
    table = pa.Table.from_pylist(rows, schema=ROWS)
    repeated = {name: table[name].dictionary_encode() for name in _WORDS}
    for name, values in repeated.items():
        table = table.set_column(table.column_names.index(name), name, values)
    return conform(table, CONTEXTS)


ROWS = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("context_id", "role", "text", "image")),
        *(pa.field(name, pa.string()) for name in ("image_sha256", "image_transform", "task")),
        *(pa.field(name, pa.string()) for name in ("setting", "image_source", "query")),
        *(pa.field(name, pa.string()) for name in ("sample_id", "gender")),
        *(pa.field(name, pa.int32()) for name in ("turn", "shots", "run")),
    ]
)


def _turns(
    task: Task,
    setting: str,
    shots: int,
    run: int,
    image_source: str,
    query: str,
    demonstrations: Sequence[Item],
) -> Iterable[dict[str, object]]:
    name = context_id(task.name, setting, shots, run, image_source=image_source, query=query)
    for place, item in enumerate(demonstrations):
        shared = {
            "context_id": name,
            "task": task.name,
            "setting": setting,
            "shots": shots,
            "run": run,
            "image_source": image_source,
            "query": query,
            "sample_id": item.sample_id,
            "gender": item.gender,
        }
        yield {
            **shared,
            "turn": 2 * place,
            "role": "user",
            "text": item.text,
            "image": item.image,
            "image_sha256": item.image_sha256,
            "image_transform": "none",
        }
        yield {**shared, "turn": 2 * place + 1, "role": "assistant", "text": item.answer}


def check_contexts(contexts: pa.Table, queries: Iterable[Item]) -> None:
    """Raise ContractError when a query's own image is among its demonstrations."""
    asked = {item.image_sha256: item.sample_id for item in queries}
    shared = contexts.select(["context_id", "image_sha256", "query"]).to_pylist()
    for row in shared:
        seen = asked.get(row["image_sha256"] or "")
        if seen is not None:
            raise ContractError(
                f"vl_bicle: the context {row['context_id']} shows the image of {seen}, which is "
                f"also a query. Make the splits of this dataset again."
            )
