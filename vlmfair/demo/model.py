"""The demo models' architecture, and how one is saved as a Hugging Face folder."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from transformers import (
    CLIPImageProcessor,
    CLIPVisionModel,
    GenerationConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerBase,
)

from vlmfair.demo.dialogues import IMAGE_TOKENS, image_token
from vlmfair.demo.images import INPUT_SIZE
from vlmfair.demo.tokenizer import CHAT_TEMPLATE
from vlmfair.demo.vision import WIDTH, vision_config

LAYERS, HEADS, INNER = 4, 4, 320


def build_model(
    tokenizer: PreTrainedTokenizerBase, tower: CLIPVisionModel
) -> LlavaForConditionalGeneration:
    """An untrained model of the stock LLaVA class around a trained vision tower."""
    text = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        intermediate_size=INNER,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        initializer_range=0.05,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    config = LlavaConfig(
        vision_config=vision_config(),
        text_config=text,
        image_token_index=image_token(tokenizer),
        vision_feature_layer=-1,
        vision_feature_select_strategy="default",
        image_seq_length=IMAGE_TOKENS,
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config)
    model.model.vision_tower.load_state_dict(tower.state_dict())
    return model


def save_model(
    model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerBase, output: Path
) -> None:
    """Write weights (float16), tokenizer, processor, chat template; the folder appears whole."""
    output.parent.mkdir(parents=True, exist_ok=True)
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessor(
            size={"shortest_edge": INPUT_SIZE},
            crop_size={"height": INPUT_SIZE, "width": INPUT_SIZE},
            image_mean=[0.5, 0.5, 0.5],
            image_std=[0.5, 0.5, 0.5],
        ),
        tokenizer=tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=CHAT_TEMPLATE,
    )
    temporary = Path(tempfile.mkdtemp(dir=output.parent, prefix=f".{output.name}"))
    try:
        saved = LlavaForConditionalGeneration(model.config)
        saved.load_state_dict(model.state_dict())
        saved.half()
        saved.generation_config = GenerationConfig(
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            do_sample=False,
            max_new_tokens=64,
        )
        saved.save_pretrained(temporary)
        processor.save_pretrained(temporary)
        if output.exists():
            shutil.rmtree(output)
        temporary.chmod(0o755)
        for file in temporary.iterdir():
            file.chmod(0o644)
        temporary.rename(output)
    finally:
        if temporary.exists():
            shutil.rmtree(temporary)
