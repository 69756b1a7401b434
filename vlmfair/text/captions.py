"""How good captions are: BLEU-4 by sacreBLEU, CLIPScore, length (VL-BICLE, section 3.4)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata

import numpy as np
from numpy.typing import NDArray

from vlmfair.errors import ContractError
from vlmfair.text.answers import normalise

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
# Of one caption: its length, the closest reference's, matched n-grams of 1 to 4 words, all n-grams.
BLEU_COUNTS = 10
ORDERS = 4


def caption_length(caption: str) -> int:
    """Return the number of words, parted by spaces."""
    return len(caption.split())


def kept_references(captions: Sequence[str | None]) -> list[str]:
    """Return reference captions on one line each, without those that are empty."""
    cleaned = (normalise(caption or "") for caption in captions)
    return [caption for caption in cleaned if caption]


def bleu_counts(captions: Sequence[str], references: Sequence[Sequence[str]]) -> Counts:
    """Return what BLEU-4 counts in each caption, [captions, BLEU_COUNTS]; they may be added up.

    `references[caption]` are all references of its image, of any number. sacreBLEU's defaults:
    tokenizer 13a, case kept. Equal captions with equal references are counted once. Raises
    ContractError on a caption without references.
    """
    # Only here: importing it takes long, and most steps need no BLEU.
    from sacrebleu.metrics import BLEU

    scorer = BLEU(effective_order=True)
    known: dict[tuple[str, ...], list[int]] = {}
    counts = np.zeros((len(captions), BLEU_COUNTS), np.int64)
    for row, (caption, own) in enumerate(zip(captions, references, strict=True)):
        if not own:
            raise ContractError(
                f"captions: {caption!r} has no reference caption. "
                f"Leave captions without references out of BLEU."
            )
        key = (normalise(caption), *own)
        if key not in known:
            score = scorer.sentence_score(key[0], list(own))
            known[key] = [score.sys_len, score.ref_len, *score.counts, *score.totals]
        counts[row] = known[key]
    return counts


def bleu_from_counts(counts: NDArray[np.generic]) -> Floats:
    """Return corpus BLEU-4 (0-100) of summed counts [..., BLEU_COUNTS]; NaN without any caption.

    sacreBLEU's formula with its exponential smoothing, for many corpora at once.
    """
    sums = np.asarray(counts, np.float64)
    length, reference = sums[..., 0], sums[..., 1]
    matched, total = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    # The k-th order without a match counts as 1 / 2^k of a match.
    unmatched = np.cumsum(matched == 0, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        numerator = np.where(matched == 0, 0.5**unmatched, matched)
        logs = np.log(100.0 * numerator / total).mean(axis=-1)
        brevity = np.where(length < reference, 1.0 - reference / length, 0.0)
        score = np.exp(logs + brevity)
    score = np.where((matched == 0).all(axis=-1) | (total == 0).any(axis=-1), 0.0, score)
    return np.where(reference == 0, np.nan, score)


def bleu_signature(references: Sequence[Sequence[str]]) -> str:
    """Return sacreBLEU's signature of these scores, which says how they were counted."""
    numbers = {len(own) for own in references}
    shown = str(numbers.pop()) if len(numbers) == 1 else "var"
    version = metadata.version("sacrebleu")
    return f"nrefs:{shown}|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}"


def clip_scores(images: NDArray[np.generic], texts: NDArray[np.generic]) -> Floats:
    """Return 100 max(cos, 0) of each pair of image and text features, [pairs].

    Both are [pairs, width] and of length 1. The paper's means between 25 and 35 are of this form;
    2.5 max(cos, 0) with the prefix "A photo depicts" would be another scale.
    """
    cosines = np.einsum("pw,pw->p", np.asarray(images, np.float64), np.asarray(texts, np.float64))
    return np.asarray(100.0 * np.maximum(cosines, 0.0))
