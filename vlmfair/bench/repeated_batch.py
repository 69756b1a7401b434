"""Questions about an image in padded batches, each row with its own copy of the shared beginning.

How a prefix cache is used where questions are not packed; measured against, never used for answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

from vlmfair.inference.forward import fork
from vlmfair.inference.packing import additive_mask
from vlmfair.inference.prefix import common_length
from vlmfair.inference.prepare import Prepared
from vlmfair.models.families.base import Family

BATCH = 64


@torch.inference_mode()
def repeated_logits(
    family: Family, model: Any, prompts: Sequence[Prepared], batch_size: int = BATCH
) -> torch.Tensor:
    """Return the last logits [prompts, vocabulary] of prompts about one image, sorted by length.

    The beginning that all share is computed once, and its keys and values are repeated for each
    row of a batch; shorter rows are padded behind their end. For models with one position axis.
    """
    ids = [torch.tensor(item.ids) for item in prompts]
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    first = ids[0].numpy()
    shared = min(common_length(first, other.numpy()) for other in ids)
    shared = min(shared, len(ids[order[0]]) - 1)
    cache = DynamicCache()
    (features,) = family.encode_images(model, prompts[0].images)
    beginning = family.embed(model, ids[0][:shared])
    beginning[ids[0][:shared] == family.image_token_id(model)] = features.embeddings
    _decode(family, model, beginning.unsqueeze(0), cache)
    last: dict[int, torch.Tensor] = {}
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        suffixes = [ids[row][shared:] for row in rows]
        repeated = fork(cache)
        repeated.batch_repeat_interleave(len(rows))
        padded = torch.nn.utils.rnn.pad_sequence(suffixes, batch_first=True)
        hidden = _decode(family, model, family.embed(model, padded), repeated)
        ends = torch.tensor([len(suffix) - 1 for suffix in suffixes])
        logits = family.head(model, hidden[torch.arange(len(rows)), ends])
        last.update(zip(rows, logits, strict=True))
    return torch.stack([last[row] for row in range(len(ids))])


def _decode(family: Family, model: Any, embeddings: torch.Tensor, cache: Any) -> torch.Tensor:
    """Forward rows behind a cache; what pads a row comes after all that could look at it."""
    cached, tokens = cache.get_seq_length(), embeddings.shape[1]
    positions = torch.arange(cached, cached + tokens).expand(1, len(embeddings), tokens)
    follows = torch.ones((tokens, tokens), dtype=torch.bool).tril()
    return family.decode(
        model,
        embeddings=embeddings,
        positions=positions,
        mask=additive_mask(follows, cached, embeddings.dtype),
        cache=cache,
    )
