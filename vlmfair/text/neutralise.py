"""Takes the gender out of a question: `Is the woman sitting?` -> `Is the person sitting?`.

VL-BICLE, appendix 0.A.4: a question whose gender words cannot all be replaced resists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from vlmfair.text.answers import normalise
from vlmfair.text.gender import BOTH, phrase_pattern, read_gender, tokens
from vlmfair.text.words import GenderWords, NeutralWords

RESISTS, BOTH_GENDERS, NO_GENDER_WORD = "resists", "both_genders", "no_gender_word"
# Words that say the gender of the noun behind them, which is enough without them.
_ADJECTIVES = ("male", "female")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


@dataclass(frozen=True)
class Neutralised:
    """A question without gender words, or None with the `reason`; which words were replaced.

    `reason` is `resists` (with the words in `resisted`), `both_genders` or `no_gender_word`.
    """

    text: str | None
    replaced: tuple[str, ...] = ()
    resisted: tuple[str, ...] = ()
    reason: str = ""


def neutralise(question: str, words: GenderWords, neutral: NeutralWords) -> Neutralised:
    """Return a question with each gender word replaced, articles adjusted, capitals kept.

    A question with words of both genders is about more than one person, or asks for the gender.
    Phrases such as `cowboy hat` stay.
    """
    text = normalise(question)
    reading = read_gender(text, words)
    found = (*reading.masculine, *reading.feminine)
    if not found:
        return Neutralised(None, reason=NO_GENDER_WORD)
    resisted = tuple(word for word in found if word not in neutral.replacements)
    if resisted:
        return Neutralised(None, resisted=resisted, reason=RESISTS)
    if reading.gender == BOTH:
        return Neutralised(None, reason=BOTH_GENDERS)
    # Phrases are left alone, and so is what lies between them and the next one.
    parts, start = [], 0
    for phrase in phrase_pattern(words.phrases).finditer(text):
        parts += [_replace(text[start : phrase.start()], neutral), phrase[0]]
        start = phrase.end()
    parts.append(_replace(text[start:], neutral))
    return Neutralised("".join(parts), replaced=found)


def _replace(text: str, neutral: NeutralWords) -> str:
    result, start = "", 0
    for match in _WORD.finditer(text):
        word = match[0].lower()
        if word not in neutral.replacements:
            continue
        before, after = result + text[start : match.start()], text[match.end() :]
        if word in _ADJECTIVES and _describes(after, neutral):
            # The noun behind it takes its place, and its capital.
            after_space = match.end() + len(after) - len(after.lstrip())
            noun = after.lstrip().partition(" ")[0]
            result = _with_article(before, noun)
            start = after_space
            continue
        replacement = neutral.replacements[word]
        if match[0].istitle():
            replacement = replacement[0].upper() + replacement[1:]
        result = _with_article(before, replacement) + replacement
        start = match.end()
    return result + text[start:]


def _describes(after: str, neutral: NeutralWords) -> bool:
    if not after.startswith(" "):
        return False
    following = tokens(after)[:2]
    return any(" ".join(following[:count]) in neutral.persons for count in (1, 2))


def _with_article(before: str, noun: str) -> str:
    """Return what stands before a noun with a, an or a doubled this adjusted to it."""
    article = re.search(r"\b(an?)\s+$", before, re.IGNORECASE)
    if article is None:
        return before
    right = "an" if noun[:1].lower() in "aeiou" else "a"
    if article[1][0].isupper():
        right = right.capitalize()
    return before[: article.start()] + right + before[article.end(1) :]
