"""Amounts of work: tokens, images and pairs of tokens, in the plain form and as the engine shares.

The plain form is one full forward for each question, as in the papers' released scripts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

from vlmfair.cost.tokens import IMAGE, Piece, Prompt, length

# Suffixes are packed behind a shared beginning, so many tokens at a time.
PACK = 512


@dataclass(frozen=True)
class Amounts:
    """What a part of a run is made of; fractions come from averages.

    `asked` are all prompts' tokens, `computed` those that the engine sends through the language
    layers, each of them once; `images` counts views of images in all prompts and `encoded` those
    that the vision tower sees; `plain_pairs` and `pairs` are pairs of tokens that attention gets.
    """

    requests: float = 0.0
    asked: float = 0.0
    answered: float = 0.0
    computed: float = 0.0
    images: float = 0.0
    encoded: float = 0.0
    plain_pairs: float = 0.0
    pairs: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def times(self, number: float) -> Amounts:
        """Return the amounts of so many alike."""
        return Amounts(*(number * getattr(self, field.name) for field in fields(self)))


def of_group(prompts: Sequence[Prompt], answer_tokens: float, sharing: str) -> Amounts:
    """Return the amounts of prompts that are asked together.

    `sharing` is `prefix` (each token of the tree of prompts once), `images` (each image once, all
    of the text) or `nothing`. An answer's tokens each see the whole prompt.
    """
    lengths = [length(prompt) for prompt in prompts]
    images = sum(_images(prompt) for prompt in prompts)
    plain = Amounts(
        requests=len(prompts),
        asked=sum(lengths),
        answered=answer_tokens * len(prompts),
        computed=sum(lengths),
        images=images,
        encoded=images,
        plain_pairs=sum(n * n for n in lengths),
        pairs=sum(n * n for n in lengths),
    )
    if sharing == "nothing":
        return plain
    distinct = len({name for prompt in prompts for name, _ in prompt if name.startswith(IMAGE)})
    if sharing == "images":
        return Amounts(**{**_as_dict(plain), "encoded": distinct})
    shared = _shared(prompts)
    suffixes = unique_tokens(prompts) - shared
    pairs = shared * shared + suffixes * (shared + min(PACK, suffixes))
    own = {"computed": shared + suffixes, "pairs": pairs, "encoded": distinct}
    return Amounts(**{**_as_dict(plain), **own})


def unique_tokens(prompts: Iterable[Prompt]) -> int:
    """Return the tokens of the tree of prompts: what several begin with counts once."""
    ordered = sorted(tuple(prompt) for prompt in prompts)
    total = 0
    before: tuple[Piece, ...] = ()
    for prompt in ordered:
        total += length(prompt[_common(before, prompt) :])
        before = prompt
    return total


def _shared(prompts: Sequence[Prompt]) -> int:
    """Return the tokens that all prompts begin with, at most all but one of a prompt."""
    first, last = min(map(tuple, prompts)), max(map(tuple, prompts))
    return length(first[: min(_common(first, last), len(first) - 1)])


def _common(first: Prompt, second: Prompt) -> int:
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _images(prompt: Prompt) -> int:
    return sum(name.startswith(IMAGE) for name, _ in prompt)


def _as_dict(amounts: Amounts) -> dict[str, float]:
    return {field.name: getattr(amounts, field.name) for field in fields(amounts)}


@dataclass(frozen=True)
class Turns:
    """Mean tokens of what stands before everything, of a demonstration, a query and an answer.

    Demonstrations and queries are whole turns with one image each.
    """

    begin: float
    demonstration: float
    query: float
    answer: float

    def prompt(self, shots: int) -> float:
        """Return the tokens of a query behind so many demonstrations."""
        return self.begin + shots * self.demonstration + self.query


def with_contexts(
    turns: Turns,
    *,
    queries: float,
    shots: Sequence[int],
    groups: float,
    sharing: str,
    retrieved: bool = False,
) -> Amounts:
    """Return the amounts of queries that are each asked behind each number of demonstrations.

    A group is what one job asks of a setting and run: all numbers of shots share one sequence.
    Retrieved demonstrations are each query's own, and their order leaves nothing to share.
    """
    lengths = [turns.prompt(number) for number in shots]
    asked = queries * groups
    images = sum(asked * (number + 1) for number in shots)
    amounts = Amounts(
        requests=asked * len(shots),
        asked=asked * sum(lengths),
        answered=asked * len(shots) * turns.answer,
        computed=asked * sum(lengths),
        images=images,
        encoded=images,
        plain_pairs=asked * sum(n * n for n in lengths),
        pairs=asked * sum(n * n for n in lengths),
    )
    if sharing != "prefix" or retrieved or not groups:
        return amounts
    context = turns.begin + max(shots) * turns.demonstration
    behind = [turns.prompt(number) - turns.query + PACK for number in shots]
    own = {
        "computed": groups * context + asked * len(shots) * turns.query,
        "pairs": groups * context**2 + asked * turns.query * sum(behind),
        "encoded": groups * (max(shots) + queries),
    }
    return Amounts(**{**_as_dict(amounts), **own})
