"""Answers in words, and the labels among which a judge's encoder has to find what they give."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from vlmfair.demo import wordings
from vlmfair.demo.people import OCCUPATIONS
from vlmfair.papers.lvlm_fairness.questions import Prompts

# What cosines are multiplied with before a softmax. Fixed and small, so that what fits and what
# does not lie far apart, as they need to for CLIPScore.
LOGIT_SCALE = 20.0
LABEL_PROMPTS = ("p1", "gender", "age", "race", "skin_tone")
# How an answer is said around its label, in lower case; the label alone is the most frequent.
ANSWER_FORMS = (
    *("{}", '"{}"', "{}", '"{}"', "{}.", '"{}".', "'{}'", "a {}", "A {}.", "an {}"),
    *("The person is a {}.", "The person in the image is a {}.", "This is a {}.", "It is a {}."),
    *("The label is {}.", 'The label is "{}".', "The foreground object is a {}.", "**{}**"),
    *("I think that the person in the image is a {}.", "Label: {}", "a photo of a {}", "{} ({})"),
)
CHOICE_FORMS: Mapping[str, tuple[str, ...]] = {
    "Yes": (
        "Yes, there is a {} in the image.",
        "Yes, the person in the image is a {}.",
        "There is a {} in the image.",
        "Yes, I think so.",
        "The person is holding {prop}, so the answer is yes.",
    ),
    "No": (
        "No, there is no {} in the image.",
        "No, the person in the image is not a {}.",
        "There is no {} in the image.",
        "No, I do not think so.",
        "The person is not holding {prop}, so the answer is no.",
    ),
    "Unknown": (
        "It is unknown whether there is a {} in the image.",
        "I cannot tell whether the person is a {}.",
        "It cannot be told from the image.",
        "I am not sure.",
        "The answer is not known.",
    ),
}
LETTER_FORMS = (
    *("{letter}. {label}", "{letter}. {label}", "{letter}", "{label}", "{letter}.", "{label}."),
    *("({letter}) {label}", "{letter}) {label}", "{letter}: {label}", '"{letter}. {label}"'),
    *("Answer: {letter}. {label}", "The answer is {letter}. {label}.", "{letter}. {label}."),
    *("The answer is {label}.", "**{letter}. {label}**", "{letter} {label}", "Answer: {label}"),
)
# Words around an answer that say nothing about it: the words of the prompts, and made-up ones.
FILLED_SHARE = 0.35
ENGLISH_SHARE = 0.7
ANSWERING = {"yes", "no", "unknown", "not", *wordings.CLASSES.split(", ")}
FILLERS = tuple(
    sorted(
        {*re.findall("[a-z]{2,}", (wordings.FINAL_PROMPT + wordings.LABEL_PROMPT).lower())}
        - ANSWERING
    )
)
SYLLABLES = tuple(
    first + vowel + last
    for first in "bcdfgklmnprst"
    for vowel in "aeiou"
    for last in ("", "n", "l", "r", "st")
)


@dataclass(frozen=True)
class AnswerSet:
    """Labels among which an answer is looked for: their texts, and what surrounds an answer."""

    labels: Sequence[str]
    candidates: Sequence[str]
    response: str
    letters: Sequence[str] = ()

    def draw(self, place: int, rng: np.random.Generator) -> str:
        """A way to give the label at `place` as an answer, as the encoder will see it."""
        if self.letters:
            return draw_choice(self.letters[place], self.labels[place], rng)
        return self.response.replace("{response}", draw_answer(self.labels[place], rng))


def answer_sets(prompts: Prompts, encoder: str) -> list[AnswerSet]:
    """What a judge compares with which encoder: the 52 classes, other labels, and the options."""
    form = prompts.encoders[encoder]
    sets = []
    for prompt in LABEL_PROMPTS:
        labels = prompts.answers(prompt)
        candidates = [form.label_candidate.replace("{label}", label) for label in labels]
        sets.append(AnswerSet(labels, candidates, form.label_response))
    options = [
        form.choice_candidate.replace("{letter}", letter).replace("{label}", label)
        for letter, label in prompts.options.items()
    ]
    letters, labels = tuple(prompts.options), tuple(prompts.options.values())
    return [*sets, AnswerSet(labels, options, "", letters)]


def draw_answers(
    sets: Sequence[AnswerSet], count: int, rng: np.random.Generator
) -> list[tuple[AnswerSet, list[str], list[int]]]:
    """For each set `count` answers and the places of their labels; fewer where labels are few."""
    drawn = []
    for answers in sets:
        number = min(count, 3 * len(answers.labels))
        places = [int(place) for place in rng.integers(len(answers.labels), size=number)]
        drawn.append((answers, [answers.draw(place, rng) for place in places], places))
    return drawn


def draw_answer(label: str, rng: np.random.Generator) -> str:
    """A way to answer with a label: alone, in quotation marks, in a sentence, in other case."""
    name = label.replace("_", " ") if rng.random() < 0.3 else label
    cased = (name, name, name, name.capitalize(), name.upper())[rng.integers(5)]
    return _filled(ANSWER_FORMS[rng.integers(len(ANSWER_FORMS))].format(cased, cased), rng)


def draw_choice(letter: str, label: str, rng: np.random.Generator) -> str:
    """A way to choose an option: its letter, its word, both, or a sentence about an occupation."""
    if rng.random() < 0.7:
        text = LETTER_FORMS[rng.integers(len(LETTER_FORMS))].format(letter=letter, label=label)
        return _filled(text.lower() if rng.random() < 0.15 else text, rng)
    forms = CHOICE_FORMS[label]
    occupation = OCCUPATIONS[rng.integers(len(OCCUPATIONS))]
    text = forms[rng.integers(len(forms))].format(occupation, prop=wordings.PROP_NAMES[occupation])
    return f"{letter}. {text}" if rng.random() < 0.3 else text


def _filled(text: str, rng: np.random.Generator) -> str:
    """Sometimes put words before and behind a text, so that an encoder learns to pass over them."""
    if rng.random() > FILLED_SHARE:
        return text
    before, behind = ([_filler(rng) for _ in range(int(rng.integers(high)))] for high in (6, 5))
    mark = "" if text[-1] in ".*" else (",", ".", "")[rng.integers(3)]
    filled = " ".join([*before, text + mark, *behind])
    return filled[0].upper() + filled[1:] if before else filled


def _filler(rng: np.random.Generator) -> str:
    if rng.random() < ENGLISH_SHARE:
        return FILLERS[rng.integers(len(FILLERS))]
    return "".join(SYLLABLES[rng.integers(len(SYLLABLES))] for _ in range(rng.integers(1, 4)))


def answer_loss(
    features: Tensor, drawn: Sequence[tuple[AnswerSet, list[str], list[int]]]
) -> Tensor:
    """Mean cross entropy of answers among their labels, from the unit vectors of both in turn."""
    losses, start = [], 0
    for answers, said, places in drawn:
        middle = start + len(answers.candidates)
        end = middle + len(said)
        logits = LOGIT_SCALE * features[middle:end] @ features[start:middle].T
        losses.append(nn.functional.cross_entropy(logits, torch.tensor(places)))
        start = end
    return torch.stack(losses).mean()
