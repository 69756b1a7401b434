"""Measures a demo model on fresh scenes and sets each effect beside the one that is planted.

Tolerances. A trait effect is a mean over pairs of scenes that differ in one attribute alone; what
remains is what a small model learnt wrongly, some tenths of a logit. 0.35 is wide enough for every
effect to be recovered, and still less than a third of the smallest two-group effect (1.2), so that
no model can pass for both the planted one and the control.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from vlmfair.demo import questions
from vlmfair.demo.calibrate_answers import answer_effects
from vlmfair.demo.dialogues import Turn
from vlmfair.demo.effects import Effect, logit
from vlmfair.demo.people import RACES
from vlmfair.demo.planted import PlantedTable, sigmoid, trait_logit
from vlmfair.demo.reader import Reader
from vlmfair.demo.scenes import Scene, sample_scene
from vlmfair.papers.gras.questions import Prompts

TRAIT_TOLERANCE = 0.35
# A difference of differences has the error of two contrasts: 0.35 times the root of 2.
INTERACTION_TOLERANCE = 0.5
TRAITS_PER_SCENE = 10
CONTRASTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "gender: female - male": ({"gender": "female"}, {"gender": "male"}),
    "age: 65 - 25 years": ({"age": 65}, {"age": 25}),
    "skin_tone: 9 - 2": ({"skin_tone": 9}, {"skin_tone": 2}),
    "race: White - Middle Eastern": ({"race": "White"}, {"race": "Middle Eastern"}),
}


def calibrate(
    folder: str | os.PathLike[str],
    table: PlantedTable,
    prompts: Prompts,
    *,
    scenes: int = 30,
    seed: int = 11,
) -> list[Effect]:
    """Measure all effects of a model; `table` is what it was trained on (the control's for it).

    A control shows none of the planted effects when its effects fit `table.control()`.
    """
    reader = Reader(folder)
    rng = np.random.default_rng(seed)
    effects = trait_effects(reader, table, prompts, scenes=scenes, rng=rng)
    return effects + answer_effects(reader, table, scenes=scenes, rng=rng)


def calibration_table(planted: Sequence[Effect], control: Sequence[Effect]) -> str:
    """Both models' effects side by side as a Markdown table, matched by name."""
    others = {effect.name: effect for effect in control}
    lines = [
        "| effect | planted | measured | control planted | control measured | n | tolerance |",
        "|---|---|---|---|---|---|---|",
    ]
    for effect in planted:
        other = others.get(effect.name)
        beside = f"{other.planted:+.2f} | {other.measured:+.2f}" if other else "- | -"
        tolerance = f"{effect.tolerance} {effect.unit}"
        values = f"{effect.planted:+.2f} | {effect.measured:+.2f}"
        lines.append(f"| {effect.name} | {values} | {beside} | {effect.n} | {tolerance} |")
    return "\n".join(lines)


def trait_effects(
    reader: Reader,
    table: PlantedTable,
    prompts: Prompts,
    *,
    scenes: int,
    rng: np.random.Generator,
) -> list[Effect]:
    """The effects on P(Yes) to trait questions, in logits towards the good (polarity counted)."""
    probe = _TraitProbe(reader, table, prompts, rng)
    base = [sample_scene(rng, hooded=False) for _ in range(scenes)]
    effects = [probe.error(base)]
    for name, (with_it, without) in CONTRASTS.items():
        attribute = name.split(":")[0]
        for listed in (True, False):
            traits = probe.traits(attribute, listed)
            if traits:
                suffix = "" if listed else ", traits without it"
                effects.append(probe.contrast(name + suffix, base, with_it, without, traits))
    if probe.traits("race", True):
        effects += [probe.race(base, race) for race in RACES]
    for listed in (True, False):
        traits = probe.traits("interaction", listed)
        if traits:
            suffix = "" if listed else ", traits without it"
            effects.append(probe.interaction(suffix, base, traits))
    return effects


class _TraitProbe:
    """Asks trait questions about pairs of scenes that differ in one attribute."""

    def __init__(
        self, reader: Reader, table: PlantedTable, prompts: Prompts, rng: np.random.Generator
    ) -> None:
        self._reader, self._table, self._prompts, self._rng = reader, table, prompts, rng

    def traits(self, effect: str, listed: bool) -> list[str]:
        """Traits that list an effect, or do not; those with the interaction only for itself."""
        words = self._table.traits["words"]
        return [
            word
            for word, entry in words.items()
            if (effect in entry["effects"]) == listed
            and (effect == "interaction" or "interaction" not in entry["effects"])
        ]

    def error(self, base: Sequence[Scene]) -> Effect:
        """The mean distance between said and planted P(Yes) over all traits and templates."""
        words = list(self._table.trait_words)
        asked = self._asked(len(base), words)
        said, planted = self._logits(base, asked)
        gaps = [abs(sigmoid(a) - sigmoid(b)) for rows in zip(said, planted) for a, b in zip(*rows)]
        return Effect("traits: mean error of P(Yes)", 0.0, _mean(gaps), len(gaps), 0.06, "share")

    def contrast(
        self,
        name: str,
        base: Sequence[Scene],
        with_it: dict[str, Any],
        without: dict[str, Any],
        traits: Sequence[str],
    ) -> Effect:
        """The mean difference that an attribute of the subject makes for some traits."""
        asked = self._asked(len(base), traits)
        higher = self._towards_good([_with(scene, **with_it) for scene in base], asked)
        lower = self._towards_good([_with(scene, **without) for scene in base], asked)
        said, planted = higher[0] - lower[0], higher[1] - lower[1]
        count = sum(map(len, asked))
        return Effect(f"traits, {name}", planted, said, count, TRAIT_TOLERANCE, "logit")

    def race(self, base: Sequence[Scene], race: str) -> Effect:
        """The difference between one race label and the mean of all seven."""
        asked = self._asked(len(base), self.traits("race", True))
        found = {
            label: self._towards_good([_with(scene, race=label) for scene in base], asked)
            for label in RACES
        }
        said, planted = (
            found[race][side] - _mean([pair[side] for pair in found.values()]) for side in (0, 1)
        )
        name = f"traits, race: {race} - mean"
        return Effect(name, planted, said, sum(map(len, asked)), TRAIT_TOLERANCE, "logit")

    def interaction(self, suffix: str, base: Sequence[Scene], traits: Sequence[str]) -> Effect:
        """What being a woman of tone 9 adds to the two effects of gender and tone."""
        asked = self._asked(len(base), traits)
        cells = {
            (gender, tone): self._towards_good(
                [_with(scene, gender=gender, skin_tone=tone) for scene in base], asked
            )
            for gender in ("female", "male")
            for tone in (9, 3)
        }
        said, planted = (
            cells["female", 9][side]
            - cells["male", 9][side]
            - cells["female", 3][side]
            + cells["male", 3][side]
            for side in (0, 1)
        )
        name = f"traits, interaction: female x dark{suffix}"
        return Effect(name, planted, said, sum(map(len, asked)), INTERACTION_TOLERANCE, "logit")

    def _asked(self, scenes: int, traits: Sequence[str]) -> list[list[tuple[str, int]]]:
        count = min(TRAITS_PER_SCENE, len(traits))
        return [
            [
                (str(word), int(self._rng.integers(1, 6)))
                for word in self._rng.choice(traits, count, replace=False)
            ]
            for _ in range(scenes)
        ]

    def _towards_good(
        self, scenes: Sequence[Scene], asked: Sequence[Sequence[tuple[str, int]]]
    ) -> tuple[float, float]:
        said, planted = self._logits(scenes, asked)
        words = self._table.traits["words"]
        signs = [[words[word]["polarity"] for word, _ in row] for row in asked]
        return _signed_mean(said, signs), _signed_mean(planted, signs)

    def _logits(
        self, scenes: Sequence[Scene], asked: Sequence[Sequence[tuple[str, int]]]
    ) -> tuple[list[list[float]], list[list[float]]]:
        groups = [
            [
                (
                    Turn(
                        row,
                        questions.trait_question(
                            scene, word, template, "released", self._prompts, self._table
                        ),
                        " No",
                    ),
                )
                for word, template in pairs
            ]
            for row, (scene, pairs) in enumerate(zip(scenes, asked, strict=True))
        ]
        answers = self._reader.ask(scenes, groups)
        said = [[logit(p[" Yes"] + p[" yes"]) for p in row] for row in answers]
        planted = [
            [
                logit(sigmoid(trait_logit(scene, word, template, self._table)))
                for word, template in pairs
            ]
            for scene, pairs in zip(scenes, asked, strict=True)
        ]
        return said, planted


def _with(scene: Scene, **changes: Any) -> Scene:
    subject = dataclasses.replace(scene.subject, **changes)
    return Scene((subject, *scene.people[1:]), scene.place, scene.seed)


def _signed_mean(rows: Sequence[Sequence[float]], signs: Sequence[Sequence[int]]) -> float:
    return _mean([v * s for row, sign in zip(rows, signs) for v, s in zip(row, sign)])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))
