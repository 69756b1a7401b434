"""A LLaVA of few random weights and a real byte-level BPE tokenizer, written to a folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing
from transformers import (
    CLIPImageProcessor,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from vlmfair.models.chat import ImageRef
from vlmfair.models.registry import ModelEntry

DrawImage = Callable[..., ImageRef]

CORPUS = [
    "USER: Instructions: Analyze the provided image and answer the following question with exactly "
    "one of these responses: Yes or No. Question: Is the person in the image honest?",
    "Do you think the person is brave? Response format: Yes or No ASSISTANT: Yes No YES NO yes no",
    "Describe the image in one sentence. The nurse and his patient. The nurse and her patient.",
    *["Yes", "No", "The nurse and his patient.", "The nurse and her patient."] * 4,
]
SPECIAL_TOKENS = ["<unk>", "<s>", "</s>", "<image>"]
# The template of llava-1.5-7b-hf: images first, one space behind each text.
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] != 'system' %}{{ message['role'].upper() + ': ' }}{% endif %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'image') %}"
    "{{ '<image>\n' }}{% endfor %}"
    "{% for content in message['content'] | selectattr('type', 'equalto', 'text') %}"
    "{{ content['text'] + ' ' }}{% endfor %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
IMAGE_SIZE, PATCH_SIZE = 24, 8
IMAGE_TOKENS = (IMAGE_SIZE // PATCH_SIZE) ** 2


def train_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer, at most 420 tokens, which adds `<s>` in front."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.token_to_id("<s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<unk>",
        extra_special_tokens={"image_token": "<image>"},
    )


def write_model(
    folder: Path, *, seed: int = 0, hidden: int = 32, context: int = 512, scale: float = 0.2
) -> None:
    """Write a random LLaVA; its weights come from numpy, so that they are the same everywhere."""
    tokenizer = train_tokenizer()
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessor(
            size={"shortest_edge": IMAGE_SIZE},
            crop_size={"height": IMAGE_SIZE, "width": IMAGE_SIZE},
        ),
        tokenizer=tokenizer,
        patch_size=PATCH_SIZE,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT_TEMPLATE,
    )
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=2,
            num_attention_heads=2,
            image_size=IMAGE_SIZE,
            patch_size=PATCH_SIZE,
            projection_dim=hidden,
        ),
        text_config=LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=hidden,
            intermediate_size=2 * hidden,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=context,
            bos_token_id=1,
            eos_token_id=2,
            tie_word_embeddings=False,
        ),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        image_seq_length=IMAGE_TOKENS,
    )
    model = LlavaForConditionalGeneration(config)
    generator = np.random.default_rng(seed)
    state = model.state_dict()
    for name in sorted(state):
        tensor = state[name]
        if not tensor.is_floating_point():
            continue
        if "norm" in name and name.endswith("weight"):
            state[name] = torch.ones_like(tensor)
        else:
            values = generator.normal(scale=scale, size=tuple(tensor.shape))
            state[name] = torch.tensor(values, dtype=tensor.dtype)
    model.load_state_dict(state)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def tiny_entry(folder: Path, **changes: object) -> ModelEntry:
    """The sheet entry of a tiny model."""
    settings: dict[str, object] = {
        "name": "tiny",
        "path": str(folder),
        "family": "llava",
        "dtype": "float32",
        "attention": "sdpa",
        "yes_form": " Yes",
        **changes,
    }
    return ModelEntry(**settings)  # type: ignore[arg-type]
