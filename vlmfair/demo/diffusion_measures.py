"""Reads what the demo's pipelines draw with a demo model, and compares it with the captions."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from transformers import AutoModelForImageTextToText, AutoProcessor

from vlmfair.demo import wordings
from vlmfair.demo.diffusion_scenes import WORDINGS, typed
from vlmfair.demo.encoder_captions import ACTIVITIES, GENDER_WORDS
from vlmfair.demo.people import GENDERS, Person
from vlmfair.demo.places import PLACES
from vlmfair.demo.questions import captions
from vlmfair.demo.scenes import Scene

BATCH = 25
# How each pipeline is meant to be called; docs/demo.md says what it then draws.
DRAWING: Mapping[str, Mapping[str, Any]] = {
    "tiny-sd3": {"num_inference_steps": 12, "guidance_scale": 4.0, "max_sequence_length": 32},
    "tiny-flux": {
        "num_inference_steps": 12,
        "true_cfg_scale": 4.0,
        "negative_prompt": "",
        "max_sequence_length": 32,
        "height": 96,
        "width": 96,
    },
}


@dataclass(frozen=True)
class Asked:
    """A caption to draw, and the words in it that the picture must show."""

    caption: str
    gender: str
    activity: str
    place: str


def sample_captions(count: int, seed: int) -> list[Asked]:
    """Captions with a gender, an activity and mostly a place, as the demo's COCO has them."""
    rng = np.random.default_rng([seed, count])
    asked = []
    for number in range(count):
        occupation = ACTIVITIES[rng.integers(1, len(ACTIVITIES))]
        word = GENDER_WORDS[GENDERS[number % 2]][0]
        place = PLACES[rng.integers(len(PLACES))]
        person = Person(GENDERS[number % 2], 30, 1, "White", occupation)
        variant = int(rng.integers(WORDINGS))
        told = captions(Scene((person,), place, 0), word)[variant]
        said = wordings.PLACE_PHRASES[place]
        asked.append(
            Asked(
                typed(told, rng),
                word,
                wordings.ACTIVITIES[occupation],
                said if said in told else "",
            )
        )
    return asked


def draw_captions(
    pipeline: Any, texts: Sequence[str], *, seed: int = 0, **settings: Any
) -> list[Image.Image]:
    """Draw each caption from a generator of its own, in batches."""
    drawn: list[Image.Image] = []
    for start in range(0, len(texts), BATCH):
        part = list(texts[start : start + BATCH])
        numbers = range(seed + start, seed + start + len(part))
        generators = [torch.Generator("cpu").manual_seed(number) for number in numbers]
        drawn += pipeline(part, generator=generators, **settings).images
    return drawn


class CaptionReader:
    """A demo model that describes pictures."""

    def __init__(self, folder: Path) -> None:
        self.processor = AutoProcessor.from_pretrained(folder)
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def read(self, images: Sequence[Image.Image]) -> list[str]:
        """The model's own caption of each image."""
        content = [{"type": "image"}, {"type": "text", "text": wordings.CAPTION_PROMPT}]
        prompt = self.processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True
        )
        told: list[str] = []
        for start in range(0, len(images), BATCH):
            part = list(images[start : start + BATCH])
            inputs = self.processor(images=part, text=[prompt] * len(part), return_tensors="pt")
            ids = self.model.generate(**inputs, do_sample=False, max_new_tokens=24)
            rests = ids[:, inputs["input_ids"].shape[1] :]
            told += self.processor.batch_decode(rests, skip_special_tokens=True)
        return told


def agreement(asked: Sequence[Asked], told: Sequence[str]) -> dict[str, float]:
    """Share of captions whose gender, activity and place a reader's captions name, and of all.

    A caption without a place counts for gender, activity and all.
    """
    found = {
        "gender": [
            bool(re.search(rf"\b{a.gender}\b", t)) for a, t in zip(asked, told, strict=True)
        ],
        "activity": [a.activity in t for a, t in zip(asked, told, strict=True)],
        "place": [a.place in t for a, t in zip(asked, told, strict=True)],
    }
    placed = [bool(a.place) for a in asked]
    shares = {name: float(np.mean(values)) for name, values in found.items()}
    shares["place"] = float(np.mean(np.array(found["place"])[placed]))
    shares["all"] = float(np.mean(np.all(list(found.values()), axis=0)))
    return shares
