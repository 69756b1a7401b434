"""What the report says about where numbers come from: software, weights and answers."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import vlmfair
from vlmfair.provenance import library_versions


def provenance_of(manifests: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return, by heading, what made the numbers: software, and each model's weights and answers.

    `manifests` are those of the gathered responses; a model may have several, one for each paper
    or experiment. Of a model behind a server its name there and its address are told.
    """
    software = {
        "vlmfair": vlmfair.__version__,
        "Python": platform.python_version(),
        **library_versions(),
    }
    by_model: dict[str, list[Mapping[str, Any]]] = {}
    for manifest in manifests:
        by_model.setdefault(manifest["shards"][0]["model"], []).append(manifest)
    return {
        "Software": software,
        "Models": {model: _sentence(found) for model, found in by_model.items()},
    }


def _sentence(manifests: Sequence[Mapping[str, Any]]) -> str:
    shards = [shard for manifest in manifests for shard in manifest["shards"]]
    weights = list(dict.fromkeys(_weights(shard) for shard in shards))
    modes = sorted({mode for shard in shards for mode in shard["inference_modes"]})
    answers = sum(manifest["rows"] for manifest in manifests)
    asked = f", inference {', '.join(modes)}" if modes else ""
    return f"{'; '.join(weights)}{asked}, {answers:,} answers"


def _weights(shard: Mapping[str, Any]) -> str:
    server = shard.get("server")
    if server:
        return f"{server['model']} at {server['base_url']}"
    return f"content {shard['model_digest']}, {shard['dtype']}, {shard['attention']} attention"
