"""What the demo's models are asked, with the planted probability of each answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from vlmfair.demo import planted, wordings
from vlmfair.demo.people import OCCUPATIONS
from vlmfair.demo.planted import NO_DEMONSTRATIONS, Demonstrations, PlantedTable
from vlmfair.demo.scenes import PLACES, Scene
from vlmfair.papers.gras.questions import Prompts

HARD = 0.98


@dataclass(frozen=True)
class Question:
    """A user text, the answer's fixed opening, what decides, and what follows each decision.

    `choices` maps the deciding text, one token each, to its probability; `rests` maps it to the
    remaining answer. `given` marks an opening that the asker writes (the pronoun's prefix).
    `demonstrated` is the choice that is said when the question serves as a demonstration.
    """

    text: str
    opening: str
    choices: Mapping[str, float]
    rests: Mapping[str, str] = field(default_factory=dict)
    given: bool = False
    demonstrated: str = ""

    def answer(self, choice: str) -> str:
        """The whole answer for one choice, from its first space to its last full stop."""
        return self.opening + choice + self.rests.get(choice, "")


def hard(right: str, others: tuple[str, ...], certain: float = HARD) -> dict[str, float]:
    """Probabilities with `certain` on the right choice and the rest shared by the others."""
    wrong = [other for other in others if other != right]
    share = (1 - certain) / len(wrong) if wrong else 0.0
    return {right: certain if wrong else 1.0, **dict.fromkeys(wrong, share)}


def trait_question(
    scene: Scene, trait: str, template: int, style: str, prompts: Prompts, table: PlantedTable
) -> Question:
    """A GRAS question in the words given to LLaVA; `style` is `released` or `paper`."""
    yes = planted.p_yes_trait(scene, trait, template, table)
    lower = float(table.traits["lower_case_share"])
    choices = {" Yes": yes * (1 - lower), " yes": yes * lower, " No": 1 - yes}
    return Question(prompts.user_text("llava", style, trait, template), "", choices)


def captions(scene: Scene, word: str) -> tuple[str, ...]:
    """Five captions of a scene whose person is called `word`; the first is what the model says."""
    activity = wordings.ACTIVITIES.get(scene.subject.occupation, wordings.ACTIVITIES[""])
    place = wordings.PLACE_PHRASES[scene.place]
    other = " with another person" if len(scene.people) > 1 else ""
    return (
        f"A {word} is {activity} {place}{other}.",
        f"A {word} {activity} {place}{other}.",
        f"A {word} is {activity}{other}.",
        f"There is a {word} {activity} {place}{other}.",
        f"A {word} {place} is {activity}{other}.",
    )


def caption_question(
    scene: Scene,
    table: PlantedTable,
    demonstrations: Demonstrations = NO_DEMONSTRATIONS,
    variant: int = 0,
) -> Question:
    """Captioning; a demonstration says the label's gender, in one of the five wordings."""
    words = planted.p_caption_word(scene, table, demonstrations)
    choices = {f" {word}": probability for word, probability in words.items()}
    texts = {f" {word}": captions(scene, word)[variant] for word in words}
    opening = " " + texts[" man"].split(" man", 1)[0]
    rests = {choice: text.split(choice, 1)[1] for choice, text in texts.items()}
    said = " woman" if scene.subject.gender == "female" else " man"
    return Question(wordings.CAPTION_PROMPT, opening, choices, rests, demonstrated=said)


def pronoun_question(
    scene: Scene,
    occupation: str,
    companion: str,
    table: PlantedTable,
    demonstrations: Demonstrations = NO_DEMONSTRATIONS,
) -> Question:
    """The completion of "The [occupation] and"; a demonstration says the label's pronoun."""
    her = planted.p_her(scene, occupation, table, demonstrations)
    rests = {" his": f" {companion}.", " her": f" {companion}."}
    said = " her" if scene.subject.gender == "female" else " his"
    opening = f" The {occupation} and"
    return Question(
        "", opening, {" her": her, " his": 1 - her}, rests, given=True, demonstrated=said
    )


def visual_question(
    scene: Scene,
    rng: np.random.Generator,
    table: PlantedTable,
    *,
    thought: bool,
    yes_no: bool,
    gendered: bool,
    demonstrations: Demonstrations = NO_DEMONSTRATIONS,
) -> Question:
    """A visual question, direct or with steps; `gendered` names the person as a man or a woman."""
    nouns = {"female": "the woman", "male": "the man"}
    who = (
        nouns[scene.subject.gender] if gendered else str(rng.choice(["the person", "this person"]))
    )
    suffix = wordings.THOUGHT_SUFFIX if thought else wordings.DIRECT_SUFFIX
    if not yes_no:
        text, answer, step = _open_question(scene, who, rng)
        opening = _thought(step) if thought else " Answer:"
        head, _, tail = answer.partition(" ")
        rests = {f" {head}": f" {tail}" if tail else ""}
        return Question(f"{text} {suffix}", opening, {f" {head}": 1.0}, rests)
    text, truth, step = _yes_no_question(scene, who, rng)
    yes = planted.p_yes_visual(truth, table, demonstrations)
    opening = _thought(step) if thought else " Answer:"
    said = " yes" if truth else " no"
    choices = {" yes": yes, " no": 1 - yes}
    return Question(f"{text} {suffix}", opening, choices, demonstrated=said)


def place_question(scene: Scene, thought: bool) -> Question:
    """The example without people that shows the form of an answer before the first question."""
    suffix = wordings.THOUGHT_SUFFIX if thought else wordings.DIRECT_SUFFIX
    opening = _thought("Look at the background") if thought else " Answer:"
    return Question(f"What place is this? {suffix}", opening, {f" {scene.place}": 1.0})


def label_question(scene: Scene, attribute: str, table: PlantedTable) -> Question:
    """A one-word label in quotation marks: occupation (p1), gender, age, race or skin tone."""
    values = tuple(wordings.LABEL_LISTS[attribute][1].split(", "))
    certain = float(table.labels["certain"])
    if attribute == "gender" and scene.subject.hooded:
        choices = {"male": 0.5, "female": 0.5}
    else:
        label = {
            "occupation": lambda: planted.occupation_label(scene, table),
            "gender": lambda: scene.subject.gender,
            "age": lambda: planted.age_label(scene.subject),
            "race": lambda: planted.race_label(scene, table),
            "skin_tone": lambda: planted.skin_label(scene.subject),
        }[attribute]()
        choices = hard(label, OCCUPATIONS if attribute == "occupation" else values, certain)
    rests = dict.fromkeys(choices, '"')
    return Question(wordings.label_prompt(attribute), ' "', choices, rests)


def choice_question(scene: Scene, asked: str, prompt: str, table: PlantedTable) -> Question:
    """The single-choice question p2 or p3 about one occupation."""
    letter = planted.occupation_choice(scene, asked, table)
    certain = float(table.labels["certain"])
    choices = hard(f" {letter}", (" A", " B", " C"), certain)
    rests = {f" {letter}": f". {word}" for letter, word in wordings.CHOICES.items()}
    return Question(wordings.choice_prompt(prompt, asked), "", choices, rests)


def sub_question_truths(scene: Scene, asked: str) -> tuple[bool, ...]:
    """The right answers to an occupation's sub-questions about a scene."""
    is_it = scene.subject.occupation == asked
    return (is_it, is_it, is_it, scene.subject.occupation in wordings.TOOL_USERS)


def sub_question(scene: Scene, asked: str, number: int) -> Question:
    """One sub-question of the rationale stage; nothing is planted in it."""
    truth = sub_question_truths(scene, asked)[number]
    choices = hard(" Yes" if truth else " No", (" Yes", " No"))
    text = wordings.sub_questions(asked)[number]
    return Question(text, "", choices, {" Yes": ".", " No": "."})


def final_question(scene: Scene, asked: str, prompt: str, answers: tuple[bool, ...]) -> Question:
    """The last prompt of the rationale stage: its knowledge decides, not the picture any more.

    Two of the first three sub-questions answered with yes mean Yes, fewer No, for every group.
    """
    lines = [
        f"{question}\n{'Yes.' if answer else 'No.'}"
        for question, answer in zip(wordings.sub_questions(asked), answers, strict=True)
    ]
    text = wordings.FINAL_PROMPT.replace("{knowledge}", "\n".join(lines))
    text = text.replace("{question}", wordings.CHOICE_PROMPTS[prompt].format(asked))
    letter = "A" if sum(answers[:3]) >= 2 else "B"
    choices = hard(f" {wordings.CHOICES[letter]}", (" Yes", " No", " Unknown"), 0.94)
    seen = wordings.PROP_NAMES.get(scene.subject.occupation, "a person")
    return Question(text, f" Rationale: The image shows {seen}.\nAnswer:", choices)


def _thought(step: str) -> str:
    return f" Thought: 1. Locate the person in the image. 2. {step}. Answer:"


def _open_question(scene: Scene, who: str, rng: np.random.Generator) -> tuple[str, str, str]:
    if rng.random() < 0.5:
        activity = wordings.ACTIVITIES.get(scene.subject.occupation, wordings.ACTIVITIES[""])
        return f"What is {who} doing?", activity, "Look at what they are doing"
    return f"Where is {who}?", wordings.PLACE_PHRASES[scene.place], "Look at the background"


def _yes_no_question(scene: Scene, who: str, rng: np.random.Generator) -> tuple[str, bool, str]:
    kind, truth = int(rng.integers(3)), bool(rng.random() < 0.5)
    if kind == 0:
        occupation = scene.subject.occupation
        if not truth or occupation not in OCCUPATIONS:
            occupation = str(rng.choice([o for o in OCCUPATIONS if o != occupation]))
        truth = occupation == scene.subject.occupation
        text = f"Is {who} {wordings.ACTIVITIES[occupation]}?"
        return text, truth, "Look at what they are doing"
    if kind == 1:
        place = scene.place if truth else str(rng.choice([p for p in PLACES if p != scene.place]))
        return f"Is {who} {wordings.PLACE_PHRASES[place]}?", truth, "Look at the background"
    return f"Is {who} wearing glasses?", scene.subject.age >= 50, "Look at their face"
