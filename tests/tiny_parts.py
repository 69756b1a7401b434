"""What the builders of tiny models share: a tokenizer, seeded weights, small settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers as hf
from tiny_llava import CORPUS
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from vlmfair.models.registry import ModelEntry

TEMPLATES = Path(__file__).parent / "chat_templates"
HIDDEN, LAYERS, HEADS = 32, 2, 2
# The surface form of "Yes" after the family's prompts.
YES_FORMS = {"llava": " Yes", "llava_next": " Yes", "blip2": " Yes", "idefics3": " Yes"}
# Gemma 2's soft cap on attention logits has no sdpa kernel.
EAGER = frozenset({"paligemma"})


def train_tokenizer(
    special: tuple[str, ...],
    *,
    bos: str | None = None,
    eos: str,
    adds_bos: bool = False,
    **named: str,
) -> hf.PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer of the tests' sentences with a family's special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    known = ["<pad>", *special]
    trainer = trainers.BpeTrainer(
        vocab_size=400 + len(known),
        special_tokens=known,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    if adds_bos and bos is not None:
        tokenizer.post_processor = TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))]
        )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=bos,
        eos_token=eos,
        pad_token="<pad>",
        extra_special_tokens=named,
    )


def chat_template(family: str) -> str:
    """The template that the family's checkpoints are published with."""
    return (TEMPLATES / f"{family}.jinja").read_text().removesuffix("\n")


def seed_weights(model: torch.nn.Module, seed: int, scale: float = 0.2) -> None:
    """Fill a model with weights from numpy, so that they are the same on every machine."""
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


def save(folder: Path, model: Any, processor: Any, seed: int) -> None:
    """Write weights, configuration and processor."""
    seed_weights(model, seed)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)


def text_settings(tokenizer: Any, **changes: Any) -> dict[str, Any]:
    """What the language models of most families are given."""
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "max_position_embeddings": 8192,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        **changes,
    }


def vision_settings(image: int, patch: int, **changes: Any) -> dict[str, Any]:
    """What the vision towers of most families are given."""
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": 2 * HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "image_size": image,
        "patch_size": patch,
        **changes,
    }


def tiny_entry(folder: Path, family: str, **changes: object) -> ModelEntry:
    """The sheet entry of a family's tiny model."""
    settings: dict[str, object] = {
        "name": f"tiny-{family.replace('_', '-')}",
        "path": str(folder),
        "family": family,
        "dtype": "float32",
        "attention": "eager" if family in EAGER else "sdpa",
        "yes_form": YES_FORMS.get(family, "Yes"),
        **changes,
    }
    return ModelEntry(**settings)  # type: ignore[arg-type]
