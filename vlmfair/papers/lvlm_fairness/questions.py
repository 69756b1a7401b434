"""The prompts, classes and sub-questions of the paper on fairness of LVLMs, from `resources/`.

Light by design (PyYAML only): request planning and the workflow's parsing both import it.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError
from vlmfair.prompts_file import check_digests, read_prompts_file, stated_digests
from vlmfair.provenance import sha256_of_text

CHOICES = ("Yes", "No", "Unknown")
# Stage two of the rationale; its answers are those of the single choice.
FINAL = "final"
UTKFACE_PROMPTS = ("gender", "race")
# The 13 classes with the largest differences in gender presentation, in the order of the tables.
OCCUPATIONS = (
    *("gardener", "craftsman", "laborer", "skateboarder", "prayer", "guitarist", "singer"),
    *("dancer", "retailer", "nurse", "student", "gymnast", "horseman"),
)
STYLES = ("paper", "released")


@dataclass(frozen=True)
class Classes:
    """FACET's 52 classes in alphabetical order, and the 13 evaluated ones in the tables' order."""

    all: tuple[str, ...]
    evaluated: tuple[str, ...]


@dataclass(frozen=True)
class ReleasedForm:
    """The frame of an authors' script around `{prompt}`, and the direct prompts it words itself."""

    frame: str
    direct: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EncoderTexts:
    """What an encoder compares: texts made of `{label}`, `{letter}` and `{response}`.

    Responses to direct prompts keep their first `words` words, all when it is None.
    """

    label_candidate: str
    label_response: str
    choice_candidate: str
    words: int | None


@dataclass(frozen=True)
class Prompts:
    """The prompt texts, the answers that they list, and how each model family is given them."""

    direct: Mapping[str, str]
    values: Mapping[str, tuple[str, ...]]
    choice: Mapping[str, str]
    choice_suffix: str
    options: Mapping[str, str]
    generation: str
    final: str
    released: Mapping[str, ReleasedForm]
    encoders: Mapping[str, EncoderTexts]
    zero_shot: str
    source_sha256: str

    def is_choice(self, prompt: str) -> bool:
        """Return whether a prompt is answered by Yes, No or Unknown."""
        return prompt in self.choice or prompt == FINAL

    def answers(self, prompt: str) -> tuple[str, ...]:
        """Return the answers that a prompt offers. Raises ConfigError on an unknown prompt."""
        if self.is_choice(prompt):
            return tuple(self.options.values())
        self._check_direct(prompt)
        return self.values[prompt]

    def text(self, prompt: str, occupation: str = "", form: ReleasedForm | None = None) -> str:
        """Return a direct prompt or a single choice about an occupation, without any frame.

        Raises ConfigError on an unknown prompt, and on a single choice without an occupation.
        """
        if prompt in self.choice:
            return self.question(prompt, occupation) + self.choice_suffix
        self._check_direct(prompt)
        wording = (form.direct if form else {}).get(prompt, self.direct[prompt])
        return wording.replace("{values}", ", ".join(self.values[prompt]))

    def question(self, prompt: str, occupation: str) -> str:
        """Return the question of a single choice without its options."""
        if prompt not in self.choice:
            raise ConfigError(
                f"{prompt} is no single choice. Use one of {', '.join(sorted(self.choice))}."
            )
        if not occupation:
            raise ConfigError(
                f"the prompt {prompt} asks about an occupation, and none is given. "
                f"Use samples that have one."
            )
        return self.choice[prompt].replace("{occupation}", occupation)

    def user_text(self, family: str, style: str, prompt: str, occupation: str = "") -> str:
        """Return the text for a family's chat template (`paper`) or processor (`released`)."""
        form = self._form(family, style)
        return self.framed(family, style, self.text(prompt, occupation, form))

    def framed(self, family: str, style: str, text: str) -> str:
        """Return a text in the frame of the family's released script, if it has one."""
        form = self._form(family, style)
        return form.frame.replace("{prompt}", text) if form else text

    def rendering(self, family: str, style: str) -> str:
        """Return `raw` where the released frame already is the whole prompt, else `chat`."""
        return "raw" if self._form(family, style) else "chat"

    def generation_prompt(self, occupation: str, prompt: str = "p2") -> str:
        """Return what a language model is asked for sub-questions (appendix A.7, first stage)."""
        return self.generation.replace("{question}", self.question(prompt, occupation))

    def final_prompt(
        self, occupation: str, knowledge: Sequence[tuple[str, str]], prompt: str = "p2"
    ) -> str:
        """Return the final prompt with sub-questions and their answers (appendix A.7)."""
        lines = "\n".join(f"{question}\n{answer}" for question, answer in knowledge)
        text = self.final.replace("{question}", self.question(prompt, occupation))
        return text.replace("{knowledge}", lines)

    def digest(self) -> str:
        """Return the SHA-256 of the prompts file, for manifests."""
        return self.source_sha256

    def _form(self, family: str, style: str) -> ReleasedForm | None:
        if style not in STYLES:
            raise ConfigError(
                f"lvlm_fairness has no prompt style {style!r}. Use one of {', '.join(STYLES)}."
            )
        return self.released.get(family) if style == "released" else None

    def _check_direct(self, prompt: str) -> None:
        if prompt not in self.direct:
            known = ", ".join((*self.direct, *self.choice))
            raise ConfigError(f"lvlm_fairness has no prompt {prompt!r}. Use one of {known}.")


def load_classes(path: str | PathLike[str]) -> Classes:
    """Read FACET's classes from a csv with columns class and evaluated (1 to 13, or empty).

    Raises ConfigError on a missing file or column, and on evaluated classes other than the paper's.
    """
    rows = _read_csv(path, ("class", "evaluated"))
    chosen = sorted((int(row["evaluated"]), row["class"]) for row in rows if row["evaluated"])
    classes = Classes(tuple(row["class"] for row in rows), tuple(name for _, name in chosen))
    if classes.evaluated != OCCUPATIONS or len(set(classes.all)) != len(classes.all):
        raise ConfigError(
            f"{path}: a class is listed twice, or the evaluated classes are not the paper's 13. "
            f"Restore the file from the repository."
        )
    return classes


def load_wordnet(path: str | PathLike[str]) -> dict[str, str]:
    """Read which class of FACET each WordNet synset and each of its labels stands for.

    Keys are synset ids like `n10366966` and labels like `nurse`. Raises ConfigError on a missing
    file or column, or a label of two classes.
    """
    found: dict[str, str] = {}
    for row in _read_csv(path, ("class", "synset", "label")):
        for key in (row["synset"], row["label"]):
            if found.setdefault(key, row["class"]) != row["class"]:
                raise ConfigError(
                    f"{path}: {key} stands for {found[key]} and {row['class']}. Keep one of them."
                )
    return found


def load_sub_questions(
    path: str | PathLike[str], section: str = "committed"
) -> dict[str, tuple[str, ...]]:
    """Read the sub-questions of each occupation from a section of the YAML file.

    Raises ConfigError on a missing file or section, or an occupation without questions.
    """
    content = read_yaml(path)
    if not isinstance(content, dict) or not isinstance(content.get(section), dict):
        raise ConfigError(f"{path}: the section {section} is missing. Write occupations below it.")
    found = {str(name): _questions(listed) for name, listed in content[section].items()}
    empty = [name for name, questions in found.items() if not questions]
    if empty:
        raise ConfigError(f"{path}: {empty[0]} has no sub-questions. Write at least one.")
    return found


def _questions(listed: Any) -> tuple[str, ...]:
    if not isinstance(listed, list):
        return ()
    return tuple(str(question).strip() for question in listed if str(question).strip())


def _read_csv(path: str | PathLike[str], columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        with open(path, encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the word list is missing. Restore it from the repository."
        ) from error
    if not rows or not set(columns) <= set(rows[0]):
        raise ConfigError(
            f"{path}: the word list needs rows with the columns {', '.join(columns)}. "
            f"Write them in the first line."
        )
    return rows


def load_prompts(path: str | PathLike[str], classes: Classes) -> Prompts:
    """Read the prompts file; `classes` are the answers that p1 lists.

    Raises ConfigError on a missing file or key, a text without its placeholder, and a text that
    does not have the SHA-256 stated in the file.
    """
    prompts, stated = read_prompts_file(
        path,
        lambda content, digest: (_read_prompts(content, classes, digest), stated_digests(content)),
    )
    _check_prompts(prompts, stated, path)
    return prompts


def _read_prompts(content: Mapping[str, Any], classes: Classes, digest: str) -> Prompts:
    values = {name: tuple(map(str, listed)) for name, listed in content["values"].items()}
    return Prompts(
        direct={name: str(text) for name, text in content["direct"].items()},
        values={"p1": classes.all, **values},
        choice={name: str(text) for name, text in content["choice"].items()},
        choice_suffix=str(content["choice_suffix"]),
        options={str(letter): str(word) for letter, word in content["options"].items()},
        generation=str(content["rationale"]["generation"]),
        final=str(content["rationale"]["final"]),
        released={
            family: ReleasedForm(str(form["frame"]), dict(form.get("direct", {})))
            for family, form in content["styles"]["released"].items()
        },
        encoders={
            name: EncoderTexts(
                str(texts["label_candidate"]),
                str(texts["label_response"]),
                str(texts["choice_candidate"]),
                None if texts["words"] is None else int(texts["words"]),
            )
            for name, texts in content["encoders"].items()
        },
        zero_shot=str(content["zero_shot"]),
        source_sha256=digest,
    )


def prompt_digests(prompts: Prompts) -> dict[str, str]:
    """Return the SHA-256 of each text before lists, classes and answers are filled in."""
    texts = {**prompts.direct, "generation": prompts.generation, FINAL: prompts.final}
    texts |= {name: text + prompts.choice_suffix for name, text in prompts.choice.items()}
    for family, form in prompts.released.items():
        for name in (*prompts.direct, *prompts.choice):
            text = form.direct.get(name, texts[name])
            texts[f"{family}.{name}"] = form.frame.replace("{prompt}", text)
    return {name: sha256_of_text(text) for name, text in texts.items()}


def _check_prompts(prompts: Prompts, stated: Mapping[str, str], path: str | PathLike[str]) -> None:
    if set(prompts.direct) != set(prompts.values):
        raise ConfigError(
            f"{path}: direct and values do not name the same prompts. Write a list of answers for "
            f"each direct prompt but p1, whose classes have a file of their own."
        )
    if tuple(prompts.options.values()) != CHOICES:
        raise ConfigError(f"{path}: options must be Yes, No and Unknown. Restore them.")
    check_digests(path, stated, prompt_digests(prompts))
