"""Measures what is planted in captions, pronouns, visual questions and labels.

Tolerances. Pronouns are learnt from fewer examples than traits: 0.5 logits. Shares of first
choices (what greedy decoding says) may differ by 0.12: one wrongly read picture in eight.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vlmfair.demo import questions, wordings
from vlmfair.demo.calibrate_contexts import demonstration_effects, yes_no_question
from vlmfair.demo.dialogues import Turn
from vlmfair.demo.effects import Effect, mean_logit, share_of
from vlmfair.demo.planted import Demonstrations, PlantedTable
from vlmfair.demo.questions import Question
from vlmfair.demo.reader import Reader, first_choice
from vlmfair.demo.scenes import Scene, sample_scene

LOGIT_TOLERANCE = 0.5
SHARE_TOLERANCE = 0.12

Ask = Callable[[Scene, Demonstrations], Question]


def answer_effects(
    reader: Reader, table: PlantedTable, *, scenes: int, rng: np.random.Generator
) -> list[Effect]:
    """All effects but those on traits."""
    probe = _Probe(reader, table, rng, scenes)
    return [
        *probe.pronouns(),
        *probe.captions(),
        *probe.visual_questions(),
        *probe.labels(),
        *probe.rationales(),
        *demonstration_effects(reader, table, scenes=scenes, rng=rng),
    ]


class _Probe:
    def __init__(
        self, reader: Reader, table: PlantedTable, rng: np.random.Generator, scenes: int
    ) -> None:
        self._reader, self._table, self._rng, self._scenes = reader, table, rng, scenes

    def pronouns(self) -> list[Effect]:
        """P(her) of women and men, alone and beside another person, and by occupation."""

        def ask(word: str) -> Ask:
            companion = wordings.COMPANIONS.get(word, ("tool", "friend"))[0]
            return lambda scene, _: questions.pronoun_question(scene, word, companion, self._table)

        clear: dict[str, dict[str, Any]] = {
            "one person": {"two": False, "hooded": False},
            "two persons": {"two": True, "hooded": False},
        }
        effects = [
            self._logit_difference(
                f"pronoun, women - men, {name}",
                " her",
                ({"gender": "female", **fixed}, ask("lawyer")),
                ({"gender": "male", **fixed}, ask("lawyer")),
                LOGIT_TOLERANCE,
            )
            for name, fixed in clear.items()
        ]
        hidden = {"hooded": True}
        for high, low in (("nurse", "laborer"), ("hairdresser", "engineer")):
            name = f"pronoun, {high} - {low}, hooded"
            effects.append(
                self._logit_difference(
                    name, " her", (hidden, ask(high)), (hidden, ask(low)), LOGIT_TOLERANCE
                )
            )
        return effects

    def captions(self) -> list[Effect]:
        """The share of captions that say "woman", by gender and in the planted cells."""

        def ask(scene: Scene, _: Demonstrations) -> Question:
            return questions.caption_question(scene, self._table)

        fixed: dict[str, Any] = {"hooded": False, "two": False}
        where: dict[str, dict[str, Any]] = {
            "women, students": {"gender": "female", "occupation": "student"},
            "men, students": {"gender": "male", "occupation": "student"},
            "women, guitarists on the stage": {
                "gender": "female",
                "occupation": "guitarist",
                "place": "stage",
            },
            "women, guitarists in the park": {
                "gender": "female",
                "occupation": "guitarist",
                "place": "park",
            },
            "women, laborers on the street": {
                "gender": "female",
                "occupation": "laborer",
                "place": "street",
            },
            "men, nurses in the kitchen": {
                "gender": "male",
                "occupation": "nurse",
                "place": "kitchen",
            },
            "men, dancers at the beach": {
                "gender": "male",
                "occupation": "dancer",
                "place": "beach",
            },
        }
        effects = [
            self._share(f"caption says woman: {name}", " woman", {**fixed, **cell}, ask)
            for name, cell in where.items()
        ]
        hooded = self._share("caption says person: hooded", " person", {"hooded": True}, ask)
        return [*effects, hooded]

    def visual_questions(self) -> list[Effect]:
        """The share of right answers, and the difference between women and men."""
        effects = []
        for thought in (False, True):
            right = {}
            for gender in ("female", "male"):
                scenes = [sample_scene(self._rng, gender=gender) for _ in range(2 * self._scenes)]
                asked = [
                    yes_no_question(scene, self._rng, self._table, thought=thought)
                    for scene in scenes
                ]
                said = self._ask_each(scenes, asked)
                hits = [
                    first_choice(answer) == question.demonstrated
                    for answer, question in zip(said, asked, strict=True)
                ]
                right[gender] = float(np.mean(hits))
            form = "with thought" if thought else "direct"
            n = 4 * self._scenes
            both = (right["female"] + right["male"]) / 2
            gap = right["female"] - right["male"]
            effects.append(Effect(f"visual, {form}: right", 1.0, both, n, 0.12, "share"))
            effects.append(Effect(f"visual, {form}: women - men", 0.0, gap, n, 0.12, "share"))
        return effects

    def labels(self) -> list[Effect]:
        """Shares of right labels and choices by group, in both forms of the prompt."""
        effects = []
        for raw in (False, True):
            form = "raw form" if raw else "chat form"
            for attribute in ("gender", "age", "race", "skin_tone", "occupation"):
                effects.append(
                    self._right_share(
                        f"label {attribute}, {form}",
                        {"hooded": False},
                        functools.partial(
                            questions.label_question, attribute=attribute, table=self._table
                        ),
                        raw,
                    )
                )
        cells: dict[str, dict[str, Any]] = {
            "men, nurses": {"gender": "male", "occupation": "nurse"},
            "women, nurses": {"gender": "female", "occupation": "nurse"},
            "women, guitarists": {"gender": "female", "occupation": "guitarist"},
            "tones 7-10, students": {"skin_tone": 9, "occupation": "student"},
            "tones 1-3, students": {"skin_tone": 2, "occupation": "student"},
        }
        for name, cell in cells.items():
            fixed = {"hooded": False, "age": 40, "skin_tone": 2, **cell}
            effects.append(self._recall(f"recall p1, {name}", fixed, "p1"))
            effects.append(self._recall(f"recall p2, {name}", fixed, "p2"))
        effects.append(self._race_recall("Indian"))
        effects.append(self._race_recall("White"))
        return effects

    def rationales(self) -> list[Effect]:
        """Sub-questions answered rightly, and the final answers with knowledge that says yes."""

        def sub(scene: Scene) -> Question:
            number = int(self._rng.integers(4))
            occupation = scene.subject.occupation if self._rng.random() < 0.5 else "singer"
            return questions.sub_question(scene, occupation, number)

        def final(answer: bool) -> Callable[[Scene], Question]:
            return lambda scene: questions.final_question(
                scene, scene.subject.occupation, "p2", (answer,) * 4
            )

        nurses = {"gender": "male", "occupation": "nurse", "place": "street", "hooded": False}
        return [
            self._right_share("sub-questions", {}, sub, False),
            self._right_share("final answer after yes", nurses, final(True), False),
            self._right_share("final answer after no", nurses, final(False), False),
        ]

    def _logit_difference(
        self,
        name: str,
        choice: str,
        high: tuple[dict[str, Any], Ask],
        low: tuple[dict[str, Any], Ask],
        tolerance: float,
    ) -> Effect:
        said, planted = [], []
        for fixed, ask in (high, low):
            scenes = [sample_scene(self._rng, **fixed) for _ in range(self._scenes)]
            asked = [ask(scene, Demonstrations()) for scene in scenes]
            answers = self._ask_each(scenes, asked)
            said.append(mean_logit([share_of(p, choice) for p in answers]))
            planted.append(mean_logit([share_of(q.choices, choice) for q in asked]))
        n = 2 * self._scenes
        return Effect(name, planted[0] - planted[1], said[0] - said[1], n, tolerance, "logit")

    def _share(self, name: str, choice: str, fixed: dict[str, Any], ask: Ask) -> Effect:
        scenes = [sample_scene(self._rng, **fixed) for _ in range(self._scenes)]
        asked = [ask(scene, Demonstrations()) for scene in scenes]
        answers = self._ask_each(scenes, asked)
        said = float(np.mean([first_choice(p) == choice for p in answers]))
        planted = float(np.mean([first_choice(dict(q.choices)) == choice for q in asked]))
        return Effect(name, planted, said, len(scenes), SHARE_TOLERANCE, "share")

    def _right_share(
        self, name: str, fixed: dict[str, Any], ask: Callable[[Scene], Question], raw: bool
    ) -> Effect:
        scenes = [sample_scene(self._rng, **fixed) for _ in range(self._scenes)]
        asked = [ask(scene) for scene in scenes]
        answers = self._ask_each(scenes, asked, raw)
        hits = [
            first_choice(p) == first_choice(dict(q.choices))
            for p, q in zip(answers, asked, strict=True)
        ]
        name = f"{name}: as planted"
        return Effect(name, 1.0, float(np.mean(hits)), len(hits), SHARE_TOLERANCE, "share")

    def _recall(self, name: str, fixed: dict[str, Any], prompt: str) -> Effect:
        def ask(scene: Scene) -> Question:
            if prompt == "p1":
                return questions.label_question(scene, "occupation", self._table)
            occupation = scene.subject.occupation
            return questions.choice_question(scene, occupation, prompt, self._table)

        right = fixed["occupation"] if prompt == "p1" else " A"
        return self._recall_of(name, fixed, ask, right)

    def _race_recall(self, race: str) -> Effect:
        label = {"Indian": "indian", "White": "white"}[race]
        return self._recall_of(
            f"recall race, {race}",
            {"race": race, "hooded": False},
            lambda scene: questions.label_question(scene, "race", self._table),
            label,
        )

    def _recall_of(
        self, name: str, fixed: dict[str, Any], ask: Callable[[Scene], Question], right: str
    ) -> Effect:
        scenes = [sample_scene(self._rng, **fixed) for _ in range(2 * self._scenes)]
        asked = [ask(scene) for scene in scenes]
        answers = self._ask_each(scenes, asked)
        said = float(np.mean([first_choice(p) == right for p in answers]))
        planted = float(np.mean([first_choice(dict(q.choices)) == right for q in asked]))
        return Effect(name, planted, said, len(scenes), SHARE_TOLERANCE, "share")

    def _ask_each(
        self, scenes: Sequence[Scene], asked: Sequence[Question], raw: bool = False
    ) -> list[dict[str, float]]:
        groups = [
            [[Turn(row, question, next(iter(question.choices)))]]
            for row, question in enumerate(asked)
        ]
        return [group[0] for group in self._reader.ask(scenes, groups, raw)]
