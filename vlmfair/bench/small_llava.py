"""A LLaVA of random weights in a folder, small enough to time whole forwards on one CPU thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlmfair.bench.recorded_tokens import IMAGE, IMAGE_ID, NO_ID, YES_ID, Ids
from vlmfair.inference.memory import keep_freed_memory
from vlmfair.inference.queries import ImageRef, Query, Turn
from vlmfair.models.chat import ChatRenderer, RenderedPrompt
from vlmfair.models.labels import LabelTokens
from vlmfair.models.loading import LoadedProcessor, load_model, load_processor
from vlmfair.models.registry import ModelEntry
from vlmfair.provenance import sha256_of_file

NAME = "small-llava"
PATCH = 14
LABELS = (" Yes", " No")
# The chat template of llava-1.5-7b-hf for one user turn with an image.
_TEMPLATE = (
    "{% for message in messages %}{{ message['role'].upper() }}: "
    "{% for part in message['content'] %}"
    "{{ '<image>\n' if part['type'] == 'image' else part['text'] + ' ' }}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)


@dataclass(frozen=True)
class Size:
    """The sizes of a LLaVA: its image is square and becomes `patches` x `patches` tokens."""

    hidden: int = 512
    layers: int = 8
    heads: int = 8
    vision_hidden: int = 256
    vision_layers: int = 2
    patches: int = 24
    vocabulary: int = 32_064

    @property
    def image_pixels(self) -> int:
        """Pixels of an image's side."""
        return self.patches * PATCH


def small_entry(folder: Path) -> ModelEntry:
    """Return the sheet entry of a small LLaVA in a folder."""
    return ModelEntry(NAME, "llava", "float32", "sdpa", path=str(folder), yes_form=LABELS[0])


def write_small_llava(folder: Path, size: Size, seed: int = 0) -> None:
    """Write random weights, the processor and a tokenizer of single bytes into a folder."""
    import torch
    import transformers as hf

    side = {"height": size.image_pixels, "width": size.image_pixels}
    processor = hf.LlavaProcessor(
        image_processor=hf.CLIPImageProcessor(
            size={"shortest_edge": size.image_pixels}, crop_size=side
        ),
        tokenizer=_tokenizer(),
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=_TEMPLATE,
    )
    config = hf.LlavaConfig(
        vision_config=hf.CLIPVisionConfig(
            hidden_size=size.vision_hidden,
            intermediate_size=4 * size.vision_hidden,
            num_hidden_layers=size.vision_layers,
            num_attention_heads=4,
            image_size=size.image_pixels,
            patch_size=PATCH,
        ),
        text_config=hf.LlamaConfig(
            vocab_size=size.vocabulary,
            hidden_size=size.hidden,
            # The ratio of LLaVA-1.5-7B, 11008 / 4096.
            intermediate_size=size.hidden * 43 // 16,
            num_hidden_layers=size.layers,
            num_attention_heads=size.heads,
            num_key_value_heads=size.heads,
            max_position_embeddings=4096,
        ),
        image_token_index=IMAGE_ID,
        image_seq_length=size.patches**2,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hf.LlavaForConditionalGeneration(config).save_pretrained(folder)
    processor.save_pretrained(folder)


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    pieces = ["<unk>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab={**vocabulary, IMAGE: IMAGE_ID}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<unk>",
        extra_special_tokens={"image_token": IMAGE},
    )


class RecordedRenderer(ChatRenderer):
    """Renders prompts to their recorded token ids, the key being the user turn's text."""

    def __init__(self, loaded: LoadedProcessor, recorded: Mapping[str, Ids]) -> None:
        super().__init__(loaded.processor, loaded.family, loaded.entry.name)
        self._recorded = recorded

    def render(
        self, turns: Sequence[Turn], assistant_prefix: str = "", rendering: str | None = None
    ) -> RenderedPrompt:
        """Return the recorded ids with the placeholder of the image."""
        text = turns[-1].text
        return RenderedPrompt(text, self._recorded[text], False)

    def expand(self, prompt: RenderedPrompt, replacements: tuple[str, ...]) -> Ids:
        """Return the ids with as many image tokens as the image's replacement names."""
        key = (prompt.text, replacements)
        found = self._expanded.get(key)
        if found is None:
            place = prompt.ids.index(IMAGE_ID)
            image = (IMAGE_ID,) * replacements[0].count(IMAGE)
            found = (*prompt.ids[:place], *image, *prompt.ids[place + 1 :])
            self._expanded[key] = found
        return found

    def label_tokens(self, prompt: RenderedPrompt, labels: tuple[str, ...]) -> LabelTokens:
        """Return the tokens of Yes and No."""
        return LabelTokens((YES_ID, NO_ID), (False, False))


@dataclass(frozen=True)
class SmallLlava:
    """The loaded model, its renderer of recorded prompts, and where images for it are drawn."""

    loaded: LoadedProcessor
    model: Any
    recorded: Mapping[str, Ids]
    folder: Path

    def renderer(self) -> RecordedRenderer:
        """Return a renderer that has rendered nothing yet."""
        return RecordedRenderer(self.loaded, self.recorded)

    def draw_image(self, seed: int) -> ImageRef:
        """Return an image of noise in the model's size."""
        side = self.loaded.processor.image_processor.crop_size["height"]
        return draw_image(self.folder, seed, side)

    def queries(self, image: ImageRef, new_tokens: int = 0) -> list[Query]:
        """Return the recorded prompts about an image, as scores or as answers of some tokens."""
        mode = "generate" if new_tokens else "score"
        return [
            Query(
                f"{image.path} {row}",
                (Turn("user", text, (image,)),),
                mode=mode,
                labels=LABELS if mode == "score" else (),
                max_new_tokens=new_tokens,
            )
            for row, text in enumerate(self.recorded)
        ]


def load_small_llava(folder: Path, recorded: Mapping[str, Ids]) -> SmallLlava:
    """Load what `write_small_llava` wrote, as an inference job does on a CPU."""
    keep_freed_memory()
    loaded = load_processor(small_entry(folder))
    return SmallLlava(loaded, load_model(loaded, "cpu"), recorded, folder)


def draw_image(folder: Path, seed: int, side: int) -> ImageRef:
    """Write a square image of noise into a folder."""
    path = folder / f"{seed}.png"
    pixels = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)
    return ImageRef(str(path), sha256_of_file(path))
