"""Suffixes packed into one sequence as a trie: what several of them share is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True)
class Pack:
    """The nodes of a trie in depth-first order, as runs of tokens of the prompts that own them.

    A run `(prompt, start, stop)` stands for tokens `start` to `stop` of a prompt. `after[i]` is the
    first node that is no descendant of node i; with depth-first order that says who attends to
    whom. `members[i]` is the prompt whose last token is node `ends[i]`.
    """

    runs: tuple[tuple[int, int, int], ...]
    after: NDArray[np.int64]
    members: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def is_chain(self) -> bool:
        """Whether each node follows from all nodes before it, so that a causal mask is enough."""
        return bool((self.after == len(self.after)).all())


def build_packs(
    suffixes: Sequence[NDArray[np.int64]],
    prompts: Sequence[int],
    start: int,
    limit: int,
    most_members: int | None = None,
) -> tuple[Pack, ...]:
    """Return packs of at most `limit` nodes, or of one suffix that is longer by itself.

    `suffixes` are the sorted symbols of each prompt from place `start` on. Where a pack is full,
    the next one repeats the nodes that it shares with it.
    """
    packs: list[Pack] = []
    building = _Building(start)
    for symbols, prompt in zip(suffixes, prompts, strict=True):
        shared = building.shared(symbols)
        too_long = building.nodes + len(symbols) - shared > limit
        if building.nodes and (too_long or building.members == most_members):
            packs.append(building.finish())
            building = _Building(start)
            shared = 0
        building.add(symbols, prompt, shared)
    if building.nodes:
        packs.append(building.finish())
    return tuple(packs)


class _Building:
    """A trie that grows suffix by suffix; the path is that of the last one."""

    def __init__(self, start: int) -> None:
        self.nodes = 0
        self._start = start
        self._last = np.empty(0, np.int64)
        self._path: list[int] = []
        self._after: list[int] = []
        self._runs: list[tuple[int, int, int]] = []
        self._members: list[int] = []
        self._ends: list[int] = []

    @property
    def members(self) -> int:
        return len(self._members)

    def shared(self, symbols: NDArray[np.int64]) -> int:
        length = min(len(symbols), len(self._last))
        unlike = np.flatnonzero(symbols[:length] != self._last[:length])
        return int(unlike[0]) if len(unlike) else length

    def add(self, symbols: NDArray[np.int64], prompt: int, shared: int) -> None:
        for node in self._path[shared:]:
            self._after[node] = self.nodes
        new = len(symbols) - shared
        if new:
            self._runs.append((prompt, self._start + shared, self._start + len(symbols)))
        self._path = [*self._path[:shared], *range(self.nodes, self.nodes + new)]
        self._after.extend([0] * new)
        self.nodes += new
        self._members.append(prompt)
        self._ends.append(self._path[-1])
        self._last = symbols

    def finish(self) -> Pack:
        for node in self._path:
            self._after[node] = self.nodes
        return Pack(
            tuple(self._runs), np.array(self._after), tuple(self._members), tuple(self._ends)
        )


def attends(after: torch.Tensor) -> torch.Tensor:
    """Return, for each pair of nodes [node, node], whether the first attends to the second.

    A node attends to itself and its ancestors: those before it whose descendants it is among.
    """
    places = torch.arange(len(after), device=after.device)
    return (places.unsqueeze(0) <= places.unsqueeze(1)) & (places.unsqueeze(1) < after)


def additive_mask(allowed: torch.Tensor, cached: int, dtype: torch.dtype) -> torch.Tensor:
    """Return [1, 1, tokens, cached + tokens]: 0 where a token may look, else the dtype's least.

    All tokens attend to everything `cached`; `allowed` is [tokens, tokens]. It is additive because
    a boolean mask is silently wrong in eager attention.
    """
    rows, columns = allowed.shape
    mask = torch.zeros((rows, cached + columns), dtype=dtype, device=allowed.device)
    mask[:, cached:].masked_fill_(~allowed, torch.finfo(dtype).min)
    return mask[None, None]
