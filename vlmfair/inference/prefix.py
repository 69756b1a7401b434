"""Which tokens several prompts share: a tree of common beginnings, and packs of what differs.

Prompts are compared by symbols, one for each token: its id, or for an image's placeholders a
number that stands for the image's content and the place within it. Whole prompts are tokenised
before they are compared, because pieces tokenised apart would merge differently at their border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlmfair.inference.packing import Pack, build_packs

Symbols = NDArray[np.int64]
# A beginning shared by some of a group's prompts is computed apart from this many tokens on; a
# shorter one is a branch of a pack's trie.
SHARED_TOKENS = 64


@dataclass(frozen=True)
class Segment:
    """Tokens `start` to `end` of prompt `prompt`, which all prompts below share.

    `packs` hold the prompts that end in suffixes of their own; `children` extend the tokens for
    some of the prompts, as k + 2 demonstrations extend k.
    """

    prompt: int
    start: int
    end: int
    packs: tuple[Pack, ...]
    children: tuple[Segment, ...]


def build_tree(
    symbols: Sequence[Symbols], pack_tokens: int, most_members: int | None = None
) -> Segment:
    """Return the tree of common beginnings of prompts; each keeps at least one token of its own.

    `symbols` holds one array [tokens] for each prompt. Each prompt is in exactly one pack. A single
    prompt shares nothing, and is one pack from its first token on. Packs have at most
    `most_members` prompts.
    """
    # Big-endian bytes of numbers that are not negative sort as the numbers do.
    order = sorted(range(len(symbols)), key=lambda row: symbols[row].astype(">i8").tobytes())
    tree = _Tree([symbols[row] for row in order], order, pack_tokens, most_members)
    return tree.segment(0, len(order), 0)


class _Tree:
    def __init__(
        self,
        symbols: list[Symbols],
        rows: list[int],
        pack_tokens: int,
        most_members: int | None,
    ) -> None:
        self._symbols = symbols
        self._rows = rows
        self._lengths = np.array([len(array) for array in symbols])
        self._pack_tokens = pack_tokens
        self._most_members = most_members

    def segment(self, low: int, high: int, start: int) -> Segment:
        end = max(start, self._shared(low, high)) if high - low > 1 else start
        loose: list[int] = []
        children: list[Segment] = []
        for first, stop in self._branches(low, high, end):
            # A prompt that is the beginning of the others keeps the range from getting smaller.
            smaller = stop - first < high - low
            if stop - first > 1 and smaller and self._shared(first, stop) - end >= SHARED_TOKENS:
                children.append(self.segment(first, stop, end))
            else:
                loose.extend(range(first, stop))
        packs = build_packs(
            [self._symbols[place][end:] for place in loose],
            [self._rows[place] for place in loose],
            end,
            self._pack_tokens,
            self._most_members,
        )
        return Segment(self._rows[low], start, end, packs, tuple(children))

    def _shared(self, low: int, high: int) -> int:
        """What the first and the last of a sorted range share, all between them share too."""
        shared = common_length(self._symbols[low], self._symbols[high - 1])
        return int(min(shared, self._lengths[low:high].min() - 1))

    def _branches(self, low: int, high: int, place: int) -> list[tuple[int, int]]:
        """The runs of a sorted range that have the same symbol at a place."""
        branches, first = [], low
        for row in range(low + 1, high + 1):
            if row == high or self._symbols[row][place] != self._symbols[first][place]:
                branches.append((first, row))
                first = row
        return branches


def common_length(one: Symbols, other: Symbols) -> int:
    """Return how many symbols two prompts share from their beginning."""
    length = min(len(one), len(other))
    unlike = np.flatnonzero(one[:length] != other[:length])
    return int(unlike[0]) if len(unlike) else length
