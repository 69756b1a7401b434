"""Reads answers in the form `Thought: ... Answer: ...` or `Answer: ...` (VL-BICLE, 0.C.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from vlmfair.text.answers import normalise

_MARKS = r"(?:^|(?<=[\s*#>_.)]))[*_#>]*"
_THOUGHT = re.compile(rf"{_MARKS}thoughts?[*_]*\s*:[*_]*", re.IGNORECASE)
# "the answer: ..." is a part of a sentence.
_ANSWER = re.compile(rf"(?<!the )(?<!my ){_MARKS}(?:final\s+)?answer[*_]*\s*:[*_]*", re.IGNORECASE)
# After demonstrations some models go on with a next question of their own.
_NEXT = re.compile(
    r"\n\s*(?=\n)|\n\s*(?:user|human|question|assistant|asst)\s*:|\s(?:USER|User|Question|Thought)\s*:"
    r"|<\|?[/a-z_]+\|?>|###",
)
_OUTER = " \t\n*_#>\"'`"


@dataclass(frozen=True)
class ThoughtReading:
    """What a response says: its reasoning, its answer, and whether it has an `Answer:` field.

    `rule` is `field`, `whole_text` for a response without the field, whose text is the answer, or
    `empty`, with the answer "".
    """

    answer: str
    thought: str
    rule: str

    @property
    def formatted(self) -> bool:
        """Whether the response has an `Answer:` field that is not empty."""
        return self.rule == "field"


def read_thought(text: str) -> ThoughtReading:
    """Return the first answer of a response and the thought before it.

    Whatever follows the answer, as a question that the model asks itself, does not count. A
    response without `Answer:` is its own answer, `Thought:` taken off.
    """
    # Control characters go, line breaks stay: they end an answer.
    cleaned = "\n".join(normalise(line) for line in text.splitlines()).strip()
    marker = _ANSWER.search(cleaned)
    before = cleaned[: marker.start()] if marker else cleaned
    opening = _THOUGHT.search(before)
    thought = before[opening.end() :] if opening else before if marker else ""
    if marker is not None:
        answer = _first_part(cleaned[marker.end() :])
        if answer:
            return ThoughtReading(answer, _line(thought), "field")
        return ThoughtReading("", _line(thought), "empty")
    whole = _line(before[opening.end() :] if opening else _first_part(before))
    return ThoughtReading(whole, "", "whole_text" if whole else "empty")


def _first_part(text: str) -> str:
    following = text.lstrip(_OUTER)
    end = _NEXT.search(following)
    return _line(following[: end.start()] if end else following)


def _line(text: str) -> str:
    return normalise(text).strip(_OUTER)
