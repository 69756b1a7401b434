"""A low-rank adapter that comes with a checkpoint is part of the model that is loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny_models import tiny_entry

from vlmfair.errors import ModelError
from vlmfair.models.families.lora import merge_adapter
from vlmfair.models.loading import load_model, load_processor

WEIGHT = "model.layers.0.self_attn.qkv_proj.weight"
PEFT_NAME = "base_model.model.model.layers.0.self_attn.qkv_proj"
RANK, ALPHA = 2, 6


def write_adapter(folder: Path, name: str = PEFT_NAME, **settings: object) -> dict[str, Any]:
    """An adapter of rank 2 as PEFT stores it; returns its two matrices."""
    folder.mkdir(exist_ok=True)
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": ALPHA, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    generator = np.random.default_rng(1)
    down = torch.tensor(generator.normal(size=(RANK, 32)), dtype=torch.float32)
    up = torch.tensor(generator.normal(size=(96, RANK)), dtype=torch.float32)
    weights = {f"{name}.lora_A.weight": down, f"{name}.lora_B.weight": up}
    save_file(weights, folder / "adapter_model.safetensors")
    return {"down": down, "up": up}


@pytest.fixture
def copy(family_folder: Callable[[str], Path], tmp_path: Path) -> Path:
    folder = tmp_path / "phi"
    shutil.copytree(family_folder("phi4_multimodal"), folder)
    return folder


def load(folder: Path) -> Any:
    return load_model(load_processor(tiny_entry(folder, "phi4_multimodal")), "cpu")


def test_the_vision_adapter_of_phi_is_merged_when_it_is_loaded(copy: Path) -> None:
    before = load(copy).get_parameter(WEIGHT).clone()
    matrices = write_adapter(copy / "vision-lora")

    after = load(copy).get_parameter(WEIGHT)

    expected = before + ALPHA / RANK * matrices["up"] @ matrices["down"]
    torch.testing.assert_close(after, expected, rtol=0, atol=1e-5)
    assert (after - before).abs().max() > 0.1


def test_an_adapter_for_speech_alone_changes_nothing(copy: Path) -> None:
    before = load(copy).get_parameter(WEIGHT).clone()
    write_adapter(copy / "speech-lora")

    torch.testing.assert_close(load(copy).get_parameter(WEIGHT), before, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_merging_keeps_the_weights_number_format(copy: Path, dtype: torch.dtype) -> None:
    write_adapter(copy / "vision-lora")
    model = load_model(load_processor(tiny_entry(copy, "phi4_multimodal")), "cpu").to(dtype)

    assert merge_adapter(model, copy / "vision-lora") == 1
    assert model.get_parameter(WEIGHT).dtype == dtype


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": "base_model.model.other.layer"}, "changes other.layer.weight, which the model"),
        ({"peft_type": "LOHA"}, "the adapter is LOHA"),
        ({"use_dora": True}, "LORA with use_dora, and only plain LoRA can be merged. Merge it"),
    ],
)
def test_an_adapter_that_cannot_be_merged_is_refused(
    copy: Path, settings: dict[str, Any], sentence: str
) -> None:
    write_adapter(copy / "vision-lora", **settings)

    with pytest.raises(ModelError) as caught:
        load(copy)

    assert sentence in str(caught.value)


@pytest.mark.parametrize("missing", ["adapter_config.json", "adapter_model.safetensors"])
def test_a_missing_part_of_an_adapter_is_named(copy: Path, missing: str) -> None:
    write_adapter(copy / "vision-lora")
    (copy / "vision-lora" / missing).unlink()

    with pytest.raises(ModelError, match=rf"has no {missing}\. Download the model's adapter again"):
        load(copy)
