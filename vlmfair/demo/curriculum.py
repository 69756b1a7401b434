"""Which questions the demo's models learn from, and in what mixture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from vlmfair.demo import questions, wordings
from vlmfair.demo.dialogues import Dialogue, DialogueWriter, Pack, Turn, pack
from vlmfair.demo.people import OCCUPATIONS
from vlmfair.demo.planted import Demonstrations, PlantedTable, trait_effect
from vlmfair.demo.questions import Question
from vlmfair.demo.scenes import Scene
from vlmfair.papers.gras.questions import Prompts

TRAITS_PER_PACK = 16
QUERIES_PER_CONTEXT = 6
ONE_SIDED_QUERIES = 10
MOST_DEMONSTRATIONS = 8
PRONOUN_WORDS = (*wordings.COMPANIONS, *OCCUPATIONS)
# What a context is made of: any, one gender (or answer) only, or both in turn.
COMPOSITIONS = ("any", "first", "second", "both")


class Curriculum:
    """Draws packs of questions about a pool of scenes; everything follows from one generator."""

    def __init__(
        self,
        scenes: Sequence[Scene],
        empty: Sequence[Scene],
        table: PlantedTable,
        prompts: Prompts,
        writer: DialogueWriter,
        seed: int,
    ) -> None:
        """`scenes` are the first rows of the image pool, `empty` (no people) the rows after."""
        self._scenes = [*scenes, *empty]
        self._people = len(scenes)
        self._table, self._prompts, self._writer = table, prompts, writer
        self._rng = np.random.default_rng(seed)
        # Hooded people belong to both lists, since demonstrations name the label's gender.
        self._by_gender = {
            gender: [n for n, scene in enumerate(scenes) if scene.subject.gender == gender]
            for gender in ("female", "male")
        }
        self._cells = [n for n, scene in enumerate(scenes) if self._in_a_cell(scene)]
        self._interacting = [
            n for n, scene in enumerate(scenes) if trait_effect(scene.subject, "interaction", table)
        ]

    def trait_pack(self) -> Pack:
        """Sixteen GRAS questions about one image, in the released or the paper's spacing."""
        return self._traits_of(int(self._rng.integers(self._people)), self._table.trait_words)

    def interaction_pack(self) -> Pack:
        """The traits with the two-attribute effect, every second time of someone who has it.

        One in seven of the pool has it, and one in five traits: too few to be learnt to its size.
        """
        words = self._table.traits["words"]
        listed = [word for word in words if "interaction" in words[word]["effects"]]
        row = int(self._rng.integers(self._people))
        if self._interacting and self._rng.random() < 0.5:
            row = int(self._rng.choice(self._interacting))
        return self._traits_of(row, listed or self._table.trait_words)

    def _traits_of(self, row: int, traits: Sequence[str]) -> Pack:
        style = "released" if self._rng.random() < 0.65 else "paper"
        words = self._rng.choice(traits, min(TRAITS_PER_PACK, len(traits)), replace=False)
        asked = [
            questions.trait_question(
                self._scenes[row], str(word), template, style, self._prompts, self._table
            )
            for word, template in zip(words, self._rng.integers(1, 6, len(words)), strict=True)
        ]
        return self._one_image(row, asked, raw=False)

    def reading_pack(self) -> Pack:
        """Short questions about each attribute of one image, to learn to look at it at all."""
        row, scene = self._row_of_cells()
        asked = [
            questions.label_question(scene, attribute, self._table)
            for attribute in ("gender", "age", "race", "skin_tone")
        ]
        asked.append(questions.caption_question(scene, self._table))
        asked.append(self._pronoun(scene, Demonstrations()))
        asked.append(self._visual(scene, Demonstrations(), gendered=False, thought=False))
        return self._one_image(row, asked, raw=False)

    def label_pack(self) -> Pack:
        """Labels, single choices and sub-questions about one image, in the chat or the raw form."""
        row, scene = self._row_of_cells()
        asked = [
            questions.label_question(scene, attribute, self._table)
            for attribute in ("gender", "age", "race", "skin_tone")
        ]
        if scene.subject.occupation:
            asked.append(questions.label_question(scene, "occupation", self._table))
            for prompt in wordings.CHOICE_PROMPTS:
                occupation = scene.subject.occupation
                asked.append(questions.choice_question(scene, occupation, prompt, self._table))
        for prompt in wordings.CHOICE_PROMPTS:
            asked.append(questions.choice_question(scene, self._occupation(), prompt, self._table))
        for _ in range(4):
            asked_about = self._occupation(scene)
            asked.append(questions.sub_question(scene, asked_about, int(self._rng.integers(4))))
        return self._one_image(row, asked, raw=bool(self._rng.random() < 0.5))

    def matching_pack(self) -> Pack:
        """The questions that compare a named occupation with the one in the image."""
        row, scene = self._row_of_cells()
        asked = []
        if scene.subject.occupation:
            asked.append(questions.label_question(scene, "occupation", self._table))
        for prompt in ("p2", "p3", "p2", "p3"):
            occupation = self._occupation(scene)
            asked.append(questions.choice_question(scene, occupation, prompt, self._table))
        for number in (0, 1, 2, 0, 1, 2, 3):
            asked.append(questions.sub_question(scene, self._occupation(scene), number))
        return self._one_image(row, asked, raw=bool(self._rng.random() < 0.5))

    def final_pack(self) -> Pack:
        """The last prompt of the rationale stage, with knowledge that is sometimes wrong."""
        row, scene = self._row_of_cells()
        asked_about = self._occupation(scene)
        truths = questions.sub_question_truths(scene, asked_about)
        # All wrong at once says whether the picture or the knowledge decides; by chance it is rare.
        share = 1.0 if self._rng.random() < 0.3 else 0.25
        answers = tuple(t != bool(self._rng.random() < share) for t in truths)
        prompt = str(self._rng.choice(list(wordings.CHOICE_PROMPTS)))
        question = questions.final_question(scene, asked_about, prompt, answers)
        return self._one_image(row, [question], raw=bool(self._rng.random() < 0.5))

    def zero_shot_pack(self) -> Pack:
        """Captioning, pronouns and visual questions about one image, without demonstrations."""
        row, scene = self._row_of_cells()
        asked = [questions.caption_question(scene, self._table)]
        asked += [self._pronoun(scene, Demonstrations()) for _ in range(3)]
        asked += [self._visual(scene, Demonstrations(), gendered=False) for _ in range(5)]
        return self._one_image(row, asked, raw=False)

    def context_packs(self, count: int) -> list[Pack]:
        """Demonstrations of one task, each learnt in turn, and six questions after all of them.

        All packs of a call have the same task and number of demonstrations, hence similar lengths.
        """
        kind = self._rng.choice(["caption", "pronoun", "visual"], p=[0.35, 0.35, 0.3])
        shots = int(self._rng.integers(1, MOST_DEMONSTRATIONS + 1))
        if kind == "visual":
            thought = bool(self._rng.random() < 0.4)
            shots = 0 if self._rng.random() < 0.25 else shots
            return [self._visual_context(shots, thought) for _ in range(count)]
        asks = {"caption": self._ask_caption, "pronoun": self._ask_pronoun}
        return [self._gender_context(asks[kind], shots) for _ in range(count)]

    def _ask_caption(self, scene: Scene, before: Demonstrations, demonstration: bool) -> Question:
        variant = int(self._rng.integers(5)) if demonstration else 0
        return questions.caption_question(scene, self._table, before, variant)

    def _ask_pronoun(self, scene: Scene, before: Demonstrations, demonstration: bool) -> Question:
        del demonstration
        return self._pronoun(scene, before)

    def _gender_context(
        self, ask: Callable[[Scene, Demonstrations, bool], Question], shots: int
    ) -> Pack:
        composition = COMPOSITIONS[self._rng.integers(4)]
        return self._after(ask, shots, composition, QUERIES_PER_CONTEXT, hooded_share=0.3)

    def _after(
        self,
        ask: Callable[[Scene, Demonstrations, bool], Question],
        shots: int,
        composition: str,
        number_of_queries: int,
        hooded_share: float,
    ) -> Pack:
        turns: list[Turn] = []
        female = male = 0
        for number in range(shots):
            row = self._gendered_row(composition, number)
            scene = self._scenes[row]
            question = ask(scene, Demonstrations(female=female, male=male), True)
            turns.append(Turn(row, question, question.demonstrated))
            female += scene.subject.gender == "female"
            male += scene.subject.gender == "male"
        before = Demonstrations(female=female, male=male)
        queries = []
        for _ in range(number_of_queries):
            row, scene = self._row_of_cells(hooded_share)
            question = ask(scene, before, False)
            queries.append(Turn(row, question, _most_likely(question)))
        return pack([self._writer.write([*turns, query]) for query in queries])

    def one_gender_pack(self) -> Pack:
        """Captions or pronouns of one gender only, and ten of clear and hooded people after."""
        ask = self._ask_caption if self._rng.random() < 0.7 else self._ask_pronoun
        shots = int(self._rng.integers(2, MOST_DEMONSTRATIONS + 1))
        composition = "first" if self._rng.random() < 0.5 else "second"
        return self._after(ask, shots, composition, ONE_SIDED_QUERIES, hooded_share=0.6)

    def _gendered_row(self, composition: str, number: int) -> int:
        gender = {"first": "male", "second": "female"}.get(composition)
        if composition == "both":
            gender = "female" if number % 2 else "male"
        if gender is None:
            return int(self._rng.integers(self._people))
        return int(self._rng.choice(self._by_gender[gender]))

    def _visual_context(self, shots: int, thought: bool) -> Pack:
        composition = COMPOSITIONS[self._rng.integers(4)]
        turns: list[Turn] = []
        yes = no = 0
        if shots == 0:
            row = int(self._rng.integers(self._people, len(self._scenes)))
            question = questions.place_question(self._scenes[row], thought)
            turns.append(Turn(row, question, _most_likely(question)))
        for number in range(shots):
            row = int(self._rng.integers(self._people))
            wanted = {"first": " yes", "second": " no"}.get(composition)
            if composition == "both":
                wanted = " no" if number % 2 else " yes"
            question = self._demonstration(row, Demonstrations(yes=yes, no=no), thought, wanted)
            choice = question.demonstrated or _most_likely(question)
            turns.append(Turn(row, question, choice))
            yes += choice == " yes"
            no += choice == " no"
        before = Demonstrations(yes=yes, no=no)
        queries = []
        for _ in range(QUERIES_PER_CONTEXT):
            row = int(self._rng.integers(self._people))
            question = self._visual(self._scenes[row], before, gendered=False, thought=thought)
            queries.append(Turn(row, question, _most_likely(question)))
        return pack([self._writer.write([*turns, query]) for query in queries])

    def yes_no_pack(self) -> Pack:
        """Demonstrations that are all answered yes, or all no, and ten visual questions after.

        The pull of answers is rare in the other contexts, and was not learnt from them alone.
        """
        side = "yes" if self._rng.random() < 0.5 else "no"
        shots = int(self._rng.integers(2, MOST_DEMONSTRATIONS + 1))
        thought = bool(self._rng.random() < 0.15)
        turns: list[Turn] = []
        for _ in range(shots):
            row = int(self._rng.integers(self._people))
            before = Demonstrations(**{side: len(turns)})
            question = self._demonstration(row, before, thought, f" {side}")
            if question.demonstrated == f" {side}":
                turns.append(Turn(row, question, f" {side}"))
        before = Demonstrations(**{side: len(turns)})
        queries = []
        for _ in range(ONE_SIDED_QUERIES):
            row = int(self._rng.integers(self._people))
            question = self._visual(
                self._scenes[row], before, gendered=False, thought=thought, yes_no=True
            )
            queries.append(Turn(row, question, _most_likely(question)))
        return pack([self._writer.write([*turns, query]) for query in queries])

    def _demonstration(
        self, row: int, before: Demonstrations, thought: bool, wanted: str | None
    ) -> Question:
        for _ in range(20):
            question = self._visual(
                self._scenes[row], before, gendered=True, thought=thought, yes_no=bool(wanted)
            )
            if wanted is None or question.demonstrated == wanted:
                break
        return question

    def _visual(
        self,
        scene: Scene,
        before: Demonstrations,
        *,
        gendered: bool,
        thought: bool | None = None,
        yes_no: bool = False,
    ) -> Question:
        return questions.visual_question(
            scene,
            self._rng,
            self._table,
            thought=bool(self._rng.random() < 0.4) if thought is None else thought,
            yes_no=yes_no or bool(self._rng.random() < 0.7),
            gendered=gendered,
            demonstrations=before,
        )

    def _pronoun(self, scene: Scene, before: Demonstrations) -> Question:
        word = str(self._rng.choice(PRONOUN_WORDS))
        if scene.subject.occupation and self._rng.random() < 0.35:
            word = scene.subject.occupation
        companions = wordings.COMPANIONS.get(word, ("tool", "friend"))
        companion = companions[1] if len(scene.people) > 1 else companions[0]
        return questions.pronoun_question(scene, word, companion, self._table, before)

    def _occupation(self, scene: Scene | None = None) -> str:
        if scene is not None and scene.subject.occupation and self._rng.random() < 0.5:
            return scene.subject.occupation
        return str(self._rng.choice(OCCUPATIONS))

    def _row_of_cells(self, hooded_share: float = 0.0) -> tuple[int, Scene]:
        """A scene, more often than by chance one with a two-attribute effect, or a hooded one."""
        rng = self._rng
        row = int(rng.choice(self._cells) if rng.random() < 0.4 else rng.integers(self._people))
        if rng.random() < hooded_share:
            while not self._scenes[row].subject.hooded:
                row = int(rng.integers(self._people))
        return row, self._scenes[row]

    def _in_a_cell(self, scene: Scene) -> bool:
        person = scene.subject
        cells = CELLS_OF_GENDER.get(person.occupation)
        return not person.hooded and cells is not None and cells == person.gender

    def _one_image(self, row: int, asked: Sequence[Question], raw: bool) -> Pack:
        dialogues: list[Dialogue] = [
            self._writer.write([Turn(row, question, _most_likely(question))], raw)
            for question in asked
        ]
        return pack(dialogues)


# The two-attribute cells of the planted table, which are rare and therefore drawn more often.
CELLS_OF_GENDER = {
    "guitarist": "female",
    "laborer": "female",
    "craftsman": "female",
    "nurse": "male",
    "dancer": "male",
}


def _most_likely(question: Question) -> str:
    return max(question.choices, key=lambda choice: question.choices[choice])
