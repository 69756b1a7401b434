"""The plain engine: whole prompts of equal length side by side, without padding or prefix cache.

Every other way of asking is compared with this one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from vlmfair.errors import InferenceError
from vlmfair.inference.answers import AnswerMaker
from vlmfair.inference.groups import ImageKey, image_keys
from vlmfair.inference.limits import MemoryLimit
from vlmfair.inference.prepare import WINDOW_IMAGES, Prepared, Preparer
from vlmfair.inference.queries import Answer, Query
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.families.base import ImageFeatures
from vlmfair.models.loading import LoadedProcessor

MODES = ("full_forward", "image_features")
# Images that go through the vision tower together.
IMAGES_AT_ONCE = 8

Ask = Callable[[list[Prepared]], list[Answer]]


class FeatureCache:
    """Image features of one model by content, of the most recent `capacity` images."""

    def __init__(self, family: Any, model: Any, name: str, capacity: int = WINDOW_IMAGES) -> None:
        self._family = family
        self._model = model
        self._capacity = capacity
        self.limit = MemoryLimit(name, "images", IMAGES_AT_ONCE, least=1)
        self._known: OrderedDict[ImageKey, ImageFeatures] = OrderedDict()

    def get(self, prepared: Sequence[Prepared]) -> dict[ImageKey, ImageFeatures]:
        """Return the features of all images of prompts, each once, in the order they appear."""
        wanted = {
            key: image
            for item in prepared
            for key, image in zip(image_keys(item), item.images, strict=True)
        }
        missing = [key for key in wanted if key not in self._known]
        while missing:
            keys = missing[: self.limit.size]
            with self.limit.halved_when_full("an image") as attempt:
                features = self._family.encode_images(self._model, [wanted[key] for key in keys])
            if attempt.succeeded:
                self._known.update(zip(keys, features, strict=True))
                missing = missing[len(keys) :]
        found = {key: self._known[key] for key in wanted}
        for key in found:
            self._known.move_to_end(key)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)
        return found


class PlainEngine:
    """One whole forward for each question, batched by equal length.

    In mode `image_features` the vision tower sees each image once and its output is used for all
    questions about it, which changes nothing but rounding; `full_forward` repeats it every time.
    """

    def __init__(
        self,
        loaded: LoadedProcessor,
        renderer: ChatRenderer,
        model: Any,
        *,
        device: str = "cpu",
        batch_size: int = 32,
        mode: str = "full_forward",
    ) -> None:
        if mode not in MODES or (
            mode == "image_features" and not loaded.family.shares_image_features
        ):
            raise InferenceError(
                f"{loaded.entry.name}: the family {loaded.family.name} cannot be asked in mode "
                f"{mode}. Use full_forward."
            )
        self.mode = mode
        self.answers = AnswerMaker(
            loaded.entry.name, loaded.entry.dtype, loaded.processor.tokenizer, model
        )
        self.preparer = Preparer(loaded, renderer)
        self.features = FeatureCache(loaded.family, model, loaded.entry.name)
        self._family = loaded.family
        self._model = model
        self._device = torch.device(device)
        self._limit = MemoryLimit(loaded.entry.name, "questions", batch_size, least=1)
        self._asked = self._computed = 0

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield label logits and logsumexp; see `Engine.score`."""
        for ready, errors in self.preparer.windows(queries, lambda: self.mode):
            yield from errors
            yield from self.score_prepared(ready, temperatures, self.mode)

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        """Yield greedy answers; see `Engine.generate`."""
        for ready, errors in self.preparer.windows(queries, lambda: self.mode):
            yield from errors
            yield from self.generate_prepared(ready, self.mode)

    def report(self) -> dict[str, Any]:
        """Return what was computed, for the manifest of the responses."""
        return {
            "tokens_asked": self._asked,
            "tokens_computed": self._computed,
            "out_of_memory": [*self._limit.record(), *self.features.limit.record()],
        }

    def score_prepared(
        self, prepared: Sequence[Prepared], temperatures: Sequence[float], mode: str
    ) -> Iterator[Answer]:
        """Yield the answers to prompts that are ready, in a mode of this engine."""

        def ask(batch: list[Prepared]) -> list[Answer]:
            return self.answers.scored(batch, self.logits(batch, mode), temperatures, mode)

        yield from self._batched(prepared, ask)

    def generate_prepared(self, prepared: Sequence[Prepared], mode: str) -> Iterator[Answer]:
        """Yield the greedy answers to prompts that are ready, in a mode of this engine."""
        yield from self._batched(prepared, lambda batch: self._generate_batch(batch, mode))

    @torch.inference_mode()
    def logits(self, batch: Sequence[Prepared], mode: str) -> torch.Tensor:
        """Return the logits behind prompts of one length, [prompts, vocabulary]."""
        return self._family.next_token_logits(
            self._model, self._ids(batch), self._image_arguments(batch, mode)
        )

    def _batched(self, prepared: Sequence[Prepared], ask: Ask) -> Iterator[Answer]:
        groups: dict[tuple[Any, ...], list[Prepared]] = {}
        for item in prepared:
            query = item.query
            key = (len(item.ids), item.shapes(), query.max_new_tokens, len(item.label_ids))
            groups.setdefault(key, []).append(item)
        for group in groups.values():
            place = 0
            while place < len(group):
                batch = group[place : place + self._limit.size]
                with self._limit.halved_when_full(
                    f"a prompt of {len(batch[0].ids)} tokens"
                ) as attempt:
                    answers = ask(batch)
                if attempt.succeeded:
                    yield from answers
                    place += len(batch)

    @torch.inference_mode()
    def _generate_batch(self, batch: list[Prepared], mode: str) -> list[Answer]:
        input_ids = self._ids(batch)
        ends = self.answers.ends
        new = self._family.new_tokens(
            self._model,
            input_ids,
            self._image_arguments(batch, mode),
            generation_config=_greedy(batch[0].query.max_new_tokens, ends),
            logits_processor=[_FiniteLogits(self.answers, [item.query for item in batch])],
        ).tolist()
        self._computed += sum(len(ids) for ids in new)
        return [
            self.answers.generated(item, ids, mode) for item, ids in zip(batch, new, strict=True)
        ]

    def _image_arguments(self, batch: Sequence[Prepared], mode: str) -> dict[str, Any]:
        images = [image for item in batch for image in item.images]
        if not images:
            return {}
        if mode == "image_features":
            features = self.features.get(batch)
            keys = [key for item in batch for key in image_keys(item)]
            return self._family.features_as_inputs([features[key] for key in keys])
        tensors = self._family.join_images(images)
        return {name: self._as_input(tensor) for name, tensor in tensors.items()}

    def _as_input(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return tensor.to(self._device, self._model.dtype)
        return tensor.to(self._device)

    def _ids(self, batch: Sequence[Prepared]) -> torch.Tensor:
        ids = torch.tensor([item.ids for item in batch], dtype=torch.long, device=self._device)
        self._asked += ids.numel()
        self._computed += ids.numel()
        return ids


def _greedy(max_new_tokens: int, ends: tuple[int, ...]) -> Any:
    from transformers import GenerationConfig

    return GenerationConfig(
        do_sample=False,
        num_beams=1,
        max_new_tokens=max_new_tokens,
        eos_token_id=list(ends) or None,
        pad_token_id=ends[0] if ends else 0,
        repetition_penalty=1.0,
        no_repeat_ngram_size=0,
        use_cache=True,
    )


class _FiniteLogits:
    """Refuses to choose a token from logits that are not numbers."""

    def __init__(self, answers: AnswerMaker, queries: Sequence[Query]) -> None:
        self._answers, self._queries = answers, queries

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._answers.check_numbers(scores, self._queries)
        return scores
