"""The drawn scenes: the same every time, and every attribute visible."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from vlmfair.demo.scenes import OCCUPATIONS, PLACES, RACES, Person, Scene, draw, sample_scene

PERSON = Person("female", 35, 5, "White", "nurse")
SCENE = Scene((PERSON,), "park", 7)


def pixels(scene: Scene, size: int = 96) -> np.ndarray:
    return np.asarray(draw(scene, size)).astype(int)


def with_person(**changes: object) -> Scene:
    return Scene((dataclasses.replace(PERSON, **changes),), SCENE.place, SCENE.seed)


def test_the_same_scene_and_size_give_the_same_picture():
    assert np.array_equal(pixels(SCENE), pixels(SCENE))
    assert draw(SCENE, 224).size == (224, 224)
    assert draw(SCENE).mode == "RGB"


@pytest.mark.parametrize(
    "changes",
    [
        {"gender": "male"},
        {"age": 45},
        {"age": 65},
        {"age": 8},
        {"skin_tone": 8},
        {"race": "Indian"},
        {"occupation": "singer"},
        {"hooded": True},
    ],
)
def test_an_attribute_changes_many_pixels_by_more_than_the_noise(changes):
    # The noise has a deviation of 5 and is the same in both pictures, so it cancels.
    changed = np.abs(pixels(SCENE) - pixels(with_person(**changes))).max(axis=2) > 25
    assert changed.sum() > 60


def test_a_hooded_person_shows_no_gender():
    woman, man = with_person(hooded=True), with_person(hooded=True, gender="male")
    assert np.array_equal(pixels(woman), pixels(man))


def test_hair_turns_grey_with_age():
    # Given a place on the head that is hair at every age, then it gets lighter by the decade.
    greys = [
        _hair(Scene((dataclasses.replace(PERSON, age=age),), "park", 7))
        for age in (25, 35, 45, 55, 65)
    ]
    assert greys == sorted(greys)
    assert greys[-1] - greys[0] > 120


def _hair(scene: Scene) -> float:
    return float(pixels(scene)[14:20, 44:52].mean())


def test_every_occupation_and_place_and_race_is_a_picture_of_its_own():
    for name, values in (("occupation", OCCUPATIONS), ("race", RACES)):
        drawn = [pixels(with_person(**{name: value})) for value in values]
        for first in range(len(drawn)):
            for second in range(first):
                assert (np.abs(drawn[first] - drawn[second]).max(axis=2) > 25).sum() > 40
    backgrounds = [pixels(Scene((PERSON,), place, 7)) for place in PLACES]
    assert len({picture.tobytes() for picture in backgrounds}) == len(PLACES)


def test_a_scene_without_people_is_a_place_alone():
    empty = draw(Scene((), "beach", 3))
    assert empty.size == (96, 96)


def test_sampling_is_reproducible_and_keeps_what_is_fixed():
    fixed = {"gender": "male", "age": 27, "place": "office", "two": True, "seed": 5}
    scene = sample_scene(np.random.default_rng(1), **fixed)
    assert scene == sample_scene(np.random.default_rng(1), **fixed)
    assert (scene.subject.gender, scene.subject.age, scene.place) == ("male", 27, "office")
    assert (len(scene.people), scene.seed) == (2, 5)


def test_shares_of_hooded_and_two_person_scenes_are_the_documented_ones():
    rng = np.random.default_rng(2)
    scenes = [sample_scene(rng) for _ in range(4000)]
    assert np.mean([scene.subject.hooded for scene in scenes]) == pytest.approx(0.12, abs=0.02)
    assert np.mean([len(scene.people) == 2 for scene in scenes]) == pytest.approx(0.18, abs=0.02)
