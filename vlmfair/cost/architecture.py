"""What one token and one image cost a model, from the dimensions of its layers.

Operations are those of matrix products and attention, a multiplication and an addition counting as
two, as torch's own counter counts them: attention over all pairs that it is given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError


@dataclass(frozen=True)
class Stack:
    """A stack of transformer layers; `gated` tells a feed-forward part of three matrices from two.

    `active` is the number of feed-forward parts that a token goes through, more than one in
    mixtures of experts, which have `experts` of them.
    """

    layers: int
    hidden: int
    intermediate: int
    heads: int
    key_value_heads: int
    head_size: int
    gated: bool
    active: int = 1
    experts: int = 1

    @property
    def attention_weights(self) -> int:
        """Weights of the four projections of all layers."""
        own = 2 * self.heads + 2 * self.key_value_heads
        return self.layers * self.hidden * self.head_size * own

    @property
    def feed_forward_weights(self) -> int:
        """Weights of one feed-forward part of all layers."""
        return self.layers * (3 if self.gated else 2) * self.hidden * self.intermediate

    @property
    def weights(self) -> int:
        """All weights of the layers."""
        return self.attention_weights + self.experts * self.feed_forward_weights

    @property
    def flops_per_token(self) -> int:
        """Operations of a token in all layers, without attention's own."""
        return 2 * (self.attention_weights + self.active * self.feed_forward_weights)

    @property
    def flops_per_pair(self) -> int:
        """Operations of attention for a token and one that it sees, in all layers."""
        return 4 * self.layers * self.heads * self.head_size


@dataclass(frozen=True)
class Architecture:
    """A model's language layers, vocabulary and vision tower.

    `tower` is the side of the tower's image and of its patches in pixels, where that decides.
    """

    text: Stack
    vocabulary: int
    vision: Stack | None = None
    tower: tuple[int, int] | None = None

    @property
    def head_flops(self) -> int:
        """Operations of the logits of one token."""
        return 2 * self.text.hidden * self.vocabulary

    @property
    def parameters(self) -> int:
        """About all parameters: layers, tower, and the vocabulary on both sides."""
        vision = self.vision.weights if self.vision else 0
        return self.text.weights + vision + 2 * self.text.hidden * self.vocabulary

    def vision_flops(self, patches: int) -> int:
        """Operations of one view of an image of so many patches."""
        if self.vision is None:
            return 0
        vision = self.vision
        return patches * vision.flops_per_token + patches**2 * vision.flops_per_pair


def load_architectures(path: str | os.PathLike[str]) -> dict[str, Architecture]:
    """Read the architectures of the models of the sheet, by their names there.

    Raises ConfigError when one lacks a dimension.
    """
    content = read_yaml(path)["architectures"]
    try:
        return {name: _architecture(raw) for name, raw in content.items()}
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"{path}: a dimension is missing or no number ({error}). "
            f"Write text, vocabulary and vision as the other models have them."
        ) from error


def _architecture(raw: Mapping[str, Any]) -> Architecture:
    vision = raw.get("vision")
    tower = raw.get("tower")
    return Architecture(
        _stack(raw["text"], gated=True),
        int(raw["vocabulary"]),
        _stack(vision, gated=False) if vision else None,
        (int(tower[0]), int(tower[1])) if tower else None,
    )


def _stack(raw: Mapping[str, Any], *, gated: bool) -> Stack:
    heads = int(raw["heads"])
    return Stack(
        int(raw["layers"]),
        int(raw["hidden"]),
        int(raw["intermediate"]),
        heads,
        int(raw.get("key_value_heads", heads)),
        int(raw.get("head_size", int(raw["hidden"]) // heads)),
        bool(raw.get("gated", gated)),
        int(raw.get("active", 1)),
        int(raw.get("experts", 1)),
    )


def architecture_in(folder: Path) -> Architecture | None:
    """Return the architecture of a model that is there, from its config.json; None if unreadable.

    Only the keys that most configurations share are read: a text_config and a vision_config with
    hidden_size, intermediate_size, num_hidden_layers and num_attention_heads.
    """
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        text, vision = content.get("text_config", content), content.get("vision_config")
        language = _stack(_renamed(text), gated=True)
        tower = _stack(_renamed(vision), gated=False) if vision else None
        side = (int(vision["image_size"]), int(vision["patch_size"])) if vision else None
        return Architecture(language, int(text["vocab_size"]), tower, side)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _renamed(config: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "intermediate": "intermediate_size",
        "heads": "num_attention_heads",
        "key_value_heads": "num_key_value_heads",
        "head_size": "head_dim",
    }
    return {name: config[key] for name, key in names.items() if config.get(key) is not None}
