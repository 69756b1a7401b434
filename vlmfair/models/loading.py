"""Loading a model's processor and weights from its folder, offline, exactly as its entry says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vlmfair.errors import ModelError
from vlmfair.models.families import load_family
from vlmfair.models.families.base import Family
from vlmfair.models.registry import ModelEntry, model_folder

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model")
# The device of a model that is laid over all GPUs that are visible.
SPLIT = "split"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class LoadedProcessor:
    """A model's tokenizer and image processor, its configuration and its family's module."""

    entry: ModelEntry
    folder: Path
    family: Family
    processor: Any
    config: Any

    @property
    def context_length(self) -> int | None:
        """Tokens that a prompt and its answer may have: the entry's word, else the model's."""
        return self.entry.context_length or self.family.context_length(self.config)

    def settings(self) -> dict[str, Any]:
        """Return what decides pixels and ids beside the files' content, for the answer store."""
        image_processor = getattr(self.processor, "image_processor", None)
        return {
            "processor": type(self.processor).__name__,
            "image_processor": type(image_processor).__name__,
            "image_settings": json.loads(image_processor.to_json_string())
            if image_processor is not None
            else None,
        }


def choose_device(device: str = "auto") -> str:
    """Return `device`, or for `auto` the GPU where there is one, else the CPU."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def load_processor(entry: ModelEntry) -> LoadedProcessor:
    """Load a model's processor without its weights.

    Raises ModelError on a missing folder, configuration, tokenizer or image library, and on a
    folder whose architecture is not the family's.
    """
    family = load_family(entry.family, entry.name)
    if family.needs_remote_code and not entry.trust_remote_code:
        raise ModelError(
            f"{entry.name}: models of the family {family.name} bring their own code. Read it, and "
            f"if you trust it write trust_remote_code: true and revision in {entry.sheet}."
        )
    folder = model_folder(entry)
    config = _load_config(entry, folder)
    architectures = tuple(getattr(config, "architectures", None) or ())
    if family.architectures and not set(architectures) & set(family.architectures):
        raise ModelError(
            f"{entry.name}: {folder}/config.json names the architecture "
            f"{', '.join(architectures) or 'none'}, and the family {family.name} knows "
            f"{', '.join(family.architectures)}. Correct family in {entry.sheet}."
        )
    tokenizer_files = TOKENIZER_FILES + family.tokenizer_files
    if not any((folder / name).is_file() for name in tokenizer_files):
        raise ModelError(
            f"{entry.name}: {folder} has no tokenizer. "
            f"Add the model's tokenizer.json (or {', '.join(TOKENIZER_FILES[1:])})."
        )
    processor = _load_processor_classes(entry, family, folder)
    return LoadedProcessor(entry, folder, family, processor, config)


def _load_config(entry: ModelEntry, folder: Path) -> Any:
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{entry.name}: {folder} has no config.json. "
            f"Put the whole model folder there, as it is on the hub."
        )
    try:
        return AutoConfig.from_pretrained(
            folder, trust_remote_code=entry.trust_remote_code, local_files_only=True
        )
    except (ValueError, OSError, KeyError, ImportError) as error:
        raise ModelError(
            f"{entry.name}: {folder}/config.json cannot be read ({_first_line(error)}). "
            f"Download it again, or check that this version of transformers knows the model."
        ) from error


def _load_processor_classes(entry: ModelEntry, family: Family, folder: Path) -> Any:
    from transformers import AutoImageProcessor, AutoProcessor

    options: dict[str, Any] = {
        "trust_remote_code": entry.trust_remote_code,
        "local_files_only": True,
    }
    try:
        own = family.load_processor(folder, options)
        if own is not None:
            return own
        processor = AutoProcessor.from_pretrained(folder, **options)
        if getattr(processor, "image_processor", None) is None:
            raise ModelError(
                f"{entry.name}: {folder} has no image processor. "
                f"Add the model's preprocessor_config.json and processor_config.json."
            )
        processor.image_processor = AutoImageProcessor.from_pretrained(
            folder, backend=entry.image_backend, **options
        )
    except (ValueError, OSError, KeyError, ImportError, TypeError, AttributeError) as error:
        raise ModelError(
            f"{entry.name}: the processor in {folder} cannot be loaded ({_first_line(error)}). "
            f"Download tokenizer.json, tokenizer_config.json, preprocessor_config.json and "
            f"processor_config.json of the model again."
        ) from error
    family.complete_processor(processor, folder)
    used = getattr(processor.image_processor, "backend", None)
    if used is not None and used != entry.image_backend:
        raise ModelError(
            f"{entry.name}: images would be processed with {used}, not {entry.image_backend}. "
            f"Install {entry.image_backend} or write image_backend: {used}."
        )
    return processor


def check_gpus(entry: ModelEntry, granted: int) -> None:
    """Raise ModelError when a job was granted GPUs, but fewer than the model's entry asks for.

    Snakemake lowers what a job asks for to what `--resources gpu=N` leaves, and says nothing.
    """
    if 0 < granted < entry.gpus:
        raise ModelError(
            f"{entry.name} needs {entry.gpus} GPUs ({entry.sheet}), and this run gives a job no "
            f"more than {granted}. Run with --resources gpu={entry.gpus} or more, or leave the "
            f"model out."
        )


def load_model(
    loaded: LoadedProcessor, device: str, *, max_memory: Mapping[int | str, str] | None = None
) -> Any:
    """Load a model's weights onto `device` in evaluation mode, in the entry's dtype and attention.

    With device `split` its layers are laid over all visible GPUs, or over the devices of
    `max_memory` up to what it grants each (`{0: "40GiB", 1: "40GiB"}`); `input_device` says where
    inputs go. Raises ModelError on float16 without a GPU, on weights that are missing, damaged,
    incomplete or too large for the GPUs, and on an attention kind that the model does not have.
    """
    entry, folder = loaded.entry, loaded.folder
    split = device == SPLIT
    if entry.dtype == "float16" and not split and torch.device(device).type == "cpu":
        raise ModelError(
            f"{entry.name}: dtype float16 is 10 to 15 times slower than float32 on a CPU. "
            f"Write dtype: float32 (or run on a GPU)."
        )
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"{entry.name}: {folder} has no weights in the safetensors format. "
            f"Download the .safetensors files of the model; pickled .bin weights are not loaded."
        )
    placement = {"device_map": "auto", "max_memory": dict(max_memory or {}) or None}
    model, report = _load_weights(loaded, placement if split else {})
    absent = sorted(report["missing_keys"]) + [str(key) for key in report["mismatched_keys"]]
    if absent:
        raise ModelError(
            f"{entry.name}: the weights in {folder} lack or misshape {len(absent)} tensors (first "
            f"{absent[0]}). Download the model again; a part of it would be random otherwise."
        )
    model.eval().requires_grad_(False)
    if not split:
        return model.to(device)
    allowed = set(max_memory) if max_memory else set(range(torch.cuda.device_count()))
    if not _places(model) <= allowed:
        raise _too_large(entry)
    return model


def input_device(model: Any) -> torch.device:
    """Return the device that a model's inputs have to be on, also where it is split over several.

    Outputs of a split model are on it, too.
    """
    return model.get_input_embeddings().weight.device


def _places(model: Any) -> set[int | str]:
    """Return where a model's layers lie: numbers of GPUs, `cpu`, `disk`."""
    if hasattr(model, "hf_device_map"):
        return set(model.hf_device_map.values())
    # There is no map where all of it fits on one device.
    devices = {parameter.device for parameter in model.parameters()}
    return {device.type if device.index is None else device.index for device in devices}


def _too_large(entry: ModelEntry) -> ModelError:
    visible = torch.cuda.device_count()
    return ModelError(
        f"{entry.name}: the model does not fit on the {visible} visible GPUs; a part of it would "
        f"lie in main memory or on disk, which is slower by orders of magnitude. "
        f"Write gpus: {visible + 1} or more for it in {entry.sheet}."
    )


def _load_weights(
    loaded: LoadedProcessor, placement: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    from safetensors import SafetensorError
    from transformers.utils import logging as transformers_logging

    entry, folder = loaded.entry, loaded.folder
    transformers_logging.disable_progress_bar()
    try:
        return loaded.family.model_class().from_pretrained(
            folder,
            dtype=DTYPES[entry.dtype],
            attn_implementation=entry.attention,
            use_safetensors=True,
            trust_remote_code=entry.trust_remote_code,
            local_files_only=True,
            output_loading_info=True,
            **placement,
        )
    except SafetensorError as error:
        raise ModelError(
            f"{entry.name}: a .safetensors file in {folder} is damaged ({_first_line(error)}). "
            f"Download it again."
        ) from error
    except (ValueError, OSError, RuntimeError, ImportError) as error:
        if placement and "offload" in str(error):
            raise _too_large(entry) from error
        raise ModelError(
            f"{entry.name}: the weights in {folder} cannot be loaded with attention "
            f"{entry.attention} ({_first_line(error)}). Check family, dtype and attention in "
            f"{entry.sheet}, or download the model again."
        ) from error


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0].strip().rstrip(".") if lines else type(error).__name__)[:200]
