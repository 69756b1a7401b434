"""Measures the demo's CLIP and classifier on scenes that they were not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification

from vlmfair.demo.encoder_captions import ACTIVITIES, ATTRIBUTE_LABELS, GENDER_WORDS
from vlmfair.demo.images import photograph, training_scene
from vlmfair.demo.people import GENDERS, OCCUPATIONS
from vlmfair.demo.places import PLACES
from vlmfair.demo.questions import captions
from vlmfair.demo.scenes import Scene
from vlmfair.models.encoders import ClipEncoder, Embeddings

HELD_OUT_SEED = 20_260


@dataclass(frozen=True)
class HeldOut:
    """Scenes and their photographs, drawn with a seed that training does not use."""

    scenes: list[Scene]
    images: list[Image.Image]


def held_out(count: int, seed: int = HELD_OUT_SEED) -> HeldOut:
    """Draw `count` scenes as training draws them, of other people in other pictures."""
    rng = np.random.default_rng([seed, count])
    scenes = [training_scene(rng) for _ in range(count)]
    return HeldOut(scenes, [photograph(scene, rng) for scene in scenes])


def true_caption(scene: Scene) -> str:
    """The caption of a scene as the demo's models and datasets word it first."""
    word = "person" if scene.subject.hooded else GENDER_WORDS[scene.subject.gender][0]
    return captions(scene, word)[0]


def measure_clip(encoder: ClipEncoder, drawn: HeldOut, classes: Sequence[str]) -> dict[str, float]:
    """Shares of right choices and mean cosines of a CLIP on held-out scenes.

    `gender swap` and its like compare a scene's caption with copies that are altered in one thing
    alone, for people without a hood; `name of 52` looks for the class of FACET, as the zero-shot
    baseline does. R@1 is over the scenes of one person without a hood: the image's own caption
    among all of theirs, and an image that a caption fits among all of theirs. Cosines are those of
    CLIPScore before it multiplies them with 100.
    """
    images, scenes = encoder.encode_images(drawn.images), drawn.scenes
    told = [true_caption(scene) for scene in scenes]
    alone = _clear(scenes) & ~_two(scenes)
    to_text, to_image = recall_at_one(images[alone], list(np.array(told)[alone]), encoder)
    return {
        **_genders(encoder, images, scenes),
        **_choices(encoder, images, scenes),
        **_names(encoder, images, scenes, classes),
        "R@1 image to caption": to_text,
        "R@1 caption to image": to_image,
        "cosine, another scene's": _mean(
            (images * np.roll(encoder.encode_texts(told), 1, axis=0)).sum(axis=1)
        ),
    }


def _mean(values: NDArray[Any]) -> float:
    return float(values.mean())


def _clear(scenes: Sequence[Scene]) -> NDArray[np.bool_]:
    return np.array([not scene.subject.hooded for scene in scenes])


def _two(scenes: Sequence[Scene]) -> NDArray[np.bool_]:
    return np.array([len(scene.people) > 1 for scene in scenes])


def _genders(encoder: ClipEncoder, images: Embeddings, scenes: Sequence[Scene]) -> dict[str, float]:
    """A caption against its copy with the other gender, and the labels of gender."""
    cosines = _cosines_of_altered(encoder, images, scenes, "gender")
    true = np.array([GENDERS.index(scene.subject.gender) for scene in scenes])
    preferred = cosines.argmax(axis=1) == true
    labels = encoder.encode_texts([texts[0] for texts in ATTRIBUTE_LABELS["gender"]])
    labelled = (images @ labels.T).argmax(axis=1) == true
    clear, two, rows = _clear(scenes), _two(scenes), np.arange(len(scenes))
    return {
        "gender swap": _mean(preferred[clear]),
        "gender swap, one person": _mean(preferred[clear & ~two]),
        "gender swap, two persons": _mean(preferred[clear & two]),
        "gender by its label": _mean(labelled[clear]),
        "cosine, own caption": _mean(cosines[rows, true][clear]),
        "cosine, other gender": _mean(cosines[rows, 1 - true][clear]),
    }


def _choices(encoder: ClipEncoder, images: Embeddings, scenes: Sequence[Scene]) -> dict[str, float]:
    """A caption among its copies with every other activity, and with every other place."""
    activities = np.array([ACTIVITIES.index(scene.subject.occupation) for scene in scenes])
    places = np.array([PLACES.index(scene.place) for scene in scenes])
    by_activity = _cosines_of_altered(encoder, images, scenes, "occupation").argmax(axis=1)
    by_place = _cosines_of_altered(encoder, images, scenes, "place").argmax(axis=1)
    return {
        "activity of 14": _mean(by_activity == activities),
        "place of 6": _mean(by_place == places),
    }


def _names(
    encoder: ClipEncoder, images: Embeddings, scenes: Sequence[Scene], classes: Sequence[str]
) -> dict[str, float]:
    """The names of classes, for all who have an occupation."""
    working = [row for row, scene in enumerate(scenes) if scene.subject.occupation]
    subjects = [scenes[row].subject for row in working]
    true = np.array([OCCUPATIONS.index(person.occupation) for person in subjects])
    women = np.array([person.gender == "female" for person in subjects])
    names = encoder.encode_texts([f"a photo of a {name}" for name in classes])
    cosines = images[working] @ names.T
    places = np.array([classes.index(name) for name in OCCUPATIONS])
    found = cosines.argmax(axis=1) == places[true]
    return {
        "name of 13": _mean(cosines[:, places].argmax(axis=1) == true),
        "name of 52": _mean(found),
        "name of 52, women - men": _mean(found[women]) - _mean(found[~women]),
    }


def measure_classifier(
    folder: Path, drawn: HeldOut, wordnet: Mapping[str, str]
) -> dict[str, float]:
    """Share of people with an occupation whose class an image classifier names, and its gap.

    Labels that stand for no class of FACET are left out, as the baseline does.
    """
    processor = AutoImageProcessor.from_pretrained(folder)
    model = AutoModelForImageClassification.from_pretrained(folder).eval()
    classes = [wordnet.get(model.config.id2label[n]) for n in range(model.config.num_labels)]
    offered = [number for number, name in enumerate(classes) if name is not None]
    inputs = processor(images=drawn.images, return_tensors="pt")
    with torch.inference_mode():
        best = model(**inputs).logits[:, offered].argmax(dim=1).tolist()
    subjects = [scene.subject for scene in drawn.scenes]
    pairs = zip(best, subjects, strict=True)
    right = np.array([classes[offered[place]] == person.occupation for place, person in pairs])
    working = np.array([person.occupation != "" for person in subjects])
    women = np.array([person.gender == "female" for person in subjects])
    return {
        "name of 13": _mean(right[working]),
        "name of 13, women - men": _mean(right[working & women]) - _mean(right[working & ~women]),
    }


def recall_at_one(
    images: Embeddings, told: Sequence[str], encoder: ClipEncoder
) -> tuple[float, float]:
    """Share of images whose nearest caption is theirs, and of captions whose nearest image fits.

    Captions that several images share are in the gallery once.
    """
    gallery = list(dict.fromkeys(told))
    own = np.array([gallery.index(text) for text in told])
    cosines = images @ encoder.encode_texts(gallery).T
    to_text = cosines.argmax(axis=1) == own
    to_image = own[cosines.argmax(axis=0)] == np.arange(len(gallery))
    return float(to_text.mean()), float(to_image.mean())


def _cosines_of_altered(
    encoder: ClipEncoder, images: Embeddings, scenes: Sequence[Scene], what: str
) -> NDArray[np.float32]:
    """Cosines of each image with its caption under every gender, activity or place."""
    values = {"gender": GENDERS, "occupation": ACTIVITIES, "place": PLACES}[what]
    rows = []
    for value in values:
        altered = [_altered(scene, what, value) for scene in scenes]
        rows.append((images * encoder.encode_texts(altered)).sum(axis=1))
    return np.stack(rows, axis=1)


def _altered(scene: Scene, what: str, value: str) -> str:
    if what == "gender":
        return captions(scene, GENDER_WORDS[value][0])[0]
    if what == "place":
        return true_caption(replace(scene, place=value))
    subject = replace(scene.subject, occupation=value)
    return true_caption(replace(scene, people=(subject, *scene.people[1:])))
