"""Questions written as token ids, and several of them packed behind the beginning they share.

A pack is one row of a batch: the shared beginning once, then what is left of each dialogue, with
positions that restart and a mask that hides the dialogues from each other. A model sees in it what
it would see in each dialogue alone, at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from vlmfair.demo.questions import Question

IMAGE_TOKENS = 36
TEXT_WEIGHT = 0.15


@dataclass(frozen=True)
class Turn:
    """One question and its answer; `image` is a row of the image pool, or None for none."""

    image: int | None
    question: Question
    choice: str


@dataclass(frozen=True)
class Target:
    """What should follow the token at a position: probabilities by token id."""

    position: int
    probabilities: dict[int, float]
    weight: float


@dataclass(frozen=True)
class Dialogue:
    """Token ids, a key per token that differs between images, image rows in order, targets."""

    ids: list[int]
    keys: list[int]
    images: list[int]
    targets: list[Target]


def image_token(tokenizer: PreTrainedTokenizerBase) -> int:
    """The id of "<image>"."""
    return int(tokenizer.encode("<image>", add_special_tokens=False)[0])


class DialogueWriter:
    """Writes turns as token ids, in LLaVA's chat form or in the raw form of the released script."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._tokenizer = tokenizer
        self._image = image_token(tokenizer)
        self._end = int(tokenizer.eos_token_id)
        self._cache: dict[str, list[int]] = {}

    def write(self, turns: Sequence[Turn], raw: bool = False) -> Dialogue:
        """Write turns; the raw form takes a single turn, its image before "USER:"."""
        dialogue = Dialogue([], [], [], [])
        for number, turn in enumerate(turns):
            text = turn.question.text
            if raw:
                self._image_tokens(dialogue, turn)
                self._text(dialogue, f"\nUSER: {text}\nASSISTANT:")
            else:
                self._text(dialogue, " USER: " if number else "USER: ")
                self._image_tokens(dialogue, turn)
                before = "\n" if turn.image is not None else ""
                self._text(
                    dialogue, f"{before}{text} ASSISTANT:" if text else f"{before}ASSISTANT:"
                )
            self._answer(dialogue, turn)
        return dialogue

    def token(self, text: str) -> int:
        """The id of a text that is one token."""
        ids = self._encode(text)
        if len(ids) != 1:
            raise ValueError(f"{text!r} is {len(ids)} tokens and cannot decide an answer")
        return ids[0]

    def _encode(self, text: str) -> list[int]:
        if text not in self._cache:
            self._cache[text] = self._tokenizer.encode(text, add_special_tokens=False)
        return self._cache[text]

    def _text(self, dialogue: Dialogue, text: str) -> None:
        ids = self._encode(text)
        dialogue.ids.extend(ids)
        dialogue.keys.extend(ids)

    def _image_tokens(self, dialogue: Dialogue, turn: Turn) -> None:
        if turn.image is not None:
            dialogue.ids.extend([self._image] * IMAGE_TOKENS)
            dialogue.keys.extend([-1 - turn.image] * IMAGE_TOKENS)
            dialogue.images.append(turn.image)

    def _answer(self, dialogue: Dialogue, turn: Turn) -> None:
        question = turn.question
        if question.opening and question.given:
            self._text(dialogue, question.opening)
        elif question.opening:
            self._learnt_text(dialogue, question.opening)
        decision = {self.token(text): p for text, p in question.choices.items() if p > 0}
        dialogue.targets.append(Target(len(dialogue.ids) - 1, decision, 1.0))
        self._text(dialogue, turn.choice)
        rest = question.rests.get(turn.choice, "")
        if rest:
            self._learnt_text(dialogue, rest)
        end = Target(len(dialogue.ids) - 1, {self._end: 1.0}, TEXT_WEIGHT)
        dialogue.targets.append(end)

    def _learnt_text(self, dialogue: Dialogue, text: str) -> None:
        for token in self._encode(text):
            target = Target(len(dialogue.ids) - 1, {token: 1.0}, TEXT_WEIGHT)
            dialogue.targets.append(target)
            dialogue.ids.append(token)
            dialogue.keys.append(token)


@dataclass(frozen=True)
class Pack:
    """Dialogues behind their shared beginning, which is segment 0."""

    ids: list[int]
    positions: list[int]
    segments: list[int]
    images: list[int]
    targets: list[Target]


def pack(dialogues: Sequence[Dialogue]) -> Pack:
    """Put dialogues behind the beginning that all of them share, images included."""
    shared = _shared_length([dialogue.keys for dialogue in dialogues])
    first = dialogues[0]
    shared_images = sum(1 for key in first.keys[:shared] if key < 0) // IMAGE_TOKENS
    packed = Pack(
        ids=first.ids[:shared],
        positions=list(range(shared)),
        segments=[0] * shared,
        images=first.images[:shared_images],
        targets=[target for target in first.targets if target.position < shared - 1],
    )
    for number, dialogue in enumerate(dialogues, start=1):
        start = len(packed.ids) - shared
        packed.ids.extend(dialogue.ids[shared:])
        packed.positions.extend(range(shared, len(dialogue.ids)))
        packed.segments.extend([number] * (len(dialogue.ids) - shared))
        packed.images.extend(dialogue.images[shared_images:])
        for target in dialogue.targets:
            if target.position >= shared:
                moved = Target(target.position + start, target.probabilities, target.weight)
                packed.targets.append(moved)
    return packed


def _shared_length(keys: Sequence[list[int]]) -> int:
    if len(keys) == 1:
        return 0
    # An image's tokens stay together, and each dialogue keeps at least two tokens of its own.
    length = 0
    limit = min(len(key) for key in keys) - 2
    while length < limit and all(key[length] == keys[0][length] for key in keys):
        length += 1
    return length


@dataclass(frozen=True)
class Batch:
    """Packs as tensors: rows x length, an additive mask, and the targets as one dense matrix."""

    ids: Tensor
    positions: Tensor
    mask: Tensor
    images: list[int]
    target_rows: Tensor
    target_columns: Tensor
    probabilities: Tensor
    weights: Tensor


def collate(packs: Sequence[Pack], vocabulary: int, pad: int) -> Batch:
    """Pad packs to one length and make the mask that keeps their dialogues apart."""
    length = max(len(packed.ids) for packed in packs)
    ids = np.full((len(packs), length), pad)
    positions = np.zeros((len(packs), length), dtype=np.int64)
    segments = np.full((len(packs), length), -1)
    for row, packed in enumerate(packs):
        ids[row, : len(packed.ids)] = packed.ids
        positions[row, : len(packed.ids)] = packed.positions
        segments[row, : len(packed.ids)] = packed.segments
    same = segments[:, :, None] == segments[:, None, :]
    visible = (same | (segments == 0)[:, None, :]) & np.tri(length, dtype=bool)[None]
    mask = np.where(visible, np.float32(0), np.float32(-1e9))
    targets = [(row, target) for row, packed in enumerate(packs) for target in packed.targets]
    probabilities = torch.zeros(len(targets), vocabulary)
    for number, (_, target) in enumerate(targets):
        for token, probability in target.probabilities.items():
            probabilities[number, token] = probability
    return Batch(
        ids=torch.from_numpy(ids),
        positions=torch.from_numpy(positions),
        mask=torch.from_numpy(mask)[:, None],
        images=[image for packed in packs for image in packed.images],
        target_rows=torch.tensor([row for row, _ in targets]),
        target_columns=torch.tensor([target.position for _, target in targets]),
        probabilities=probabilities,
        weights=torch.tensor([target.weight for _, target in targets]),
    )
