"""What the rest of the project asks of a model family, and what most families answer alike."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from PIL import Image

# Kinds of layers (`layer_types`) whose keys and values can be cached, forked and packed.
CACHED_LAYERS = frozenset({"full_attention", "sliding_attention", "chunked_attention"})
WINDOWED_LAYERS = frozenset({"sliding_attention", "chunked_attention"})


@dataclass(frozen=True, slots=True)
class ImageFeatures:
    """What the language model gets for one image in place of its placeholder tokens.

    `embeddings` is [placeholder tokens, width]; `layers` are further [placeholder tokens, width]
    tensors that are added to the hidden states after the first decoder layers (DeepStack).
    `inputs` are what the model's own forward wants to know of the image beside its features.
    """

    embeddings: torch.Tensor
    layers: tuple[torch.Tensor, ...] = ()
    inputs: Mapping[str, torch.Tensor] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class ImageInputs:
    """One processed image: the model's input tensors, and the text that stands for the image."""

    tensors: Mapping[str, torch.Tensor]
    replacement: str


class Family:
    """Base of the families: the stock image-text-to-text classes of transformers.

    A family module sets `FAMILY` to an instance; it overrides what its model does differently.
    """

    name: str = ""
    # The architectures (config.json) that this family's module was written for.
    architectures: tuple[str, ...] = ()
    # Whether the model's classes come with its checkpoint.
    needs_remote_code: bool = False
    # Names that a folder's tokenizer may have beside the usual ones.
    tokenizer_files: tuple[str, ...] = ()
    # How a conversation becomes text unless the request says otherwise: `chat` or `raw`.
    rendering: str = "chat"
    # Whether a `raw` text gets the tokenizer's first token; False where `raw_text` writes it.
    raw_adds_special_tokens: bool = True
    # Arguments of the chat template that would otherwise change by themselves, like today's date.
    template_arguments: Mapping[str, Any] = MappingProxyType({})
    # The most images that one prompt can hold; None where there is no limit but the context.
    most_images: int | None = None
    # Whether the vision tower's output for an image is the same whatever text surrounds it.
    shares_image_features: bool = False

    def model_class(self) -> Any:
        """Return the transformers class whose `from_pretrained` loads the model."""
        from transformers import AutoModelForImageTextToText

        return AutoModelForImageTextToText

    def image_token(self, processor: Any) -> str:
        """Return the placeholder that marks an image in the rendered text."""
        return str(processor.image_token)

    def raw_text(self, text: str, number_of_images: int, processor: Any) -> str:
        """Return the text of a `raw` request as the processor gets it."""
        return text

    def process_image(self, processor: Any, image: Image.Image) -> ImageInputs:
        """Return what the processor makes of one RGB image alone."""
        inputs = processor.image_processor(images=[image], return_tensors="pt")
        replacement = processor.replace_image_token(inputs, image_idx=0)
        return ImageInputs(tensors=dict(inputs), replacement=replacement)

    def join_images(self, images: Sequence[ImageInputs]) -> dict[str, torch.Tensor]:
        """Return the image tensors of a batch, in the order of the placeholders of its rows."""
        names = images[0].tensors.keys() if images else ()
        return {name: torch.cat([image.tensors[name] for image in images]) for name in names}

    def encode_images(self, model: Any, images: Sequence[ImageInputs]) -> list[ImageFeatures]:
        """Return the vision side's output for each image, computed once and used in every prompt.

        Images may have unlike shapes. Only for families with `shares_image_features`.
        """
        raise NotImplementedError(self.name)

    def features_as_inputs(self, features: Sequence[ImageFeatures]) -> dict[str, Any]:
        """Return the forward arguments of a whole prompt that stand in for the image tensors."""
        raise NotImplementedError(self.name)

    def forward_arguments(self, model: Any, input_ids: torch.Tensor) -> dict[str, Any]:
        """Return what a whole forward of ids [batch, tokens] needs beside them and the images.

        Token types, for instance, without which some models attend in another way.
        """
        return {}

    def image_token_id(self, model: Any) -> int:
        """Return the id that stands, once for each row of features, for images in expanded ids."""
        config = model.config
        found = getattr(config, "image_token_id", None)
        return int(found if found is not None else config.image_token_index)

    def embed(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        """Return the decoder's input embeddings, [tokens, width], of text ids [tokens]."""
        embeddings: torch.Tensor = model.get_input_embeddings()(ids)
        return embeddings

    def next_token_logits(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any]
    ) -> torch.Tensor:
        """Return the logits [batch, vocabulary] behind whole prompts, by the model's own forward.

        `ids` is [batch, tokens] without padding; `image_arguments` are the tensors of
        `join_images` or the result of `features_as_inputs`.
        """
        output = model(
            input_ids=ids,
            **self.forward_arguments(model, ids),
            **image_arguments,
            logits_to_keep=1,
            use_cache=False,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def new_tokens(
        self, model: Any, ids: torch.Tensor, image_arguments: Mapping[str, Any], **options: Any
    ) -> torch.Tensor:
        """Return the tokens [batch, new] that the model's own `generate` puts behind prompts.

        Arguments as in `next_token_logits`; `options` go to `generate`.
        """
        output: torch.Tensor = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            **self.forward_arguments(model, ids),
            **image_arguments,
            **options,
        )
        return output[:, ids.shape[1] :]

    def positions(
        self, model: Any, ids: Sequence[int], images: Sequence[ImageInputs]
    ) -> torch.Tensor:
        """Return the position ids of a whole prompt, [axes, tokens]; one axis for most models."""
        return torch.arange(len(ids)).unsqueeze(0)

    def next_positions(self, positions: torch.Tensor, step: int) -> torch.Tensor:
        """Return the position, [axes], of the token `step` places behind a prompt's end."""
        return positions.max().repeat(positions.shape[0]) + step

    def obstacle(self, model: Any, longest: int, images: int = 1) -> str | None:
        """Return why prompts of `longest` tokens and `images` images share no prefix, or None.

        What can be read off the configuration: attention that is not causal, a sliding window or
        a change of rotary frequencies within the length, layers with a recurrent state.
        """
        return text_obstacle(model.config.get_text_config(decoder=True), longest)

    def decoder(self, model: Any) -> Any:
        """Return the language model without its head, which takes embeddings and a cache."""
        return model.model.language_model

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
        """Run embeddings [batch, tokens, width] through the decoder, extending `cache`.

        `positions` is [axes, batch, tokens]; `mask` an additive [1 or batch, 1, tokens, cached +
        tokens] in the embeddings' dtype, or None for a causal one without a cache. `image_rows`
        [batch, tokens] marks image tokens, whose deeper features are `layers` [marked, width].
        Returns the last hidden states [batch, tokens, width], normalised.
        """
        output = self.decoder(model)(
            inputs_embeds=embeddings,
            position_ids=positions[0],
            attention_mask=mask,
            cache=cache,
            use_cache=True,
        )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    def head(self, model: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Return the logits [rows, vocabulary] of hidden states [rows, width]."""
        logits: torch.Tensor = model.lm_head(hidden)
        return logits

    def load_processor(self, folder: Path, options: Mapping[str, Any]) -> Any:
        """Return the processor of models whose folder has none that AutoProcessor knows, or None.

        `options` are keyword arguments of `from_pretrained`. What is returned has `tokenizer`.
        """
        return None

    def complete_processor(self, processor: Any, folder: Path) -> None:
        """Give the processor its folder's chat template, which some classes lose when loaded."""
        if getattr(processor, "chat_template", None) is not None:
            return
        text, older = folder / "chat_template.jinja", folder / "chat_template.json"
        if text.is_file():
            processor.chat_template = text.read_text(encoding="utf-8")
        elif older.is_file():
            processor.chat_template = json.loads(older.read_text("utf-8"))["chat_template"]

    def tokenise(self, processor: Any, text: str, add_special_tokens: bool) -> Sequence[int]:
        """Return the ids of a prompt's text, whose placeholders may have been replaced."""
        ids: Sequence[int] = processor.tokenizer(text, add_special_tokens=add_special_tokens)[
            "input_ids"
        ]
        return ids

    def context_length(self, config: Any) -> int | None:
        """Return how many tokens the model's positions reach, images included."""
        length = getattr(text_config(config), "max_position_embeddings", None)
        return None if length is None else int(length)


def text_config(config: Any) -> Any:
    """Return the language model's part of a configuration, which may be the whole of it.

    In transformers 4.44, which remote code needs, configurations cannot be asked for it; those of
    the remote families are their language model's own.
    """
    ask = getattr(config, "get_text_config", None)
    return config if ask is None else ask(decoder=True)


def text_obstacle(text: Any, longest: int) -> str | None:
    """Return what in a language model's configuration forbids a shared prefix, or None.

    Layers with a recurrent state, a window shorter than the prompts, and rotary frequencies that
    go by the length of the whole prompt.
    """
    kinds = set(getattr(text, "layer_types", None) or ())
    if kinds - CACHED_LAYERS:
        return f"the layers {', '.join(sorted(kinds - CACHED_LAYERS))} keep a state of the prefix"
    window = getattr(text, "sliding_window", None)
    if kinds & {"chunked_attention"}:
        window = getattr(text, "attention_chunk_size", window)
    windowed = bool(kinds & WINDOWED_LAYERS) if kinds else window is not None
    if windowed and window is not None and longest > window:
        return f"the attention window of {window} tokens is shorter than a prompt of {longest}"
    rope = getattr(text, "rope_parameters", None) or {}
    kind = rope.get("rope_type", "default")
    if kind == "longrope":
        switch = rope.get(
            "original_max_position_embeddings",
            getattr(text, "original_max_position_embeddings", None),
        )
    else:
        switch = text.max_position_embeddings if kind == "dynamic" else None
    if switch is not None and longest > switch:
        return f"rotary frequencies change at {switch} tokens, and a prompt has {longest}"
    return None


def pad_and_join(
    images: Sequence[ImageInputs], fill: Mapping[str, float]
) -> dict[str, torch.Tensor]:
    """Return image tensors joined along the first axis, those of `fill` padded along the second.

    An image of fewer tiles gets tiles of the given value, as the processors give them to a batch.
    """
    joined = {}
    for name in images[0].tensors.keys() if images else ():
        tensors = [image.tensors[name] for image in images]
        if name in fill:
            most = max(tensor.shape[1] for tensor in tensors)
            tensors = [_padded(tensor, most, fill[name]) for tensor in tensors]
        joined[name] = torch.cat(tensors)
    return joined


def _padded(tensor: torch.Tensor, tiles: int, value: float) -> torch.Tensor:
    missing = tiles - tensor.shape[1]
    if missing == 0:
        return tensor
    shape = (tensor.shape[0], missing, *tensor.shape[2:])
    return torch.cat([tensor, tensor.new_full(shape, value)], dim=1)
