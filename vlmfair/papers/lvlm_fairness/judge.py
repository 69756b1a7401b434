"""Judgements: what each response answers according to one judge, and whether that is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.contracts import JUDGEMENTS, assert_same_ids, conform
from vlmfair.papers.lvlm_fairness.judges import Judge
from vlmfair.papers.lvlm_fairness.plan import WORD
from vlmfair.papers.lvlm_fairness.questions import Prompts
from vlmfair.text.answers import OK, REFUSED, Reading

# How an API says that the answer was refused or held back, whatever its text says.
_HELD_BACK = ("refused", "refusal", "content_filter", "safety")
_FAILED = Reading(None, "error", "failed")
_CARRIED = ("sample_id", "experiment", "prompt", "occupation", "truth")


def judge_responses(
    requests: pa.Table, responses: pa.Table, *, judge: Judge, prompts: Prompts
) -> pa.Table:
    """Return one judgement per request by one judge, in the order of the requests.

    A JUDGEMENTS table with `judge`, `experiment`, `prompt`, `occupation` and `truth`. `error` is 0
    for the right answer and 1 for a wrong or no answer; a failed request has status `error` and
    no error. Equal responses to one prompt are read once. Raises ContractError when requests and
    responses are not about the same ids.
    """
    responses = _in_request_order(requests, responses)
    asked = requests["prompt"].to_pylist()
    texts = responses["text"].to_pylist()
    failed = pc.is_valid(responses["error"]).to_pylist()
    reasons = responses["finish_reason"].to_pylist()
    readings: list[Reading] = [_FAILED] * len(asked)
    for prompt in dict.fromkeys(asked):
        rows = [row for row, name in enumerate(asked) if name == prompt and not failed[row]]
        given = [texts[row] or "" for row in rows]
        for row, reading in zip(rows, _read(judge, given, prompt, prompts), strict=True):
            readings[row] = reading
    for row, reading in enumerate(readings):
        # Encoders have no threshold: to them a refusal in words is an answer like any other.
        if reasons[row] in _HELD_BACK and reading.rule not in ("failed", "nearest"):
            readings[row] = Reading(None, REFUSED, "held_back")
    truths = requests["truth"].to_pylist()
    return _table(
        {name: requests[name].cast(WORD) for name in _CARRIED},
        requests["request_id"].to_pylist(),
        readings,
        truths,
        judge.name,
    )


def _read(judge: Judge, texts: Sequence[str], prompt: str, prompts: Prompts) -> list[Reading]:
    unique = list(dict.fromkeys(texts))
    read = dict(zip(unique, judge.read(unique, prompt, prompts), strict=True))
    return [read[text] for text in texts]


def _in_request_order(requests: pa.Table, responses: pa.Table) -> pa.Table:
    assert_same_ids(
        requests["request_id"].to_pylist(),
        responses["request_id"].to_pylist(),
        "lvlm_fairness responses",
    )
    return responses.take(
        pc.index_in(requests["request_id"], value_set=responses["request_id"].combine_chunks())
    )


def _table(
    carried: dict[str, Any],
    request_ids: Sequence[str],
    readings: Sequence[Reading],
    truths: Sequence[str],
    judge: str,
) -> pa.Table:
    errors = [
        None if reading.status == "error" else float(reading.answer != truth)
        for reading, truth in zip(readings, truths, strict=True)
    ]
    return conform(
        pa.table(
            {
                **carried,
                "request_id": pa.array(request_ids, pa.string()),
                "predicted": pa.array([reading.answer for reading in readings], pa.string()),
                "error": pa.array(errors, pa.float64()),
                "status": pa.array([reading.status for reading in readings], pa.string()),
                "rule": pa.array([reading.rule for reading in readings], pa.string()),
                "judge": pa.array([judge] * len(readings), pa.string()).dictionary_encode(),
            }
        ),
        JUDGEMENTS,
    )


def classifier_judgements(
    samples: Sequence[dict[str, Any]],
    predicted: Sequence[str | None],
    *,
    request_ids: Sequence[str],
    judge: str,
) -> pa.Table:
    """Return judgements of a baseline's occupations, as if it had been asked p1.

    `predicted` is None where the image could not be read: status `error`.
    """
    readings = [_FAILED if name is None else Reading(name, OK, "nearest") for name in predicted]
    occupations = [str(sample["occupation"]) for sample in samples]
    carried = {
        "sample_id": [str(sample["sample_id"]) for sample in samples],
        "experiment": ["facet"] * len(samples),
        "prompt": ["p1"] * len(samples),
        "occupation": occupations,
        "truth": occupations,
    }
    columns = {name: pa.array(values, pa.string()).cast(WORD) for name, values in carried.items()}
    return _table(columns, request_ids, readings, occupations, judge)
