"""What the report says first about GRAS: each score in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from vlmfair.papers.gras.tables_scores import score_sentences
from vlmfair.render.report import Summary


def summarise(metrics: pd.DataFrame, models: Sequence[str], titles: Mapping[str, str]) -> Summary:
    """Return the title of the paper's part and one sentence per model.

    `metrics` is the METRICS table of all models. Raises ContractError when a score is missing.
    """
    title = "GRAS: bias in P(“Yes”) for personality traits by gender, race, age and skin tone"
    return Summary(title, score_sentences(metrics, models, titles))
