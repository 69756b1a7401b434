"""Made-up samples, answers and judgements of VL-BICLE, for its tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlmfair.contracts import RESPONSES, SAMPLES, conform
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.vl_bicle.contexts import shared_contexts, zero_shot_contexts
from vlmfair.papers.vl_bicle.items import Items, Wording, read_items
from vlmfair.papers.vl_bicle.plan import Plan, plan_task
from vlmfair.papers.vl_bicle.questions import load_prompts
from vlmfair.papers.vl_bicle.tasks import TASKS
from vlmfair.provenance import sha256_of_text
from vlmfair.text.words import load_gender_words, load_neutral_words

ROOT = Path(__file__).resolve().parents[2]
PROMPTS = load_prompts(ROOT / "resources/prompts/vl_bicle.yaml")
WORDS = load_gender_words()
WORDING = Wording(PROMPTS, WORDS, load_neutral_words())
ENTRY = ModelEntry("made-up", family="llava", dtype="float32", attention="sdpa", path="nowhere")
NOUNS = {"Male": "man", "Female": "woman"}
Row = dict[str, Any]
LISTS = pa.list_(pa.string())


def sample(number: int, dataset: str, split: str, gender: str | None, **changes: Any) -> Row:
    """One sample; whatever a dataset needs is filled in."""
    name = f"{dataset}/{split}_{number:03d}"
    noun = NOUNS.get(gender or "", "")
    row: Row = {
        "sample_id": name,
        "dataset": dataset,
        "image": f"{name}.jpg",
        "image_sha256": sha256_of_text(name),
        "split": split,
        "gender": gender,
        "captions": [f"A person number {number}.", f" A {noun}  number {number}. "],
        "occupation": "doctor",
        "task": "OO",
        "companion": "floor plan",
        "question": f"Is the {noun} number {number} sitting?" if noun else "What colour is it?",
        "answer": "yes" if noun else "red",
        "thought": f"1. Look at {number}.\n2. See.",
    }
    return {**row, **changes}


def samples(dataset: str, *, pool: tuple[int, int] = (10, 9), queries: int = 3) -> list[Row]:
    """So many men and women in the pool, so many of each as queries, and one example."""
    rows = []
    for split, counts in (("pool", pool), ("queries", (queries, queries))):
        for gender, count in zip(NOUNS, counts, strict=True):
            rows += [sample(len(rows) + n, dataset, split, gender) for n in range(count)]
    return [*rows, sample(0, dataset, "example", None)]


def table(rows: Sequence[Row]) -> pa.Table:
    """Samples as their contract has them, with the datasets' own columns."""
    return conform(pa.Table.from_pylist(list(rows)), SAMPLES)


def items(task: str, rows: Sequence[Row] | None = None, **sizes: Any) -> Items:
    """The items of a task."""
    named = TASKS[task]
    return read_items(table(rows or samples(named.samples, **sizes)), named, WORDING)


def plan(
    own: Items,
    settings: Sequence[str] = ("MS", "FS"),
    *,
    shots: Sequence[int] = (0, 2, 4),
    runs: int = 2,
    **changes: Any,
) -> Plan:
    """Requests of a task with sampled settings."""
    contexts = [
        shared_contexts(own, setting, run, shots=shots, seed=0)
        for setting in settings
        for run in range(1, runs + 1)
    ]
    arguments: dict[str, Any] = {"images_per_shard": 100, "max_new_tokens": 8, **changes}
    return plan_task(own, ENTRY, [zero_shot_contexts(own), *contexts], shots=shots, **arguments)


def respond(requests: pa.Table, say: Callable[[Row], Any]) -> pa.Table:
    """Responses: a text, two logits (his, her), or None for a failed request."""
    rows = []
    for request in requests.to_pylist():
        said = say(request)
        row: Row = {"request_id": request["request_id"], "inference_mode": "made up"}
        if said is None:
            row["error"] = "the image cannot be read"
        elif isinstance(said, str):
            row |= {"text": said, "finish_reason": "stop"}
        else:
            row |= {"logits": list(said), "logsumexp": [3.0]}
        rows.append(row)
    fields = [field for field in RESPONSES.schema if field.name != "label_tokens"]
    return conform(pa.Table.from_pylist(rows, pa.schema(fields)), RESPONSES)
