"""The strict reader: which of the offered answers a model's words give, or that they give none.

It never guesses. An answer that names several of the offered ones, or none, is `unparsed`, and
one that declines is `refused`; both are results of their own.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OK, UNPARSED, REFUSED = "ok", "unparsed", "refused"


@dataclass(frozen=True, slots=True)
class Reading:
    """The offered answer that a response gives, or None; and the rule that decided."""

    answer: str | None
    status: str
    rule: str


def _ok(answer: str, rule: str) -> Reading:
    return Reading(answer, OK, rule)


def _unparsed(rule: str) -> Reading:
    return Reading(None, UNPARSED, rule)


_DECLINED = Reading(None, REFUSED, "refusal")
_STRAIGHT = str.maketrans(
    {"’": "'", "‘": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "`": "'"}
)
_SPACES = re.compile(r"\s+")
_OUTER = " \t\n\"'.,;:!?()[]{}<>*#_-–—"
_QUOTED = re.compile(r'"([^"]{1,60})"')
# A label after one of these, at most two words later, is denied and not given.
_DENIED = re.compile(
    r"(?:\bnot|n't|\bnever|\bno|\bneither|\bnor|\bwithout|\brather than|\binstead of|\bother than"
    r"|\bunlike|\bcannot be|\bexcept)(?: \w+){0,2} $"
)
_REFUSAL = re.compile(
    r"\bi(?:'m| am)(?: \w+)? sorry\b|^sorry\b|\bi apologi[sz]e\b|\bas an ai\b"
    r"|\bi (?:must|have to) decline\b|\bi(?:'d| would)? (?:rather|prefer) not\b"
    r"|\b(?:can(?:no|')t|can not|won't|will not|unable to|not able to|not allowed to"
    r"|don't feel comfortable|not comfortable)(?: \w+ly)?"
    r" (?:assist|help|comply|provid|identify|determin|answer|tell|say|do that|classify|label|guess"
    r"|infer|discuss|fulfil|process|analy[sz]|specul|assum|make)"
)
_ANSWER_MARKER = re.compile(r"(?:^|[\s*#>_-])(?:final )?answers?(?: is)?[\s*_]*:", re.IGNORECASE)


def normalise(text: str) -> str:
    """Return a text with straight quotation marks and single spaces, without control characters."""
    composed = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    visible = "".join(" " if unicodedata.category(c)[0] == "C" else c for c in composed)
    return _SPACES.sub(" ", visible).strip()


def read_label(text: str, labels: Sequence[str]) -> Reading:
    """Return which label of a list a response gives, underscores and hyphens read as spaces.

    In order: the response is a label; its first line is one; it puts one label in quotation marks;
    it declines; it mentions exactly one label, whole words, not denied. Else it is unparsed.
    """
    cleaned = normalise(text).replace("_", " ").casefold()
    if not cleaned.strip(_OUTER):
        return _unparsed("empty")
    known = {_plain(label): label for label in labels}
    whole = known.get(_plain(cleaned))
    if whole is not None:
        return _ok(whole, "exact")
    lines = [known.get(_plain(line)) for line in _lines(text)]
    if lines[0] is not None and not any(lines[1:]):
        return _ok(lines[0], "first_line")
    quoted = {
        known[_plain(found[1])]
        for found in _QUOTED.finditer(cleaned)
        if _plain(found[1]) in known and not _is_denied(cleaned, found.start())
    }
    if len(quoted) == 1:
        return _ok(quoted.pop(), "quoted")
    if not quoted and is_refusal(text):
        return _DECLINED
    pattern = _mention_pattern(tuple(known))
    mentioned = {
        known[_plain(found[0])]
        for found in pattern.finditer(cleaned)
        if not _is_denied(cleaned, found.start())
    }
    if len(mentioned) == 1 and not quoted:
        return _ok(mentioned.pop(), "unique_mention")
    return _unparsed("several" if mentioned or quoted else "none")


def _lines(text: str) -> list[str]:
    """Return the lines that hold more than punctuation; at least one, perhaps empty."""
    lines = [normalise(line).replace("_", " ") for line in text.splitlines()]
    return [line for line in lines if line.strip(_OUTER)] or [""]


def is_refusal(text: str) -> bool:
    """Return whether a response says that it will not or cannot answer."""
    return _REFUSAL.search(normalise(text).casefold()) is not None


def _plain(text: str) -> str:
    return " ".join(text.replace("_", " ").replace("-", " ").casefold().strip(_OUTER).split())


def _is_denied(text: str, start: int) -> bool:
    before = text[max(0, start - 60) : start].replace('"', "")
    return _DENIED.search(before if before.endswith(" ") else before + " ") is not None


@functools.lru_cache(maxsize=64)
def _mention_pattern(labels: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(labels, key=len, reverse=True)
    words = "|".join("[ -]+".join(map(re.escape, label.split())) for label in longest_first)
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])")


def after_marker(text: str) -> str:
    """Return what follows the last "Answer:" or "Answers:", or the whole text without one."""
    markers = list(_ANSWER_MARKER.finditer(text))
    return text[markers[-1].end() :] if markers else text


def read_choice(text: str, options: Mapping[str, str]) -> Reading:
    """Return which option of a single choice a response gives: `{"A": "Yes", ...}`.

    Only what follows the last "Answer:" counts. In order: it names several options; it begins
    with an option's letter, which the word behind it must not contradict; it begins with an
    option's word; it states a letter or word ("the answer is ..."); it quotes one; it declines.
    """
    decisive = after_marker(text)
    cleaned = normalise(decisive)
    if not cleaned.strip(_OUTER):
        return _unparsed("empty")
    words = {word.casefold(): word for word in options.values()}
    forms = _choice_forms(tuple(options), tuple(words))
    start = cleaned.lstrip(_OUTER)
    if len({found[1].upper() for found in forms.listed.finditer(cleaned)}) > 1:
        return _unparsed("several")
    if forms.alternatives.match(start):
        return _unparsed("several")
    lines = [line.strip(_OUTER).upper() for line in _lines(decisive)]
    if lines[0] in options:
        alone = not any(line in options for line in lines[1:])
        return _ok(options[lines[0]], "option_letter") if alone else _unparsed("several")
    letter = forms.letter.match(start)
    if letter is not None:
        word = words.get((letter["word"] or "").casefold())
        option = options[letter["letter"].upper()]
        return (
            _ok(option, "option_letter") if word in (None, option) else _unparsed("contradiction")
        )
    leading = forms.leading.match(start)
    if leading is not None:
        return _ok(words[leading[1].casefold()], "leading_word")
    return _read_statement(cleaned, options, words, forms)


def _read_statement(
    cleaned: str, options: Mapping[str, str], words: Mapping[str, str], forms: _ChoiceForms
) -> Reading:
    stated = {options[found[1]] for found in forms.stated_letter.finditer(cleaned)}
    stated |= {words[found[1].casefold()] for found in forms.stated_word.finditer(cleaned)}
    if len(stated) == 1:
        return _ok(stated.pop(), "stated")
    quoted = {words.get(_plain(found[1]), "") for found in _QUOTED.finditer(cleaned)} - {""}
    if not stated and len(quoted) == 1:
        return _ok(quoted.pop(), "quoted")
    if not stated and not quoted:
        return _DECLINED if is_refusal(cleaned) else _unparsed("none")
    return _unparsed("several")


@dataclass(frozen=True)
class _ChoiceForms:
    listed: re.Pattern[str]
    alternatives: re.Pattern[str]
    letter: re.Pattern[str]
    leading: re.Pattern[str]
    stated_letter: re.Pattern[str]
    stated_word: re.Pattern[str]


@functools.lru_cache(maxsize=64)
def _choice_forms(letters: tuple[str, ...], words: tuple[str, ...]) -> _ChoiceForms:
    one, word = f"[{''.join(map(re.escape, letters))}]", "|".join(map(re.escape, words))
    # "A nurse", an article, is no option: a letter counts only before a delimiter or its word.
    delimiter = r"(?=[.):\]\"'*]|\s*$)"
    either = r"\s*(?:,|/|\bor\b|\band\b|\bbut\b|&)\s*"
    end = r"(?=\s*(?:[.,;:!?/)\"']|$|or\b|and\b))"
    more = rf"{either}(?:(?:also|maybe|perhaps|possibly|or|and|but)\s+)*"
    others = "".join(rf"|{re.escape(w)}{more}(?!{re.escape(w)}\b)(?:{word}){end}" for w in words)
    ignoring = re.IGNORECASE
    return _ChoiceForms(
        listed=re.compile(rf"(?<!\w)({one})\s*[.):]\s*[\"']?(?:{word})\b", ignoring),
        alternatives=re.compile(
            rf"(?:{one}[.)]?{either}(?:or\s+|and\s+)?{one}(?![\w']){others})", ignoring
        ),
        letter=re.compile(
            rf"(?P<letter>{one})(?:{delimiter}|(?=\s+(?:[–-]+\s*)?(?:{word})\b))[\s.):\]\"'*(,–-]*"
            rf"(?:(?P<word>{word})\b)?",
            ignoring,
        ),
        leading=re.compile(
            rf"({word})\b(?!['-]\w)"
            rf"(?!\s+(?:doubt|question|problem|matter|idea|clue|way|reason|longer)\b)",
            ignoring,
        ),
        # Capital letters only: "the answer is a nurse" has an article.
        stated_letter=re.compile(
            rf"\b(?:[Aa]nswer|[Oo]ption|[Cc]hoice|[Cc]hoose|[Ss]elect|[Pp]ick)"
            rf"(?:\s+(?:is|would be|should be|option|answer))*\s*[:\"'(\[*]*\s*({one})"
            rf"(?=[\"')\]*.:,;!]|\s*$|\s+(?i:{word})\b)"
        ),
        stated_word=re.compile(
            rf"\b(?:answer|option|choice)\s+(?:is|would be|should be)\s*:?\s*[\"'(*]*({word})\b"
            rf"(?!\s+(?:doubt|one|longer))",
            ignoring,
        ),
    )
