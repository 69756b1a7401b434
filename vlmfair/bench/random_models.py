"""Models of real size with random weights, made on a device, and the queries to them.

The engine that asks them is the project's own. Prompts are recorded token ids.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from PIL import Image

from vlmfair.bench.engine import CAPTION_TOKENS, QUERIES, SHOTS
from vlmfair.bench.real_models import LLAVA_1_5_7B, QWEN3_VL_8B, caption_prompts, gras_prompts
from vlmfair.bench.recorded_tokens import NO_ID, YES_ID, Ids, load_token_ids, prompt_texts
from vlmfair.inference.engine import Engine, open_engine
from vlmfair.inference.queries import ImageRef, Query, Turn
from vlmfair.models.chat import RenderedPrompt
from vlmfair.models.families import load_family
from vlmfair.models.labels import LabelTokens
from vlmfair.models.loading import LoadedProcessor
from vlmfair.models.registry import ModelEntry
from vlmfair.provenance import sha256_of_file

DTYPE = "bfloat16"
LABELS = ("Yes", "No")
SQUARE = 16
# The standard deviation of a vocabulary's logits. Random heads give 1, with which all tokens are
# about equally likely, and probabilities agree to many digits whatever an engine does.
LOGIT_DEVIATION = 3.0


@dataclass(frozen=True)
class Sizes:
    """How much is asked, and what replaces settings of the real configurations.

    `questions` of GRAS about each of `images`; one in `every` of them, about one image, in the
    plain form. `queries` captions behind `shots` demonstrations, `plain_queries` in the plain form.
    """

    images: int = 4
    questions: int = 500
    every: int = 8
    queries: int = QUERIES
    plain_queries: int = 16
    shots: int = SHOTS
    text: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    llava_vision: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    qwen_text: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    qwen_vision: Mapping[str, Any] = dataclasses.field(default_factory=dict)


REAL = Sizes()
_SMALL = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
}
TINY = Sizes(
    images=1,
    questions=12,
    every=6,
    queries=2,
    plain_queries=1,
    shots=1,
    text=_SMALL,
    llava_vision={**_SMALL, "projection_dim": 32},
    qwen_text={
        "head_dim": 16,
        "rope_parameters": {
            **QWEN3_VL_8B["text_config"]["rope_parameters"],
            "mrope_section": [2, 3, 3],
        },
    },
    qwen_vision={
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_heads": 2,
        "out_hidden_size": 32,
        "deepstack_visual_indexes": [0],
    },
)


@dataclass(frozen=True)
class Subject:
    """A model with random weights, and what is asked of it.

    `fresh_queries` gives a set of queries about images that nobody has seen; `sample` takes those
    of a set that the plain form is measured with.
    """

    loaded: LoadedProcessor
    renderer: Any
    model: Any
    fresh_queries: Callable[[], list[Query]]
    sample: Callable[[Sequence[Query]], list[Query]]

    def engine(self, device: str, mode: str, batch_size: int, dtype: str = DTYPE) -> Engine:
        """Return the project's engine for the model, which computes in `dtype`."""
        entry = dataclasses.replace(self.loaded.entry, dtype=dtype)
        return open_engine(
            dataclasses.replace(self.loaded, entry=entry),
            self.renderer,
            device=device,
            batch_size=batch_size,
            mode=mode,
            model=self.model,
        )


class NumberTokenizer:
    """Texts are the numbers of their tokens, and no token ends an answer."""

    eos_token_id = None

    def decode(self, ids: Sequence[int], **_: Any) -> str:
        """Return the ids as text."""
        return " ".join(map(str, ids))


class RecordedPrompts:
    """Renders a conversation to recorded ids, images included; its last turn's text names them."""

    def __init__(self, recorded: Mapping[str, Ids]) -> None:
        self._recorded = recorded

    def render(self, turns: Sequence[Turn], *_: Any) -> RenderedPrompt:
        """Return the recorded prompt."""
        text = turns[-1].text
        return RenderedPrompt(text, self._recorded[text], False)

    def expand(self, prompt: RenderedPrompt, replacements: tuple[str, ...]) -> Ids:
        """Return the ids, in which images have their tokens already."""
        return prompt.ids

    def label_tokens(self, prompt: RenderedPrompt, labels: tuple[str, ...]) -> LabelTokens:
        """Return the tokens of Yes and No."""
        return LabelTokens((YES_ID, NO_ID), (False, False))


def build_model(config: Any, device: str) -> Any:
    """Return a model of random bfloat16 weights, made on the device itself."""
    from transformers import AutoModelForImageTextToText

    torch.manual_seed(0)
    with torch.device(device):
        model = AutoModelForImageTextToText.from_config(
            config, dtype=torch.bfloat16, attn_implementation="sdpa"
        )
    model.eval().requires_grad_(False)
    head = model.get_output_embeddings().weight
    text = config.get_text_config(decoder=True)
    # The last hidden state is normalised: each of its numbers has a deviation of 1.
    head.mul_(LOGIT_DEVIATION / (text.initializer_range * text.hidden_size**0.5))
    model.generation_config.eos_token_id = None
    return model


def llava_config(sizes: Sizes) -> Any:
    """Return the configuration of LLaVA-1.5-7B, with what the sizes replace."""
    from transformers import LlavaConfig

    return LlavaConfig(
        **{
            **LLAVA_1_5_7B,
            "text_config": {**LLAVA_1_5_7B["text_config"], **sizes.text},
            "vision_config": {**LLAVA_1_5_7B["vision_config"], **sizes.llava_vision},
        }
    )


def qwen_config(sizes: Sizes) -> Any:
    """Return the configuration of Qwen3-VL-8B, with what the sizes replace."""
    from transformers import Qwen3VLConfig

    return Qwen3VLConfig(
        **{
            **QWEN3_VL_8B,
            "text_config": {**QWEN3_VL_8B["text_config"], **sizes.text, **sizes.qwen_text},
            "vision_config": {**QWEN3_VL_8B["vision_config"], **sizes.qwen_vision},
        }
    )


def llava_subject(device: str, sizes: Sizes, resources: Path, folder: Path) -> Subject:
    """Return LLaVA-1.5-7B and GRAS's questions about images of 336x336 pixels, drawn in `folder`.

    Raises ConfigError when the questions have changed since their tokens were recorded.
    """
    from transformers import CLIPImageProcessor

    config = llava_config(sizes)
    side = config.vision_config.image_size
    image_processor = CLIPImageProcessor(
        size={"shortest_edge": side}, crop_size={"height": side, "width": side}
    )
    texts = prompt_texts(resources)["gras_paper"]
    recorded = load_token_ids(resources / "bench/llava_tokens.json", "gras_paper", texts)
    asked = gras_prompts(recorded)[: sizes.questions]
    prompts = {f"question {row}": item.ids for row, item in enumerate(asked)}
    images = _images(folder, side, side)

    def fresh_queries() -> list[Query]:
        refs = list(itertools.islice(images, sizes.images))
        return [
            Query(f"{ref.path} {text}", (Turn("user", text, (ref,)),), labels=LABELS)
            for ref in refs
            for text in prompts
        ]

    return Subject(
        _loaded("llava-1.5-7b", "llava", image_processor, config),
        RecordedPrompts(prompts),
        build_model(config, device),
        fresh_queries,
        lambda queries: list(queries[: len(prompts) : sizes.every]),
    )


def qwen_subject(device: str, sizes: Sizes, folder: Path) -> Subject:
    """Return Qwen3-VL-8B and captions of images behind demonstrations that all share.

    Images have 640x480 pixels and are drawn in `folder`; captions have 16 tokens, those of the
    demonstrations too.
    """
    from transformers import Qwen2VLImageProcessor

    config = qwen_config(sizes)
    # The limits of the checkpoint's own preprocessor_config.json.
    image_processor = Qwen2VLImageProcessor(
        patch_size=16, size={"shortest_edge": 256 * 256, "longest_edge": 4096 * 4096}
    )
    # All queries have the same tokens; what differs is the image that is asked about.
    (prompt,) = caption_prompts(1, sizes.shots, CAPTION_TOKENS)
    images = _images(folder, 640, 480)

    def fresh_queries() -> list[Query]:
        shown = itertools.islice(images, sizes.shots)
        demonstrations = tuple(Turn("user", "demonstration", (ref,)) for ref in shown)
        return [
            Query(
                f"caption of {ref.path}",
                (*demonstrations, Turn("user", "caption", (ref,))),
                mode="generate",
                max_new_tokens=CAPTION_TOKENS,
            )
            for ref in itertools.islice(images, sizes.queries)
        ]

    return Subject(
        _loaded("qwen3-vl-8b", "qwen3_vl", image_processor, config),
        RecordedPrompts({"caption": prompt.ids}),
        build_model(config, device),
        fresh_queries,
        lambda queries: list(queries[: sizes.plain_queries]),
    )


def _loaded(name: str, family: str, image_processor: Any, config: Any) -> LoadedProcessor:
    processor = SimpleNamespace(
        tokenizer=NumberTokenizer(),
        image_processor=image_processor,
        # What stands for an image in a text is asked for, and not used.
        image_token="",
        replace_image_token=lambda inputs, image_idx: "",
    )
    entry = ModelEntry(name, family, DTYPE, "sdpa", path="random weights")
    return LoadedProcessor(entry, Path(), load_family(family, name), processor, config)


def _images(folder: Path, width: int, height: int) -> Iterator[ImageRef]:
    """Yield images of squares of 16 pixels in random colours, each another one."""
    for seed in itertools.count():
        path = folder / f"{width}x{height}_{seed}.png"
        shape = (height // SQUARE, width // SQUARE, 3)
        squares = np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)
        Image.fromarray(squares.repeat(SQUARE, 0).repeat(SQUARE, 1)).save(path)
        yield ImageRef(str(path), sha256_of_file(path))
