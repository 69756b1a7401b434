"""What each sample says in a task: its question, its answer as a demonstration, what is right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import pyarrow as pa

from vlmfair.errors import ContractError
from vlmfair.papers.vl_bicle.questions import Prompts, load_prompts
from vlmfair.papers.vl_bicle.tasks import (
    CAPTIONING,
    EXAMPLE,
    GENDERS,
    POOL,
    PRONOUN,
    QUERIES,
    VQA,
    Task,
)
from vlmfair.text.answers import normalise
from vlmfair.text.gender import gendered_caption
from vlmfair.text.neutralise import neutralise
from vlmfair.text.words import (
    GenderWords,
    NeutralWords,
    load_gender_words,
    load_neutral_words,
)


@dataclass(frozen=True)
class Item:
    """One sample in one task.

    `text` is what the user says, `answer` what a demonstration answers, `prefix` how the query's
    answer begins, `truth` the right answer, `question` that of visual questions by itself.
    """

    sample_id: str
    image: str
    image_sha256: str
    gender: str
    text: str
    answer: str
    prefix: str = ""
    truth: str = ""
    question: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A sample that cannot be used in a task, and why (a reason code)."""

    sample_id: str
    split: str
    reason: str


@dataclass(frozen=True)
class Items:
    """The demonstration pool and the queries of a task, each in order of sample ids.

    `example` shows the form of an answer without a person; only visual questions have one.
    """

    task: Task
    pool: tuple[Item, ...]
    queries: tuple[Item, ...]
    example: Item | None
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True)
class Wording:
    """The prompts and word lists that turn samples into items."""

    prompts: Prompts
    words: GenderWords
    neutral: NeutralWords


def load_wording(
    prompts: str | PathLike[str], words: str | PathLike[str], word_list: str
) -> Wording:
    """Read prompts and word lists from their files; `word_list` as `load_gender_words` has it."""
    return Wording(
        load_prompts(prompts), load_gender_words(words, word_list), load_neutral_words(words)
    )


# What each dataset adds to the columns of SAMPLES.
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    PRONOUN: ("task", "companion"),
    CAPTIONING: (),
    VQA: ("thought",),
}
Row = Mapping[str, Any]
Make = Callable[[Row, str, Task, Wording], Item | str]


def read_items(samples: pa.Table, task: Task, wording: Wording) -> Items:
    """Return a task's items from a SAMPLES table with the splits pool, queries and example.

    VisoGender adds `task` (OO, OP) and `companion`, VisualCoT adds `thought`. Pool images that are
    also a query's, by their bytes, and repeated ones are left out, each with its reason, as are
    samples without what the task needs. Raises ContractError on a missing column, when no query
    is left, and when visual questions have no example.
    """
    rows = sorted(_of_task(samples, task), key=lambda row: str(row["sample_id"]))
    make = _MAKERS[task.experiment]
    needs_example = task.experiment == VQA
    splits = (POOL, QUERIES, EXAMPLE) if needs_example else (POOL, QUERIES)
    found: dict[str, list[Item]] = {split: [] for split in splits}
    left_out: list[LeftOut] = []
    asked = {row["image_sha256"] for row in rows if row["split"] == QUERIES}
    shown: set[str] = set()
    for row in rows:
        split = str(row["split"])
        if split not in found:
            continue
        item = _fault(row, split, asked, shown) or make(row, split, task, wording)
        if isinstance(item, str):
            left_out.append(LeftOut(str(row["sample_id"]), split, item))
            continue
        if split == POOL:
            shown.add(item.image_sha256)
        found[split].append(item)
    if not found[QUERIES]:
        raise ContractError(
            f"vl_bicle: {task.name} has no query. Check the problems and the splits of "
            f"{task.samples}: samples to ask about have the split {QUERIES}."
        )
    if needs_example and not found[EXAMPLE]:
        raise ContractError(
            f"vl_bicle: {task.samples} has no sample of the split {EXAMPLE}, an image without a "
            f"person that shows the form of an answer before the first question (section 0.C.3). "
            f"Prepare the dataset again."
        )
    example = found[EXAMPLE][0] if needs_example else None
    return Items(task, tuple(found[POOL]), tuple(found[QUERIES]), example, tuple(left_out))


def _fault(row: Row, split: str, asked: set[str], shown: set[str]) -> str:
    if split != EXAMPLE and row["gender"] not in GENDERS:
        return "no_gender"
    if split == POOL and row["image_sha256"] in asked:
        return "image_of_a_query"
    return "repeated_image" if split == POOL and row["image_sha256"] in shown else ""


def _of_task(samples: pa.Table, task: Task) -> list[Row]:
    missing = [name for name in _COLUMNS[task.experiment] if name not in samples.column_names]
    if missing:
        raise ContractError(
            f"vl_bicle: the samples of {task.samples} lack the columns {', '.join(missing)}. "
            f"Prepare the dataset again."
        )
    rows: list[Row] = samples.to_pylist()
    if task.experiment != PRONOUN:
        return rows
    wanted = task.name.removeprefix("visogender_").upper()
    return [row for row in rows if row["task"] == wanted]


def _base(row: Row) -> dict[str, str]:
    return {
        "sample_id": str(row["sample_id"]),
        "image": str(row["image"]),
        "image_sha256": str(row["image_sha256"]),
        "gender": str(row["gender"] or ""),
    }


def _pronoun(row: Row, _split: str, task: Task, wording: Wording) -> Item | str:
    occupation = normalise(str(row["occupation"] or "").replace("_", " "))
    if not occupation:
        return "no_occupation"
    companion = normalise(str(row["companion"] or "").replace("_", " "))
    if not companion:
        return "no_companion"
    pronoun = wording.prompts.pronouns[row["gender"]]
    return Item(
        **_base(row),
        text=wording.prompts.user_text(task.prompt),
        answer=wording.prompts.answer(
            task.prompt, occupation=occupation, pronoun=pronoun, companion=companion
        ),
        prefix=wording.prompts.prefix(task.prompt, occupation),
        truth=pronoun,
    )


def _caption(row: Row, split: str, task: Task, wording: Wording) -> Item | str:
    caption = gendered_caption(row["captions"] or (), row["gender"], wording.words)
    if caption is None and split == POOL:
        return "no_gendered_caption"
    return Item(
        **_base(row),
        text=wording.prompts.user_text(task.prompt),
        answer=wording.prompts.answer(task.prompt, caption=caption or ""),
        truth=str(row["gender"]),
    )


def _question(row: Row, split: str, task: Task, wording: Wording) -> Item | str:
    question = normalise(str(row["question"] or ""))
    answer = normalise(str(row["answer"] or ""))
    thought = normalise(str(row["thought"] or ""))
    if not question or not answer:
        return "no_question" if not question else "no_answer"
    if not thought and split != QUERIES:
        return "no_thought"
    if split == QUERIES:
        neutral = neutralise(question, wording.words, wording.neutral)
        if neutral.text is None:
            return neutral.reason
        question = neutral.text
    return Item(
        **_base(row),
        text=wording.prompts.user_text(task.prompt, question),
        answer=wording.prompts.answer(task.prompt, answer=answer, thought=thought),
        truth=answer,
        question=question,
    )


_MAKERS: Mapping[str, Make] = {PRONOUN: _pronoun, CAPTIONING: _caption, VQA: _question}
