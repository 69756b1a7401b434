"""Counts the floating-point operations of a model without its weights, on the meta device.

Operations depend on shapes alone: the engine's own planning and forwards run as they are, and a
step whose shapes were seen before counts what it counted then.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch.utils.flop_counter import FlopCounterMode

from vlmfair.models.families.base import Family, ImageFeatures, ImageInputs

META = torch.device("meta")
_Result = TypeVar("_Result")


class MeteredFamily(Family):
    """A family that adds to `flops` what its model computes, a multiply-add being two.

    As in torch's counter matrix products and attention count, and attention counts every pair of
    tokens that it is given, also those that a mask hides. `model` has its parameters on the meta
    device; `vision` are arguments of its `get_image_features` beside an image's own tensors.
    """

    def __init__(
        self, family: Family, model: Any, vision: Mapping[str, torch.Tensor] | None = None
    ) -> None:
        self.flops = 0
        self._family = family
        self._vision = dict(vision or {})
        self._known: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._layers = model.config.get_text_config(decoder=True).num_hidden_layers

    def image_token_id(self, model: Any) -> int:
        """Return the id that stands for images."""
        return self._family.image_token_id(model)

    def positions(
        self, model: Any, ids: Sequence[int], images: Sequence[ImageInputs]
    ) -> torch.Tensor:
        """Return the position ids of a whole prompt, on the CPU."""
        return self._family.positions(model, ids, images)

    def next_positions(self, positions: torch.Tensor, step: int) -> torch.Tensor:
        """Return the position of a token behind a prompt's end."""
        return self._family.next_positions(positions, step)

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Count the vision side, image by image, and return features without values."""
        found = []
        for image in images:
            shapes = tuple((name, tuple(one.shape)) for name, one in image.tensors.items())
            features = self._counted(
                ("image", *shapes),
                functools.partial(_features, model, {**image.tensors, **self._vision}),
            )
            found.append(features)
        return found

    def decode(
        self,
        model: Any,
        *,
        embeddings: torch.Tensor,
        positions: torch.Tensor,
        mask: torch.Tensor | None,
        cache: Any,
        image_rows: torch.Tensor | None = None,
        layers: Sequence[torch.Tensor] = (),
    ) -> torch.Tensor:
        """Count the decoder and extend `cache`; deeper image features are additions only."""

        def forward() -> torch.Tensor:
            self._family.decode(
                model, embeddings=embeddings, positions=positions, mask=mask, cache=cache
            )
            layer = cache.layers[0].keys
            return layer[:, :, -embeddings.shape[1] :]

        cached = cache.get_seq_length()
        key = ("decode", *embeddings.shape, cached, mask is None)
        new = self._counted(key, forward)
        if cache.get_seq_length() == cached:  # it was counted before, and left the cache alone
            self._extend(cache, new)
        return embeddings

    def _extend(self, cache: Any, new: torch.Tensor) -> None:
        """Give each layer of a cache as many keys and values more as `new` has."""
        if not cache.layers:
            for layer in range(self._layers):
                cache.update(new, new, layer)
            return
        grown = torch.cat([cache.layers[0].keys, new], dim=2)
        for layer in cache.layers:
            layer.keys = layer.values = grown

    def head(self, model: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Count the logits of hidden states."""
        return self._counted(("head", *hidden.shape), lambda: self._family.head(model, hidden))

    def _counted(self, key: tuple[Any, ...], call: Callable[[], _Result]) -> _Result:
        """Add what `call` computes to `flops`; it is called for the first of equal keys only."""
        if key not in self._known:
            with FlopCounterMode(display=False) as counter:
                result = call()
            self._known[key] = counter.get_total_flops(), result
        flops, known = self._known[key]
        self.flops += flops
        found: _Result = known
        return found


def _features(model: Any, tensors: Mapping[str, torch.Tensor]) -> ImageFeatures:
    output = model.get_image_features(**tensors, return_dict=True)
    deeper = getattr(output, "deepstack_features", None) or ()
    return ImageFeatures(output.pooler_output[0], tuple(layer[0] for layer in deeper))
