"""What the paper on fairness of LVLMs asks a model, experiment by experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlmfair.cost.amounts import Amounts, of_group
from vlmfair.cost.assumptions import Assumptions
from vlmfair.cost.parts import NO_IMAGE, Part, total
from vlmfair.cost.subject import Subject
from vlmfair.cost.tokens import asked_text, pieces
from vlmfair.papers.lvlm_fairness.questions import OCCUPATIONS, Prompts
from vlmfair.papers.lvlm_fairness.settings import DATASET_OF, DIRECT, GENERATION

PAPER = "lvlm_fairness"


@dataclass(frozen=True)
class Counted:
    """People of each occupation in FACET, questions about each attribute of UTKFace.

    `announced` tells the sheet's numbers, spread evenly over occupations, from counted samples.
    """

    facet: Mapping[str, float]
    utkface: Mapping[str, float]
    announced: bool


def announced_counts(facet: int, utkface: int, attributes: Sequence[str]) -> Counted:
    """Return what follows from announced numbers of images alone."""
    evenly = {occupation: facet / len(OCCUPATIONS) for occupation in OCCUPATIONS}
    return Counted(evenly, dict.fromkeys(attributes, float(utkface)), announced=True)


@dataclass(frozen=True)
class Wording:
    """The prompts and sub-questions of the paper, and the settings that choose among them."""

    prompts: Prompts
    sub_questions: Mapping[str, Sequence[str]]
    settings: Mapping[str, Any]

    @property
    def style(self) -> str:
        """The style of prompts: paper or released."""
        return str(self.settings["prompt_style"])

    @property
    def choices(self) -> list[str]:
        """The single choices that are asked; the first one is asked again with rationales."""
        return list(self.settings["choice_prompts"])


def lvlm_parts(
    subject: Subject, wording: Wording, counted: Counted, assumptions: Assumptions
) -> list[Part]:
    """Return a part for each experiment that a model is asked."""
    asked = {
        "facet": _about_people(subject, wording, counted, assumptions, _facet_texts, "direct"),
        "utkface": _about_faces(subject, wording, counted, assumptions),
        "sub_questions": _about_people(
            subject, wording, counted, assumptions, _sub_questions, "sub_questions"
        ),
        "rationale": _about_people(
            subject, wording, counted, assumptions, _final_texts, "rationale"
        ),
    }
    return [
        Part(
            PAPER,
            experiment,
            subject.name,
            subject.image(DATASET_OF[experiment], assumptions.image_sizes),
            amounts,
            False,
            counted.announced,
        )
        for experiment, amounts in asked.items()
    ]


def generation_part(subject: Subject, wording: Wording, assumptions: Assumptions) -> Part:
    """Return what the model that writes the sub-questions is asked: once for each occupation."""
    texts = [wording.prompts.generation_prompt(name, wording.choices[0]) for name in OCCUPATIONS]
    asked = [
        pieces(subject.tokenizer, asked_text(subject.family, text, image=False), 0)
        for text in texts
    ]
    tokens = assumptions.answer(PAPER, GENERATION, wording.settings["max_new_tokens"])
    amounts = of_group(asked, tokens, subject.sharing())
    return Part(PAPER, GENERATION, subject.name, NO_IMAGE, amounts, False, announced=False)


def _facet_texts(subject: Subject, wording: Wording, occupation: str, _: Assumptions) -> list[str]:
    return [
        wording.prompts.user_text(subject.family, wording.style, prompt, occupation)
        for prompt in (DIRECT, *wording.choices)
    ]


def _sub_questions(
    subject: Subject, wording: Wording, occupation: str, _: Assumptions
) -> list[str]:
    return [
        wording.prompts.framed(subject.family, wording.style, question)
        for question in wording.sub_questions[occupation]
    ]


def _final_texts(
    subject: Subject, wording: Wording, occupation: str, assumptions: Assumptions
) -> list[str]:
    knowledge = [
        (question, assumptions.sub_answer) for question in wording.sub_questions[occupation]
    ]
    text = wording.prompts.final_prompt(occupation, knowledge, wording.choices[0])
    return [wording.prompts.framed(subject.family, wording.style, text)]


def _about_people(
    subject: Subject,
    wording: Wording,
    counted: Counted,
    assumptions: Assumptions,
    texts_of: Any,
    kind: str,
) -> Amounts:
    tokens = assumptions.answer(PAPER, kind, wording.settings["max_new_tokens"])
    parts = []
    for occupation, people in counted.facet.items():
        texts = texts_of(subject, wording, occupation, assumptions)
        parts.append(_asked_together(subject, wording, "facet", texts, tokens, assumptions, people))
    return total(parts)


def _about_faces(
    subject: Subject, wording: Wording, counted: Counted, assumptions: Assumptions
) -> Amounts:
    """Most faces are asked about all attributes together; what is unknown of some is left out."""
    tokens = assumptions.answer(PAPER, "direct", wording.settings["max_new_tokens"])
    texts = {
        name: wording.prompts.user_text(subject.family, wording.style, name)
        for name in counted.utkface
    }
    faces = min(counted.utkface.values(), default=0.0)
    together = _asked_together(
        subject, wording, "utkface", list(texts.values()), tokens, assumptions, faces
    )
    rest = [
        _asked_together(
            subject, wording, "utkface", [texts[name]], tokens, assumptions, number - faces
        )
        for name, number in counted.utkface.items()
        if number > faces
    ]
    return total([together, *rest])


def _asked_together(
    subject: Subject,
    wording: Wording,
    dataset: str,
    texts: Sequence[str],
    answer_tokens: int,
    assumptions: Assumptions,
    images: float,
) -> Amounts:
    load = subject.image(dataset, assumptions.image_sizes)
    raw = wording.prompts.rendering(subject.family, wording.style) == "raw"
    prompts = [
        pieces(subject.tokenizer, asked_text(subject.family, text, raw=raw), load.tokens)
        for text in texts
    ]
    return of_group(prompts, answer_tokens, subject.sharing()).times(images)
