"""Encoders that compare texts and images by cosine: CLIP (open_clip) and sentence-transformers.

Only files that are there are loaded; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from vlmfair.errors import ModelError

Embeddings = NDArray[np.float32]
BATCH = 64


class TextEncoder(Protocol):
    """Turns texts into unit vectors."""

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Return [texts, width], each row of length 1."""
        ...


@dataclass(frozen=True)
class ClipEncoder:
    """A CLIP model with its tokenizer and its image preprocessing."""

    model: Any
    tokenizer: Any
    preprocess: Any
    device: str

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Return [texts, width]; a text beyond the context length is cut, its end token kept."""
        parts = []
        for start in range(0, len(texts), BATCH):
            ids = self.tokenizer(list(texts[start : start + BATCH])).to(self.device)
            with torch.inference_mode():
                parts.append(self.model.encode_text(ids))
        return _units(parts)

    def encode_images(self, images: Sequence[Image.Image]) -> Embeddings:
        """Return [images, width] of RGB images."""
        parts = []
        for start in range(0, len(images), BATCH):
            batch = [self.preprocess(image) for image in images[start : start + BATCH]]
            with torch.inference_mode():
                parts.append(self.model.encode_image(torch.stack(batch).to(self.device)))
        return _units(parts)


def _units(parts: Sequence[torch.Tensor]) -> Embeddings:
    if not parts:
        return np.empty((0, 0), np.float32)
    features = torch.cat(list(parts)).float()
    units: Embeddings = torch.nn.functional.normalize(features, dim=-1).cpu().numpy()
    return units


def load_clip(model: str, weights: str | None = None, *, device: str = "cpu") -> ClipEncoder:
    """Load CLIP from a folder, or one of open_clip's architectures with a file of weights.

    A folder holds open_clip_config.json and open_clip_model.safetensors, as repositories for
    open_clip on the Hugging Face hub do. OpenAI's ViT-B/32, as in the paper, is the architecture
    `ViT-B-32-quickgelu`. Raises ModelError when files are missing or do not fit.
    """
    folder = Path(model)
    if not folder.is_dir() and (weights is None or not Path(weights).is_file()):
        raise ModelError(
            f"CLIP: {model} is no folder, and there is no file {weights!r} of weights. Run: hf "
            f"download timm/vit_base_patch32_clip_224.openai --local-dir models/clip-vit-b-32, "
            f"and write that folder as the model."
        )
    # Importing it takes seconds.
    import open_clip  # type: ignore[import-untyped]

    name = f"local-dir:{folder}" if folder.is_dir() else model
    try:
        loaded, preprocess = open_clip.create_model_from_pretrained(
            name, None if folder.is_dir() else weights, device=device
        )
        tokenizer = open_clip.get_tokenizer(name)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise ModelError(
            f"CLIP: {model} cannot be loaded: {' '.join(str(error).split())}. Use a folder with "
            f"open_clip_config.json and open_clip_model.safetensors, or an architecture of "
            f"open_clip with a file of its weights."
        ) from error
    loaded.eval()
    return ClipEncoder(loaded, tokenizer, preprocess, device)


@dataclass(frozen=True)
class SentenceEncoder:
    """A sentence-transformers model, such as sentence-t5-xxl."""

    model: Any

    def encode_texts(self, texts: Sequence[str]) -> Embeddings:
        """Return [texts, width]."""
        embeddings: Embeddings = self.model.encode(
            list(texts), batch_size=BATCH, normalize_embeddings=True, show_progress_bar=False
        )
        return embeddings.astype(np.float32)


def load_sentence_encoder(path: str, *, device: str = "cpu") -> SentenceEncoder:
    """Load a sentence-transformers model from its folder.

    Raises ModelError when the folder is missing or no such model.
    """
    if not Path(path).is_dir():
        raise ModelError(
            f"the sentence encoder {path} is not downloaded. Run: hf download "
            f"sentence-transformers/sentence-t5-xxl --local-dir {path}, or name another folder."
        )
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(path, device=device, local_files_only=True)
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        raise ModelError(
            f"the sentence encoder {path} cannot be loaded: {' '.join(str(error).split())}. "
            f"Download it again."
        ) from error
    return SentenceEncoder(model)
