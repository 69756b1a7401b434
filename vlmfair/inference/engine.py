"""What an inference engine is, and how the one for a model is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from vlmfair.inference.queries import Answer, Query
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.loading import SPLIT, LoadedProcessor, input_device, load_model

# Raised by hand when answers may differ from those of earlier versions; part of every answer's key.
SEMANTICS = 1


class Engine(Protocol):
    """Answers queries, in any order; an answer does not depend on what is asked beside it."""

    mode: str

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield, for each query, the logits of its labels and logsumexp at each temperature.

        A query that cannot be asked (prompt too long, image unreadable) yields an error answer.
        Raises InferenceError when the model gives NaN or infinite logits.
        """
        ...

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        """Yield, for each query, the text of its greedy answer; errors as in `score`."""
        ...

    def report(self) -> dict[str, Any]:
        """Return what was computed, and how, for the manifest of the responses."""
        ...


def open_engine(
    loaded: LoadedProcessor,
    renderer: ChatRenderer,
    *,
    device: str = "cpu",
    batch_size: int = 32,
    mode: str = "auto",
    model: Any = None,
) -> Engine:
    """Load the model's weights and return the best engine that is exact for it.

    `mode` is `auto` (shared beginnings, checked against full forwards, with fall-backs), or one of
    `packed`, `repeated`, `image_features` (each image through the vision tower once) and
    `full_forward` (one whole forward for each question) to use it unchecked. Raises ModelError as
    `load_model`.
    """
    from vlmfair.inference.plain import MODES, PlainEngine
    from vlmfair.inference.shared import SharedPrefixEngine

    engine = PlainEngine if mode in MODES else SharedPrefixEngine
    if model is None:
        model = load_model(loaded, device)
    return engine(
        loaded,
        renderer,
        model,
        device=str(input_device(model)) if device == SPLIT else device,
        batch_size=batch_size,
        mode=mode,
    )
