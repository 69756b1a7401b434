"""Queries made ready for a model: images processed, prompts expanded, lengths checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vlmfair.errors import reason_of
from vlmfair.inference.images import ImageCache, UnreadableImageError
from vlmfair.inference.queries import Answer, ImageRef, Query
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.families.base import ImageInputs
from vlmfair.models.loading import LoadedProcessor

# Queries looked at together for equal lengths or shared beginnings; bounded by images too, because
# pixels and features fill memory.
WINDOW_QUERIES = 32_768
WINDOW_IMAGES = 128


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A query with its whole prompt's `ids`, in which each image's placeholders are expanded."""

    query: Query
    ids: tuple[int, ...]
    label_ids: tuple[int, ...]
    refs: tuple[ImageRef, ...]
    images: tuple[ImageInputs, ...]

    def shapes(self) -> tuple[Any, ...]:
        """The shapes of the images: prompts that differ in them are not alike to a model.

        Those are the shapes of all tensors and the content of those that count or mark something,
        because equally many patches may be a wide picture or a tall one.
        """
        return tuple(
            tuple(
                (
                    name,
                    tuple(tensor.shape),
                    b"" if tensor.is_floating_point() else tensor.numpy().tobytes(),
                )
                for name, tensor in image.tensors.items()
            )
            for image in self.images
        )


class Preparer:
    """Prepares queries for one model, and turns those that cannot be asked into error answers."""

    def __init__(self, loaded: LoadedProcessor, renderer: ChatRenderer) -> None:
        self._name = loaded.entry.name
        self._renderer = renderer
        self._limit = loaded.context_length
        self._images = ImageCache(loaded.processor, loaded.family, capacity=WINDOW_IMAGES)

    def prepare(self, query: Query, mode: str) -> Prepared | Answer:
        """Return the query made ready, or an error answer when it cannot be asked.

        `mode` is the inference mode an error answer names.
        """
        refs = query.images
        try:
            images = tuple(self._images.get(ref) for ref in refs)
        except UnreadableImageError as error:
            sentence = f"{reason_of(error)}. Take the image out of the selection."
            return Answer(query.request_id, mode, error=sentence)
        prompt = self._renderer.render(query.turns, query.assistant_prefix, query.rendering)
        ids = self._renderer.expand(prompt, tuple(image.replacement for image in images))
        room = query.max_new_tokens if query.mode == "generate" else 0
        if self._limit is not None and len(ids) + room > self._limit:
            sentence = (
                f"the prompt has {len(ids)} tokens"
                + (f" and its answer needs room for {room}" if room else "")
                + f", and the context of {self._name} has {self._limit}. "
                f"Use fewer demonstrations or a model with a longer context."
            )
            return Answer(query.request_id, mode, error=sentence)
        labels = self._renderer.label_tokens(prompt, query.labels).ids if query.labels else ()
        return Prepared(query, ids, labels, refs, images)

    def windows(
        self, queries: Iterable[Query], mode: Callable[[], str]
    ) -> Iterator[tuple[list[Prepared], list[Answer]]]:
        """Yield bounded runs of queries: those made ready, and the answers of the others.

        `mode` gives the inference mode that error answers name, as it is by then.
        """
        for window in _windows(queries):
            ready: list[Prepared] = []
            errors: list[Answer] = []
            for query in window:
                prepared = self.prepare(query, mode())
                if isinstance(prepared, Answer):
                    errors.append(prepared)
                else:
                    ready.append(prepared)
            yield ready, errors


def _windows(queries: Iterable[Query]) -> Iterator[list[Query]]:
    """Yield runs of queries that together have a bounded number of questions and images."""
    window: list[Query] = []
    images: set[ImageRef] = set()
    for query in queries:
        images.update(query.images)
        if window and (len(window) >= WINDOW_QUERIES or len(images) > WINDOW_IMAGES):
            yield window
            window, images = [], set(query.images)
        window.append(query)
    if window:
        yield window
