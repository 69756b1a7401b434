"""Label scores out of the few likeliest tokens that a server lists."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

from vlmfair.errors import ModelError
from vlmfair.inference.queries import Query
from vlmfair.models.registry import ModelEntry

logger = logging.getLogger(__name__)

# The logit of a label that is not among the tokens a server lists: exp(-100) is 0 in float32.
UNLISTED = -100.0


def check_scoring(entry: ModelEntry, temperatures: Sequence[float]) -> None:
    """Raise ModelError unless the server can give what is asked for.

    It must list tokens, and at a temperature other than 1 the whole vocabulary would be needed.
    """
    if entry.api is None or not entry.api.top_logprobs:
        raise ModelError(
            f"{entry.name}: probabilities of labels are asked for, and the entry has no "
            f"top_logprobs. Write top_logprobs: 20 in {entry.sheet} if the server gives them, or "
            f"leave this model out."
        )
    if set(temperatures) != {1.0}:
        raise ModelError(
            f"{entry.name}: probabilities at the temperatures "
            f"{', '.join(f'{t:g}' for t in temperatures)} are asked for, and the tokens that a "
            f"server lists are enough for 1 only. Write temperatures: [1.0] for this model."
        )


class LabelScores:
    """Takes the scores of labels from listed tokens and notes what was never listed."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._found: set[str] = set()
        # The highest probability that a label outside the listed tokens can have had.
        self._bound = 0.0

    def of(self, query: Query, tokens: Sequence[tuple[str, float]]) -> dict[str, Any]:
        """Return the columns `logits`, `logsumexp` and `label_tokens` of an answer.

        Logits are log-probabilities, so that logsumexp at temperature 1 is 0. A label stands for
        the token that is spelled like it.
        """
        listed: dict[str, float] = {}
        for token, logprob in tokens:
            listed[token] = max(logprob, listed.get(token, UNLISTED))
        self._asked.update(query.labels)
        self._found.update(set(query.labels) & set(listed))
        if not set(query.labels) <= set(listed):
            self._bound = max(self._bound, math.exp(min(listed.values())))
        return {
            "logits": [listed.get(label, UNLISTED) for label in query.labels],
            "logsumexp": [0.0],
            # A label is its own token here; equal numbers would mean equal tokens.
            "label_tokens": " ".join(str(query.labels.index(label)) for label in query.labels),
        }

    def report(self, top_logprobs: int) -> dict[str, Any]:
        """Return which labels were never listed, and the most that an unlisted one can have had."""
        never = sorted(self._asked - self._found)
        if never:
            logger.warning(
                "The labels %s were never among the %d tokens that the server lists and count as "
                "probability 0. Check that each is one token, spelled as an answer begins.",
                ", ".join(map(repr, never)),
                top_logprobs,
            )
        return {"labels_never_listed": never, "unlisted_probability_at_most": self._bound}
