"""Rewrites a text for the other gender: `A man and his dog` -> `A woman and her dog`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

from vlmfair.config import parse_yaml
from vlmfair.errors import ConfigError
from vlmfair.provenance import PACKAGE_ROOT, sha256_of_text
from vlmfair.text.answers import normalise
from vlmfair.text.gender import phrase_pattern, read_gender
from vlmfair.text.words import GenderWords

DEFAULT_PATH = PACKAGE_ROOT.parent / "resources" / "words" / "gender_counterparts.yaml"
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
# Behind "her" they begin something new: "behind her and", but "her red hat".
_NOT_HERS = frozenset(
    [
        *("a", "an", "and", "are", "as", "at", "behind", "beside", "by", "for", "from", "in", "is"),
        *("near", "next", "of", "on", "or", "the", "to", "while", "with"),
    ]
)


@dataclass(frozen=True)
class Counterparts:
    """The word of the other gender for each gender word, in lower case."""

    words: Mapping[str, str]
    source_sha256: str


def load_counterparts(path: str | PathLike[str] = DEFAULT_PATH) -> Counterparts:
    """Read the pairs of words. Raises ConfigError on a missing file and on anything but pairs."""
    try:
        with open(path, encoding="utf-8") as opened:
            source = opened.read()
        content = parse_yaml(source, path)
        pairs = [(str(man), str(woman)) for man, woman in content["pairs"]]
        words = {**dict(pairs), **{woman: man for man, woman in pairs}}
        words |= {str(word): str(other) for word, other in content["one_way"].items()}
    except FileNotFoundError as error:
        raise ConfigError(
            f"{path}: the list of counterparts is missing. Restore it from the repository."
        ) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{path}: it has no pairs of words and no words that go one way ({error}). "
            f"Compare with the file in the repository."
        ) from error
    return Counterparts(words, sha256_of_text(source))


def swap_gender(text: str, counterparts: Counterparts, words: GenderWords) -> str | None:
    """Return a text with each gender word replaced by its counterpart, capitals kept.

    Phrases such as `cowboy hat` stay. None without a gender word, and where one has no counterpart.
    """
    text = normalise(text)
    reading = read_gender(text, words)
    found = {*reading.masculine, *reading.feminine}
    if not found or not found <= set(counterparts.words):
        return None
    parts, start = [], 0
    for phrase in phrase_pattern(words.phrases).finditer(text):
        parts += [_swap(text[start : phrase.start()], counterparts, found), phrase[0]]
        start = phrase.end()
    return "".join([*parts, _swap(text[start:], counterparts, found)])


def _swap(text: str, counterparts: Counterparts, found: set[str]) -> str:
    def other(match: re.Match[str]) -> str:
        word = match[0].lower()
        if word not in found:
            return match[0]
        new = counterparts.words[word]
        if word == "her":
            following = re.match(r" (\w+)", text[match.end() :])
            new = "his" if following and following[1].lower() not in _NOT_HERS else "him"
        if match[0].isupper() and len(word) > 1:
            return new.upper()
        return new[0].upper() + new[1:] if match[0][0].isupper() else new

    return _WORD.sub(other, text)
