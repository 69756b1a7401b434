"""Model families: one module each, with what their classes and processors do differently."""

from __future__ import annotations

import importlib

from vlmfair.errors import ModelError
from vlmfair.models.families.base import Family

FAMILIES = {
    "blip2": "vlmfair.models.families.blip2",
    "idefics3": "vlmfair.models.families.idefics3",
    "internvl": "vlmfair.models.families.internvl",
    "llava": "vlmfair.models.families.llava",
    "llava_next": "vlmfair.models.families.llava_next",
    "minicpm_o": "vlmfair.models.families.minicpm_o",
    "minicpm_v": "vlmfair.models.families.minicpm_v",
    "mllama": "vlmfair.models.families.mllama",
    "paligemma": "vlmfair.models.families.paligemma",
    "phi3_5_vision": "vlmfair.models.families.phi3_5_vision",
    "phi4_multimodal": "vlmfair.models.families.phi4_multimodal",
    "qwen2_5_vl": "vlmfair.models.families.qwen2_5_vl",
    "qwen3_vl": "vlmfair.models.families.qwen3_vl",
    "qwen_vl_v1": "vlmfair.models.families.qwen_vl_v1",
    # The same class as LLaVA-1.5; a name of its own for the prompts of its released script.
    "sharegpt4v": "vlmfair.models.families.llava",
}

# Those whose models bring their own code, and run in envs/inference-legacy.yaml.
REMOTE_CODE_FAMILIES = ("minicpm_o", "minicpm_v", "phi3_5_vision", "qwen_vl_v1")


def load_family(name: str, model: str) -> Family:
    """Return the family `name` of the entry `model`; raises ModelError when there is no module."""
    if name not in FAMILIES:
        raise ModelError(
            f"{model}: there is no module for the model family {name!r}. Use one of the families "
            f"there are ({', '.join(sorted(FAMILIES))}) or add one to vlmfair/models/families."
        )
    family: Family = importlib.import_module(FAMILIES[name]).FAMILY
    return family
