"""Tiny encoders with random weights in the formats of the real ones."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

WORDS = ["a", "photo", "of", "nurse", "guitarist", "singer", "Yes", "No", "male", "female"]


def write_clip(folder: Path) -> Path:
    """A CLIP model in open_clip's folder format: one layer of width 16, images of 32 pixels."""
    from open_clip.model import CLIP, CLIPTextCfg, CLIPVisionCfg

    torch.manual_seed(0)
    vision = {"image_size": 32, "layers": 1, "width": 16, "head_width": 8, "patch_size": 16}
    text = {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1}
    model = CLIP(8, CLIPVisionCfg(**vision), CLIPTextCfg(**text))
    folder.mkdir(parents=True)
    config = {"model_cfg": {"embed_dim": 8, "vision_cfg": vision, "text_cfg": text}}
    (folder / "open_clip_config.json").write_text(json.dumps({**config, "preprocess_cfg": {}}))
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(weights, folder / "open_clip_model.safetensors")
    return folder


def write_sentence_t5(folder: Path) -> Path:
    """A sentence-T5: encoder, mean pooling, a dense layer and normalisation."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import (
        Dense,
        Normalize,
        Pooling,
        Transformer,
    )
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5EncoderModel

    torch.manual_seed(0)
    vocabulary = {word: place for place, word in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    config = T5Config(
        vocab_size=len(vocabulary), d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2
    )
    base = folder.parent / "t5"
    T5EncoderModel(config).save_pretrained(base)
    fast.save_pretrained(base)
    transformer = Transformer(str(base))
    modules = [transformer, Pooling(8, "mean"), Dense(8, 6, bias=False), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder))
    return folder


def write_vit(folder: Path, labels: list[str]) -> Path:
    """A ViT classifier of images of 32 pixels with these labels."""
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    torch.manual_seed(0)
    config = ViTConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        image_size=32,
        patch_size=16,
        num_labels=len(labels),
        id2label=dict(enumerate(labels)),
        label2id={label: place for place, label in enumerate(labels)},
    )
    model = ViTForImageClassification(config)
    with torch.no_grad():
        model.classifier.bias.copy_(torch.arange(len(labels)) * 100.0)
    model.save_pretrained(folder)
    ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder
