"""Loading a pipeline of diffusers from its folder, offline, and asking it for images."""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vlmfair.errors import ModelError, reason_of
from vlmfair.models.loading import DTYPES
from vlmfair.models.registry import model_folder
from vlmfair.synthesis.generators import INDEX, Generator, components, pipeline_class

Pixels = NDArray[np.float32]
# The library whose models are filled with random numbers where a weight is missing.
_FILLS_IN = "transformers"
# The tokenizers of CLIP and of T5.
_TOKENIZERS = {
    "FluxPipeline": (("tokenizer",), "tokenizer_2"),
    "StableDiffusion3Pipeline": (("tokenizer", "tokenizer_2"), "tokenizer_3"),
}


def load_pipeline(generator: Generator) -> Any:
    """Load a pipeline into main memory, in its dtype, from files in the safetensors format only.

    Raises ModelError when parts are missing or damaged, a weight is missing, or the folder holds a
    pipeline of another class than the config says.
    """
    # Importing it takes seconds.
    import diffusers
    from safetensors import SafetensorError

    folder = model_folder(generator.entry)
    components(folder, generator.name)
    found = pipeline_class(folder)
    if found != generator.pipeline:
        raise ModelError(
            f"{generator.name}: {folder} is a {found or 'pipeline without a name'}, and the config "
            f"says {generator.pipeline}. Correct pipeline, or name another folder."
        )
    try:
        pipeline = getattr(diffusers, generator.pipeline).from_pretrained(
            folder,
            dtype=DTYPES[generator.dtype],
            use_safetensors=True,
            local_files_only=True,
            **_text_encoders(generator, folder),
        )
    except (OSError, ValueError, RuntimeError, ImportError, SafetensorError) as error:
        raise ModelError(
            f"{generator.name}: the pipeline in {folder} cannot be loaded ({_short(error)}). "
            f"Download it again, or check that this version of diffusers knows it."
        ) from error
    absent = [
        f"{part}.{name}"
        for part, module in _modules(pipeline).items()
        for name, weight in module.named_parameters()
        if weight.is_meta
    ]
    if absent:
        raise _lacks_weights(generator, folder, absent)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _text_encoders(generator: Generator, folder: Path) -> dict[str, Any]:
    """Load the parts that would fill a missing weight with random numbers, and refuse to."""
    import transformers
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    loaded = {}
    for part in components(folder, generator.name):
        library, kind = index[part]
        cls: Any = getattr(transformers, str(kind), None)
        if library != _FILLS_IN or not hasattr(cls, "_init_weights"):
            continue
        loaded[part], report = cls.from_pretrained(
            folder / part,
            dtype=DTYPES[generator.dtype],
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
        )
        absent = [*sorted(report["missing_keys"]), *map(str, report["mismatched_keys"])]
        if absent:
            raise _lacks_weights(generator, folder, [f"{part}.{key}" for key in absent])
    return loaded


def _lacks_weights(generator: Generator, folder: Path, absent: Sequence[str]) -> ModelError:
    return ModelError(
        f"{generator.name}: the weights in {folder} lack or misshape {len(absent)} tensors (first "
        f"{absent[0]}). Download the pipeline again; a part of it would be random otherwise."
    )


def _short(error: BaseException) -> str:
    return reason_of(error)[:200]


def _modules(pipeline: Any) -> dict[str, torch.nn.Module]:
    parts = pipeline.components.items()
    return {name: part for name, part in parts if isinstance(part, torch.nn.Module)}


def weight_bytes(pipeline: Any) -> int:
    """Return how much memory the weights of a pipeline's parts take."""
    return sum(
        weight.numel() * weight.element_size()
        for module in _modules(pipeline).values()
        for weight in module.parameters()
    )


def cutting_tokenizers(pipeline: Any, generator: Generator, prompt: str) -> tuple[str, ...]:
    """Return the names of a pipeline's tokenizers that cut a prompt, by the pipeline's own limits.

    CLIP's tokenizers take as many tokens as the first of them states, T5's the call's
    max_sequence_length.
    """
    clip, t5 = _TOKENIZERS[generator.pipeline]
    cut = []
    for name in (*clip, t5):
        tokenizer = getattr(pipeline, name, None)
        if tokenizer is None:
            continue
        limit = pipeline.tokenizer_max_length
        if name == t5:
            limit = _sequence_length(pipeline, generator)
        if len(tokenizer(prompt, verbose=False).input_ids) > limit:
            cut.append(name)
    return tuple(cut)


def _sequence_length(pipeline: Any, generator: Generator) -> int:
    if generator.max_tokens is not None:
        return generator.max_tokens
    return int(inspect.signature(type(pipeline).__call__).parameters["max_sequence_length"].default)


def draw_images(
    pipeline: Any, generator: Generator, prompts: Sequence[str], seeds: Sequence[int]
) -> list[tuple[Pixels | None, bool]]:
    """Return pixels [height, width, 3] from 0 to 1 of each prompt, and whether it was refused.

    Each image's noise comes from a generator of its own on the CPU, so that it depends neither on
    the batch nor on the device. Pixels may be no numbers; None where the pipeline gave no image.
    """
    options: dict[str, Any] = {}
    if generator.max_tokens is not None:
        options["max_sequence_length"] = generator.max_tokens
    if generator.true_guidance > 1:
        options["true_cfg_scale"] = generator.true_guidance
        options["negative_prompt"] = [""] * len(prompts)
    output = pipeline(
        prompt=list(prompts),
        num_inference_steps=generator.steps,
        guidance_scale=generator.guidance,
        height=generator.height,
        width=generator.width,
        generator=[torch.Generator("cpu").manual_seed(seed) for seed in seeds],
        # As numbers, because a conversion to 8 bits turns what is no number into black.
        output_type="np",
        **options,
    )
    # Pipelines with a safety checker say here which images it has blackened.
    refused = getattr(output, "nsfw_content_detected", None) or [False] * len(prompts)
    return [
        (None if image is None else np.asarray(image, np.float32), bool(no))
        for image, no in zip(output.images, refused, strict=True)
    ]
