"""Questions to a model and its answers, and the tables that carry them between steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from vlmfair.contracts import Contract
from vlmfair.errors import ContractError, InferenceError
from vlmfair.models.chat import ImageRef, Turn

__all__ = ["CONTEXTS", "MODES", "Answer", "ImageRef", "Query", "Turn", "make_queries"]

MODES = ("score", "generate")
DEFAULT_MAX_NEW_TOKENS = 512
_WORD = pa.dictionary(pa.int32(), pa.string())

# One row is one turn of a context: a demonstration is a user turn with an image and an assistant
# turn. `turn` counts from 0; the request's own question follows the last one.
CONTEXTS = Contract(
    "contexts",
    pa.schema(
        [
            ("context_id", pa.string()),
            ("turn", pa.int32()),
            ("role", _WORD),
            ("text", pa.string()),
            ("image", pa.string()),
            ("image_sha256", pa.string()),
            ("image_transform", _WORD),
        ]
    ),
    required=("context_id", "turn", "role", "text"),
    key=("context_id", "turn"),
)


@dataclass(frozen=True, slots=True)
class Query:
    """One question: a conversation to answer (`generate`), or labels to score as its next token.

    `rendering` is `chat`, `raw` or None for the way of the model's family.
    """

    request_id: str
    turns: tuple[Turn, ...]
    assistant_prefix: str = ""
    mode: str = "score"
    labels: tuple[str, ...] = ()
    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS
    rendering: str | None = None
    sample_id: str = ""

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """The images of all turns, in the order of their placeholders."""
        return tuple(image for turn in self.turns for image in turn.images)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; an answer with an `error` has nothing else.

    `logits` are float32 logits of the labels' first tokens, `logsumexp` those of the whole
    vocabulary divided by each temperature, `label_tokens` the labels' token ids as text.
    `prompt_tokens` counts image tokens; `completion_tokens` leaves the end token out.
    """

    request_id: str
    inference_mode: str
    logits: Sequence[float] | None = None
    logsumexp: Sequence[float] | None = None
    label_tokens: str | None = None
    text: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    error: str | None = None


def make_queries(
    requests: pa.Table, contexts: pa.Table | None, label_sets: Mapping[str, Sequence[str]]
) -> Iterator[Query]:
    """Yield the query of each row of a requests table, its context's turns resolved.

    Raises ContractError on a context or label set that does not exist and on an unknown mode.
    """
    turns_of = _context_turns(contexts)
    labels_of = {name: tuple(labels) for name, labels in label_sets.items()}
    images: dict[tuple[str, str, str], tuple[ImageRef, ...]] = {}
    for batch in requests.to_batches(max_chunksize=10_000):
        columns = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for row in range(batch.num_rows):
            raw = {name: values[row] for name, values in columns.items()}
            yield _make_query(raw, turns_of, labels_of, images)


def _make_query(
    raw: Mapping[str, Any],
    turns_of: Mapping[str, tuple[Turn, ...]],
    labels_of: Mapping[str, tuple[str, ...]],
    images: dict[tuple[str, str, str], tuple[ImageRef, ...]],
) -> Query:
    context, mode = raw.get("context_id"), raw["mode"]
    if mode not in MODES:
        raise ContractError(
            f"requests: {raw['request_id']} has the mode {mode!r}. Use one of {', '.join(MODES)}."
        )
    if context and context not in turns_of:
        raise ContractError(
            f"requests: the context {context!r} is not in the contexts table. "
            f"Write it in the step that plans these requests."
        )
    labels: tuple[str, ...] = ()
    if mode == "score":
        name = raw.get("label_set") or ""
        labels = labels_of.get(name, ())
        if not labels:
            raise ContractError(
                f"requests: the label set {name!r} does not exist or is empty. "
                f"Use one of {', '.join(sorted(labels_of)) or 'the prompts file'}."
            )
    question = Turn("user", raw["text"], _image_of(raw, images))
    return Query(
        request_id=raw["request_id"],
        turns=(*turns_of.get(context or "", ()), question),
        assistant_prefix=raw.get("assistant_prefix") or "",
        mode=mode,
        labels=labels,
        max_new_tokens=raw.get("max_new_tokens") or DEFAULT_MAX_NEW_TOKENS,
        rendering=raw.get("rendering"),
        sample_id=raw["sample_id"],
    )


def _image_of(
    raw: Mapping[str, Any], known: dict[tuple[str, str, str], tuple[ImageRef, ...]]
) -> tuple[ImageRef, ...]:
    if not raw.get("image"):
        return ()
    if not raw.get("image_sha256"):
        raise InferenceError(
            f"requests: the image {raw['image']} has no SHA-256. "
            f"Take image_sha256 from the samples table, so that answers belong to the picture."
        )
    key = (raw["image"], raw["image_sha256"], raw.get("image_transform") or "none")
    return known.setdefault(key, (ImageRef(*key),))


def _context_turns(contexts: pa.Table | None) -> dict[str, tuple[Turn, ...]]:
    if contexts is None:
        return {}
    images: dict[tuple[str, str, str], tuple[ImageRef, ...]] = {}
    turns: dict[str, list[Turn]] = {}
    rows = contexts.sort_by([("context_id", "ascending"), ("turn", "ascending")]).to_pylist()
    for raw in rows:
        turn = Turn(raw["role"], raw["text"], _image_of(raw, images))
        turns.setdefault(raw["context_id"], []).append(turn)
    return {name: tuple(value) for name, value in turns.items()}
