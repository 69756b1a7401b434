"""The traits, question templates and prompt texts of GRAS, read from `resources/`.

Light by design (PyYAML and jsonschema): request planning and the workflow's parsing both import it.
"""

from __future__ import annotations

import csv
import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from vlmfair.errors import ConfigError
from vlmfair.prompts_file import read_prompts_file

POLARITIES = ("negative", "positive")
WRAPPINGS = ("chat_template", "plain", "own_tags")
_SPACES = re.compile(r"\{spaces:(\d+)\}")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class Trait:
    """A trait word, its mean valence rating (paper's Table 4) and that rating's sign in words."""

    word: str
    valence: float
    polarity: str


@dataclass(frozen=True)
class Template:
    """A wording of the question (paper's Table 1); `text` holds `{trait}` once."""

    id: str
    category: str
    text: str


@dataclass(frozen=True)
class YesToken:
    """The answer token that the paper's Table 5 states for one model."""

    form: str
    id: int
    model: str


@dataclass(frozen=True)
class Prompts:
    """Question templates, prompt texts by style and family, and the label forms of an answer."""

    templates: tuple[Template, ...]
    styles: Mapping[str, Mapping[str, str]]
    wrapping: Mapping[str, str]
    yes_forms: tuple[str, ...]
    no_forms: tuple[str, ...]
    yes_ids: Mapping[str, YesToken]
    source_sha256: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The surface forms to score: those of Yes first, then those of No."""
        return self.yes_forms + self.no_forms

    @property
    def families(self) -> tuple[str, ...]:
        """The model families that have a prompt text, in alphabetical order."""
        return tuple(sorted(self.wrapping))

    def question(self, trait: str, template: int) -> str:
        """Return template 1 to 5 asked about a trait word. Raises ConfigError on another number."""
        if not 1 <= template <= len(self.templates):
            raise ConfigError(
                f"GRAS has no question template {template}. "
                f"Use a number from 1 to {len(self.templates)}."
            )
        return self.templates[template - 1].text.replace("{trait}", trait)

    def user_text(self, family: str, style: str, trait: str, template: int) -> str:
        """Return the exact text given to a family's processor or chat template.

        `style` is `released` (the authors' code, runs of spaces included) or `paper` (Table 5).
        Raises ConfigError on a family, style or template that the prompts file does not have.
        """
        return self.prompt_text(family, style).replace("{question}", self.question(trait, template))

    def prompt_text(self, family: str, style: str) -> str:
        """Return a family's prompt with `{question}` still in it. Raises ConfigError as above."""
        if style not in self.styles:
            raise ConfigError(
                f"GRAS has no prompt style {style!r}. Use one of {', '.join(sorted(self.styles))}."
            )
        if family not in self.styles[style]:
            raise ConfigError(
                f"GRAS has no prompt for the model family {family!r}. Add it to every style of "
                f"the prompts file, or use one of {', '.join(self.families)}."
            )
        return self.styles[style][family]

    def digest(self) -> str:
        """Return the SHA-256 of the prompts file, for manifests."""
        return self.source_sha256


def load_traits(path: str | PathLike[str]) -> tuple[Trait, ...]:
    """Read the trait words in file order from a csv with columns trait, valence, polarity.

    Raises ConfigError on a missing file or column, a repeated word, a rating that is not a number
    or whose sign contradicts the polarity.
    """
    try:
        with open(path, encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the trait list is missing. Restore it from the repository."
        ) from error
    if not rows or not {"trait", "valence", "polarity"} <= set(rows[0]):
        raise ConfigError(
            f"{path}: the trait list needs rows with the columns trait, valence and polarity. "
            f"Write them in the first line."
        )
    traits = tuple(_read_trait(row, path) for row in rows)
    words = [trait.word for trait in traits]
    repeated = sorted({word for word in words if words.count(word) > 1})
    if repeated:
        raise ConfigError(f"{path}: the trait {repeated[0]!r} is listed twice. Remove one of them.")
    return traits


def _read_trait(row: Mapping[str, str], path: str | PathLike[str]) -> Trait:
    word = (row["trait"] or "").strip()
    try:
        valence = float(row["valence"])
    except (TypeError, ValueError):
        valence = math.nan
    if not math.isfinite(valence):
        raise ConfigError(
            f"{path}: the valence of {word!r} is {row['valence']!r}. Write a number like -1.81."
        )
    expected = "negative" if valence < 0 else "positive"
    if not word or row["polarity"] != expected:
        raise ConfigError(
            f"{path}: the trait {word!r} with valence {valence} has polarity {row['polarity']!r}. "
            f"Write {expected}."
        )
    return Trait(word, valence, expected)


def load_prompts(path: str | PathLike[str]) -> Prompts:
    """Read templates, prompt styles, label forms and token ids, with runs of spaces expanded.

    Raises ConfigError on a missing file, a missing key, or a text without its placeholder.
    """
    prompts = read_prompts_file(path, _read_prompts)
    _check_prompts(prompts, path)
    return prompts


def _read_prompts(content: Mapping[str, Any], digest: str) -> Prompts:
    labels = content["label_sets"]["yes_no"]
    return Prompts(
        templates=tuple(
            Template(str(entry["id"]), str(entry["category"]), str(entry["text"]))
            for entry in content["templates"]
        ),
        styles={
            style: {family: _expand_spaces(str(text)) for family, text in texts.items()}
            for style, texts in content["styles"].items()
        },
        wrapping={family: str(kind) for family, kind in content["wrapping"].items()},
        yes_forms=tuple(str(form) for form in labels["yes"]),
        no_forms=tuple(str(form) for form in labels["no"]),
        yes_ids={
            family: YesToken(str(entry["form"]), int(entry["id"]), str(entry["model"]))
            for family, entry in content["yes_ids"].items()
        },
        source_sha256=digest,
    )


def _expand_spaces(text: str) -> str:
    return _SPACES.sub(lambda match: " " * int(match[1]), text)


def _check_prompts(prompts: Prompts, path: str | PathLike[str]) -> None:
    for number, template in enumerate(prompts.templates, start=1):
        if template.id != f"T{number}":
            raise ConfigError(
                f"{path}: template number {number} has the id {template.id!r}. Write T{number}."
            )
        _check_placeholder(template.text, "trait", f"{path}: template {template.id}")
    for style, texts in prompts.styles.items():
        if set(texts) != set(prompts.wrapping):
            unequal = ", ".join(sorted(set(texts) ^ set(prompts.wrapping)))
            raise ConfigError(
                f"{path}: style {style} and wrapping do not both name {unequal}. "
                f"Write each family in each style and in wrapping."
            )
        for family, text in texts.items():
            _check_placeholder(text, "question", f"{path}: styles.{style}.{family}")
    for family, kind in prompts.wrapping.items():
        if kind not in WRAPPINGS:
            raise ConfigError(
                f"{path}: wrapping of {family} is {kind!r}. Write one of {', '.join(WRAPPINGS)}."
            )
    if len(set(prompts.labels)) != len(prompts.labels):
        raise ConfigError(f"{path}: a label form is listed twice. Remove the repetition.")


def _check_placeholder(text: str, name: str, where: str) -> None:
    if _PLACEHOLDER.findall(text) != [name]:
        raise ConfigError(
            f"{where} must hold {{{name}}} once and no other placeholder. Correct the text."
        )


def select_traits(traits: Sequence[Trait], chosen: str | Sequence[str]) -> tuple[Trait, ...]:
    """Return all traits for `all`, else the chosen words in the order of `traits`.

    Raises ConfigError on a word that is not among them.
    """
    if chosen == "all":
        return tuple(traits)
    known = {trait.word for trait in traits}
    for word in chosen:
        if word not in known:
            close = difflib.get_close_matches(word, known, n=1)
            remedy = f"Write {close[0]}." if close else "Use words of gras_traits.csv."
            raise ConfigError(f"gras.traits: {word} is not a trait of GRAS. {remedy}")
    return tuple(trait for trait in traits if trait.word in set(chosen))
