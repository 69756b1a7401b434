"""The lists of gender words, of words for several people, and of neutral words, from `resources/`.

Light by design (PyYAML only): parsers of datasets, planning and judging all import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from vlmfair.config import parse_yaml
from vlmfair.errors import ConfigError
from vlmfair.provenance import PACKAGE_ROOT, sha256_of_text

DEFAULT_PATH = PACKAGE_ROOT.parent / "resources" / "words" / "gender_words.yaml"
PARTS = ("singular", "plural", "pronoun")


@dataclass(frozen=True)
class GenderWords:
    """One list of gender words with what goes with every list.

    `plural` holds the list's plurals of both genders; `phrases` are taken out of a text before
    words are looked for. `source_sha256` is that of the whole file, for manifests.
    """

    name: str
    masculine: frozenset[str]
    feminine: frozenset[str]
    plural: frozenset[str]
    phrases: tuple[str, ...]
    collective: frozenset[str]
    neutral_person: frozenset[str]
    source_sha256: str


@dataclass(frozen=True)
class NeutralWords:
    """What replaces a gender word in a question, and the words for a person without a gender."""

    replacements: Mapping[str, str]
    persons: frozenset[str]


@dataclass(frozen=True)
class PersonNames:
    """Names of objects in scene graphs that stand for one person, and for several."""

    singular: frozenset[str]
    plural: frozenset[str]


def load_gender_words(
    path: str | PathLike[str] = DEFAULT_PATH, name: str = "recommended"
) -> GenderWords:
    """Read one of the lists of gender words: recommended, lic or hendricks.

    Raises ConfigError on a missing file, list or key, and on a word of both genders.
    """
    source, content = _read(path)
    lists = _mapping(content, "lists", path)
    if name not in lists:
        raise ConfigError(
            f"{path}: there is no list {name!r} of gender words. "
            f"Use one of {', '.join(sorted(lists))}."
        )
    masculine, feminine = (_by_part(lists[name], side, path) for side in ("masculine", "feminine"))
    words = GenderWords(
        name=name,
        masculine=frozenset().union(*masculine.values()),
        feminine=frozenset().union(*feminine.values()),
        plural=masculine["plural"] | feminine["plural"],
        phrases=tuple(sorted(_words(content, "false_positive_phrases", path), key=_longest_first)),
        collective=_words(content, "plural_collective", path),
        neutral_person=_words(content, "neutral_person", path),
        source_sha256=sha256_of_text(source),
    )
    both = sorted(words.masculine & words.feminine)
    if both:
        raise ConfigError(
            f"{path}: {both[0]!r} is masculine and feminine in the list {name}. Keep one of them."
        )
    return words


def load_neutral_words(path: str | PathLike[str] = DEFAULT_PATH) -> NeutralWords:
    """Read the replacements that neutralise a question. Raises ConfigError as the others."""
    _, content = _read(path)
    replacements = {
        str(word): str(neutral) for word, neutral in _mapping(content, "neutralise", path).items()
    }
    persons = _words(content, "neutral_person", path)
    return NeutralWords(replacements, persons | load_person_names(path).singular)


def load_person_names(path: str | PathLike[str] = DEFAULT_PATH) -> PersonNames:
    """Read the names of scene-graph objects that are people. Raises ConfigError as the others."""
    _, content = _read(path)
    names = _mapping(content, "person_objects", path)
    return PersonNames(_words(names, "singular", path), _words(names, "plural", path))


def _longest_first(phrase: str) -> tuple[int, str]:
    return (-len(phrase), phrase)


def _read(path: str | PathLike[str]) -> tuple[str, Any]:
    try:
        source = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the list of gender words is missing. Restore it from the repository."
        ) from error
    return source, parse_yaml(source, path)


def _mapping(content: Any, key: str, path: str | PathLike[str]) -> dict[str, Any]:
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, dict):
        raise ConfigError(
            f"{path}: the key {key} is missing or holds no keys. "
            f"Compare with the file in the repository."
        )
    return found


def _words(content: Any, key: str, path: str | PathLike[str]) -> frozenset[str]:
    found = content.get(key) if isinstance(content, dict) else None
    if not isinstance(found, list) or not found:
        raise ConfigError(f"{path}: {key} is missing or no list of words. Write words there.")
    wrong = next((word for word in found if not isinstance(word, str) or word != word.lower()), "")
    if wrong != "":
        raise ConfigError(f"{path}: {wrong!r} in {key} is no word in lower case. Put it in quotes.")
    return frozenset(found)


def _by_part(lists: Any, side: str, path: str | PathLike[str]) -> dict[str, frozenset[str]]:
    parts = _mapping(lists, side, path)
    return {part: _words(parts, part, path) for part in PARTS}
