"""Measures how far demonstrations of one kind pull a demo model's answers.

Tolerance. The planted difference between all-female and all-male (or all-yes and all-no) contexts
is 2.9 logits and more. The model has to count demonstrations for it, which it learns coarsely: it
may be off by 1.2 logits, less than half of the effect, so that its sign and size are certain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from vlmfair.demo import questions
from vlmfair.demo.dialogues import Turn
from vlmfair.demo.effects import Effect, mean_logit, share_of
from vlmfair.demo.planted import NO_DEMONSTRATIONS, Demonstrations, PlantedTable
from vlmfair.demo.questions import Question
from vlmfair.demo.reader import Reader
from vlmfair.demo.scenes import Scene, sample_scene

TOLERANCE = 1.2
QUERIES = 6


@dataclass(frozen=True)
class ContextTask:
    """A task whose demonstrations are all of the first or all of the second of two `sides`.

    `demonstration` takes a side and how many came before; `query` a side, how many demonstrations
    there are, and the number of the query.
    """

    name: str
    sides: tuple[str, str]
    choice: str
    demonstration: Callable[[str, int], tuple[Scene, Question]]
    query: Callable[[str, int, int], tuple[Scene, Question]]


def demonstration_effects(
    reader: Reader, table: PlantedTable, *, scenes: int, rng: np.random.Generator
) -> list[Effect]:
    """The pull of four and of eight demonstrations on pronouns, captions and visual questions."""
    contexts = max(3, scenes // 5)
    tasks = [
        gender_task("pronoun", " her", False, table, rng),
        gender_task("pronoun", " her", True, table, rng),
        gender_task("caption", " woman", False, table, rng),
        gender_task("caption", " woman", True, table, rng),
        yes_no_task(table, rng),
    ]
    return [pull(reader, task, shots, contexts) for task in tasks for shots in (4, 8)]


def gender_task(
    kind: str, choice: str, hooded: bool, table: PlantedTable, rng: np.random.Generator
) -> ContextTask:
    """Captions or pronouns of students, clear or hooded, after women only or men only."""

    def ask(scene: Scene, before: Demonstrations, variant: int) -> Question:
        if kind == "pronoun":
            return questions.pronoun_question(scene, "lawyer", "desk", table, before)
        return questions.caption_question(scene, table, before, variant)

    def demonstration(side: str, number: int) -> tuple[Scene, Question]:
        scene = sample_scene(rng, gender=side, hooded=False)
        return scene, ask(scene, Demonstrations(**{side: number}), int(rng.integers(5)))

    def query(side: str, shots: int, number: int) -> tuple[Scene, Question]:
        gender = ("female", "male")[number % 2]
        scene = sample_scene(rng, gender=gender, hooded=hooded, occupation="student")
        return scene, ask(scene, Demonstrations(**{side: shots}), 0)

    name = f"{kind}, {'hooded' if hooded else 'clear'}, female - male only"
    return ContextTask(name, ("female", "male"), choice, demonstration, query)


def yes_no_task(table: PlantedTable, rng: np.random.Generator) -> ContextTask:
    """Visual questions after demonstrations that are all answered yes or all answered no."""

    def demonstration(side: str, number: int) -> tuple[Scene, Question]:
        scene = sample_scene(rng)
        before = Demonstrations(**{side: number})
        return scene, yes_no_question(scene, rng, table, before=before, wanted=f" {side}")

    def query(side: str, shots: int, number: int) -> tuple[Scene, Question]:
        scene = sample_scene(rng)
        before, wanted = Demonstrations(**{side: shots}), (" yes", " no")[number % 2]
        return scene, yes_no_question(scene, rng, table, before=before, wanted=wanted)

    return ContextTask("visual, all yes - all no", ("yes", "no"), " yes", demonstration, query)


def yes_no_question(
    scene: Scene,
    rng: np.random.Generator,
    table: PlantedTable,
    *,
    thought: bool = False,
    before: Demonstrations = NO_DEMONSTRATIONS,
    wanted: str = "",
) -> Question:
    """A yes-no question about a scene whose right answer is `wanted`, if that is given."""
    while True:
        question = questions.visual_question(
            scene,
            rng,
            table,
            thought=thought,
            yes_no=True,
            gendered=False,
            demonstrations=before,
        )
        if wanted in ("", question.demonstrated):
            return question


def pull(reader: Reader, task: ContextTask, shots: int, contexts: int) -> Effect:
    """The mean logit after demonstrations of the first side minus that after the second."""
    said, planted, count = [], [], 0
    for side in task.sides:
        scenes: list[Scene] = []
        groups, expected = [], []
        for _ in range(contexts):
            turns = []
            for number in range(shots):
                scene, question = task.demonstration(side, number)
                scenes.append(scene)
                turns.append(Turn(len(scenes) - 1, question, question.demonstrated))
            group = []
            for number in range(QUERIES):
                scene, question = task.query(side, shots, number)
                scenes.append(scene)
                group.append([*turns, Turn(len(scenes) - 1, question, task.choice)])
                expected.append(share_of(question.choices, task.choice))
            groups.append(group)
        answers = [answer for group in reader.ask(scenes, groups) for answer in group]
        said.append(mean_logit([share_of(answer, task.choice) for answer in answers]))
        planted.append(mean_logit(expected))
        count += len(answers)
    name = f"demonstrations ({shots}): {task.name}"
    return Effect(name, planted[0] - planted[1], said[0] - said[1], count, TOLERANCE, "logit")
