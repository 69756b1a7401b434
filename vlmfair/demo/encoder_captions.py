"""Captions and labels that the demo CLIP learns, with what each of them states of a scene."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vlmfair.demo import planted, wordings
from vlmfair.demo.people import GENDERS, OCCUPATIONS
from vlmfair.demo.places import PLACES
from vlmfair.demo.planted import FIVE_RACES
from vlmfair.demo.questions import captions
from vlmfair.demo.scenes import Scene

FACTS = ("gender", "occupation", "place", "second", "age", "skin_tone", "race")
# A text that says nothing about a fact fits every scene.
UNSTATED = -1
HIDDEN = len(GENDERS)
ACTIVITIES = ("", *OCCUPATIONS)
AGES, SKIN_TONES = ("young", "middle", "old"), ("light", "medium", "dark")
# The first word of each gender is the one that the demo's models and captions use.
GENDER_WORDS = {"male": ("man", "boy", "guy"), "female": ("woman", "girl", "lady")}
OTHER_WORD_SHARE, PERSON_SHARE = 0.1, 0.1
PLACELESS = 2
LABEL_FORMS = ("a photo of a {}", "a photo of a {}", "a {}", "The person in the image is a {}.")
ATTRIBUTE_LABELS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "gender": (
        ("a photo of male person", "a photo of a male", "a photo of a man", "a male person"),
        (
            "a photo of female person",
            "a photo of a female",
            "a photo of a woman",
            "a female person",
        ),
    ),
    "age": (
        ("a photo of young person", "a photo of a young"),
        ("a photo of middle age person", "a photo of a middle"),
        ("a photo of old person", "a photo of a old"),
    ),
    "skin_tone": tuple(
        (f"a photo of {tone} skin tone person", f"a photo of a {tone}") for tone in SKIN_TONES
    ),
    "race": tuple((f"a photo of {race} person", f"a photo of a {race}") for race in FIVE_RACES),
    "place": tuple(
        (f"a photo of a {place}", wordings.PLACE_PHRASES[place], f"a person {phrase}")
        for place, phrase in wordings.PLACE_PHRASES.items()
    ),
}


@dataclass(frozen=True)
class Caption:
    """A text, and the number of each of `FACTS` that it states, or `UNSTATED`."""

    text: str
    facts: tuple[int, ...]


def scene_facts(scene: Scene) -> tuple[int, ...]:
    """What can be seen of each of `FACTS`; a hooded person's gender is a value of its own."""
    person = scene.subject
    return (
        HIDDEN if person.hooded else GENDERS.index(person.gender),
        ACTIVITIES.index(person.occupation),
        PLACES.index(scene.place),
        len(scene.people) - 1,
        AGES.index(planted.age_label(person)),
        SKIN_TONES.index(planted.skin_label(person)),
        FIVE_RACES.index(planted.true_race_label(person)),
    )


def fits(texts: NDArray[np.int64], scenes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each text's stated facts hold in each scene: texts x scenes, from facts of both."""
    stated = texts[:, None, :]
    held: NDArray[np.bool_] = ((stated == UNSTATED) | (stated == scenes[None])).all(axis=2)
    return held


def caption_of(scene: Scene, word: str, variant: int) -> Caption:
    """One of the five wordings of a caption; `person` states no gender."""
    seen = scene_facts(scene)
    gender = UNSTATED
    for number, name in enumerate(GENDERS):
        if word in GENDER_WORDS[name]:
            gender = number
    place = UNSTATED if variant == PLACELESS else seen[2]
    stated = (gender, seen[1], place, seen[3], UNSTATED, UNSTATED, UNSTATED)
    return Caption(captions(scene, word)[variant], stated)


def draw_captions(scene: Scene, rng: np.random.Generator) -> list[Caption]:
    """A true caption of a scene, then the same one with another gender and another activity."""
    variant = int(rng.integers(5)) if rng.random() < 0.6 else 0
    other_word = int(rng.integers(1, 3)) if rng.random() < OTHER_WORD_SHARE else 0
    words = [GENDER_WORDS[gender][other_word] for gender in GENDERS]
    if scene.subject.hooded:
        true, swapped = "person", words[rng.integers(2)]
    else:
        gender = GENDERS.index(scene.subject.gender)
        true, swapped = words[gender], words[1 - gender]
        if rng.random() < PERSON_SHARE:
            true = "person"
    choices = [name for name in ACTIVITIES if name != scene.subject.occupation]
    occupation = choices[rng.integers(len(choices))]
    subject = replace(scene.subject, occupation=occupation)
    altered = replace(scene, people=(subject, *scene.people[1:]))
    return [
        caption_of(scene, true, variant),
        caption_of(scene, swapped, variant),
        caption_of(altered, true, variant),
    ]


def label_texts(names: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Every class's name in one form for all of them, with the underscore or a space."""
    form = LABEL_FORMS[rng.integers(len(LABEL_FORMS))]
    spaced = rng.random() < 0.3
    return [form.format(name.replace("_", " ") if spaced else name) for name in names]


def attribute_texts(attribute: str, rng: np.random.Generator) -> list[str]:
    """The labels of one attribute, each in the same of its wordings."""
    labels = ATTRIBUTE_LABELS[attribute]
    wording = int(rng.integers(len(labels[0])))
    return [texts[wording] for texts in labels]
