"""What the report says first about GRAS: each score in a sentence, and where it comes from."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

import vlmfair
from vlmfair.papers.gras.tables_scores import score_sentences
from vlmfair.provenance import library_versions
from vlmfair.render.report import Summary


def summarise(metrics: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]) -> Summary:
    """Return the title of the paper's part and one sentence per model.

    `metrics` is the METRICS table of all models. Raises ContractError when a score is missing.
    """
    title = "GRAS: bias in P(“Yes”) for personality traits by gender, race, age and skin tone"
    return Summary(title, score_sentences(metrics, models, titles))


def provenance_of(manifests: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return, by heading, what made the numbers: software, and each model's weights and answers.

    `manifests` are those of the gathered responses.
    """
    software = {
        "vlmfair": vlmfair.__version__,
        "Python": platform.python_version(),
        **library_versions(),
    }
    models = {}
    for manifest in manifests:
        shards = manifest["shards"]
        first = shards[0]
        modes = sorted({mode for shard in shards for mode in shard["inference_modes"]})
        models[first["model"]] = (
            f"content {first['model_digest']}, {first['dtype']}, {first['attention']} attention, "
            f"inference {', '.join(modes)}, {manifest['rows']:,} answers"
        )
    return {"Software": software, "Models": models}
