"""The four judges of the same responses: regular expression, CLIP text, sentence-T5, strict.

Section 3.4 and appendix A.3. The first three are the paper's encoders; the fourth one leaves an
answer that it cannot tell without an answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from vlmfair.errors import ConfigError
from vlmfair.papers.lvlm_fairness.questions import EncoderTexts, Prompts
from vlmfair.text.answers import OK, UNPARSED, Reading, after_marker, read_choice, read_label

if TYPE_CHECKING:
    from vlmfair.models.encoders import TextEncoder

JUDGES = ("regex", "clip_text", "sentence_t5", "strict")
# What the baselines' rows carry in place of a judge: they name a class by themselves.
CLASSIFIER = "classifier"


class Judge(Protocol):
    """Says which offered answer each response to one prompt gives."""

    @property
    def name(self) -> str:
        """The judge's name in files and metrics."""
        ...

    def read(self, texts: Sequence[str], prompt: str, prompts: Prompts) -> list[Reading]:
        """Return one reading per text."""
        ...


@dataclass(frozen=True)
class StrictJudge:
    """The strict reader of vlmfair.text.answers."""

    name: str = "strict"

    def read(self, texts: Sequence[str], prompt: str, prompts: Prompts) -> list[Reading]:
        """Return one reading per text; several offered answers, or none, are unparsed."""
        if prompts.is_choice(prompt):
            return [read_choice(text, prompts.options) for text in texts]
        answers = prompts.answers(prompt)
        return [read_label(text, answers) for text in texts]


@dataclass(frozen=True)
class RegexJudge:
    """The authors' regular expression: punctuation out, lower case, then equality.

    A sentence never matches, and `basketball player` is not `basketball_player`. The released code
    has none for the single choice: the first of its words after the last "Answer:" counts there.
    """

    name: str = "regex"

    def read(self, texts: Sequence[str], prompt: str, prompts: Prompts) -> list[Reading]:
        """Return one reading per text; whatever does not match is unparsed."""
        known = {_without_punctuation(answer): answer for answer in prompts.answers(prompt)}
        if not prompts.is_choice(prompt):
            return [_matched(known.get(_without_punctuation(t.strip())), "exact") for t in texts]
        words = re.compile(rf"\b(?:{'|'.join(known)})\b")
        found = [words.search(_without_punctuation(after_marker(text))) for text in texts]
        return [_matched(known[word[0]] if word else None, "first_word") for word in found]


def _without_punctuation(text: str) -> str:
    return re.sub(r"[^\w\s]", "", text).lower()


def _matched(answer: str | None, rule: str) -> Reading:
    return Reading(answer, UNPARSED if answer is None else OK, "none" if answer is None else rule)


@dataclass(frozen=True)
class EncoderJudge:
    """The offered answer whose text is nearest to the response by cosine; there is no threshold.

    `first_character` repeats a slip of the released CLIP script, which encodes only the first
    character of a response to a direct prompt.
    """

    name: str
    encoder: TextEncoder
    texts: EncoderTexts
    first_character: bool = False

    def read(self, texts: Sequence[str], prompt: str, prompts: Prompts) -> list[Reading]:
        """Return one reading per text; only an empty response is unparsed."""
        answers = prompts.answers(prompt)
        if prompts.is_choice(prompt):
            candidates = [
                self.texts.choice_candidate.replace("{letter}", letter).replace("{label}", label)
                for letter, label in prompts.options.items()
            ]
            responses = [after_marker(text).strip() for text in texts]
        else:
            candidates = [self.texts.label_candidate.replace("{label}", name) for name in answers]
            responses = [self._response(text) for text in texts]
        told = [place for place, text in enumerate(texts) if text.strip()]
        readings = [Reading(None, UNPARSED, "empty")] * len(texts)
        if told:
            nearest = self._nearest([responses[place] for place in told], candidates)
            for place, answer in zip(told, nearest, strict=True):
                readings[place] = Reading(answers[answer], OK, "nearest")
        return readings

    def _response(self, text: str) -> str:
        kept = text[:1] if self.first_character else text.strip()
        if self.texts.words is not None:
            kept = " ".join(kept.split(" ")[: self.texts.words])
        return self.texts.label_response.replace("{response}", kept)

    def _nearest(self, responses: Sequence[str], candidates: Sequence[str]) -> list[int]:
        unique = list(dict.fromkeys(responses))
        cosines = self.encoder.encode_texts(unique) @ self.encoder.encode_texts(candidates).T
        nearest = dict(zip(unique, np.argmax(cosines, axis=1).tolist(), strict=True))
        return [nearest[response] for response in responses]


def open_judge(
    name: str, prompts: Prompts, settings: Mapping[str, Any], *, device: str = "cpu"
) -> Judge:
    """Return a judge by name; `settings` are its own block of the config, empty for two of them.

    clip_text: `model` (a folder, or an open_clip architecture with `weights`), `first_character`.
    sentence_t5: `path`. Raises ConfigError on an unknown name or a missing setting, ModelError
    when an encoder cannot be loaded.
    """
    if name == "strict":
        return StrictJudge()
    if name == "regex":
        return RegexJudge()
    if name not in JUDGES:
        raise ConfigError(f"lvlm_fairness.judges: {name} is no judge. Use {', '.join(JUDGES)}.")
    needed = "model" if name == "clip_text" else "path"
    if not settings.get(needed):
        raise ConfigError(
            f"lvlm_fairness.encoders.{name}: {needed} is missing. "
            f"Write {needed}: <folder of the encoder's files>."
        )
    # Only here: importing torch takes longer than two of the judges need for all answers.
    from vlmfair.models.encoders import load_clip, load_sentence_encoder

    if name == "clip_text":
        clip = load_clip(settings["model"], settings.get("weights"), device=device)
        slip = bool(settings.get("first_character", False))
        return EncoderJudge(name, clip, prompts.encoders[name], first_character=slip)
    sentences = load_sentence_encoder(settings["path"], device=device)
    return EncoderJudge(name, sentences, prompts.encoders[name])
