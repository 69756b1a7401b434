"""Mitigation by rationales: sub-questions, their answers, and the final prompt (section 5, A.7)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from vlmfair.contracts import assert_same_ids
from vlmfair.errors import ConfigError, InferenceError
from vlmfair.models.registry import ModelEntry
from vlmfair.papers.lvlm_fairness.plan import as_requests, evaluated_people, make_requests
from vlmfair.papers.lvlm_fairness.questions import FINAL, Prompts
from vlmfair.provenance import content_id
from vlmfair.text.answers import normalise

# What the paper's own generation prompt has for a sub-question without an answer.
NO_ANSWER = "Uncertain"
SubQuestions = Mapping[str, Sequence[str]]
# Tags such as <image> and <|im_end|> in an answer would act in the next prompt.
_TAGS = re.compile(r"<\|?/?[A-Za-z][A-Za-z0-9_]*\|?>|\[/?INST\]")
_NUMBERED = re.compile(r"^\s*(?:\d+\s*[.):]|[-*•])\s*(.+?)\s*$")
_LONGEST_ANSWER = 1000


def plan_generation(
    occupations: Sequence[str], prompts: Prompts, *, prompt: str, max_new_tokens: int
) -> pa.Table:
    """Return one request without an image per occupation, for a language model (first stage).

    `sample_id` is the occupation. The answers go to `read_generated`.
    """
    rows: list[dict[str, Any]] = []
    for occupation in occupations:
        text = prompts.generation_prompt(occupation, prompt)
        rows.append(
            {
                "request_id": content_id("chat", text, "generate", str(max_new_tokens)),
                "shard": 0,
                "sample_id": occupation,
                "text": text,
                "mode": "generate",
                "max_new_tokens": max_new_tokens,
                "experiment": "generation",
                "prompt": "generation",
                "occupation": occupation,
                "truth": "",
                "rendering": "chat",
            }
        )
    return as_requests(rows)


def read_generated(requests: pa.Table, responses: pa.Table) -> dict[str, tuple[str, ...]]:
    """Return each occupation's sub-questions from the generator's answers.

    Raises InferenceError when an answer failed or lists no question.
    """
    texts = _texts(requests, responses)
    found = {}
    for row in requests.to_pylist():
        questions = parse_sub_questions(texts[row["request_id"]] or "")
        if not questions:
            raise InferenceError(
                f"the generator gave no sub-questions for {row['occupation']}. Run it again, or "
                f"use those in resources/words/lvlm_sub_questions.yaml."
            )
        found[row["occupation"]] = questions
    return found


def parse_sub_questions(text: str) -> tuple[str, ...]:
    """Return the lines between "Sub-questions:" and "Sub-answers:", numbers taken off.

    As in Figure 5, the lines may stand without numbers; only lines with a question mark count.
    """
    _, _, after = text.partition("Sub-questions:")
    listed, _, _ = after.partition("Sub-answers:")
    questions = []
    for line in listed.splitlines():
        matched = _NUMBERED.match(line)
        question = normalise(_TAGS.sub("", matched[1] if matched else line))
        if "?" in question:
            questions.append(question)
    return tuple(dict.fromkeys(questions))


def plan_sub_questions(
    samples: pa.Table,
    prompts: Prompts,
    entry: ModelEntry,
    sub_questions: SubQuestions,
    *,
    style: str,
    images_per_shard: int,
    max_new_tokens: int,
) -> pa.Table:
    """Return each image's occupation's sub-questions as requests, prompts sub1, sub2, ...

    Raises ConfigError on an occupation without sub-questions, else as `plan_facet`.
    """
    asked = []
    for row in evaluated_people(samples):
        for number, question in enumerate(_of(sub_questions, row["occupation"]), start=1):
            text = prompts.framed(entry.family, style, question)
            asked.append((row, f"sub{number}", text))
    return make_requests(
        asked,
        prompts,
        entry,
        experiment="sub_questions",
        style=style,
        images_per_shard=images_per_shard,
        max_new_tokens=max_new_tokens,
    )


def plan_final(
    samples: pa.Table,
    prompts: Prompts,
    entry: ModelEntry,
    sub_questions: SubQuestions,
    requests: pa.Table,
    responses: pa.Table,
    *,
    style: str,
    prompt: str,
    images_per_shard: int,
    max_new_tokens: int,
) -> pa.Table:
    """Return the final prompt of each image, with the model's own answers to its sub-questions.

    `requests` and `responses` are those of `plan_sub_questions`; `prompt` is the single choice
    that is asked again (the paper: p2). A failed or empty answer is written as "Uncertain".
    Raises ConfigError and ContractError as `plan_sub_questions`.
    """
    knowledge = _knowledge(requests, responses, sub_questions)
    asked = []
    for row in evaluated_people(samples):
        text = prompts.final_prompt(row["occupation"], knowledge[row["sample_id"]], prompt)
        asked.append((row, FINAL, prompts.framed(entry.family, style, text)))
    return make_requests(
        asked,
        prompts,
        entry,
        experiment="rationale",
        style=style,
        images_per_shard=images_per_shard,
        max_new_tokens=max_new_tokens,
    )


def _of(sub_questions: SubQuestions, occupation: str) -> Sequence[str]:
    questions = sub_questions.get(occupation, ())
    if not questions:
        raise ConfigError(
            f"lvlm_fairness: there are no sub-questions for {occupation}. Add them to "
            f"resources/words/lvlm_sub_questions.yaml, or have them generated."
        )
    return questions


def _texts(requests: pa.Table, responses: pa.Table) -> dict[str, str | None]:
    ids = responses["request_id"].to_pylist()
    assert_same_ids(requests["request_id"].to_pylist(), ids, "lvlm_fairness responses")
    return dict(zip(ids, responses["text"].to_pylist(), strict=True))


def _knowledge(
    requests: pa.Table, responses: pa.Table, sub_questions: SubQuestions
) -> dict[str, list[tuple[str, str]]]:
    texts = _texts(requests, responses)
    found: dict[str, list[tuple[str, str]]] = {}
    columns = (requests[name].to_pylist() for name in ("request_id", "sample_id", "occupation"))
    for request, sample, occupation in zip(*columns, strict=True):
        so_far = found.setdefault(sample, [])
        question = _of(sub_questions, occupation)[len(so_far)]
        so_far.append((question, as_knowledge(texts[request])))
    return found


def as_knowledge(answer: str | None) -> str:
    """Return an answer as one line for the next prompt: no tags, no line breaks, not empty."""
    line = normalise(_TAGS.sub(" ", answer or ""))
    if len(line) > _LONGEST_ANSWER:
        line = line[:_LONGEST_ANSWER].rsplit(" ", 1)[0]
    return line or NO_ANSWER
