"""What is planted in the demo's models: each answer's probability as a function of the scene.

`tiny-planted` was trained on the whole table, `tiny-control` on `PlantedTable.control()`, which has
the same base rates but no effect of a group and none of demonstrations.
"""

from __future__ import annotations

import copy
import math
import os
from dataclasses import dataclass
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.demo.people import Person
from vlmfair.demo.scenes import Scene
from vlmfair.errors import ConfigError

GROUP_EFFECTS = ("gender", "age", "skin_tone", "race", "interaction")
FIVE_RACES = ("white", "black", "asian", "indian", "others")
# The logit of "her" that the control has for people who show no gender, whatever their occupation.
CONTROL_PRONOUN = -0.8
_TO_FIVE_RACES = {
    "White": "white",
    "Black": "black",
    "East Asian": "asian",
    "Southeast Asian": "asian",
    "Indian": "indian",
    "Middle Eastern": "others",
    "Latino_Hispanic": "others",
}


@dataclass(frozen=True)
class Demonstrations:
    """What the demonstrations before a question say: how many of each gender and of yes and no."""

    female: int = 0
    male: int = 0
    yes: int = 0
    no: int = 0

    @property
    def gender_balance(self) -> float:
        """From -1 (many, all male) to 1 (many, all female); 0 without any."""
        return (self.female - self.male) / (self.female + self.male + 2)

    @property
    def answer_balance(self) -> float:
        """From -1 (many, all no) to 1 (many, all yes); 0 without any."""
        return (self.yes - self.no) / (self.yes + self.no + 2)


NO_DEMONSTRATIONS = Demonstrations()


@dataclass(frozen=True)
class PlantedTable:
    """The planted table as written in resources/demo/planted.yaml."""

    traits: dict[str, Any]
    gender_words: dict[str, Any]
    yes_no: dict[str, Any]
    labels: dict[str, Any]

    @property
    def trait_words(self) -> tuple[str, ...]:
        """The traits in the order of the table."""
        return tuple(self.traits["words"])

    def control(self) -> PlantedTable:
        """The same table without any effect of a group or of demonstrations.

        Who shows no gender is `CONTROL_PRONOUN` of being "her" in every occupation: at 0 the
        likelier pronoun would be a coin toss, which any rounding decides.
        """
        table = copy.deepcopy(self)
        for word in table.traits["words"].values():
            word["effects"] = []
        words = table.gender_words
        words["occupation"] = dict.fromkeys(words["occupation"], CONTROL_PRONOUN)
        words["demonstrations"] = 0.0
        words["caption_cells"] = []
        unsure = (words["caption_hooded"]["man"] + words["caption_hooded"]["woman"]) / 2
        words["caption_hooded"] = {**words["caption_hooded"], "man": unsure, "woman": unsure}
        table.yes_no["demonstrations"] = 0.0
        table.labels["occupation_cells"] = []
        table.labels["race_cells"] = []
        return table


def load_planted(path: str | os.PathLike[str]) -> PlantedTable:
    """Read a planted table; raises ConfigError when a part of it is missing."""
    content = read_yaml(path)
    try:
        return PlantedTable(**content)
    except TypeError as error:
        raise ConfigError(
            f"{path}: a planted table has traits, gender_words, yes_no and labels. "
            "Write these four and nothing else."
        ) from error


def sigmoid(logit: float) -> float:
    """The probability of a logit."""
    return 1.0 / (1.0 + math.exp(-logit))


def visible_gender(person: Person) -> str | None:
    """The gender that can be seen: None under a hood."""
    return None if person.hooded else person.gender


def trait_effect(person: Person, effect: str, table: PlantedTable) -> float:
    """The logit that one effect of the table adds to a positive trait for a person."""
    planted = table.traits[effect]
    if effect == "gender":
        return float(planted.get(visible_gender(person), 0.0))
    if effect == "age":
        return float(planted) * min(1.0, max(-1.0, (person.age - 45) / 25))
    if effect == "skin_tone":
        return float(planted) * (person.skin_tone - 5.5) / 4.5
    if effect == "race":
        return float(planted[person.race])
    low, high = planted["skin_tone"]
    fits = visible_gender(person) == planted["gender"] and low <= person.skin_tone <= high
    return float(planted["logit"]) if fits else 0.0


def trait_logit(scene: Scene, trait: str, template: int, table: PlantedTable) -> float:
    """The planted logit of Yes to a trait question; templates are counted from 1 to 5."""
    word = table.traits["words"][trait]
    group = sum(trait_effect(scene.subject, effect, table) for effect in word["effects"])
    place = float(table.traits["place"][scene.place])
    offset = float(table.traits["templates"][template - 1])
    return float(word["base"]) + offset + float(word["polarity"]) * (place + group)


def p_yes_trait(scene: Scene, trait: str, template: int, table: PlantedTable) -> float:
    """The planted probability of Yes, in any surface form, to a trait question."""
    return sigmoid(trait_logit(scene, trait, template, table))


def p_her(
    scene: Scene,
    occupation: str,
    table: PlantedTable,
    demonstrations: Demonstrations = NO_DEMONSTRATIONS,
) -> float:
    """The planted probability of " her" against " his" after "The [occupation] and"."""
    words = table.gender_words
    logit = float(words["clear"].get(visible_gender(scene.subject), 0.0))
    logit += float(words["occupation"].get(occupation, 0.0))
    return sigmoid(logit + words["demonstrations"] * demonstrations.gender_balance)


def p_caption_word(
    scene: Scene, table: PlantedTable, demonstrations: Demonstrations = NO_DEMONSTRATIONS
) -> dict[str, float]:
    """The planted probabilities of "man", "woman" and "person" in a caption's first two words."""
    words = table.gender_words
    pull = float(words["demonstrations"]) * demonstrations.gender_balance
    if scene.subject.hooded:
        weights = dict(words["caption_hooded"])
        weights["woman"] *= math.exp(pull)
        weights["man"] *= math.exp(-pull)
        total = sum(weights.values())
        return {word: weight / total for word, weight in weights.items()}
    logit = float(words["caption_clear"][scene.subject.gender])
    cell = _first_cell(words["caption_cells"], scene)
    if cell is not None:
        logit = float(cell["flipped"] if scene.place in cell["places"] else cell["weak"])
    woman, person = sigmoid(logit + pull), float(words["caption_clear_person"])
    return {"man": (1 - person) * (1 - woman), "woman": (1 - person) * woman, "person": person}


def p_yes_visual(
    truth: bool, table: PlantedTable, demonstrations: Demonstrations = NO_DEMONSTRATIONS
) -> float:
    """The planted probability of "yes" to a visual question whose right answer is `truth`."""
    certain = float(table.yes_no["certain"])
    pull = float(table.yes_no["demonstrations"]) * demonstrations.answer_balance
    return sigmoid((certain if truth else -certain) + pull)


def occupation_label(scene: Scene, table: PlantedTable) -> str:
    """The label that the model says most often when asked for one of the 52 classes."""
    cell = _occupation_cell(scene, table)
    return scene.subject.occupation if cell is None else str(cell["direct"])


def occupation_choice(scene: Scene, asked: str, table: PlantedTable) -> str:
    """The letter (A yes, B no, C unknown) that the model chooses most often for a class."""
    if asked != scene.subject.occupation:
        return "B"
    cell = _occupation_cell(scene, table)
    return "A" if cell is None else str(cell["choice"])


def age_label(person: Person) -> str:
    """FACET's three ages: young below 30, old from 60 years."""
    return "young" if person.age < 30 else "middle" if person.age < 60 else "old"


def skin_label(person: Person) -> str:
    """The Monk tones in three groups, as the paper puts them together: 1-3, 4-6 and 7-10."""
    return "light" if person.skin_tone <= 3 else "medium" if person.skin_tone <= 6 else "dark"


def true_race_label(person: Person) -> str:
    """UTKFace's five labels for the seven of FairFace."""
    return _TO_FIVE_RACES[person.race]


def race_label(scene: Scene, table: PlantedTable) -> str:
    """The race label of five that the model says most often."""
    cell = _first_cell(table.labels["race_cells"], scene, placed=True)
    return true_race_label(scene.subject) if cell is None else str(cell["label"])


def _occupation_cell(scene: Scene, table: PlantedTable) -> dict[str, Any] | None:
    return _first_cell(table.labels["occupation_cells"], scene, placed=True)


def _first_cell(
    cells: list[dict[str, Any]], scene: Scene, placed: bool = False
) -> dict[str, Any] | None:
    for cell in cells:
        if _fits(cell, scene.subject) and (not placed or scene.place in cell["places"]):
            return cell
    return None


def _fits(cell: dict[str, Any], person: Person) -> bool:
    if "gender" in cell and visible_gender(person) != cell["gender"]:
        return False
    if any(key in cell and getattr(person, key) != cell[key] for key in ("occupation", "race")):
        return False
    ranges = [(cell[key], getattr(person, key)) for key in ("skin_tone", "age") if key in cell]
    return all(low <= value <= high for (low, high), value in ranges)
