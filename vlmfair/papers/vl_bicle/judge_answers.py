"""Judgements of visual questions: the answer that is read, and 1 minus its score (section 4)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.judge import EMPTY, FAILED, OK, in_request_order, judgement_table
from vlmfair.papers.vl_bicle.verdicts import (
    LEXICAL,
    LLM,
    Pair,
    Verdict,
    Verdicts,
    lexical_verdict,
)
from vlmfair.text.thoughts import read_thought

UNJUDGED = "unjudged"
_NAMES = ("predicted", "revealed", "error", "status", "rule", "judge_status", "formatted")


def judge_answers(
    requests: pa.Table, responses: pa.Table, *, verdicts: Verdicts | None = None
) -> pa.Table:
    """Return the error 1 - s of each answer, by a language model's verdicts or by its words.

    Without `verdicts` the judge is `lexical`, else `llm`. An empty answer has the error 1; an
    answer whose verdict is missing has none and the status `unjudged`, `judge_status` saying why.
    Raises ContractError when requests and responses differ, or an answer was never judged.
    """
    responses = in_request_order(requests, responses)
    columns: dict[str, list[Any]] = {name: [] for name in _NAMES}
    failed = pc.is_valid(responses["error"]).to_pylist()
    rows = zip(
        requests["question"].to_pylist(),
        requests["truth"].to_pylist(),
        responses["text"].to_pylist(),
        failed,
        strict=True,
    )
    known: dict[tuple[str, str, str], tuple[Any, ...]] = {}
    for question, truth, text, bad in rows:
        if bad:
            values: tuple[Any, ...] = (None, None, None, FAILED, "failed", None, None)
        else:
            key = (question, truth, text or "")
            if key not in known:
                known[key] = _judge(*key, verdicts)
            values = known[key]
        for name, value in zip(_NAMES, values, strict=True):
            columns[name].append(value)
    return judgement_table(requests, columns, LEXICAL if verdicts is None else LLM)


def _judge(question: str, truth: str, text: str, verdicts: Verdicts | None) -> tuple[Any, ...]:
    reading = read_thought(text)
    if not reading.answer:
        return None, None, 1.0, EMPTY, reading.rule, OK, reading.formatted
    pair = (question, truth, reading.answer)
    verdict = lexical_verdict(pair) if verdicts is None else _verdict_on(pair, verdicts)
    if verdict.score is None:
        status = (UNJUDGED, reading.rule, verdict.status)
        return reading.answer, None, None, *status, reading.formatted
    error = 1.0 - verdict.score
    return reading.answer, None, error, OK, reading.rule, verdict.status, reading.formatted


def _verdict_on(pair: Pair, verdicts: Verdicts) -> Verdict:
    verdict = verdicts.get(pair)
    if verdict is None:
        raise ContractError(
            f"vl_bicle: the answer {pair[2]!r} to {pair[0]!r} has no verdict. Run the step that "
            f"plans the judge's requests again; verdicts that are stored are reused."
        )
    return verdict
