"""What VL-BICLE asks a model: each query behind demonstrations of every setting and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlmfair.cost.amounts import Amounts, Turns, of_group, with_contexts
from vlmfair.cost.assumptions import Assumptions, Demonstration
from vlmfair.cost.image_tokens import ImageLoad
from vlmfair.cost.parts import NO_IMAGE, Part, total
from vlmfair.cost.subject import Subject
from vlmfair.cost.tokens import asked_text, frame_of, length, pieces
from vlmfair.papers.vl_bicle import settings as rules
from vlmfair.papers.vl_bicle.questions import Prompts
from vlmfair.papers.vl_bicle.tasks import PAPER, PRONOUN, TASKS, VQA


@dataclass(frozen=True)
class Queries:
    """How many images a task asks about, and texts of its demonstrations and queries.

    `answers` are demonstrations' answers, `texts` what users say, `prefixes` how queries' answers
    begin; all are averaged. `announced` tells the sheet's number from counted samples, of which
    `pool` are demonstrations.
    """

    number: int
    answers: Sequence[str]
    texts: Sequence[str]
    prefixes: Sequence[str]
    announced: bool
    pool: int | None = None


def announced_queries(
    task: str, number: int, prompts: Prompts, demonstrations: Mapping[str, Demonstration]
) -> Queries:
    """Return what is assumed of a task whose samples are not prepared."""
    kind = TASKS[task].prompt
    usual = demonstrations[kind]
    text = prompts.user_text(kind, usual.question)
    return Queries(number, (usual.answer,), (text,), (usual.prefix,), announced=True)


def bicle_parts(
    subject: Subject,
    queries: Mapping[str, Queries],
    settings: Mapping[str, Any],
    assumptions: Assumptions,
) -> list[Part]:
    """Return a part for each task that a model is asked."""
    parts = []
    for task in rules.tasks_of_model(subject.name, settings):
        load = subject.image(TASKS[task].samples, assumptions.image_sizes)
        amounts = _task_amounts(subject, task, queries[task], settings, assumptions, load)
        scored = TASKS[task].experiment == PRONOUN
        announced = queries[task].announced
        parts.append(Part(PAPER, task, subject.name, load, amounts, scored, announced))
    return parts


def _task_amounts(
    subject: Subject,
    task: str,
    asked: Queries,
    settings: Mapping[str, Any],
    assumptions: Assumptions,
    load: ImageLoad,
) -> Amounts:
    kind = TASKS[task].prompt
    answer = assumptions.answer(PAPER, kind, rules.token_limit(task, settings))
    most = subject.most_images
    shots = [k for k in settings["shots"] if k > 0 and (most is None or k + 1 <= most)]
    groups = rules.group_count(task, subject.name, settings) - 1
    own = len(settings["retrieval"]) if task == rules.RETRIEVED_TASK else 0
    chunks = rules.chunk_count(asked.number, settings)
    turns = Turns(
        len(subject.tokenizer.tokens(frame_of(subject.family).begin)),
        _demonstration(subject, asked, load),
        _query(subject, asked, load),
        answer,
    )
    queries = asked.number / chunks
    # The example that shows the form of an answer is one demonstration more.
    example = TASKS[task].experiment == VQA and (most is None or most > 1)
    zero = with_contexts(
        turns,
        queries=queries,
        shots=[int(example)],
        groups=chunks,
        sharing=subject.sharing(1 + int(example)),
    )
    if not shots:
        return zero

    def behind(settings: int, *, retrieved: bool) -> Amounts:
        return with_contexts(
            turns,
            queries=queries,
            shots=shots,
            groups=settings * chunks,
            sharing=subject.sharing(1 + max(shots)),
            retrieved=retrieved,
        )

    return total([zero, behind(groups - own, retrieved=False), behind(own, retrieved=True)])


def _demonstration(subject: Subject, asked: Queries, load: ImageLoad) -> float:
    frame = frame_of(subject.family)
    text = _mean(subject, asked.texts)
    answer = _mean(subject, [frame.answer.replace("{answer}", one) for one in asked.answers])
    return _turn(subject, load) + text + answer


def _query(subject: Subject, asked: Queries, load: ImageLoad) -> float:
    return _turn(subject, load) + _mean(subject, asked.texts) + _mean(subject, asked.prefixes)


def _turn(subject: Subject, load: ImageLoad) -> float:
    """Tokens of a user's turn without its text: the image and what the chat format writes."""
    frame = frame_of(subject.family)
    empty = frame.user.replace("{image}", frame.image).replace("{text}", "")
    return float(length(pieces(subject.tokenizer, empty, load.tokens)))


def _mean(subject: Subject, texts: Sequence[str]) -> float:
    return sum(len(subject.tokenizer.tokens(text)) for text in texts) / max(1, len(texts))


def verdicts_part(
    subject: Subject,
    queries: Mapping[str, Queries],
    prompts: Prompts,
    settings: Mapping[str, Any],
    assumptions: Assumptions,
) -> Part:
    """Return what the judge of visual questions is asked, at most: once for each answer."""
    number = sum(
        rules.most_answers(task, model, queries[task].number, settings)
        for task, model in rules.questions_asked(settings)
    )
    usual = assumptions.demonstrations["direct"]
    answer = usual.answer.removeprefix("Answer: ")
    text = prompts.judge_system + prompts.judge_question(usual.question, answer, answer)
    prompt = pieces(subject.tokenizer, asked_text(subject.family, text, image=False), 0)
    tokens = assumptions.answer(PAPER, rules.VERDICTS, settings["judge_tokens"])
    amounts = of_group([prompt], tokens, subject.sharing()).times(number)
    announced = any(asked.announced for asked in queries.values())
    return Part(PAPER, rules.VERDICTS, subject.name, NO_IMAGE, amounts, False, announced)
