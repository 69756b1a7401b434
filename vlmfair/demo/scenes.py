"""Scenes of the demo world: who is in a picture, and the picture itself.

Every attribute that a paper groups by is drawn, so that a model can read it from pixels alone:

* gender by hair, moustache, earrings and clothes; age by height, hair colour, wrinkles, glasses and
  a cane; Monk skin tone by the colour of face and hands; occupation by prop and colour of clothes;
* `race` by the *pattern of a scarf*. The scarf is a stand-in code for the label of the dataset and
  deliberately no depiction of people: the demo needs a group to measure, not a portrait of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from vlmfair.demo.figures import draw_figure
from vlmfair.demo.pen import Pen
from vlmfair.demo.people import GENDERS, OCCUPATIONS, RACES, Person
from vlmfair.demo.places import PLACES, draw_place

__all__ = [
    "GENDERS",
    "OCCUPATIONS",
    "PLACES",
    "RACES",
    "Person",
    "Scene",
    "boxes",
    "draw",
    "sample_person",
    "sample_scene",
]

TWO_PERSON_SHARE = 0.18
HOODED_SHARE = 0.12


@dataclass(frozen=True)
class Scene:
    """One picture: the first person is the subject; `seed` fixes jitter and noise.

    A scene without people is a place alone; it has no subject.
    """

    people: tuple[Person, ...]
    place: str
    seed: int

    @property
    def subject(self) -> Person:
        """The person that every question is about."""
        return self.people[0]


def sample_person(rng: np.random.Generator, **fixed: Any) -> Person:
    """Draw attributes independently of each other; keywords of `Person` fix any of them."""
    drawn = {
        "gender": GENDERS[rng.integers(2)],
        "age": int(rng.integers(20, 70)) if rng.random() < 0.8 else int(rng.integers(1, 91)),
        "skin_tone": int(rng.integers(1, 11)),
        "race": RACES[rng.integers(len(RACES))],
        "occupation": OCCUPATIONS[rng.integers(len(OCCUPATIONS))],
        "hooded": bool(rng.random() < HOODED_SHARE),
    }
    return Person(**{**drawn, **fixed})


def sample_scene(rng: np.random.Generator, **fixed: Any) -> Scene:
    """Draw a scene's attributes; keywords fix `place`, `seed`, `two` or any of the subject's."""
    place = fixed.pop("place", PLACES[rng.integers(len(PLACES))])
    seed = int(fixed.pop("seed", rng.integers(2**31)))
    two = bool(fixed.pop("two", rng.random() < TWO_PERSON_SHARE))
    subject = sample_person(rng, **fixed)
    if not two:
        return Scene((subject,), place, seed)
    return Scene((subject, sample_person(rng, occupation="", hooded=False)), place, seed)


def draw(scene: Scene, size: int = 96) -> Image.Image:
    """Draw a scene as an RGB image of size x size pixels, the same for the same scene and size."""
    rng = np.random.default_rng(scene.seed)
    image = Image.new("RGB", (size, size))
    pen = Pen(image, size / 96)
    draw_place(pen, scene.place, float(rng.uniform(-4, 4)))
    for person, x, foot, unit in _stand(scene, rng):
        draw_figure(pen.at(x, foot - 64 * unit, unit), person)
    pixels = np.asarray(image, dtype=np.float32) * np.float32(rng.uniform(0.93, 1.05))
    pixels += rng.standard_normal(pixels.shape, dtype=np.float32) * np.float32(5.0)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def boxes(scene: Scene) -> list[tuple[float, float, float, float]]:
    """Where each person stands, the subject first: left, top, width, height as shares of the side.

    From the hair to the ground and from hand to hand; what is held may be outside.
    """
    rng = np.random.default_rng(scene.seed)
    rng.uniform(-4, 4)
    standing = reversed(_stand(scene, rng))
    return [
        ((x - 30 * unit) / 96, (foot - 86 * unit) / 96, 60 * unit / 96, 86 * unit / 96)
        for _, x, foot, unit in standing
    ]


def _stand(scene: Scene, rng: np.random.Generator) -> list[tuple[Person, float, float, float]]:
    """Each person with centre, foot and unit, back to front; a scene's side has 96 units."""
    if len(scene.people) > 1:
        places = [(scene.people[1], 77.0, 0.72), (scene.subject, 36.0, 0.92)]
    else:
        places = [(person, 48.0, 1.0) for person in scene.people]
    standing = []
    for person, centre, scale in places:
        x, foot = centre + float(rng.uniform(-3, 3)), 94 + float(rng.uniform(-2, 2))
        height = 0.78 if person.age < 10 else 0.88 if person.age < 20 else 1.0
        standing.append((person, x, foot, scale * height * float(rng.uniform(0.96, 1.04))))
    return standing
