"""The demo CLIP: an open_clip model around the demo models' vision tower, and its folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import open_clip  # type: ignore[import-untyped]
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import CLIPVisionModel

from vlmfair.demo.encoder_answers import LOGIT_SCALE
from vlmfair.demo.folders import whole_folder
from vlmfair.demo.images import INPUT_SIZE
from vlmfair.demo.vision import WIDTH
from vlmfair.provenance import write_json

CONTEXT = 32
# CLIP's byte-pair vocabulary, which open_clip ships: most of the model's weights.
VOCABULARY = 49_408
TEXT_WIDTH = 64
MODEL_CONFIG: dict[str, Any] = {
    "embed_dim": WIDTH,
    "quick_gelu": True,
    "vision_cfg": {
        "image_size": INPUT_SIZE,
        "patch_size": 16,
        "width": WIDTH,
        "layers": 4,
        "head_width": 32,
        "pool_type": "avg",
    },
    "text_cfg": {
        "context_length": CONTEXT,
        "vocab_size": VOCABULARY,
        "width": TEXT_WIDTH,
        "heads": 4,
        "layers": 3,
    },
}
PREPROCESSING = {
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
    "interpolation": "bicubic",
    "resize_mode": "shortest",
}


class KnownWords(nn.Module):
    """Embeddings of those tokens alone that occur in training; the others would learn nothing.

    Tokens outside of `known` are embedded as zeros.
    """

    def __init__(self, known: Tensor, width: int) -> None:
        super().__init__()
        place = torch.zeros(VOCABULARY, dtype=torch.long)
        place[known] = torch.arange(1, len(known) + 1)
        self.known, self.place = known, place
        self.rows = nn.Embedding(len(known) + 1, width, padding_idx=0)
        nn.init.normal_(self.rows.weight[1:], std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        """Token ids of any shape to their embeddings."""
        embedded: Tensor = self.rows(self.place[ids])
        return embedded

    def whole(self) -> nn.Embedding:
        """The embeddings of the whole vocabulary, zero where a token was not trained."""
        table = torch.zeros(VOCABULARY, self.rows.embedding_dim)
        table[self.known] = self.rows.weight[1:].detach()
        return nn.Embedding.from_pretrained(table)


class Tokens:
    """CLIP's byte-pair encoding, each text encoded once."""

    def __init__(self) -> None:
        self.tokenizer = open_clip.SimpleTokenizer(context_length=CONTEXT)
        self.known: dict[str, Tensor] = {}

    def __call__(self, texts: Iterable[str]) -> Tensor:
        """Ids of texts, cut behind the longest of them."""
        wanted = list(texts)
        for text in wanted:
            if text not in self.known:
                self.known[text] = self.tokenizer([text])[0]
        ids = torch.stack([self.known[text] for text in wanted])
        return ids[:, : int((ids != 0).sum(dim=1).max())]


def build_clip(tower: CLIPVisionModel, known: Tensor) -> open_clip.CLIP:
    """A CLIP whose vision tower is a trained one and whose text tower is new.

    `known` are the token ids that occur in training; the embedding is `KnownWords` until
    `save_clip` writes it out.
    """
    model = open_clip.CLIP(**MODEL_CONFIG)
    model.visual.load_state_dict(ported_tower(tower, model.visual.proj))
    model.token_embedding = KnownWords(known, TEXT_WIDTH)
    model.logit_scale.requires_grad_(False)
    model.logit_scale.fill_(torch.tensor(LOGIT_SCALE).log())
    return model


def ported_tower(tower: CLIPVisionModel, projection: Tensor) -> dict[str, Tensor]:
    """The weights of a Hugging Face CLIP vision tower under the names that open_clip has for them.

    The two compute the same; only the projection has no counterpart.
    """
    weights = {name.removeprefix("vision_model."): t for name, t in tower.state_dict().items()}
    ported = {
        "class_embedding": weights["embeddings.class_embedding"],
        "positional_embedding": weights["embeddings.position_embedding.weight"],
        "conv1.weight": weights["embeddings.patch_embedding.weight"],
        "proj": projection,
    }
    norms = {"ln_pre": "pre_layrnorm", "ln_post": "post_layernorm"}
    for layer in range(tower.config.num_hidden_layers):
        ours, theirs = f"transformer.resblocks.{layer}", f"encoder.layers.{layer}"
        norms |= {f"{ours}.ln_{n}": f"{theirs}.layer_norm{n}" for n in (1, 2)}
        norms |= {f"{ours}.attn.out_proj": f"{theirs}.self_attn.out_proj"}
        norms |= {
            f"{ours}.mlp.c_fc": f"{theirs}.mlp.fc1",
            f"{ours}.mlp.c_proj": f"{theirs}.mlp.fc2",
        }
        for kind in ("weight", "bias"):
            parts = [weights[f"{theirs}.self_attn.{part}_proj.{kind}"] for part in "qkv"]
            ported[f"{ours}.attn.in_proj_{kind}"] = torch.cat(parts)
    for name, other in norms.items():
        for kind in ("weight", "bias"):
            ported[f"{name}.{kind}"] = weights[f"{other}.{kind}"]
    return ported


def text_features(model: open_clip.CLIP, ids: Tensor) -> Tensor:
    """Unit vectors of texts whose ids are cut behind the longest, as `encode_text` gives them.

    The text tower looks back only, so that what follows a text's end token changes nothing.
    """
    length = ids.shape[1]
    hidden = model.token_embedding(ids) + model.positional_embedding[:length]
    hidden = model.transformer(hidden, attn_mask=model.attn_mask[:length, :length])
    ends = model.ln_final(hidden)[torch.arange(len(ids)), ids.argmax(dim=1)]
    return nn.functional.normalize((ends @ model.text_projection).float(), dim=1)


def save_clip(model: open_clip.CLIP, output: Path) -> None:
    """Write the configuration and the weights (float16) as a folder of open_clip's form."""
    weights = {n: t for n, t in model.state_dict().items() if not n.startswith("token_embedding")}
    weights["token_embedding.weight"] = model.token_embedding.whole().weight
    # Raises if a name or a shape is not the one that open_clip will look for.
    open_clip.CLIP(**MODEL_CONFIG).load_state_dict(weights)
    halves = {name: weight.detach().half().contiguous() for name, weight in weights.items()}
    with whole_folder(output) as folder:
        save_file(halves, folder / "open_clip_model.safetensors")
        config = {"model_cfg": MODEL_CONFIG, "preprocess_cfg": PREPROCESSING}
        write_json(folder / "open_clip_config.json", config)
