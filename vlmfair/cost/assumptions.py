"""What a plan takes for granted, from `resources/cost/assumptions.yaml`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlmfair.config import read_yaml
from vlmfair.errors import ConfigError


@dataclass(frozen=True)
class Demonstration:
    """A demonstration's answer, a query's question, and what the query's answer begins with."""

    answer: str
    question: str
    prefix: str


@dataclass(frozen=True)
class Published:
    """Hours that a paper states for so many models on a card with a peak in TFLOP/s."""

    hours: float
    models: int
    card: str
    peak_tflops: float


@dataclass(frozen=True)
class Assumptions:
    """Sizes of images in pixels, tokens of answers, texts of usual length, bytes on disk."""

    image_sizes: Mapping[str, tuple[int, int]]
    answer_tokens: Mapping[str, Mapping[str, int]]
    sub_answer: str
    demonstrations: Mapping[str, Demonstration]
    bytes_per_answer: float
    bytes_per_token: float
    published: Mapping[str, Published]

    def answer(self, paper: str, kind: str, limit: int) -> int:
        """Return the tokens of an answer, of which the config allows `limit`."""
        return min(self.answer_tokens[paper][kind], limit)


def load_assumptions(path: str | os.PathLike[str]) -> Assumptions:
    """Read the assumptions; raises ConfigError when one is missing."""
    content: dict[str, Any] = read_yaml(path)
    try:
        return Assumptions(
            {name: (int(size[0]), int(size[1])) for name, size in content["image_sizes"].items()},
            content["answer_tokens"],
            str(content["sub_answer"]),
            {name: Demonstration(**own) for name, own in content["demonstrations"].items()},
            float(content["bytes_per_answer"]),
            float(content["bytes_per_token"]),
            {paper: Published(**own) for paper, own in content["published"].items()},
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ConfigError(
            f"{path}: an assumption is missing or has another form ({error}). "
            f"Restore the file from the repository."
        ) from error
