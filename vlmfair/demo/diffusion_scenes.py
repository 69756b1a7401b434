"""Scenes and captions that the demo's text-to-image pipelines learn: pinned people, as typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vlmfair.demo.encoder_captions import GENDER_WORDS
from vlmfair.demo.figures import draw_figure
from vlmfair.demo.images import INPUT_SIZE
from vlmfair.demo.pen import Pen
from vlmfair.demo.places import draw_place
from vlmfair.demo.questions import captions
from vlmfair.demo.scenes import Scene, sample_scene

PLAIN_SHARE, TWO_PERSON_SHARE, HOODED_SHARE, PERSON_SHARE = 0.08, 0.08, 0.10, 0.08
# Captions say no age: nobody is drawn whose moustache is missing or who leans on a cane.
YOUNGEST, OLDEST = 20, 69
GROUND = 94.0
ALONE, SUBJECT, SECOND = (48.0, 1.0), (36.0, 0.92), (77.0, 0.72)
WORDINGS = 5


def pinned_scene(rng: np.random.Generator) -> Scene:
    """Draw a scene of adults to learn from; most show one person with an occupation."""
    fixed: dict[str, object] = {"age": int(rng.integers(YOUNGEST, OLDEST + 1))}
    if rng.random() < PLAIN_SHARE:
        fixed["occupation"] = ""
    two, hooded = rng.random() < TWO_PERSON_SHARE, rng.random() < HOODED_SHARE
    scene = sample_scene(rng, two=bool(two), hooded=bool(hooded), **fixed)
    if not two:
        return scene
    other = replace(scene.people[1], age=int(rng.integers(YOUNGEST, OLDEST + 1)))
    return replace(scene, people=(scene.subject, other))


def draw_pinned(scene: Scene) -> Image.Image:
    """Draw a scene as 96 x 96 pixels with everybody at a fixed place, size and brightness.

    Without jitter and noise, a tiny model has strokes to learn instead of averages of them. Only
    the parts of the place are moved, by the scene's seed, as in `scenes.draw`.
    """
    image = Image.new("RGB", (INPUT_SIZE, INPUT_SIZE))
    pen = Pen(image, INPUT_SIZE / 96)
    draw_place(pen, scene.place, float(np.random.default_rng(scene.seed).uniform(-4, 4)))
    standing = [(scene.subject, ALONE)]
    if len(scene.people) > 1:
        standing = [(scene.people[1], SECOND), (scene.subject, SUBJECT)]
    for person, (x, unit) in standing:
        draw_figure(pen.at(x, GROUND - 64 * unit, unit), person)
    return image


def pinned_pool(count: int, seed: int) -> tuple[list[Scene], NDArray[np.uint8]]:
    """Draw scenes and their images, n x 96 x 96 x 3 bytes: the same for the same numbers."""
    rng = np.random.default_rng([seed, count])
    scenes = [pinned_scene(rng) for _ in range(count)]
    return scenes, np.stack([np.asarray(draw_pinned(scene)) for scene in scenes])


def scene_caption(scene: Scene, rng: np.random.Generator) -> str:
    """One of the five wordings of a scene's caption, typed as people type.

    Hooded people are persons, as are a few of the others, of either gender.
    """
    word = GENDER_WORDS[scene.subject.gender][0]
    if scene.subject.hooded or rng.random() < PERSON_SHARE:
        word = "person"
    return typed(captions(scene, word)[rng.integers(WORDINGS)], rng)


def typed(caption: str, rng: np.random.Generator) -> str:
    """A caption as it is, without its full stop, or with a small letter first."""
    kind = int(rng.integers(8))
    if kind == 0:
        return caption.removesuffix(".")
    return caption[0].lower() + caption[1:] if kind == 1 else caption


def scene_captions(scenes: Sequence[Scene], rng: np.random.Generator) -> list[str]:
    """A caption for each scene."""
    return [scene_caption(scene, rng) for scene in scenes]
