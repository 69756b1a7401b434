"""Greedy answers to the prompts of a pack, side by side behind one cache.

Packed sequences stay in one row, each seeing the shared beginning and its own tokens only, so that
the beginning is neither copied nor padded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from vlmfair.inference.forward import Forward, PackOutput

Check = Callable[[torch.Tensor, Sequence[int]], None]


def greedy(
    forward: Forward,
    output: PackOutput,
    positions: Sequence[torch.Tensor],
    limits: Sequence[int],
    ends: Sequence[int],
    check: Check,
) -> list[list[int]]:
    """Return the new token ids of each member of a pack, its end token included.

    `positions` are the members' prompt positions [axes, tokens], `limits` their most new tokens.
    `check(logits, rows)` is called with each step's logits [rows, vocabulary] and the members they
    belong to, and raises when they are wrong.
    """
    family, model = forward.family, forward.model
    found: list[list[int]] = [[] for _ in output.members]
    live = list(range(len(output.members)))
    hidden, visible, cache = output.hidden, output.visible, output.cache
    while True:
        logits = family.head(model, hidden).float()
        check(logits, live)
        chosen = logits.argmax(dim=-1).tolist()
        kept = []
        for row, (member, token) in enumerate(zip(live, chosen, strict=True)):
            found[member].append(token)
            if token not in ends and len(found[member]) < limits[member]:
                kept.append(row)
        if not kept:
            return found
        live = [live[row] for row in kept]
        visible = forward.keep(cache, visible, kept)
        ids = torch.tensor([found[member][-1] for member in live], device=forward.device)
        steps = [
            family.next_positions(positions[member], len(found[member])).to(forward.device)
            for member in live
        ]
        hidden = forward.step(ids, torch.stack(steps, dim=1), visible, cache)
        visible = forward.grown(visible)
