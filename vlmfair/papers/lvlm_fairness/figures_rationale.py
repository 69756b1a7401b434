"""Figures 4, 5 and 6: the mitigation by rationales in two stages, with real answers of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from vlmfair.errors import ContractError
from vlmfair.papers.lvlm_fairness.study import Study
from vlmfair.render.panels import place, write_at
from vlmfair.render.pictures import open_picture, show_picture
from vlmfair.render.style import NORMAL, TWO_COLUMNS, new_figure
from vlmfair.render.text_boxes import (
    Box,
    box_height,
    column_height,
    draw_box,
    draw_column,
    printable,
    wrapped,
)

# Figure 5: the occupation that the paper shows.
_SHOWN_OCCUPATION = "skateboarder"
_HEAD, _FOOT, _GAP = 0.3, 0.08, 0.28  # inches
_WHOLE = TWO_COLUMNS - 0.08
_PICTURE = 1.6
_LONGEST_ANSWER, _LONGEST_DIALOGUE, _LONGEST_PROMPT = 10, 14, 32  # lines
_COLUMN = (_WHOLE - 2 * _GAP) / 3
_LEFTS = tuple(0.04 + number * (_COLUMN + _GAP) for number in range(3))
_LABEL, _UNDER = 0.2, 0.42  # inches, above a stage and for the lines under the image
_STAGES = (
    "Stage 1: a language model writes sub-questions, the model answers them about the image",
    "Stage 2: the original question again, with sub-questions and answers as knowledge",
)


def draw_pipeline(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 4: both stages of the mitigation from left to right, with one real example."""
    example = _example(study)
    first, prompt, answers = _stages(example)
    upper = max(box_height(box, _COLUMN) for box in first)
    lower = max(box_height(prompt, _COLUMN), column_height(answers, _COLUMN), _PICTURE + _UNDER)
    tops = (_HEAD + _LABEL, _HEAD + 2 * _LABEL + upper + _GAP)
    figure = new_figure(TWO_COLUMNS, tops[1] + lower + _FOOT)
    _title(figure, f"{study.title(example['model'])}, one image (n = 1)")
    for top, text in zip(tops, _STAGES, strict=True):
        write_at(figure, 0.04, top - _LABEL, text)
    for left, box in zip(_LEFTS, first, strict=True):
        draw_box(figure, box, left, tops[0], _COLUMN, upper)
    size = min(lower - _UNDER, _COLUMN)
    _show_image(figure, example, "Figure 4", _LEFTS[0], tops[1], size)
    draw_box(figure, prompt, _LEFTS[1], tops[1], _COLUMN, lower)
    draw_column(figure, answers, _LEFTS[2], tops[1], _COLUMN)
    middle = (tops[0] + upper / 2, tops[1] + size / 2)
    for left in _LEFTS[:2]:
        end = left + _COLUMN
        _arrow(figure, (end, middle[0]), (end + _GAP, middle[0]), dashed=True)
    _arrow(figure, (_LEFTS[0] + size, middle[1]), (_LEFTS[1], middle[1]))
    reached = tops[1] + box_height(answers[0], _COLUMN) / 2
    _arrow(figure, (_LEFTS[1] + _COLUMN, reached), (_LEFTS[2], reached))
    _arrow(figure, (_LEFTS[2] + 0.3, tops[0] + upper), (_LEFTS[1] + _COLUMN - 0.3, tops[1]))
    return figure, _texts(study, example, ("generation_prompt", "sub_questions", "final_prompt"))


def _stages(example: Mapping[str, Any]) -> tuple[tuple[Box, ...], Box, tuple[Box, ...]]:
    """Return the boxes of the first stage, and the prompt and the answers of the second."""
    first = (
        Box("1 Rationale generation prompt", example["generation_prompt"], most=9, dashed=True),
        Box("2 Sub-questions", _numbered(_questions(example)), most=9, dashed=True),
        Box("3 Asked about the image", _dialogue(example), most=12, dashed=True),
    )
    prompt = Box("4 Final prompt, its end", _end_of(example["final_prompt"]), most=14)
    answers = (
        _answer_box("5 Answer with the rationale", example, "after", most=8),
        _answer_box("Answer without it", example, "before", most=5),
    )
    return first, prompt, answers


def draw_generation(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 5: the generation prompt about an occupation, and the sub-questions of the run."""
    if not study.sub_questions:
        raise ContractError(
            "there are no sub-questions that Figure 5 could show. Run the rationale experiment."
        )
    occupation = next(iter(study.sub_questions))
    if _SHOWN_OCCUPATION in study.sub_questions:
        occupation = _SHOWN_OCCUPATION
    questions = list(study.sub_questions[occupation])
    prompt = study.prompts.generation_prompt(occupation, study.choice)
    boxes = (
        Box("Rationale generation prompt", prompt, dashed=True),
        Box(f"Sub-questions: {occupation}", _numbered(questions), dashed=True),
    )
    figure = new_figure(TWO_COLUMNS, _HEAD + column_height(boxes, _WHOLE) + _FOOT)
    _title(figure, "First stage: sub-questions about an occupation, without the image")
    draw_column(figure, boxes, 0.04, _HEAD, _WHOLE)
    rows = [("generation_prompt", prompt)]
    rows += [(f"sub_question_{number}", text) for number, text in enumerate(questions, start=1)]
    data = pd.DataFrame(rows, columns=["part", "text"])
    data.insert(0, "occupation", occupation)
    return figure, data


def draw_example(metrics: pd.DataFrame, study: Study) -> tuple[Figure, pd.DataFrame]:
    """Figure 6: one image's answer before and after the rationale, and all that was said."""
    example = _example(study)
    beside = _WHOLE - _PICTURE - 0.1
    upper = (
        Box("Single-choice question", example["question"]),
        _answer_box("Answer without the rationale", example, "before", most=6),
        Box("Sub-questions and answers", _dialogue(example), most=_LONGEST_DIALOGUE),
    )
    lower = (
        Box("Final prompt, with the rationale", example["final_prompt"], most=_LONGEST_PROMPT),
        _answer_box("Answer with the rationale", example, "after"),
    )
    high = max(column_height(upper, beside), _PICTURE + 0.5)
    figure = new_figure(TWO_COLUMNS, _HEAD + high + 0.08 + column_height(lower, _WHOLE) + _FOOT)
    _title(figure, f"{study.title(example['model'])}, one image (n = 1)")
    _show_image(figure, example, "Figure 6", 0.04, _HEAD, _PICTURE)
    draw_column(figure, upper, 0.04 + _PICTURE + 0.1, _HEAD, beside)
    draw_column(figure, lower, 0.04, _HEAD + high + 0.08, _WHOLE)
    return figure, _texts(study, example, ("question", "sub_questions", "final_prompt"))


def _example(study: Study) -> Mapping[str, Any]:
    """Return the first model's example whose answer turned right, else the first example."""
    if not study.examples:
        raise ContractError(
            "there is no worked example of a rationale. Run the rationale experiment, or leave out "
            "Figures 4 and 6."
        )
    turned = [example for example in study.examples if example["improved"]]
    return (turned or list(study.examples))[0]


def _answer_box(
    heading: str, example: Mapping[str, Any], when: str, most: int = _LONGEST_ANSWER
) -> Box:
    answer = example[when]
    mark = "right" if answer["predicted"] == example["truth"] else "wrong"
    read = answer["predicted"] or "no answer"
    return Box(heading, answer["text"] or "(empty)", mark, most, last=f"→ read as: {read}")


def _questions(example: Mapping[str, Any]) -> list[str]:
    return [str(entry["question"]) for entry in example["sub_questions"]]


def _dialogue(example: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{entry['question']} — {entry['answer'] or '(no answer)'}"
        for entry in example["sub_questions"]
    )


def _numbered(lines: Sequence[str]) -> str:
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))


def _end_of(prompt: str) -> str:
    """Return the final prompt from its question on; the instructions before it are long."""
    _, sign, rest = prompt.rpartition("Question:")
    return sign + rest if sign else prompt


def _title(figure: Figure, text: str) -> None:
    write_at(figure, 0.04, 0.06, printable(text), fontsize=NORMAL, weight="bold")


def _show_image(
    figure: Figure, example: Mapping[str, Any], name: str, left: float, top: float, size: float
) -> None:
    show_picture(place(figure, left, top, size, size), open_picture(example["image"], name))
    under = wrapped(f"occupation: {example['occupation']}\n{example['sample_id']}", size, 3)
    write_at(figure, left, top + size + 0.04, "\n".join(under))


def _arrow(
    figure: Figure, start: tuple[float, float], end: tuple[float, float], dashed: bool = False
) -> None:
    width, height = figure.get_size_inches()
    figure.add_artist(
        FancyArrowPatch(
            (start[0] / width, 1 - start[1] / height),
            (end[0] / width, 1 - end[1] / height),
            arrowstyle="-|>",
            mutation_scale=8,
            linewidth=0.9,
            linestyle="--" if dashed else "-",
            color="#444444",
            shrinkA=2,
            shrinkB=2,
            transform=figure.transFigure,
        )
    )


def _texts(study: Study, example: Mapping[str, Any], parts: Sequence[str]) -> pd.DataFrame:
    """Return every shown text in full, one a row."""
    rows: list[tuple[str, str]] = []
    for part in parts:
        if part == "sub_questions":
            for number, entry in enumerate(example["sub_questions"], start=1):
                rows.append((f"sub_question_{number}", entry["question"]))
                rows.append((f"sub_answer_{number}", entry["answer"]))
        else:
            rows.append((part, example[part]))
    for when in ("before", "after"):
        rows.append((f"answer_{when}", example[when]["text"]))
        rows.append((f"read_{when}", example[when]["predicted"] or ""))
    data = pd.DataFrame(rows, columns=["part", "text"])
    for name in ("occupation", "sample_id"):
        data.insert(0, name, example[name])
    data.insert(0, "model", study.title(example["model"]))
    return data
