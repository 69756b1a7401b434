"""Low-rank adapters that come with a checkpoint, merged into its weights when it is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from vlmfair.errors import ModelError

ADAPTER_CONFIG, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"


@torch.no_grad()
def merge_adapter(model: torch.nn.Module, folder: Path) -> int:
    """Add a PEFT LoRA adapter to the weights it belongs to; return how many weights it changed.

    W + alpha / r * B A, computed in float32 and stored in the weights' own dtype. Raises ModelError
    when a file is missing, the adapter is of another kind, or a weight is not in the model.
    """
    from safetensors.torch import load_file

    for name in (ADAPTER_CONFIG, ADAPTER_WEIGHTS):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}. Download the model's adapter again.")
    config = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    _check_kind(config, folder)
    rank, alpha = config["r"], config["lora_alpha"]
    scale = alpha / rank**0.5 if config.get("use_rslora") else alpha / rank
    weights = load_file(folder / ADAPTER_WEIGHTS)
    known = dict(model.named_parameters())
    changed = 0
    for name in sorted(weights):
        if not name.endswith(".lora_A.weight"):
            continue
        target = _target(name, known, folder)
        down, up = weights[name], weights[name.replace(".lora_A.", ".lora_B.")]
        change = (up.float() @ down.float()) * scale
        weight = known[target]
        weight.copy_((weight.float() + change.to(weight.device)).to(weight.dtype))
        changed += 1
    if 2 * changed != len(weights):
        raise ModelError(
            f"{folder}: {len(weights) - 2 * changed} of {len(weights)} tensors are no low-rank "
            f"weights. Check that {ADAPTER_WEIGHTS} is the model's own adapter."
        )
    return changed


def _check_kind(config: dict[str, Any], folder: Path) -> None:
    special = [
        key
        for key in ("use_dora", "rank_pattern", "alpha_pattern", "modules_to_save")
        if config.get(key)
    ]
    if config.get("peft_type") != "LORA" or special:
        raise ModelError(
            f"{folder}: the adapter is {config.get('peft_type')} with {', '.join(special) or '-'}, "
            f"and only plain LoRA can be merged. Merge it with peft and store the merged model."
        )


def _target(name: str, known: dict[str, Any], folder: Path) -> str:
    # PEFT wraps the model it adapts in two layers of its own.
    plain = name.removeprefix("base_model.model.").replace(".lora_A.weight", ".weight")
    for candidate in (plain, plain.removeprefix("model."), f"model.{plain}"):
        if candidate in known:
            return candidate
    raise ModelError(
        f"{folder}: the adapter changes {plain}, which the model does not have. "
        f"Check that adapter and model are of the same revision."
    )
