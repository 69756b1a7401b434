"""Made-up people, answers and judgements of the LVLM fairness paper, for its tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlmfair.contracts import RESPONSES, SAMPLES, conform
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.lvlm_fairness.judge import judge_responses
from vlmfair.papers.lvlm_fairness.judges import Judge, StrictJudge
from vlmfair.papers.lvlm_fairness.plan import plan_facet, plan_utkface
from vlmfair.papers.lvlm_fairness.questions import Prompts, load_classes, load_prompts
from vlmfair.provenance import sha256_of_text

ROOT = Path(__file__).resolve().parents[2]
CLASSES = load_classes(ROOT / "resources/words/facet_classes.csv")
PROMPTS: Prompts = load_prompts(ROOT / "resources/prompts/lvlm_fairness.yaml", CLASSES)
ENTRY = ModelEntry("made-up", family="llava", dtype="float32", attention="sdpa", path="nowhere")
Row = dict[str, Any]
Say = Callable[[Row], str]


def person(number: int, dataset: str = "facet", **labels: str) -> Row:
    """One sample; labels that are not given are unknown."""
    name = f"{dataset}/sa_{number}.jpg"
    row: Row = {
        "sample_id": name,
        "dataset": dataset,
        "image": name,
        "image_sha256": sha256_of_text(name),
        "gender": "Male",
        "age": "unknown",
        "skin_tone": "unknown",
        "race": None,
        "occupation": "nurse" if dataset == "facet" else None,
    }
    return {**row, **labels}


def people(groups: Sequence[tuple[int, dict[str, str]]], dataset: str = "facet") -> pa.Table:
    """Samples: so many of each kind."""
    rows: list[Row] = []
    for count, labels in groups:
        rows += [person(len(rows) + n, dataset, **labels) for n in range(count)]
    return conform(pa.Table.from_pylist(rows), SAMPLES)


def ask(samples: pa.Table, prompt_ids: Sequence[str], dataset: str = "facet") -> pa.Table:
    """The requests of prompts about samples."""
    plan = plan_facet if dataset == "facet" else plan_utkface
    return plan(
        samples,
        PROMPTS,
        ENTRY,
        style="paper",
        prompt_ids=prompt_ids,
        images_per_shard=1000,
        max_new_tokens=24,
    )


def answer(requests: pa.Table, texts: Sequence[str | None]) -> pa.Table:
    """The responses with these texts; None is a failed request."""
    rows = [
        {
            "request_id": request,
            "text": text,
            "error": "the image cannot be read" if text is None else None,
            "finish_reason": None if text is None else "stop",
            "inference_mode": "made up",
        }
        for request, text in zip(requests["request_id"].to_pylist(), texts, strict=True)
    ]
    schema = pa.schema([field for field in RESPONSES.schema if field.name in rows[0]])
    return conform(pa.Table.from_pylist(rows, schema), RESPONSES)


def judge(
    samples: pa.Table,
    prompt_ids: Sequence[str],
    say: Callable[[Row, Row], str | None],
    *,
    dataset: str = "facet",
    by: Judge | None = None,
) -> pa.Table:
    """Judgements of `say(request, sample)`."""
    requests = ask(samples, prompt_ids, dataset)
    rows = {row["sample_id"]: row for row in samples.to_pylist()}
    texts = [say(request, rows[request["sample_id"]]) for request in requests.to_pylist()]
    return judge_responses(
        requests, answer(requests, texts), judge=by or StrictJudge(), prompts=PROMPTS
    )
