"""Answers made of what a model computed: label logits, or the tokens of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from vlmfair.errors import InferenceError
from vlmfair.inference.prepare import Prepared
from vlmfair.inference.queries import Answer, Query


class AnswerMaker:
    """Makes the answers of one model; `dtype` and `name` are for its error sentences."""

    def __init__(self, name: str, dtype: str, tokenizer: Any, model: Any) -> None:
        self.ends = _end_tokens(model, tokenizer)
        self._name = name
        self._dtype = dtype
        self._tokenizer = tokenizer

    def scored(
        self,
        prepared: Sequence[Prepared],
        logits: torch.Tensor,
        temperatures: Sequence[float],
        mode: str,
    ) -> list[Answer]:
        """Return answers of label logits and logsumexp from last logits [prompts, vocabulary].

        Softmax sums are float32. Raises InferenceError when a logit is not a number.
        """
        logits = logits.float()
        width = max(len(item.label_ids) for item in prepared)
        padded = [[*item.label_ids, *[0] * (width - len(item.label_ids))] for item in prepared]
        labels = logits.gather(1, torch.tensor(padded, device=logits.device))
        sums = torch.stack([torch.logsumexp(logits / t, dim=-1) for t in temperatures], dim=1)
        finite = torch.isfinite(labels).all(dim=1) & torch.isfinite(sums).all(dim=1)
        for item, is_finite in zip(prepared, finite.tolist(), strict=True):
            if not is_finite:
                raise self.not_numbers(item.query)
        rows = zip(prepared, labels.tolist(), sums.tolist(), strict=True)
        return [
            Answer(
                item.query.request_id,
                mode,
                logits=label_logits[: len(item.label_ids)],
                logsumexp=logsumexp,
                label_tokens=" ".join(map(str, item.label_ids)),
                prompt_tokens=len(item.ids),
                completion_tokens=0,
            )
            for item, label_logits, logsumexp in rows
        ]

    def generated(self, item: Prepared, ids: Sequence[int], mode: str) -> Answer:
        """Return the answer of new token ids up to the first end token, or to the limit."""
        stop = next((place for place, token in enumerate(ids) if token in self.ends), None)
        kept = list(ids if stop is None else ids[:stop])
        text = self._tokenizer.decode(
            kept, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return Answer(
            item.query.request_id,
            mode,
            text=text,
            prompt_tokens=len(item.ids),
            completion_tokens=len(kept),
            finish_reason="length" if stop is None else "stop",
        )

    def check_numbers(self, logits: torch.Tensor, queries: Sequence[Query]) -> None:
        """Raise InferenceError for the first query whose logits [queries, vocabulary] are wrong."""
        wrong = torch.isnan(logits).any(dim=1) | torch.isposinf(logits).any(dim=1)
        if bool(wrong.any()):
            raise self.not_numbers(queries[int(wrong.nonzero()[0])])

    def not_numbers(self, query: Query) -> InferenceError:
        """Return the error of logits that are NaN or infinite."""
        remedy = {
            "float16": "Write dtype: float32 or dtype: bfloat16 for it in the models file.",
            "bfloat16": "Download the model again, or write dtype: float32 in the models file.",
        }.get(self._dtype, "Download the model again: its weights are damaged.")
        return InferenceError(
            f"{self._name}: the logits for sample {query.sample_id or query.request_id} are NaN "
            f"or infinite ({self._dtype}). {remedy}"
        )


def _end_tokens(model: Any, tokenizer: Any) -> tuple[int, ...]:
    declared = model.generation_config.eos_token_id
    if declared is None:
        declared = tokenizer.eos_token_id
    if declared is None:
        return ()
    return tuple(declared) if isinstance(declared, list | tuple) else (int(declared),)
