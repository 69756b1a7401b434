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
# Read behind the marks of markdown and of lists, so that "### 2. **Sub-Questions**" is one too.
_SUB = r"sub[\s\u2010-\u2015-]*"
_HEADING = re.compile(rf"{_SUB}questions?\s*(?:\([^()]*\))?\s*(?::(.*)|$)", re.IGNORECASE)
_ANNOUNCED = re.compile(rf"\b{_SUB}questions?\s*:$", re.IGNORECASE)
_ANSWERS = re.compile(rf"(?:{_SUB}answers?\b|(?:final )?answers?\s*(?::|$))", re.IGNORECASE)
_MARKDOWN = re.compile(r"[*_#`~>]+")
_LISTED = re.compile(
    rf"(?:(?:[-+\u2010-\u2015\u2022]|\(?(?:\d{{1,3}}\s*[.):]|[a-z][.)])"
    rf"|(?:(?:{_SUB})?question\s*|q)\d{{1,3}}\s*[.):])\s*)+",
    re.IGNORECASE,
)
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
        text = texts[row["request_id"]]
        questions = parse_sub_questions(text or "")
        if not questions:
            fault = "failed" if text is None else 'lists no question below "Sub-questions:"'
            raise InferenceError(
                f"the generator's answer to the request {row['request_id']}, sub-questions for "
                f"{row['occupation']}, {fault}. The same request gets its stored answer again: in "
                f"the config, change lvlm_fairness.max_new_tokens, name another "
                f"lvlm_fairness.generator, or write generator: null, which takes the sub-questions "
                f"of resources/words/lvlm_sub_questions.yaml."
            )
        found[row["occupation"]] = questions
    return found


def parse_sub_questions(text: str) -> tuple[str, ...]:
    """Return the questions below a heading "Sub-questions", up to that of the answers.

    Headings and questions may have numbers, dashes and markdown, or none, as in Figure 5. What
    has no words before a question mark, and what is indented below a question, is left out.
    """
    for section in _sections(text):
        outermost = min((indent for indent, _ in section), default=0)
        # One column more is that of 9 above 10.
        questions = [question for indent, question in section if indent <= outermost + 1]
        if questions:
            return tuple(dict.fromkeys(questions))
    return ()


def _sections(text: str) -> list[list[tuple[int, str]]]:
    """Return the questions below each heading with their indents; an echoed prompt has some."""
    sections: list[list[tuple[int, str]]] = []
    is_open = False
    for line in _TAGS.sub("", text).expandtabs(4).splitlines():
        bare = normalise(_MARKDOWN.sub(" ", line))
        listed = _LISTED.match(bare)
        content = bare[listed.end() :] if listed else bare
        heading = _HEADING.match(content)
        if heading or _ANNOUNCED.search(content):
            sections.append([])
            is_open = True
            content = (heading[1] or "").strip() if heading else ""
            listed = _LISTED.match(content)
            content = content[listed.end() :] if listed else content
        elif _ANSWERS.match(content):
            is_open = False
        question = _question(content)
        if is_open and question:
            sections[-1].append((len(line) - len(line.lstrip()), question))
    return sections


def _question(content: str) -> str:
    """Return a line's question without what follows it; empty where there is none."""
    question = content if content.endswith("?") else content.partition("?")[0] + "?"
    is_one = "?" in content and len(question) <= _LONGEST_ANSWER and "<" not in question
    return question if is_one and any(sign.isalpha() for sign in question) else ""


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
