"""Draws captions batch by batch: what an output is, and what gives way when memory is short."""

from __future__ import annotations

import gc
import io
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image

from vlmfair.errors import InferenceError, reason_of
from vlmfair.inference.limits import is_out_of_memory
from vlmfair.synthesis.generators import Generator
from vlmfair.synthesis.pipelines import Pixels, cutting_tokenizers, draw_images, weight_bytes
from vlmfair.synthesis.table import FAILED, NOT_A_NUMBER, OK, REFUSED, UNIFORM

logger = logging.getLogger(__name__)

# Where a pipeline's parts lie: on the device, there one after the other, or layer by layer.
WHOLE, BY_PART, BY_LAYER = "never", "model", "sequential"
# Weights may take this much of the free memory; the rest is for what is computed.
SHARE_FOR_WEIGHTS = 0.8


@dataclass(frozen=True)
class Asked:
    """A caption to draw, and the seed of its noise."""

    prompt: str
    seed: int


@dataclass(frozen=True)
class Drawing:
    """What became of a caption: a whole PNG when `status` is ok, else why not in `detail`."""

    status: str
    detail: str
    png: bytes | None
    batch_size: int


class Drawer:
    """A pipeline on its device; it goes on with less memory when it has to.

    Every call to the pipeline has the same number of captions, the last one repeated where there
    are fewer. So sums run in the same order whichever captions are drawn together, and an image
    does not depend on its batch.
    """

    def __init__(self, pipeline: Any, generator: Generator, device: str) -> None:
        """Place the pipeline as the generator's `offload` says; `auto` goes by free memory."""
        self._pipeline, self._generator, self._device = pipeline, generator, device
        self.batch_size = generator.batch_size
        self.placement = self._place(generator.offload)
        # What was given up for lack of memory, in its order.
        self.given_up: list[str] = []

    def draw(self, asked: Sequence[Asked]) -> Iterator[list[tuple[Asked, Drawing]]]:
        """Yield the drawings of each batch once it is done.

        Raises InferenceError when memory does not suffice for a single image.
        """
        start = 0
        while start < len(asked):
            batch = asked[start : start + self.batch_size]
            drawn = self._try(batch)
            if drawn is None:
                self._give_up_something()
                continue
            yield list(zip(batch, drawn, strict=True))
            start += len(batch)

    def cutting(self, prompt: str) -> tuple[str, ...]:
        """Return the names of the tokenizers that cut a caption."""
        return cutting_tokenizers(self._pipeline, self._generator, prompt)

    def _try(self, batch: Sequence[Asked]) -> list[Drawing] | None:
        """Return the drawings of a batch, None when memory does not suffice."""
        try:
            return self._call(batch)
        except (RuntimeError, ValueError, MemoryError) as error:
            if is_out_of_memory(error):
                return None
            if len(batch) == 1:
                return [Drawing(FAILED, reason_of(error)[:500], None, self.batch_size)]
        # One caption must not cost the others their images.
        alone = [self._try([one]) for one in batch]
        return None if None in alone else [found for one in alone if one for found in one]

    def _call(self, batch: Sequence[Asked]) -> list[Drawing]:
        filled = [*batch, *[batch[-1]] * (self.batch_size - len(batch))]
        prompts, seeds = [one.prompt for one in filled], [one.seed for one in filled]
        found = draw_images(self._pipeline, self._generator, prompts, seeds)
        return [read_output(*one, self.batch_size) for one in found[: len(batch)]]

    def _place(self, offload: str) -> str:
        if torch.device(self._device).type == "cpu":
            self._pipeline.to("cpu")
            return WHOLE
        if offload == "auto":
            free, _ = torch.cuda.mem_get_info()
            fits = weight_bytes(self._pipeline) <= SHARE_FOR_WEIGHTS * free
            offload = WHOLE if fits else BY_PART
        self._move(offload)
        return offload

    def _move(self, placement: str) -> None:
        if placement == BY_PART:
            self._pipeline.enable_model_cpu_offload(device=self._device)
        elif placement == BY_LAYER:
            self._pipeline.enable_sequential_cpu_offload(device=self._device)
        else:
            self._pipeline.to(self._device)

    def _give_up_something(self) -> None:
        """Make do with less memory: offload, then a smaller batch, then offload layer by layer."""
        _free()
        may_offload = self._device != "cpu" and self._generator.offload != WHOLE
        if may_offload and self.placement == WHOLE:
            self.placement = BY_PART
            self._move(BY_PART)
        elif self.batch_size > 1:
            self.batch_size //= 2
        elif may_offload and self.placement == BY_PART:
            self.placement = BY_LAYER
            self._move(BY_LAYER)
        else:
            raise self._too_large()
        now = f"offload {self.placement}, batch_size {self.batch_size}"
        self.given_up.append(now)
        logger.warning("%s: memory did not suffice; going on with %s", self._generator.name, now)

    def _too_large(self) -> InferenceError:
        own = self._generator
        remedy = "write offload: auto, " if own.offload == WHOLE and self._device != "cpu" else ""
        return InferenceError(
            f"{own.name}: memory does not suffice to draw one image of {own.width} x {own.height} "
            f"pixels on {self._device}. In vl_bicle.synthesis.generators, {remedy}lower height and "
            f"width or write dtype: bfloat16; or use a machine with more memory. The images that "
            f"are drawn are kept."
        )


def _free() -> None:
    """Give back what the failed attempt has taken."""
    gc.collect()
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def read_output(pixels: Pixels | None, refused: bool, batch_size: int) -> Drawing:
    """Return what a pipeline's output is: an image, or one of the reasons why it is none.

    A picture of one colour is no image: it is what checkers and overflows leave behind.
    """
    if refused:
        return Drawing(REFUSED, "the pipeline's safety checker refused it", None, batch_size)
    if pixels is None:
        return Drawing(REFUSED, "the pipeline gave no image", None, batch_size)
    if not np.isfinite(pixels).all():
        share = float(1 - np.isfinite(pixels).mean())
        detail = f"{share:.0%} of its pixels are no numbers"
        return Drawing(NOT_A_NUMBER, detail, None, batch_size)
    bytes_ = np.rint(np.clip(pixels, 0.0, 1.0) * 255.0).astype(np.uint8)
    if (bytes_ == bytes_[0, 0]).all():
        colour = ", ".join(map(str, bytes_[0, 0]))
        return Drawing(UNIFORM, f"every pixel is ({colour})", None, batch_size)
    written = io.BytesIO()
    Image.fromarray(bytes_).save(written, "PNG")
    return Drawing(OK, "", written.getvalue(), batch_size)
