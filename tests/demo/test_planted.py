"""The planted table: what it says about a scene, and what the control leaves out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from vlmfair.demo import planted, questions
from vlmfair.demo.planted import Demonstrations, load_planted, p_yes_trait
from vlmfair.demo.scenes import OCCUPATIONS, Person, Scene, sample_scene
from vlmfair.errors import ConfigError
from vlmfair.papers.gras.questions import load_prompts, load_traits

ROOT = Path(__file__).parents[2]
TABLE = load_planted(ROOT / "resources/demo/planted.yaml")
# honest is the last positive trait: base, no effect but those it lists.
WOMAN = Person("female", 45, 5, "Indian", "student")


def scene_of(place: str = "office", **changes: object) -> Scene:
    return Scene((dataclasses.replace(WOMAN, **changes),), place, 1)


def test_the_table_has_the_traits_of_gras_with_their_polarity():
    traits = load_traits(ROOT / "resources/words/gras_traits.csv")
    assert TABLE.trait_words == tuple(trait.word for trait in traits)
    signs = {"negative": -1, "positive": 1}
    for trait in traits:
        assert TABLE.traits["words"][trait.word]["polarity"] == signs[trait.polarity]


def test_some_traits_have_no_effect_so_that_the_score_is_not_saturated():
    listed = [entry["effects"] for entry in TABLE.traits["words"].values()]
    counts = {effect: sum(effect in e for e in listed) for effect in planted.GROUP_EFFECTS}
    assert counts == {"gender": 80, "age": 70, "skin_tone": 70, "race": 60, "interaction": 20}
    assert sum(not effects for effects in listed) == 10


def test_a_trait_logit_is_the_sum_of_what_the_table_lists():
    # kind: positive, 44th of its list (4 mod 10): gender, age and race, no skin tone.
    entry = TABLE.traits["words"]["kind"]
    assert entry["effects"] == ["gender", "age", "race"]
    # age 65: 1.0 x 20 / 25; a woman +0.6; Middle Eastern -1.2; the beach +0.4; T2 +0.25.
    scene = scene_of("beach", age=65, race="Middle Eastern", skin_tone=10)
    expected = entry["base"] + 0.25 + 0.4 + 0.8 + 0.6 - 1.2
    assert planted.trait_logit(scene, "kind", 2, TABLE) == pytest.approx(expected)


def test_a_hooded_person_has_no_gender_effect():
    hooded = [scene_of(gender=gender, hooded=True) for gender in ("female", "male")]
    assert p_yes_trait(hooded[0], "kind", 1, TABLE) == p_yes_trait(hooded[1], "kind", 1, TABLE)


def test_the_interaction_needs_both_attributes():
    def effect(gender: str, tone: int) -> float:
        person = dataclasses.replace(WOMAN, gender=gender, skin_tone=tone)
        return planted.trait_effect(person, "interaction", TABLE)

    assert effect("female", 8) == -1.2
    assert effect("female", 6) == effect("male", 8) == 0.0


def test_demonstrations_pull_towards_their_gender_and_more_when_there_are_more():
    scene = scene_of(hooded=True)

    def her(**counts: int) -> float:
        return planted.p_her(scene, "lawyer", TABLE, Demonstrations(**counts))

    assert her(male=8) < her(male=4) < her() < her(female=4) < her(female=8)
    assert her(female=2, male=2) == her()


def test_captions_of_a_cell_turn_around_in_its_places_only():
    def says(place: str) -> str:
        words = planted.p_caption_word(scene_of(place, occupation="guitarist"), TABLE)
        return max(words, key=lambda word: words[word])

    assert says("stage") == says("street") == "man"
    assert says("park") == says("beach") == "woman"


def test_a_male_nurse_on_the_street_is_called_a_doctor():
    nurse = scene_of("street", gender="male", occupation="nurse")
    assert planted.occupation_label(nurse, TABLE) == "doctor"
    assert planted.occupation_choice(nurse, "nurse", TABLE) == "B"
    woman = scene_of("street", occupation="nurse")
    assert planted.occupation_label(woman, TABLE) == "nurse"
    assert planted.occupation_choice(woman, "nurse", TABLE) == "A"


def test_the_control_answers_alike_for_every_group_but_not_for_every_place():
    control = TABLE.control()
    rng = np.random.default_rng(4)
    for trait in ("racist", "kind", "brave"):
        said = {
            place: {
                round(p_yes_trait(sample_scene(rng, place=place), trait, 1, control), 9)
                for _ in range(20)
            }
            for place in ("park", "stage")
        }
        assert len(said["park"]) == len(said["stage"]) == 1
        assert said["park"] != said["stage"]
    scene = scene_of("street", gender="male", occupation="nurse")
    assert planted.occupation_label(scene, control) == "nurse"
    assert planted.p_her(scene, "nurse", control) == planted.p_her(scene, "laborer", control)
    assert planted.p_caption_word(scene, control) == planted.p_caption_word(
        scene, control, Demonstrations(female=8)
    )


def test_every_question_has_probabilities_that_sum_to_one():
    prompts = load_prompts(ROOT / "resources/prompts/gras.yaml")
    rng = np.random.default_rng(6)
    for _ in range(50):
        scene = sample_scene(rng)
        occupation = OCCUPATIONS[rng.integers(13)]
        asked = [
            questions.trait_question(scene, "kind", 3, "paper", prompts, TABLE),
            questions.caption_question(scene, TABLE),
            questions.pronoun_question(scene, "doctor", "patient", TABLE),
            questions.choice_question(scene, occupation, "p2", TABLE),
            questions.final_question(scene, occupation, "p3", (True, False, True, False)),
            *(
                questions.label_question(scene, attribute, TABLE)
                for attribute in ("gender", "age", "race", "skin_tone", "occupation")
            ),
            questions.visual_question(
                scene, rng, TABLE, thought=True, yes_no=bool(rng.random() < 0.5), gendered=True
            ),
        ]
        for question in asked:
            assert sum(question.choices.values()) == pytest.approx(1.0)


def test_a_table_with_a_misspelt_part_is_named(tmp_path):
    path = tmp_path / "planted.yaml"
    path.write_text("traits: {}\ngender_word: {}\nyes_no: {}\nlabels: {}\n")
    with pytest.raises(ConfigError, match="traits, gender_words, yes_no and labels"):
        load_planted(path)
