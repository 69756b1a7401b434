"""The plain engine: whole prompts of equal length side by side, without padding or prefix cache.

Every other way of asking is compared with this one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from vlmfair.errors import InferenceError
from vlmfair.inference.images import ImageCache, UnreadableImageError
from vlmfair.inference.queries import Answer, ImageRef, Query
from vlmfair.models.chat import ChatRenderer
from vlmfair.models.families.base import ImageInputs
from vlmfair.models.loading import LoadedProcessor

MODES = ("full_forward", "image_features")
# Queries looked at together for equal lengths; bounded by images too, because pixels fill memory.
WINDOW_QUERIES = 8192
WINDOW_IMAGES = 64


@dataclass(frozen=True, slots=True)
class _Prepared:
    query: Query
    ids: tuple[int, ...]
    label_ids: tuple[int, ...]
    refs: tuple[ImageRef, ...]
    images: tuple[ImageInputs, ...]

    def batch_key(self) -> tuple[Any, ...]:
        """Prompts with equal keys go through the model together."""
        shapes = tuple(
            tuple((name, tuple(tensor.shape)) for name, tensor in image.tensors.items())
            for image in self.images
        )
        return len(self.ids), shapes, len(self.label_ids), self.query.max_new_tokens


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
        self._name = loaded.entry.name
        self._dtype = loaded.entry.dtype
        self._family = loaded.family
        self._tokenizer = loaded.processor.tokenizer
        self._context_length = loaded.context_length
        self._renderer = renderer
        self._model = model
        self._device = torch.device(device)
        self._batch_size = batch_size
        self._images = ImageCache(loaded.processor, loaded.family, capacity=2 * WINDOW_IMAGES)
        self._features: OrderedDict[tuple[str, str], torch.Tensor] = OrderedDict()

    def score(self, queries: Iterable[Query], temperatures: Sequence[float]) -> Iterator[Answer]:
        """Yield label logits and logsumexp; see `Engine.score`."""
        for item in self._batches(queries, room=0):
            if isinstance(item, Answer):
                yield item
            else:
                yield from self._score_batch(item, temperatures)

    def generate(self, queries: Iterable[Query]) -> Iterator[Answer]:
        """Yield greedy answers; see `Engine.generate`."""
        for item in self._batches(queries, room=1):
            if isinstance(item, Answer):
                yield item
            else:
                yield from self._generate_batch(item)

    def _batches(self, queries: Iterable[Query], room: int) -> Iterator[list[_Prepared] | Answer]:
        for window in _windows(queries):
            groups: dict[tuple[Any, ...], list[_Prepared]] = {}
            for query in window:
                prepared = self._prepare(query, query.max_new_tokens if room else 0)
                if isinstance(prepared, Answer):
                    yield prepared
                else:
                    groups.setdefault(prepared.batch_key(), []).append(prepared)
            for group in groups.values():
                for start in range(0, len(group), self._batch_size):
                    yield group[start : start + self._batch_size]

    def _prepare(self, query: Query, answer_room: int) -> _Prepared | Answer:
        refs = query.images
        try:
            images = tuple(self._images.get(ref) for ref in refs)
        except UnreadableImageError as error:
            return self._error(query, f"{error}. Take the image out of the selection.")
        prompt = self._renderer.render(query.turns, query.assistant_prefix, query.rendering)
        ids = self._renderer.expand(prompt, tuple(image.replacement for image in images))
        limit = self._context_length
        if limit is not None and len(ids) + answer_room > limit:
            return self._error(
                query,
                f"the prompt has {len(ids)} tokens"
                + (f" and its answer needs room for {answer_room}" if answer_room else "")
                + f", and the context of {self._name} has {limit}. "
                f"Use fewer demonstrations or a model with a longer context.",
            )
        labels = self._renderer.label_tokens(prompt, query.labels).ids if query.labels else ()
        return _Prepared(query, ids, labels, refs, images)

    def _error(self, query: Query, sentence: str) -> Answer:
        return Answer(query.request_id, self.mode, error=sentence)

    @torch.inference_mode()
    def _score_batch(self, batch: list[_Prepared], temperatures: Sequence[float]) -> list[Answer]:
        input_ids = self._tensor([item.ids for item in batch])
        output = self._model(
            input_ids=input_ids,
            **self._image_arguments(batch),
            logits_to_keep=1,
            use_cache=False,
        )
        logits = output.logits[:, -1].float()
        labels = logits.gather(1, self._tensor([item.label_ids for item in batch]))
        sums = torch.stack([torch.logsumexp(logits / t, dim=-1) for t in temperatures], dim=1)
        finite = (torch.isfinite(labels).all(dim=1) & torch.isfinite(sums).all(dim=1)).tolist()
        for item, is_finite in zip(batch, finite, strict=True):
            if not is_finite:
                raise _not_numbers(self._name, self._dtype, item.query)
        rows = zip(batch, labels.tolist(), sums.tolist(), strict=True)
        return [
            Answer(
                item.query.request_id,
                self.mode,
                logits=label_logits,
                logsumexp=logsumexp,
                label_tokens=" ".join(map(str, item.label_ids)),
                prompt_tokens=len(item.ids),
                completion_tokens=0,
            )
            for item, label_logits, logsumexp in rows
        ]

    @torch.inference_mode()
    def _generate_batch(self, batch: list[_Prepared]) -> list[Answer]:
        input_ids = self._tensor([item.ids for item in batch])
        ends = self._end_tokens()
        output = self._model.generate(
            input_ids=input_ids,
            attention_mask=torch.ones_like(input_ids),
            **self._image_arguments(batch),
            generation_config=_greedy(batch[0].query.max_new_tokens, ends),
            logits_processor=[_FiniteLogits(self._name, self._dtype, [i.query for i in batch])],
        )
        answers = []
        for item, ids in zip(batch, output[:, input_ids.shape[1] :].tolist(), strict=True):
            stop = next((place for place, token in enumerate(ids) if token in ends), None)
            kept = ids if stop is None else ids[:stop]
            text = self._tokenizer.decode(
                kept, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
            answers.append(
                Answer(
                    item.query.request_id,
                    self.mode,
                    text=text,
                    prompt_tokens=len(item.ids),
                    completion_tokens=len(kept),
                    finish_reason="length" if stop is None else "stop",
                )
            )
        return answers

    def _end_tokens(self) -> tuple[int, ...]:
        declared = self._model.generation_config.eos_token_id
        if declared is None:
            declared = self._tokenizer.eos_token_id
        if declared is None:
            return ()
        return tuple(declared) if isinstance(declared, list | tuple) else (int(declared),)

    def _image_arguments(self, batch: Sequence[_Prepared]) -> dict[str, Any]:
        refs = [ref for item in batch for ref in item.refs]
        images = [image for item in batch for image in item.images]
        if not images:
            return {}
        if self.mode == "image_features":
            return self._family.features_as_inputs(self._image_features(refs, images))
        tensors = self._family.join_images(images)
        return {name: self._as_input(tensor) for name, tensor in tensors.items()}

    def _image_features(
        self, refs: Sequence[ImageRef], images: Sequence[ImageInputs]
    ) -> torch.Tensor:
        keys = [(ref.sha256, ref.transform) for ref in refs]
        new = {key: image for key, image in zip(keys, images) if key not in self._features}
        if new:
            tensors = self._family.join_images(list(new.values()))
            moved = {name: self._as_input(tensor) for name, tensor in tensors.items()}
            features = self._family.image_features(self._model, moved)
            self._features.update(zip(new, features, strict=True))
        stacked = torch.stack([self._features[key] for key in keys])
        while len(self._features) > WINDOW_IMAGES:
            self._features.popitem(last=False)
        return stacked

    def _as_input(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return tensor.to(self._device, self._model.dtype)
        return tensor.to(self._device)

    def _tensor(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        return torch.tensor(rows, dtype=torch.long, device=self._device)


def _windows(queries: Iterable[Query]) -> Iterator[list[Query]]:
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

    def __init__(self, model: str, dtype: str, queries: Sequence[Query]) -> None:
        self._model, self._dtype, self._queries = model, dtype, queries

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        wrong = torch.isnan(scores).any(dim=1) | torch.isposinf(scores).any(dim=1)
        for query, is_wrong in zip(self._queries, wrong.tolist()):
            if is_wrong:
                raise _not_numbers(self._model, self._dtype, query)
        return scores


def _not_numbers(model: str, dtype: str, query: Query) -> InferenceError:
    remedy = (
        "Write dtype: float32 or dtype: bfloat16 for it in config/models.yaml."
        if dtype == "float16"
        else "Download the model again, or write dtype: float32 for it in config/models.yaml."
    )
    return InferenceError(
        f"{model}: the logits for sample {query.sample_id or query.request_id} are NaN or "
        f"infinite ({dtype}). {remedy}"
    )
