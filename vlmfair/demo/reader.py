"""Reads a demo model's answers to planted questions, fast enough to calibrate it in a test."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForImageTextToText, AutoTokenizer

from vlmfair.demo.dialogues import DialogueWriter, Pack, Turn, collate, pack
from vlmfair.demo.images import build_pool, normalise
from vlmfair.demo.language import forward_targets
from vlmfair.demo.scenes import Scene
from vlmfair.demo.vision import patch_features

TOKENS_PER_BATCH = 4_000


class Reader:
    """A saved demo model and the probabilities that it gives to the choices of questions."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        self._writer = DialogueWriter(self.tokenizer)

    def ask(
        self, scenes: Sequence[Scene], groups: Sequence[Sequence[Sequence[Turn]]], raw: bool = False
    ) -> list[list[dict[str, float]]]:
        """Answer groups of dialogues about plainly drawn scenes; the turns' rows count `scenes`.

        Returns, for each dialogue of each group, the probability of every choice of its last
        question, by a softmax over the whole vocabulary.
        """
        features = self._features(build_pool(scenes, np.random.default_rng(0), plain=True))
        written = [[self._writer.write(turns, raw) for turns in group] for group in groups]
        packs = [pack(dialogues) for dialogues in written]
        answers: list[list[dict[str, float]]] = [[] for _ in groups]
        for rows in _batches(packs):
            found = self._decisions([packs[row] for row in rows], features)
            for row, numbers in zip(rows, found, strict=True):
                for turns, log_p in zip(groups[row], numbers, strict=True):
                    choices = turns[-1].question.choices
                    answers[row].append({c: float(log_p[self._writer.token(c)]) for c in choices})
        return answers

    @torch.no_grad()
    def _features(self, pixels: NDArray[np.uint8]) -> torch.Tensor:
        tower = self.model.model.vision_tower
        parts = [
            patch_features(tower, torch.from_numpy(normalise(pixels[start : start + 128])))
            for start in range(0, len(pixels), 128)
        ]
        return torch.cat(parts)

    @torch.no_grad()
    def _decisions(
        self, packs: Sequence[Pack], features: torch.Tensor
    ) -> list[list[NDArray[np.float64]]]:
        config = self.model.config.get_text_config()
        batch = collate(packs, config.vocab_size, config.pad_token_id)
        logits = forward_targets(self.model, features, batch, half=False)
        probabilities = torch.softmax(logits.double(), dim=-1).numpy()
        found: list[list[NDArray[np.float64]]] = []
        start = 0
        for packed in packs:
            last: dict[int, NDArray[np.float64]] = {}
            for number, target in enumerate(packed.targets):
                if target.weight == 1.0:
                    last[packed.segments[target.position]] = probabilities[start + number]
            start += len(packed.targets)
            found.append([last[segment] for segment in sorted(last) if segment])
        return found


def first_choice(turn_choices: dict[str, float]) -> str:
    """What a greedy answer begins with: the most probable choice."""
    return max(turn_choices, key=lambda choice: turn_choices[choice])


def _batches(packs: Sequence[Pack]) -> list[list[int]]:
    order = sorted(range(len(packs)), key=lambda row: len(packs[row].ids))
    batches: list[list[int]] = [[]]
    for row in order:
        if (len(batches[-1]) + 1) * len(packs[row].ids) > TOKENS_PER_BATCH and batches[-1]:
            batches.append([])
        batches[-1].append(row)
    return batches
