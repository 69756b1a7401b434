"""Which gender the words of a text name: exact tokens, possessives, hyphens, misleading phrases."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from vlmfair.text.answers import normalise
from vlmfair.text.words import GenderWords

MALE, FEMALE, BOTH = "Male", "Female", "Both"
# Letters with inner apostrophes and hyphens; "--" and a hyphen at an end part words.
_TOKEN = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*")
_CLITIC = re.compile(r"'(?:s|ll|d|re|ve|m)$")


@dataclass(frozen=True)
class GenderReading:
    """The gender words of a text in their order, each as often as it stands there."""

    masculine: tuple[str, ...] = ()
    feminine: tuple[str, ...] = ()

    @property
    def gender(self) -> str | None:
        """Male, Female, Both for words of both, or None without any."""
        if self.masculine and self.feminine:
            return BOTH
        return MALE if self.masculine else FEMALE if self.feminine else None


def tokens(text: str) -> list[str]:
    """Return the words of a text in lower case, "'s", "'ll" and the like taken off their ends."""
    return [_CLITIC.sub("", found[0]) for found in _TOKEN.finditer(normalise(text).lower())]


def read_gender(text: str, words: GenderWords) -> GenderReading:
    """Return the gender words of a text outside the misleading phrases (`cowboy hat`)."""
    plain = phrase_pattern(words.phrases).sub(" . ", normalise(text).lower())
    found = tokens(plain)
    return GenderReading(
        tuple(token for token in found if token in words.masculine),
        tuple(token for token in found if token in words.feminine),
    )


def read_captions(captions: Sequence[str], words: GenderWords) -> GenderReading:
    """Return the gender words of several captions of one image together."""
    readings = [read_gender(caption, words) for caption in captions]
    return GenderReading(
        tuple(word for reading in readings for word in reading.masculine),
        tuple(word for reading in readings for word in reading.feminine),
    )


def gendered_caption(captions: Sequence[str], gender: str, words: GenderWords) -> str | None:
    """Return the first caption that names this gender and no other, its ends trimmed, or None."""
    for caption in captions:
        if read_gender(caption, words).gender == gender:
            return normalise(caption)
    return None


def several_people(text: str, words: GenderWords) -> tuple[str, ...]:
    """Return the plural and collective words of a text (VL-BICLE, appendix 0.A.3)."""
    several = words.plural | words.collective
    return tuple(token for token in tokens(text) if token in several)


def names_person(text: str, words: GenderWords) -> bool:
    """Return whether a text has a word for a person without a gender."""
    return any(token in words.neutral_person for token in tokens(text))


@functools.lru_cache(maxsize=8)
def phrase_pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern of phrases as whole words; any space or hyphen stands between their words.

    The longest of several that begin alike is found.
    """
    if not phrases:
        return re.compile(r"(?!)")
    forms = ("[ -]".join(map(re.escape, re.split("[ -]", phrase))) for phrase in phrases)
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile(rf"(?<![\w'-])(?:{'|'.join(longest_first)})(?![\w'-])", re.IGNORECASE)
