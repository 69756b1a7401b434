"""Tokens of prompts without models: by a tokenizer that is there, else by an estimate.

A prompt is a sequence of pieces, each with its number of tokens, so that what prompts share can be
counted whatever an image weighs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

IMAGE = "<image>"
# What the released scripts of GRAS write for Phi-4 stands for an image, too.
_PLACEHOLDERS = re.compile(r"<image>|<\|image_1\|>|<\|image_pad\|>")
# Tags of chat formats, runs of spaces (which tokenizers know up to 16 of), words, signs.
_TAGS = re.compile(r"<\|?/?[A-Za-z_]+\|?>")
_PARTS = re.compile(_TAGS.pattern + r"|\[/?INST\]|\n+| {2,}(?= )| ?[A-Za-z]+| ?\d|\s|[^\sA-Za-z\d]")
_SPACES = 16
# Letters of a word that are one token, about: the longer the word, the more tokens it has.
_LETTERS = 7

Piece = tuple[str, int]
Prompt = Sequence[Piece]


class Tokenizer(Protocol):
    """Cuts a text into tokens; `IMAGE` in it stays one token of its own."""

    @property
    def exact(self) -> bool:
        """Whether it is the model's own."""
        ...

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text, without those of its beginning and end."""
        ...


@dataclass(frozen=True)
class EstimatedTokenizer:
    """Cuts words at a usual length, for models whose tokenizer is not there."""

    exact: bool = False

    def tokens(self, text: str) -> list[str]:
        """Return the parts of a text: about as many as a usual tokenizer makes of English."""
        found: list[str] = []
        for part in _PARTS.findall(text):
            size = _SPACES if part.isspace() else _LETTERS
            if part.startswith("<") or len(part) <= size:
                found.append(part)
                continue
            step = math.ceil(len(part) / math.ceil(len(part) / size))
            found += [part[start : start + step] for start in range(0, len(part), step)]
        return found


class FolderTokenizer:
    """The tokenizer of a model that is there."""

    exact = True

    def __init__(self, folder: Path) -> None:
        from tokenizers import Tokenizer as Loaded

        self._loaded = Loaded.from_file(str(folder / "tokenizer.json"))
        self._known: dict[str, list[str]] = {}

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text; tags that the tokenizer does not know have none."""
        if text not in self._known:
            own = _TAGS.sub(lambda tag: tag[0] if self._knows(tag[0]) else "", text)
            self._known[text] = self._loaded.encode(own, add_special_tokens=False).tokens
        return self._known[text]

    def _knows(self, tag: str) -> bool:
        return self._loaded.token_to_id(tag) is not None


def tokenizer_in(folder: Path | None) -> Tokenizer:
    """Return the tokenizer in a model's folder where it can be read, else the estimate."""
    if folder is not None and (folder / "tokenizer.json").is_file():
        try:
            return FolderTokenizer(folder)
        # The library raises plain exceptions, and may not be installed.
        except Exception:
            return EstimatedTokenizer()
    return EstimatedTokenizer()


@dataclass(frozen=True)
class Frame:
    """What a family's chat format writes around turns.

    `user` has `{text}` and `{image}`, which becomes `image` where there is one and else nothing;
    `answer` has `{answer}` and what ends it.
    """

    begin: str
    image: str
    user: str
    answer: str


_CHATML = "<|im_start|>user\n{image}{text}<|im_end|>\n<|im_start|>assistant\n"
_CHATML_ANSWER = "{answer}<|im_end|>\n"
_ASSISTANT = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
# The space behind an answer becomes part of the next turn's first token.
_LLAVA = Frame("<s>", "<image>\n", "USER: {image}{text} ASSISTANT:", " {answer}")
FRAMES: Mapping[str, Frame] = MappingProxyType(
    {
        "llava": _LLAVA,
        "sharegpt4v": _LLAVA,
        "llava_next": Frame(
            "<|im_start|>system\nAnswer the questions.<|im_end|>",
            "<image>\n",
            "<|im_start|>user\n{image}{text}<|im_end|><|im_start|>assistant\n",
            "{answer}<|im_end|>",
        ),
        "qwen2_5_vl": Frame(
            _ASSISTANT, "<|vision_start|><image><|vision_end|>", _CHATML, _CHATML_ANSWER
        ),
        "qwen3_vl": Frame("", "<|vision_start|><image><|vision_end|>", _CHATML, _CHATML_ANSWER),
        "internvl": Frame("", "<image>\n", _CHATML, _CHATML_ANSWER),
        "qwen_vl_v1": Frame(_ASSISTANT, "Picture 1: <image>\n", _CHATML, _CHATML_ANSWER),
        "minicpm_o": Frame(_ASSISTANT, "<image>\n", _CHATML, _CHATML_ANSWER),
        "minicpm_v": Frame(_ASSISTANT, "<image>\n", _CHATML, _CHATML_ANSWER),
        "minicpm_llama3_v": Frame(
            "<|begin_of_text|>",
            "<image>\n",
            "<|start_header_id|>user<|end_header_id|>\n\n{image}{text}<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "{answer}<|eot_id|>",
        ),
        "mllama": Frame(
            "<|begin_of_text|>",
            "<image>",
            "<|start_header_id|>user<|end_header_id|>\n\n{image}{text}<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n",
            "{answer}<|eot_id|>",
        ),
        "idefics3": Frame(
            "<|begin_of_text|>",
            "<image>",
            "User:{image}{text}<end_of_utterance>\nAssistant:",
            " {answer}<end_of_utterance>\n",
        ),
        "phi3_5_vision": Frame(
            "<s>",
            "<image>\n",
            "<|user|>\n{image}{text}<|end|>\n<|assistant|>\n",
            "{answer}<|end|>\n",
        ),
        "phi4_multimodal": Frame(
            "", "<image>", "<|user|>{image}{text}<|end|><|assistant|>", "{answer}<|end|>"
        ),
        # Neither has a chat format: the processor puts the image before the text.
        "blip2": Frame("", "<image></s>", "{image}{text}", "{answer}"),
        "paligemma": Frame("", "<image><bos>", "{image}{text}\n", "{answer}"),
    }
)
# Servers count a few tokens around each turn, which no tokenizer shows.
_SERVED = Frame("", "<image>", "<|user|>{image}{text}<|end|><|assistant|>", "{answer}<|end|>")


def frame_of(family: str) -> Frame:
    """Return the chat format of a family; that of a server for an unknown one."""
    return FRAMES.get(family, _SERVED)


def asked_text(family: str, text: str, *, image: bool = True, raw: bool = False) -> str:
    """Return a prompt of one question as the model reads it.

    A `raw` text that has its image's place in it is a whole prompt already.
    """
    if raw and _PLACEHOLDERS.search(text):
        return frame_of(family).begin + _PLACEHOLDERS.sub(IMAGE, text)
    frame = frame_of(family)
    shown = frame.image if image else ""
    return frame.begin + frame.user.replace("{image}", shown).replace("{text}", text)


def pieces(tokenizer: Tokenizer, text: str, image_tokens: int, image: str = "0") -> Prompt:
    """Return a prompt's pieces; each image in it is one, and `image` tells it from others."""
    return [
        (f"{IMAGE}{image}", image_tokens) if token == IMAGE else (token, 1)
        for token in tokenizer.tokens(text)
    ]


def length(prompt: Prompt) -> int:
    """Return the tokens of a prompt."""
    return sum(weight for _, weight in prompt)
